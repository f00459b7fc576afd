"""New commits have an imperative subject that fits, and say why where a verdict changes."""

import sys
import unittest
from pathlib import Path

from scripts import start

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "ci"))
import check_commits  # noqa: E402


class Commits(unittest.TestCase):
    def test_what_is_wrong_is_named(self):
        for subject, word in (
            ("x" * 73, "columns"),
            ("numerics: what is flushed is of the weights' bound", "imperative"),
            ("gate: Added a line", "imperative"),
            ("gate: Fixes a line", "imperative"),
            ("The gate", "imperative"),
        ):
            self.assertIn(word, " ".join(check_commits.trouble(subject, "", [])), subject)

    def test_what_is_right_passes(self):
        for subject in (
            "report: Show a heat map first",
            "Process rows in order",
            "Merge branch 'a'",
            "docs: Say the thing",
            "judge: Pass NaN on",
        ):
            self.assertEqual(
                list(check_commits.trouble(subject, "", ["docs/gate.md"])), [], subject
            )

    def test_a_change_of_a_verdict_says_why(self):
        files = ["cases/known/bool-mask-wrong.known"]
        self.assertTrue(list(check_commits.trouble("cases: Add a guard", "", files)))
        self.assertFalse(
            list(
                check_commits.trouble("cases: Add a guard", "An H100 was wrong with 9.28.1.", files)
            )
        )

    def test_scripts_answer_bad_input_without_a_traceback(self):
        for script, *words in (
            ("check_commits.py", "no-such-range"),
            ("check_prose.py", "nofile"),
            ("cookbook.py", "nofile"),
        ):
            done = start(sys.executable, HOME / "ci" / script, *words)
            self.assertEqual((done.returncode, "Traceback" in done.stderr), (2, False), done.stderr)
            self.assertIn(words[0], done.stderr)
        done = start(sys.executable, HOME / "ci/check_commits.py", "--help")
        self.assertEqual((done.returncode, "origin/main" in done.stdout), (0, True), done.stderr)

    @unittest.skipUnless((HOME / ".git").exists(), "no repository")
    def test_the_new_commits(self):
        done = start(sys.executable, HOME / "ci/check_commits.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
