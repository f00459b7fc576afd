"""Known failures as a user asks for them: a real cuDNN that ends the process, a file of our own, and the project's files."""

import json
import os
import shutil
import unittest

import e2e

WIDE = "d=192/128"  # one configuration to compile, not three
CRASH = e2e.data("crash.known").replace("WIDE", WIDE)


class Known(e2e.TestCase):
    def home(self, text=CRASH):
        """A home with one failure; the rest is the project's."""
        home = self.path("home")
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(os.path.join(home, "cases/known"))
        os.symlink(os.path.join(e2e.SOURCE, "cases/suites"), os.path.join(home, "cases/suites"))
        families = os.path.join(e2e.SOURCE, "cases/known/engines.families")
        shutil.copy(families, os.path.join(home, "cases/known"))
        self.known = os.path.join(home, "cases/known/ends.known")
        with open(self.known, "w", encoding="utf-8") as file:
            file.write(text)
        for part in ("reports", "ci", "lib"):
            os.symlink(os.path.join(e2e.SOURCE, part), os.path.join(home, part))
        return home

    def check(self, home, build, *words):
        where = ("-o", self.path("r.jsonl"), "--overwrite")
        return self.asked("known", "check", *words, *where, cudnn=build, FACTS_HOME=home)

    def test_a_version_that_still_ends_the_process_is_proposed_and_written(self):
        home = self.home()
        done = self.check(home, e2e.NEW)
        self.assertStatus(done, 0)
        line = "seen: 9.27.0; h100-sxm (described), r.jsonl"
        count = "1 known failure still fails, 0 no longer fail, 0 got no answer (cuDNN 9.27.0)"
        for said in (f"+{line}", count):
            self.assertIn(said, done.out)
        self.assertEqual(e2e.read(self.known), CRASH, "without --write nothing is changed")
        written = e2e.facts("known", "check", self.path("r.jsonl"), "--write", FACTS_HOME=home)
        self.assertStatus(written, 0)
        self.assertIn(f"seen: 9.26.0; a report\n{line}\n", e2e.read(self.known))
        again = e2e.facts("known", "check", self.path("r.jsonl"), FACTS_HOME=home)
        self.assertStatus(again, 0)
        self.assertNotIn("+seen", again.out)

    def test_a_version_that_answers_ends_the_failure_there_and_a_wrong_file_is_contradicted(self):
        done = self.check(self.home(CRASH.replace("seen: 9.26.0;", "seen: 9.8.0;")), e2e.OLD)
        self.assertStatus(done, 0)
        self.assertIn("+right: 9.20.0; h100-sxm (described), r.jsonl", done.out)
        self.assertIn("1/1 no longer fails: ends", done.out)
        right = "seen: 9.26.0; a report\nright: 9.27.0; a guess"
        wrong = self.check(self.home(CRASH.replace("seen: 9.26.0; a report", right)), e2e.NEW)
        self.assertStatus(wrong, 1)
        said = r"ends\.known:5: cuDNN 9\.27\.0 on h100-sxm fails \(1 results\), and the file says that it is right"
        self.assertRegex(wrong.err, said)

    def test_an_observation_by_hand_is_written_and_a_bad_one_is_not(self):
        home = self.home()

        def note(words):
            return e2e.facts(
                "known", "note", *words.split(), "--source", "a report", FACTS_HOME=home
            )

        self.assertStatus(note("ends right 9.30.0"), 0)
        noted = e2e.read(self.known)
        self.assertIn("right: 9.30.0; a report\n", noted)
        for words, said in (
            ("ends seen 9.30.0", "9.30.0 was seen failing"),
            ("ends seen soon", "'soon' is not a version"),
            ("end seen 9.1.0", "did you mean ends?"),
            ("ends/other seen 9.1.0", "no failure called 'other'"),
        ):
            done = note(words)
            self.assertStatus(done, 2)
            self.assertIn(said, done.err)
            self.assertEqual(e2e.read(self.known), noted)

    def test_a_mistake_in_a_file_is_one_line_with_its_place(self):
        home = self.home(CRASH.replace("b=1 &", "bb=1 &"))
        for word, said in (
            ("list", "ends.known:7: when: column 12: no key 'bb'"),
            ("lst", "did you mean list?"),
        ):
            self.assertOneLine(e2e.facts("known", word, FACTS_HOME=home), 2, said)

    def test_the_projects_failures_are_listed_and_shown(self):
        done = e2e.facts("known", "list", "--cudnn", "99.0.0", "--json")
        self.assertStatus(done, 0)
        ids = {json.loads(line)["id"] for line in done.out.splitlines()}
        self.assertIn("bwd-plan-segfault-b1-hq1-sq1", ids, "nobody has seen it right")
        self.assertNotIn("fp8-backward-tail", ids, "9.27.0 was seen right")
        lines = e2e.facts("known", "list").out.splitlines()
        lines = [line for line in lines if not line.startswith(" ")]
        listed = "\n".join(lines)
        self.assertRegex(listed, r"(?m)^empty-keys-unwritten +(all|[0-9.]+ and newer)$")
        self.assertNotIn(";", listed, "one union of versions for each failure")
        done = e2e.facts("known", "show", "fp8-backward-tail")
        self.assertStatus(done, 0)
        self.assertIn("Versions: 9.14.0 to before 9.24.1.", done.out)
        self.assertIn("facts list regress/fp8-backward-tail", done.out)
        self.assertStatus(e2e.facts("list", "regress/fp8-backward-tail"), 0)

    def test_the_library_refuses_in_a_version_that_is_newer_than_every_observation(self):
        done = self.asked("decide", "pass=bwd b=1 h=1 s=1 guards=on", "--json")
        self.assertStatus(done, 0)
        self.assertIn("rule bwd-plan-segfault-b1-hq1-sq1", done.out)

    def test_what_is_known_of_a_case_is_said_with_its_answer(self):
        wrong = "pass=bwd dtype=bf16 b=1 h=1 s=704 d=64 bias=11ss"
        for case, build, device, words in (
            (
                wrong + " fill=neglse",
                e2e.OLD,
                "h100-sxm",
                "yes 1, but known to be wrong for very negative scores: dQ is NaN if ",
            ),
            (wrong, e2e.OLD, "h100-sxm", "yes 1; known to be wrong for very negative scores: dQ "),
            (wrong + " fill=neglse", e2e.NEW, "h100-sxm", "yes 1\n"),
            (
                "pass=bwd dtype=f16 b=2 h=16 s=1000 d=256",
                e2e.NEW,
                "sm100-spec",
                "yes 1, but known not to compile: The backward of head dim 256 ",
            ),
        ):
            where = ("--cudnn", e2e.need(build).name, "--device", device)
            done = e2e.facts("decide", case, *where)
            self.assertIn(words, done.out)

    def test_what_is_known_is_asked_by_case_by_version_and_between_versions(self):
        case = "pass=bwd dtype=bf16 b=1 h=1 s=704 d=64 fill=neglse"
        name = "bwd-nan-negative-lse-skv-mod128-eq-64"
        build = e2e.need(e2e.OLD).name
        done = e2e.facts("known", case, "--cudnn", build)
        self.assertStatus(done, 0)
        for words in (f"fixed in 9.26.0 ({name})", "seen with this version", "sent by pytorch"):
            self.assertIn(words, done.out)
        (line,) = e2e.facts("known", case, "--cudnn", build, "--json").out.splitlines()
        known = json.loads(line)["known"]
        self.assertEqual((known["id"], known["sure"], known["such_data"]), (name, "seen", True))
        for words, held in (
            ("--cudnn 9.20.0 --device h100-sxm", True),
            ("--cudnn 9.26.0 --device h100-sxm", False),
            ("--cudnn 9.20.0 --device sm100-spec", False),
        ):
            done = e2e.facts("known", *words.split(), "--json")
            self.assertEqual(f'"id": "{name}"' in done.out, held, words)
        done = e2e.facts("known", "--between", "9.20.0", "9.28.1", "--device", "h100-sxm")
        begins, ends = done.out.split("ends from 9.20.0 to 9.28.1: ")
        self.assertRegex(begins, r"^begins from 9.20.0 to 9.28.1: \d+ failures")
        self.assertIn("  bwd-plan-segfault-b1-hq1-sq1 ", begins)
        self.assertIn(f"  {name} ", ends)

    def test_a_check_lists_each_entry_when_it_was_asked_and_counts_what_needs_a_gpu(self):
        home = self.home()
        wrong = CRASH.replace("crash", "wrong").replace("ask: never\n", "").replace("d=64", WIDE)
        self.write("home/cases/known/wrong.known", wrong)
        after = CRASH.replace("crash", "build_fail").replace("s.q=1\n", "s.q=64\n")
        after = after.replace("s=1/", "s=64/").replace("s=2/", "s=4/").replace("d=64", WIDE)
        after = after.replace("ask: never\n", "")
        self.write("home/cases/known/after.known", after)
        done = self.check(home, e2e.NEW)
        self.assertIn("asking 2 entries\n", done.err)
        self.assertRegex(
            done.out,
            r"\A1/2 still fails: ends: cuDNN ends the process\.\n2/2 no longer fails: after: .*\n--- ",
        )
        self.assertIn("0 got no answer; 1 needs a GPU (cuDNN 9.27.0)", done.out)
        done = self.check(home, e2e.NEW, "wrong", "--json")
        said = json.loads(done.out.splitlines()[0])
        self.assertEqual(
            (said["id"], said["answer"], said["why"]), ("wrong", "no answer", "it needs a GPU")
        )


if __name__ == "__main__":
    unittest.main()
