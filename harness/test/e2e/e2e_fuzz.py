"""fuzz as a user runs it: a clean library gives no finding; a liar is found, shrunk and written down so that it can be run again; what is killed at any
moment goes on and asks nothing twice; bad input is one line.
"""

import collections
import glob
import os
import re
import signal
import subprocess
import sys
import unittest

import e2e

sys.path.insert(0, os.path.join(e2e.SOURCE, "reports"))
from facts_reports.known import known  # noqa: E402

LIARS = os.path.join(e2e.BIN, "facts-worker-liars")
# Small cases, many of them with what the liar lies about.
SMALL = """draw 100
pass=fwd,bwd@3 dtype=bf16@2,f16 b=1..3 h=2,4/2 s=1..40,1..40/1..40 d=8,1..16
mask=default,causal
mod=default,softcap:1..20,temperature:2..8
fill=gauss@2,uniform
"""


class Fuzz(e2e.TestCase):
    def liar(self, name):
        """A worker that lies in one way: what FACTS_WORKER takes."""
        path = self.write(name, f"#!/bin/sh\nexec {LIARS} --liar {name}\n")
        os.chmod(path, 0o755)
        return path

    def fuzz(self, *arguments, worker=e2e.WORKER, record="r.jsonl", home=e2e.SOURCE):
        return e2e.facts(
            "fuzz",
            "--device",
            "cpu",
            "-o",
            self.path(record),
            *arguments,
            FACTS_WORKER=worker,
            FACTS_HOME=home,
        )

    def small(self):
        return "--draws", self.write("small.cases", SMALL)

    def test_cases_that_need_a_worker_of_their_own_are_asked_together(self):
        """cuDNN reads the threshold of rescale= once, so a worker of another one starts again."""
        suite = self.write(
            "rescale.cases",
            "draw 100\npass=fwd dtype=bf16 b=1..3 h=1..8 s=1..30000 rescale=default@7,2,8\n",
        )
        done = e2e.facts(
            "fuzz",
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "--device",
            "h100-sxm",
            "-j1",
            "--cases",
            "150",
            "--seed",
            "2",
            "--draws",
            suite,
            "-o",
            self.path("r.jsonl"),
        )
        self.assertStatus(done, 0)
        asked = [row["case"] for row in e2e.Record(self.path("r.jsonl")).rows]
        self.assertEqual((len(asked), len(set(asked))), (150, 150))
        thresholds = [re.search("rescale=[0-9]+|$", case)[0] for case in asked]
        self.assertGreater(len(asked) - thresholds.count(""), 20)
        self.assertLess(sum(a != b for a, b in zip(thresholds, thresholds[1:])), 10)

    def rows(self, record="r.jsonl"):
        """How often each (case, verdict, group) stands in a record."""
        return collections.Counter(
            (row["case"], row["verdict"], row["group"])
            for row in e2e.Record(self.path(record)).rows
        )

    def findings(self, record="r"):
        found = {}
        for path in sorted(
            glob.glob(self.path(record + ".findings", "*[!w]"))
        ):  # .new: one that is being written
            with open(path, encoding="utf-8") as file:
                found[os.path.basename(path)] = file.read()
        return found

    def known(self, name):
        """The file that is meant for cases/known, as the project reads it."""
        return known.read_file(self.path("r.findings", name), {})

    def test_a_crash_of_cudnn_becomes_a_known_failure(self):
        build = e2e.need(e2e.NEW)
        done = e2e.facts(
            "fuzz",
            "--cases",
            "40",
            "--seed",
            "4",
            "--with",
            "guards=off",
            "--where",
            "pass=bwd & s.q=1 & b=1",
            "--known",
            "--cudnn",
            build.name,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r.jsonl"),
        )
        self.assertStatus(done, 1)
        (name,) = [name for name in self.findings() if name.endswith(".known")]
        (failure,) = self.known(name).failures
        self.assertEqual(
            (failure.entry.kind, failure.verdicts, failure.fields["sm"], failure.ranges),
            ("failure", ["crash"], "90", [(92700, known.NEWEST)]),
        )
        self.assertEqual(
            known.Failure.expectations(failure),
            [(failure.when + " & cudnn>=9.27.0 & sm=90", False)],
        )
        listed = e2e.facts("list", self.path("r.findings", name))
        self.assertStatus(listed, 0)
        self.assertEqual(f'case="{listed.out.splitlines()[0]}"', failure.when)

    def test_what_is_right_gives_no_finding(self):
        done = self.fuzz("--cases", "40")
        self.assertStatus(done, 0)
        self.assertIn("40 cases drawn with seed 1", done.out)
        self.assertIn("\n0 findings\n", done.out)
        self.assertFalse(os.path.exists(self.path("r.findings")))
        drawn = [case for case, _, group in self.rows() if group == "fuzz/drawn"]
        self.assertEqual(len(drawn), 40)

    def test_a_liar_is_found_shrunk_and_written_down_once_with_its_count(self):
        liar = self.liar("mod-no-gradient")
        done = self.fuzz("--cases", "30", *self.small(), worker=liar)
        self.assertStatus(done, 1)
        wrong = int(re.search(r"(\d+) wrong", done.out)[1])
        counts = [
            int(n)
            for n in re.findall(
                r"^\d+(?:, ordinary)?: wrong \w+ \(\w+\), backend cpu: (\d+) drawn cases?$",
                done.out,
                re.M,
            )
        ]
        self.assertEqual(sum(counts), wrong, done.out)
        self.assertLess(2 * len(counts), wrong, done.out)
        self.assertEqual(len(self.findings()), 2 * len(counts) + 1)
        names = sorted({name.rsplit(".", 1)[0] for name in self.findings() if name != "README.md"})
        self.assertTrue(names)
        for name in names:
            entry, paragraph = self.known(name + ".known"), self.findings()[name + ".md"]
            self.assertEqual(
                (entry.about, entry.failures), ("caller", []), "the failure is not cuDNN's"
            )
            smallest = [line for line in entry.groups[0][3] if line]
            self.assertTrue(smallest)
            for case in smallest:
                self.assertRegex(case, r"^pass=bwd dtype=\w+ b=1 h=1 s=\d(/\d)? d=\d+ mod=\w+:\d+$")
                self.assertIn(f"facts repro '{case}' --device cpu", paragraph)
            for words in (
                "The worst element is d",
                "failed 2 of 2 times",
                "facts fuzz --seed 1",
                "instead of",
            ):
                self.assertIn(words, paragraph)
            file = self.path("r.findings", name + ".known")
            self.assertStatus(
                e2e.facts(
                    "run",
                    file,
                    "--device",
                    "cpu",
                    "-o",
                    self.path(name + ".with"),
                    FACTS_WORKER=liar,
                ),
                1,
            )
            self.assertStatus(
                e2e.facts("run", file, "--device", "cpu", "-o", self.path(name + ".without")), 0
            )
            for row in e2e.Record(self.path(name + ".with")).rows:
                self.assertEqual(
                    row["verdict"],
                    "pass" if row["group"].endswith("/controls") else "wrong",
                    row["case"],
                )

    ROPE = SMALL + "rope=default,1\n"

    def test_the_ranking_is_on_the_terminal_in_the_record_and_in_the_files(self):
        suite = self.write("ranked.cases", self.ROPE)
        done = self.fuzz("--cases", "40", "--draws", suite, worker=self.liar("rope-pair"))
        self.assertStatus(done, 1)
        listed = [
            (int(n), bool(ordinary))
            for n, ordinary in re.findall(r"^(\d+)(, ordinary)?: wrong", done.out, re.M)
        ]
        smallest = re.findall(r"^  smallest:\n    facts repro '(.*)' --device cpu$", done.out, re.M)
        self.assertGreater(len(listed), 1, done.out)
        self.assertEqual([n for n, _ in listed], list(range(1, len(listed) + 1)))
        marks = [ordinary for _, ordinary in listed]
        self.assertEqual(marks, sorted(marks, reverse=True), "ordinary ones first")
        self.assertRegex(
            done.out,
            rf"\n{len(listed)} findings, {sum(marks)} of them ordinary; files for cases/known",
        )
        found = e2e.Record(self.path("r.jsonl")).findings
        self.assertEqual({one["best"] for one in found}, set(smallest))
        page = self.findings()["README.md"]
        self.assertEqual(
            [int(n) for n in re.findall(r"^\| (\d+) \|", page, re.M)], [n for n, _ in listed]
        )
        self.assertTrue(marks[0])
        paragraphs = " ".join(
            said for name, said in self.findings().items() if name.endswith(".md")
        )
        self.assertIn(f"Finding 1 of {len(listed)}, an ordinary case.", paragraphs)

    def test_a_failure_that_is_known_without_some_features_is_no_finding(self):
        """Known: the gradient of a score modification, without a mask. What is drawn has one."""
        source = os.path.join(e2e.SOURCE, "cases")
        os.makedirs(self.path("home", "cases", "expect"))
        for name in os.listdir(source):
            os.symlink(os.path.join(source, name), self.path("home", "cases", name))
        self.write(
            "home/cases/expect/mod.expect",
            "2026-01-01 wrong mask=none & mod!=none https://example.org/1\n",
        )
        done = self.fuzz(
            "--cases",
            "20",
            *self.small(),
            "--where",
            "mask=causal",
            worker=self.liar("mod-no-gradient"),
            home=self.path("home"),
        )
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out, r"\nknown: wrong \w+ \(\w+\), backend cpu: [1-9]\d* drawn cases?\n"
        )
        self.assertRegex(
            done.out,
            r"this known failure, which has fewer features, explains it:\n    pass=bwd [^\n]*s=\S+ d=\d mod=\w+:\d  https://example.org/1\n",
        )
        self.assertIn(
            "more case is a known failure with additional features, not a finding\n0 findings\n",
            done.out,
        )
        self.assertEqual(list(self.findings()), ["README.md"])

    def test_a_killed_run_leaves_its_findings_in_the_record(self):
        process = self.start(
            "--cases",
            "100000",
            *self.small(),
            worker=self.liar("mod-no-gradient"),
            record="r.jsonl",
        )
        e2e.wait_for(
            lambda: (
                os.path.exists(self.path("r.jsonl")) and e2e.Record(self.path("r.jsonl")).findings
            ),
            process,
        )
        process.kill()
        process.communicate()
        rows = len(e2e.Record(self.path("r.jsonl")).rows)
        again = self.fuzz("--resume")
        self.assertStatus(again, 0)
        self.assertRegex(again.out, r"(?m)^1(, ordinary)?: wrong ")
        self.assertIn("README.md", self.findings())
        self.assertTrue([name for name in self.findings() if name.endswith(".known")])
        self.assertEqual(len(e2e.Record(self.path("r.jsonl")).rows), rows, "nothing was asked")

    def start(self, *arguments, worker, record):
        return subprocess.Popen(
            [e2e.FACTS, "fuzz", "--device", "cpu", "-o", self.path(record), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=e2e.environment(FACTS_WORKER=worker),
        )

    def test_killed_at_any_request_it_goes_on_and_asks_nothing_twice(self):
        liar = e2e.Between(self.path("liar"), f"{LIARS} --liar mod-no-gradient")
        arguments = ("--cases", "15", "--seed", "9", *self.small(), "-j1")
        self.assertStatus(self.fuzz(*arguments, worker=liar.worker, record="whole.jsonl"), 1)
        for request in e2e.some((2, 1, 3, 7, 20, 30, 31, 32, 33), of=5):
            liar.set("hold", request)
            process = self.start(*arguments, "--resume", worker=liar.worker, record="killed.jsonl")
            self.assertTrue(liar.wait_until_held(process), request)
            process.kill()
            process.communicate()
        liar.set()
        arguments = ("--cases", "15", *self.small(), "-j1")  # the seed is the record's
        self.assertStatus(
            self.fuzz(*arguments, "--resume", worker=liar.worker, record="killed.jsonl"), 1
        )
        whole, killed = self.rows("whole.jsonl"), self.rows("killed.jsonl")
        drawn, drawn_killed = (
            {row for row in rows if row[2] == "fuzz/drawn"} for rows in (whole, killed)
        )
        self.assertEqual(drawn, drawn_killed)
        for row, times in killed.items():
            self.assertLessEqual(
                times, whole[row] if whole[row] else 2, row
            )  # a first answer, and one repetition
        self.assertEqual(self.findings("whole"), self.findings("killed"))
        before = len(e2e.Record(self.path("killed.jsonl")).rows)
        again = self.fuzz(*arguments, "--resume", worker=liar.worker, record="killed.jsonl")
        self.assertStatus(again, 1)
        self.assertEqual(len(e2e.Record(self.path("killed.jsonl")).rows), before)

    def test_an_interrupt_leaves_a_summary(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        worker.set("hold", 20)
        process = self.start("--minutes", "100", worker=worker.worker, record="r.jsonl")
        self.assertTrue(worker.wait_until_held(process))
        process.send_signal(signal.SIGINT)
        worker.release()
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(out, r"\d+ cases drawn with seed 1: .*pass")
        self.assertIn("record: ", out)

    def test_minutes_end_it(self):
        done = self.fuzz("--minutes", "0.02")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"\d+ cases drawn")

    def test_a_described_device_is_asked_only(self):
        build = e2e.need(e2e.NEW)
        done = e2e.facts(
            "fuzz",
            "--cases",
            "30",
            "--cudnn",
            build.name,
            "--device",
            "h100-sxm",
            "--where",
            "scale=auto",
            "-o",
            self.path("r.jsonl"),
        )
        self.assertStatus(done, 0)
        self.assertEqual(
            {row["grade"] for row in e2e.Record(self.path("r.jsonl")).rows}, {"decided"}
        )

    def test_bad_input_is_one_line(self):
        bad = self.write("bad.cases", "draw 9\npass=fwd\nfil=gauss\n")
        held = self.write("held.jsonl", "{}\n")
        for arguments, words in (
            (["fuzz", "--device", "cpu"], ["--minutes"]),
            (["fuzz", "--minutes", "0"], ["--minutes", "above 0"]),
            (["fuzz", "--cases", "many"], ["--cases"]),
            (["fuzz", "--cases", "3", "--resume"], ["-o FILE"]),
            (
                ["fuzz", "--cases", "3", "--device", "cpu", "--draws", bad],
                ["bad.cases:3:1: fil is not a key", "fill?"],
            ),
            (["fuzz", "--cases", "3", "--device", "cpu", "--draws", self.path("none")], ["none"]),
            (["fuzz", "--cases", "3", "--device", "cpu", "--where", "d.qk>"], ["where"]),
            (["fuzz", "--cases", "3", "--device", "cpu", "--with", "engine=some"], ["engine"]),
            (["fuzz", "--cases", "3", "--device", "cpu", "-o", held], ["held.jsonl", "exists"]),
            (["fuzz", "smoke", "--cases", "3"], ["smoke"]),
        ):
            self.assertOneLine(e2e.facts(*arguments), 2, *words)

    def test_a_record_that_cannot_be_written_is_told_of_alone(self):
        self.assertOneLine(
            e2e.facts("fuzz", "--cases", "3", "--device", "cpu", "-o", self.path("none", "r")),
            3,
            self.path("none", "r"),
        )


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
