"""Expectations and the golden matrix as a user asks for them, with cases of our own."""

import json
import os
import shutil
import subprocess
import sys

import e2e

CRASH = "pass=bwd dtype=bf16 b=1 h=1 s=1/64 guards=off"  # the planner of 9.26 to 9.28 dies of it
SUITE = f"name: one\nwhy: a crash and a neighbour\n{CRASH}\npass=bwd dtype=bf16 b=1 h=1 s=2/64 guards=off\n"
LINE = "guards=off & pass=bwd & b=1 & s.q=1 & cudnn>=9.26.0 & cudnn<=9.28.0"


def crash(where, suites="tiny"):
    """A line of known.jsonl."""
    known = {"verdict": ["crash"], "link": "a/b#1", "file": "cases/known/x.known", "line": 2}
    return json.dumps({**known, "suites": suites, "expect": [{"where": where}]}) + "\n"


class Expectations(e2e.TestCase):
    def home(self, lines, suite=SUITE):
        """A home with one suite and what is known there; the rest is the project's."""
        home = self.path("home")
        shutil.rmtree(home, ignore_errors=True)
        for folder in ("cases/suites", "cases/known"):
            os.makedirs(os.path.join(home, folder))
        self.write("home/cases/suites/tiny.cases", suite)
        self.write("home/cases/known/known.jsonl", lines)
        for part in ("cases/known/engines.families", "reports", "ci", "lib"):
            os.symlink(os.path.join(e2e.SOURCE, part), os.path.join(home, part))
        return home

    def decide(self, home, status, build=e2e.NEW, cases="tiny"):
        words = ("--cudnn", e2e.need(build).name, "--device", "h100-sxm", "--overwrite")
        done = e2e.facts("decide", cases, *words, "-o", self.path("r.jsonl"), FACTS_HOME=home)
        self.assertStatus(done, status)
        return done

    def test_a_crash_that_is_known_is_no_finding_in_the_suite_that_the_line_names(self):
        for suite, status in (("tiny", 0), ("other", 1)):
            self.decide(self.home(crash(LINE, suite)), status)

    def test_a_line_that_nothing_needs_fails_the_run_of_its_suite_and_version(self):
        suite = SUITE.replace(CRASH + "\n", "")
        home = self.home(crash(LINE.replace("s.q=1", "s.q=2")), suite)
        done = self.decide(home, 1)
        why = "of 1 results that it could explain none is crash"
        needed = f"cases/known/x.known:2: no result needs this failure any more: {why}"
        self.assertIn(needed, done.err)
        self.decide(home, 0, e2e.OLD)
        self.decide(home, 0, cases="pass=bwd dtype=bf16 b=1 h=1 s=2/64 guards=off")

    def test_bad_lines_have_their_place(self):
        done = self.decide(self.home(crash("pas=bwd")), 2)
        self.assertIn("where:1:1: pas is not a key; did you mean pass?", done.err)
        self.assertOneLine(e2e.facts("expect", "chek"), 2)
        self.assertOneLine(e2e.facts("known", "propose", self.path("nowhere")), 2)

    def test_a_failure_that_is_proposed_then_holds(self):
        home = self.home("")
        self.decide(home, 1)
        propose = ("known", "propose", self.path("r.jsonl"))
        done = e2e.facts(*propose, FACTS_HOME=home)
        self.assertStatus(done, 1)
        for line in ("+++ b/cases/known/proposed.known", "+suites: tiny"):
            self.assertIn(line, done.out)
        folder = os.path.join(home, "cases/known")
        self.assertNotIn("proposed.known", os.listdir(folder), "a proposal writes nothing")
        self.assertEqual(e2e.facts(*propose, FACTS_HOME=home).out, done.out)
        e2e.facts(*propose, "--write", FACTS_HOME=home)
        script = (sys.executable, "-B", os.path.join(home, "ci/generate_known.py"))
        made = ("--folder", folder, "--known", os.path.join(folder, "known.jsonl"))
        subprocess.run([*script, *made], check=True)
        self.decide(home, 0)


class Golden(e2e.TestCase):
    def test_what_the_versions_answer_is_what_was_reviewed(self):
        builds = [e2e.need(name).name for name in e2e.some((e2e.NEW, e2e.OLD))]
        words = ("check", "--cudnn", ",".join(builds))
        done = e2e.facts("expect", "golden", *words, timeout=300)
        self.assertStatus(done, 0)
        self.assertIn(f"of {len(builds)} versions on 5 devices, 0 differ", done.out)

    def test_the_matrix_for_programs_is_the_one_that_was_reviewed(self):
        done = e2e.facts("expect", "golden", "--json")
        self.assertStatus(done, 0)
        made = json.loads(done.out)
        with open(os.path.join(e2e.SOURCE, "cases/golden/support.txt"), encoding="utf-8") as file:
            builds = [line.split()[2] for line in file if line.startswith("# build ")]
        self.assertEqual([one["cudnn"] for one in made["builds"]], builds)
        self.assertOneLine(e2e.facts("expect", "golden", "check", "--json"), 2, "leave --json out")

    def test_bad_words(self):
        self.assertOneLine(e2e.facts("expect", "golden", "chek"), 2)
        self.assertOneLine(e2e.facts("expect", "golden", "check", "-o", self.path("x")), 2)


if __name__ == "__main__":
    e2e.main()
