"""What the example records show when they are compared."""

import contextlib
import io
import os
import unittest
from pathlib import Path

from facts_reports import commands

ROOT = Path(__file__).resolve().parents[2]


def printed(arguments):
    out = io.StringIO()
    before = os.getcwd()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(out):
            status = commands.main(arguments)
    finally:
        os.chdir(before)
    return status, out.getvalue().strip()


class Examples(unittest.TestCase):
    def test_the_card_decides_as_its_description(self):
        status, text = printed(
            ["--decisions", "h100-80gb-hbm3", "h100-sxm", "reports/examples/described.jsonl.xz"]
        )
        self.assertEqual(status, 0, text)
        self.assertEqual(text.count("600 of 600 decisions equal"), 3)

    def test_plans_compiled_without_a_gpu_give_the_same_bits(self):
        status, text = printed(
            ["--bits", "reports/examples/plans.jsonl.xz", "reports/examples/loaded.jsonl.xz"]
        )
        self.assertEqual(status, 0, text)
        self.assertIn("plans loaded: 0 and 61", text)


if __name__ == "__main__":
    unittest.main()
