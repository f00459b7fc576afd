"""The end of ./facts test: the dearest tests, each skipped one with its reason, and which skips CI allows."""

import io
import pathlib
import sys
import tempfile
import unittest

from scripts import start

CI = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CI))
import test_report  # noqa: E402


def block(number, name, output, seconds):
    return (
        f'{number}/2 Testing: {name}\n{number}/2 Test: {name}\nCommand: "x"\nDirectory: /b\n"{name}" start time: Nov 28 15:39 UTC\nOutput:\n'
        f'{"-" * 20}\n{output}<end of output>\nTest time = {seconds:6.2f} sec\n{"-" * 20}\nTest Passed.\n"{name}" end time: Nov 28 15:39 UTC\n'
        f'"{name}" time elapsed: 00:00:00\n{"-" * 20}\n\n'
    )


C_TEST = "[RUN ] gpu::two\n[SKIP] gpu::two: no GPU: none\n[RUN ] gpu::three\n[SKIP] gpu::three: no GPU: none\n[SKIP] left::out: Test is disabled\n[PASS] gpu::one: (0.01s)\n"
PYTHON = (
    "test_a (t.T.test_a) ... skipped 'needs a build of the night: x'\ntest_b (t.T.test_b)\nWhat it claims. ... skipped 'no fish'\n"
    "test_c (t.T.test_c) ... ok\n[SKIP] calls, run: no build\n"
)
LOG = (
    "Start testing: Nov 28\n"
    + "-" * 20
    + "\n"
    + block(1, "gpu_test", C_TEST, 0.5)
    + block(2, "e2e_some", PYTHON, 12.25)
)
RULES = test_report.allowed()


class Report(unittest.TestCase):
    def report(self, text, rules):
        out = io.StringIO()
        return test_report.report(text, rules, out), out.getvalue()

    def test_the_dearest_come_first(self):
        _, text = self.report(LOG, RULES)
        self.assertRegex(text, r"20 dearest of 2 tests:\n +12\.2 s  e2e_some\n +0\.5 s  gpu_test\n")

    def test_each_skipped_test_is_named_with_its_reason(self):
        unknown, text = self.report(LOG, RULES)
        self.assertIn("\n5 tests were skipped.\n", text)
        self.assertIn("  gpu_test: gpu::two, gpu::three: no GPU: none\n", text)
        self.assertIn("  e2e_some: test_a: needs a build of the night: x\n", text)
        self.assertEqual(
            unknown, {("e2e_some", "no fish"): ["test_b"], ("e2e_some", "no build"): ["calls, run"]}
        )
        self.assertIn("2 skipped: NOT ALLOWED", text)

    def test_without_skips_it_says_so(self):
        unknown, text = self.report(block(1, "one", "[PASS] a::b: (0.00s)\n", 1), RULES)
        self.assertEqual((unknown, "\n0 tests were skipped.\n" in text), ({}, True))

    def test_ci_fails_for_a_skip_that_no_line_allows(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "LastTest.log")
            for text, ci, status in (
                (LOG, "1", 1),
                (LOG, "", 0),
                (LOG.replace("no fish", "no GPU").replace("no build", "no GPU"), "1", 0),
            ):
                path.write_text(text, encoding="utf-8")
                done = start(sys.executable, CI / "test_report.py", path, add={"CI": ci})
                self.assertEqual(done.returncode, status, done.stdout)

    def test_a_rule_has_a_pattern_and_its_reason(self):
        for pattern, why in RULES:
            self.assertGreater(len(why), 10, pattern)


if __name__ == "__main__":
    unittest.main()
