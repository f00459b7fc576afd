"""The page of the case language's coverage."""

import tempfile
import unittest
from pathlib import Path

from pages import printed, synthetic

PLAIN = "pass=fwd dtype=bf16 layout=thd padding=random want=stats+max"


def row(case, version="9.27.0", grade="decided", **change):
    return {
        "case": case,
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


class Coverage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)

    def has(self, out, line):
        """The table is long: a failure shows the line alone."""
        self.assertTrue(line in out, line)

    def show(self, option, *rows):
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
        return printed(option, record)

    def test_each_value_has_its_cases_and_versions(self):
        code, out, _ = self.show(
            "coverage",
            row(PLAIN, "9.14.0", "measured"),
            row(PLAIN, "9.27.0"),
            row("pass=bwd dtype=e4m3 dropout=0.1", "9.27.0"),
            row("pass=bwd dtype=e4m3 dropout=0.5", "9.27.0"),
        )
        self.assertEqual(code, 1)
        self.has(out, "| `layout` | `thd` | 1 | 2: 9.14.0 to 9.27.0 | 9.14.0 |")
        self.has(
            out, "| `layout` | `bshd` | 2 | 9.27.0 | none |"
        )  # what a name does not say is the default
        self.has(out, "| `want` | `max` | 1 |")
        self.has(out, "| `stats` | `th1` | 1 |")  # follows from the layout
        self.has(out, "| `out` | `e4m3` | 2 |")  # follows from dtype
        self.has(out, "| `dropout` | `N` | 2 | 9.27.0 | none |")  # numbers are one kind
        self.has(out, "| `dropout` | `0` | 1 |")  # the default is one of its own
        self.has(out, "`stride=misaligned`")
        self.has(out.split("Values without a case:")[1], "`dtype=mxe5m2`")
        self.assertFalse("`dtype=e4m3`" in out.split("Values without a case:")[1])

    def test_what_could_not_be_asked_does_not_count(self):
        _, out, _ = self.show("coverage", row(PLAIN, verdict="inconclusive", supported=None))
        self.has(out, "| `layout` | `thd` | 0 | none | none |")


if __name__ == "__main__":
    unittest.main()
