"""Known failures as a user asks for them: a real cuDNN that ends the process, a file of our own, and the project's files."""

import json
import os
import shutil
import unittest

import e2e

CRASH = """title: cuDNN ends the process.
kind: number
verdict: crash

failure:
verdict: crash
when: pass=bwd & b=1 & h.q=1 & s.q=1
sm: any
seen: 9.26.0; a report
date: 2026-11-22
guard: asked for this, cuDNN ends the process
instead: ask for something else
ask: never

cases:
pass=bwd b=1 h=1 s=1/64 d=64 guards=off

controls:
why: two queries
pass=bwd b=1 h=1 s=2/64 d=64
"""


class Known(e2e.TestCase):
    def home(self, text=CRASH):
        """A home with one failure; the rest is the project's."""
        home = self.path("home")
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(os.path.join(home, "cases/known"))
        os.symlink(os.path.join(e2e.SOURCE, "cases/suites"), os.path.join(home, "cases/suites"))
        shutil.copy(
            os.path.join(e2e.SOURCE, "cases/known/engines.families"),
            os.path.join(home, "cases/known"),
        )
        self.known = os.path.join(home, "cases/known/ends.known")
        with open(self.known, "w", encoding="utf-8") as file:
            file.write(text)
        for part in ("reports", "ci", "lib"):
            os.symlink(os.path.join(e2e.SOURCE, part), os.path.join(home, part))
        return home

    def check(self, home, build, *words):
        return e2e.facts(
            "known",
            "check",
            *words,
            "--cudnn",
            e2e.need(build).name,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r.jsonl"),
            "--overwrite",
            FACTS_HOME=home,
        )

    def test_a_version_that_still_ends_the_process_is_proposed_and_written(self):
        home = self.home()
        done = self.check(home, e2e.NEW)
        self.assertStatus(done, 0)
        self.assertIn("+seen: 9.27.0; h100-sxm (described), r.jsonl", done.out)
        self.assertIn(
            "1 known failure still fails, 0 no longer fail, 0 got no answer (cuDNN 9.27.0)",
            done.out,
        )
        with open(self.known, encoding="utf-8") as file:
            self.assertEqual(file.read(), CRASH, "without --write nothing is changed")
        self.assertStatus(self.check(home, e2e.NEW, "--write"), 0)
        with open(self.known, encoding="utf-8") as file:
            self.assertIn(
                "seen: 9.26.0; a report\nseen: 9.27.0; h100-sxm (described), r.jsonl\n", file.read()
            )
        again = e2e.facts("known", "check", self.path("r.jsonl"), FACTS_HOME=home)
        self.assertStatus(again, 0)
        self.assertNotIn("+seen", again.out)

    def test_a_version_that_answers_ends_the_failure_there_and_a_wrong_file_is_contradicted(self):
        home = self.home(CRASH.replace("seen: 9.26.0;", "seen: 9.8.0;"))
        done = self.check(home, e2e.OLD)
        self.assertStatus(done, 0)
        self.assertIn("+right: 9.20.0; h100-sxm (described), r.jsonl", done.out)
        self.assertIn("no longer fails: ends", done.out)
        wrong = self.check(
            self.home(
                CRASH.replace(
                    "seen: 9.26.0; a report", "seen: 9.26.0; a report\nright: 9.27.0; a guess"
                )
            ),
            e2e.NEW,
        )
        self.assertStatus(wrong, 1)
        self.assertRegex(
            wrong.err,
            r"ends\.known:5: cuDNN 9\.27\.0 on h100-sxm fails \(1 results\), and the file says that it is right",
        )

    def test_an_observation_by_hand_is_written_and_a_bad_one_is_not(self):
        home = self.home()
        self.assertStatus(
            e2e.facts(
                "known", "note", "ends", "right", "9.30.0", "--source", "a report", FACTS_HOME=home
            ),
            0,
        )
        with open(self.known, encoding="utf-8") as file:
            noted = file.read()
        self.assertIn("right: 9.30.0; a report\n", noted)
        for words, said in (
            (("ends", "seen", "9.30.0", "--source", "x"), "9.30.0 was seen failing"),
            (("ends", "seen", "soon", "--source", "x"), "'soon' is not a version"),
            (("end", "seen", "9.1.0", "--source", "x"), "did you mean ends?"),
            (("ends/other", "seen", "9.1.0", "--source", "x"), "no failure called 'other'"),
        ):
            done = e2e.facts("known", "note", *words, FACTS_HOME=home)
            self.assertStatus(done, 2)
            self.assertIn(said, done.err)
            with open(self.known, encoding="utf-8") as file:
                self.assertEqual(file.read(), noted)

    def test_a_mistake_in_a_file_is_one_line_with_its_place(self):
        home = self.home(CRASH.replace("b=1 &", "bb=1 &"))
        self.assertOneLine(
            e2e.facts("known", "list", FACTS_HOME=home),
            2,
            "ends.known:7: when: column 12: no key 'bb'",
        )
        self.assertOneLine(e2e.facts("known", "lst", FACTS_HOME=home), 2, "did you mean list?")

    def test_the_projects_failures_are_listed_and_shown(self):
        done = e2e.facts("known", "list", "--cudnn", "99.0.0", "--json")
        self.assertStatus(done, 0)
        entries = [json.loads(line) for line in done.out.splitlines()]
        self.assertIn(
            "bwd-plan-segfault-b1-hq1-sq1", {e["id"] for e in entries}, "nobody has seen it right"
        )
        self.assertNotIn("fp8-backward-tail", {e["id"] for e in entries}, "9.27.0 was seen right")
        listed = {
            line.split()[0]: line
            for line in e2e.facts("known", "list").out.splitlines()
            if not line.startswith(" ")
        }
        self.assertRegex(
            listed["empty-keys-unwritten"], r"empty-keys-unwritten +(all|[0-9.]+ and newer)$"
        )
        self.assertEqual(
            [line for line in listed.values() if ";" in line],
            [],
            "one union of versions for each failure",
        )
        done = e2e.facts("known", "show", "fp8-backward-tail")
        self.assertStatus(done, 0)
        self.assertIn("Versions: 9.14.0 to before 9.24.1.", done.out)
        self.assertIn("facts list regress/fp8-backward-tail", done.out)
        self.assertStatus(e2e.facts("list", "regress/fp8-backward-tail"), 0)

    def test_the_library_refuses_in_a_version_that_is_newer_than_every_observation(self):
        done = e2e.facts(
            "decide",
            "pass=bwd b=1 h=1 s=1",
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "--device",
            "h100-sxm",
            "--json",
        )
        self.assertStatus(done, 0)
        self.assertIn("rule bwd-plan-segfault-b1-hq1-sq1", done.out)


if __name__ == "__main__":
    unittest.main()
