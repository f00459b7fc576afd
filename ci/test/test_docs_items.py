"""The page of promised items."""

import tempfile
import unittest
from pathlib import Path

from pages import HOME, run, synthetic

CASE = "pass=fwd dtype=bf16 mask=causal"
LIST = "need decided=2 run=1\nitem A1 Masks   # what was promised\nwhere mask!=none\ntests lib_test_layout\nitem E9 No case, only tests\ntests lib_test_life\n"


def row(version, grade="decided", **change):
    return {
        "case": CASE,
        "build": f"{version}-jit-cu13",
        "cudnn": version,
        "sm": 90,
        "verdict": "pass",
        "supported": True,
        "attempt": 1,
        "run": "r1",
        "engines": [],
        "device": "h100-80gb-hbm3" if grade == "measured" else "h100-sxm",
        "grade": grade,
        **change,
    }


class Items(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def show(self, items, *rows):
        (self.at / "l.items").write_text(items)
        record = self.at / "r.jsonl"
        record.write_text(
            synthetic.text(
                [
                    {"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}},
                    *rows,
                    {"end": {"run": "r1", "complete": True}},
                ]
            )
        )
        code, out, err = run("items", "--list", self.at / "l.items", record)
        return code, out, err

    def test_an_item_with_its_cases_and_versions_is_told(self):
        code, out, _ = self.show(LIST, row("9.14.0", "measured"), row("9.20.0"))
        self.assertEqual(code, 0)
        self.assertIn(
            "| A1 | Masks | `mask!=none` | 1 | 9.14.0, 9.20.0 | 9.14.0 | 1 pass | lib\\_test\\_layout |",
            out,
        )
        self.assertIn("| E9 | No case, only tests |", out)

    def test_an_item_without_case_or_version_is_a_finding(self):
        code, out, _ = self.show(LIST, row("9.20.0"))
        self.assertEqual(code, 1)
        self.assertIn("**decided on 1 of 2 versions; run on 0 of 1 versions**", out)
        code, out, _ = self.show(
            LIST.replace("mask!=none", "mask=none"), row("9.14.0", "measured"), row("9.20.0")
        )
        self.assertEqual(code, 1)
        self.assertIn("**no case", out)

    def test_what_could_not_be_asked_does_not_count(self):
        code, _, _ = self.show(
            LIST, row("9.14.0", "measured"), row("9.20.0", verdict="inconclusive", supported=None)
        )
        self.assertEqual(code, 1)

    def test_a_bad_list_is_one_line_with_its_place(self):
        for bad, said in (
            ("item A x\nwhere mask!!none\n", ":2:"),
            ("itme A\n", ":1: 'itme'"),
            ("where mask=none\n", ":1:"),
            ("need decided=x\n", ":1: need"),
        ):
            code, out, err = self.show(bad, row("9.20.0"))
            self.assertEqual((code, out), (2, ""), bad)
            self.assertIn(said, err)
            self.assertEqual(len(err.strip().splitlines()), 1)

    def test_the_project_own_list_is_met_by_its_example_records(self):
        code, out, err = run("items", HOME / "reports/examples")
        self.assertEqual(code, 0, out + err)


if __name__ == "__main__":
    unittest.main()
