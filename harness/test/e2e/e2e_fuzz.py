"""fuzz as a user runs it: a clean library gives no finding; a liar is found, shrunk and written down so that it can be run again; what is killed at any
moment goes on and asks nothing twice; bad input is one line.
"""

import collections
import glob
import json
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

    def fuzz(self, *arguments, status=0, worker=e2e.WORKER, record="r.jsonl", home=e2e.SOURCE):
        words = ("--device", "cpu", "-o", self.path(record), *arguments)
        done = e2e.facts("fuzz", *words, FACTS_WORKER=worker, FACTS_HOME=home)
        self.assertStatus(done, status)
        return done

    def described(self, *words, status=0):
        """A search that asks cuDNN about a described device: its record."""
        build = ("--cudnn", e2e.need(e2e.NEW).name, "--device", "h100-sxm")
        done = e2e.facts("fuzz", *build, *words, "-o", self.path("r.jsonl"))
        self.assertStatus(done, status)
        return e2e.Record(self.path("r.jsonl"))

    def small(self):
        return "--draws", self.write("small.cases", SMALL)

    def test_cases_that_need_a_worker_of_their_own_are_asked_together(self):
        """cuDNN reads the threshold of rescale= once, so a worker of another one starts again."""
        draw = "pass=fwd dtype=bf16 b=1..3 h=1..8 s=1..30000 rescale=default@7,2,8"
        suite = self.write("rescale.cases", f"draw 100\n{draw}\n")
        record = self.described("-j1", "--cases", "150", "--seed", "2", "--draws", suite)
        self.assertEqual({row["grade"] for row in record.rows}, {"decided"})
        asked = [row["case"] for row in record.rows]
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
        found = {}  # .new: one that is being written
        for path in sorted(glob.glob(self.path(record + ".findings", "*[!w]"))):
            with open(path, encoding="utf-8") as file:
                found[os.path.basename(path)] = file.read()
        return found

    def known(self, name):
        """The file that is meant for cases/known, as the project reads it."""
        return known.read_file(self.path("r.findings", name), {})

    def test_a_crash_of_cudnn_becomes_a_known_failure(self):
        words = ("--cases", "40", "--seed", "4", "--with", "guards=off", "--known")
        self.described(*words, "--where", "pass=bwd & s.q=1 & b=1", status=1)
        (name,) = [name for name in self.findings() if name.endswith(".known")]
        (failure,) = self.known(name).failures
        kind = failure.entry.kind
        self.assertEqual(
            (kind, failure.verdicts, failure.fields["sm"]), ("failure", ["crash"], "90")
        )
        self.assertEqual(failure.ranges, [(92700, known.NEWEST)])
        expected = [(failure.when + " & cudnn>=9.27.0 & sm=90", False)]
        self.assertEqual(known.Failure.expectations(failure), expected)
        listed = e2e.facts("list", self.path("r.findings", name))
        self.assertStatus(listed, 0)
        self.assertEqual(f'case="{listed.out.splitlines()[0]}"', failure.when)

    def test_what_is_right_gives_no_finding(self):
        done = self.fuzz("--cases", "40")
        for said in ("40 cases drawn with seed 1", "\n0 findings\n"):
            self.assertIn(said, done.out)
        self.assertFalse(os.path.exists(self.path("r.findings")))
        drawn = [case for case, _, group in self.rows() if group == "fuzz/drawn"]
        self.assertEqual(len(drawn), 40)

    def test_a_liar_is_found_shrunk_and_written_down_once_with_its_count(self):
        liar = self.liar("mod-no-gradient")
        done = self.fuzz("--cases", "30", *self.small(), worker=liar, status=1)
        wrong = int(re.search(r"(\d+) wrong", done.out)[1])
        line = r"(?m)^\d+(?:, ordinary)?: wrong \w+ \(\w+\), backend cpu: (\d+) drawn cases?$"
        counts = [int(n) for n in re.findall(line, done.out)]
        self.assertEqual(sum(counts), wrong, done.out)
        self.assertLess(2 * len(counts), wrong, done.out)
        self.assertEqual(len(self.findings()), 2 * len(counts) + 1)
        names = sorted({name.rsplit(".", 1)[0] for name in self.findings() if name != "README.md"})
        self.assertTrue(names)
        for name in names:
            entry, paragraph = self.known(name + ".known"), self.findings()[name + ".md"]
            found = (entry.kind, entry.about, entry.failures)
            self.assertEqual(found, ("behaviour", "caller", []), "the failure is not cuDNN's")
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
            run = ("run", self.path("r.findings", name + ".known"), "--device", "cpu", "-o")
            record = self.path(name + ".with")
            self.assertStatus(e2e.facts(*run, record, FACTS_WORKER=liar), 1)
            self.assertStatus(e2e.facts(*run, self.path(name + ".without")), 0)
            for row in e2e.Record(record).rows:
                right = row["group"].endswith("/controls")
                self.assertEqual(row["verdict"], "pass" if right else "wrong", row["case"])

    ROPE = SMALL + "rope=default,1\n"

    def test_the_ranking_is_on_the_terminal_in_the_record_and_in_the_files(self):
        suite = self.write("ranked.cases", self.ROPE)
        words = ("--cases", "40", "--draws", suite)
        done = self.fuzz(*words, worker=self.liar("rope-pair"), status=1)
        listed = re.findall(r"(?m)^(\d+)(, ordinary)?: wrong", done.out)
        numbers, marks = [int(n) for n, _ in listed], [bool(mark) for _, mark in listed]
        smallest = re.findall(r"(?m)^  smallest:\n    facts repro '(.*)' --device cpu$", done.out)
        self.assertGreater(len(listed), 1, done.out)
        self.assertEqual(numbers, list(range(1, len(listed) + 1)))
        self.assertEqual(marks, sorted(marks, reverse=True), "ordinary ones first")
        self.assertTrue(marks[0])
        count = f"{len(listed)} findings, {sum(marks)} of them ordinary; files for cases/known"
        self.assertIn("\n" + count, done.out)
        found = e2e.Record(self.path("r.jsonl")).findings
        self.assertEqual({one["best"] for one in found}, set(smallest))
        page = re.findall(r"(?m)^\| (\d+) \|", self.findings()["README.md"])
        self.assertEqual([int(n) for n in page], numbers)
        said = f"Finding 1 of {len(listed)}, an ordinary case."
        self.assertTrue([name for name, text in self.findings().items() if said in text])

    def test_a_failure_that_is_known_without_some_features_is_no_finding(self):
        """Known: the gradient of a score modification, without a mask. What is drawn has one."""
        source = os.path.join(e2e.SOURCE, "cases")
        os.makedirs(self.path("home", "cases", "known"))
        for name in set(os.listdir(source)) - {"known"}:
            os.symlink(os.path.join(source, name), self.path("home", "cases", name))
        known = {"verdict": ["wrong"], "link": "https://example.org/1"}
        known["expect"] = [{"where": "mask=none & mod!=none"}]
        self.write("home/cases/known/known.jsonl", json.dumps(known) + "\n")
        words = ("--cases", "20", *self.small(), "--where", "mask=causal")
        done = self.fuzz(*words, worker=self.liar("mod-no-gradient"), home=self.path("home"))
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
        liar = self.liar("mod-no-gradient")
        process = self.start("--cases", "100000", *self.small(), worker=liar)
        path = self.path("r.jsonl")
        found = lambda: os.path.exists(path) and e2e.Record(path).findings
        e2e.wait_for(found, process)
        process.kill()
        process.communicate()
        rows = len(e2e.Record(self.path("r.jsonl")).rows)
        again = self.fuzz("--resume")
        self.assertRegex(again.out, r"(?m)^1(, ordinary)?: wrong ")
        self.assertIn("README.md", self.findings())
        self.assertTrue([name for name in self.findings() if name.endswith(".known")])
        self.assertEqual(len(e2e.Record(self.path("r.jsonl")).rows), rows, "nothing was asked")

    def start(self, *arguments, worker, record="r.jsonl"):
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
        self.fuzz(*arguments, worker=liar.worker, record="whole.jsonl", status=1)
        for request in e2e.some((2, 1, 3, 7, 20, 30, 31, 32, 33), of=5):
            liar.set("hold", request)
            process = self.start(*arguments, "--resume", worker=liar.worker, record="killed.jsonl")
            self.assertTrue(liar.wait_until_held(process), request)
            process.kill()
            process.communicate()
        liar.set()
        arguments = ("--cases", "15", *self.small(), "-j1")  # the seed is the record's
        resumed = {"worker": liar.worker, "record": "killed.jsonl", "status": 1}
        self.fuzz(*arguments, "--resume", **resumed)
        whole, killed = self.rows("whole.jsonl"), self.rows("killed.jsonl")
        drawn = lambda rows: {row for row in rows if row[2] == "fuzz/drawn"}
        self.assertEqual(drawn(whole), drawn(killed))
        for row, times in killed.items():  # a first answer, and one repetition
            self.assertLessEqual(times, whole[row] if whole[row] else 2, row)
        self.assertEqual(self.findings("whole"), self.findings("killed"))
        self.fuzz(*arguments, "--resume", **resumed)
        self.assertEqual(self.rows("killed.jsonl"), killed)

    def test_an_interrupt_leaves_a_summary(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        worker.set("hold", 20)
        process = self.start("--minutes", "100", worker=worker.worker)
        self.assertTrue(worker.wait_until_held(process))
        process.send_signal(signal.SIGINT)
        worker.release()
        out, _ = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 130)
        self.assertRegex(out, r"\d+ cases drawn with seed 1: .*pass")
        self.assertIn("record: ", out)

    def test_minutes_end_it(self):
        self.assertRegex(self.fuzz("--minutes", "0.02").out, r"\d+ cases drawn")

    def test_bad_input_is_one_line(self):
        bad = self.write("bad.cases", "draw 9\npass=fwd\nfil=gauss\n")
        held = self.write("held.jsonl", "{}\n")
        some, cpu = ("--cases", "3"), ("--cases", "3", "--device", "cpu")
        for arguments, *words in (
            (("--device", "cpu"), "--minutes"),
            (("--minutes", "0"), "--minutes", "above 0"),
            (("--cases", "many"), "--cases"),
            ((*some, "--resume"), "-o FILE"),
            ((*cpu, "--draws", bad), "bad.cases:3:1: fil is not a key", "fill?"),
            ((*cpu, "--draws", self.path("none")), "none"),
            ((*cpu, "--where", "d.qk>"), "where"),
            ((*cpu, "--with", "engine=some"), "engine"),
            ((*cpu, "-o", held), "held.jsonl", "exists"),
            (("smoke", *some), "smoke"),
        ):
            self.assertOneLine(e2e.facts("fuzz", *arguments), 2, *words)
        nowhere = self.path("none", "r")
        self.assertOneLine(e2e.facts("fuzz", *cpu, "-o", nowhere), 3, nowhere)


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
