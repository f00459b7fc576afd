"""Expectations and the golden matrix as a user asks for them, with cases of our own."""

import json
import os
import shutil
import subprocess
import sys

import e2e

CRASH = "pass=bwd dtype=bf16 b=1 h=1 s=1/64 guards=off"  # the planner of 9.26 to 9.28 dies of it
SUITE = f"name: one\nwhy: a crash and a neighbour\n{CRASH}\npass=bwd dtype=bf16 b=1 h=1 s=2/64 guards=off\n"
LINE = (
    "2026-11-21 crash guards=off & pass=bwd & b=1 & s.q=1 & cudnn>=9.26.0 & cudnn<=9.28.0 a/b#1\n"
)


class Expectations(e2e.TestCase):
    def home(self, lines, suite=SUITE):
        """A home with one suite and one file of expectations; the rest is the project's."""
        home = self.path("home")
        shutil.rmtree(home, ignore_errors=True)
        os.makedirs(os.path.join(home, "cases/suites"))
        os.makedirs(os.path.join(home, "cases/expect"))
        for name, text in (("cases/suites/tiny.cases", suite), ("cases/expect/x.expect", lines)):
            with open(os.path.join(home, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.makedirs(os.path.join(home, "cases/known"))
        os.symlink(
            os.path.join(e2e.SOURCE, "cases/known/engines.families"),
            os.path.join(home, "cases/known/engines.families"),
        )
        for part in ("reports", "ci", "lib"):
            os.symlink(os.path.join(e2e.SOURCE, part), os.path.join(home, part))
        return home

    def decide(self, home, build=e2e.NEW, *words):
        return e2e.facts(
            "decide",
            *(words or ("tiny",)),
            "--cudnn",
            e2e.need(build).name,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r.jsonl"),
            "--overwrite",
            FACTS_HOME=home,
        )

    def test_a_crash_that_is_known_is_no_finding(self):
        home = self.home("suites: tiny\n" + LINE)
        self.assertStatus(self.decide(home), 0)

    def test_a_line_for_another_suite_does_not_count(self):
        home = self.home("suites: other\n" + LINE)
        self.assertStatus(self.decide(home), 1)

    def test_a_line_that_nothing_needs_fails_the_run_of_its_suite(self):
        suite = SUITE.replace(CRASH + "\n", "")
        home = self.home("suites: tiny\n" + LINE.replace("s.q=1", "s.q=2"), suite)
        done = self.decide(home)
        self.assertStatus(done, 1)
        self.assertRegex(
            done.err,
            r"x\.expect:2:18: no result needs this expectation any more: of 1 results that it could explain none is crash",
        )

    def test_a_run_of_another_version_or_of_one_case_says_nothing_of_a_line(self):
        home = self.home(
            "suites: tiny\n" + LINE.replace("s.q=1", "s.q=2"), SUITE.replace(CRASH + "\n", "")
        )
        self.assertStatus(self.decide(home, e2e.OLD), 0)
        self.assertStatus(
            self.decide(home, e2e.NEW, "pass=bwd dtype=bf16 b=1 h=1 s=2/64 guards=off"), 0
        )

    def test_bad_lines_have_their_place(self):
        done = self.decide(self.home("2026-11-21 crash pas=bwd a/b#1\n"))
        self.assertStatus(done, 2)
        self.assertIn("x.expect:1:18: pas is not a key; did you mean pass?", done.err)
        self.assertOneLine(e2e.facts("expect", "chek"), 2)
        self.assertOneLine(e2e.facts("known", "propose", self.path("nowhere")), 2)

    def test_a_failure_that_is_proposed_then_holds(self):
        home = self.home("")
        self.assertStatus(self.decide(home), 1)
        done = e2e.facts("known", "propose", self.path("r.jsonl"), FACTS_HOME=home)
        self.assertStatus(done, 1)
        self.assertIn("+++ b/cases/known/proposed.known", done.out)
        self.assertIn("+suites: tiny", done.out)
        self.assertFalse(
            os.path.exists(os.path.join(home, "cases/known/proposed.known")),
            "a proposal writes nothing",
        )
        again = e2e.facts("known", "propose", self.path("r.jsonl"), FACTS_HOME=home)
        self.assertEqual(again.out, done.out)
        e2e.facts("known", "propose", self.path("r.jsonl"), "--write", FACTS_HOME=home)
        subprocess.run(
            [
                sys.executable,
                "-B",
                os.path.join(home, "ci/generate_known.py"),
                "--folder",
                os.path.join(home, "cases/known"),
                "--expectations",
                os.path.join(home, "cases/expect/x.expect"),
            ],
            check=True,
        )
        self.assertStatus(self.decide(home), 0)


class Golden(e2e.TestCase):
    def test_what_two_versions_answer_is_what_was_reviewed(self):
        builds = f"{e2e.need(e2e.OLD).name},{e2e.need(e2e.NEW).name}"
        done = e2e.facts("expect", "golden", "check", "--cudnn", builds, timeout=300)
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"of 2 versions on 5 devices, 0 differ")

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
