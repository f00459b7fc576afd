"""README's table is printed from the records beside it, never written by hand."""

import os
import re
import tempfile
import unittest
from pathlib import Path

from pages import HOME, page, run, synthetic

RECORDS = ["reports/examples/smoke.jsonl.xz", "reports/examples/regress.jsonl.xz"]


class Readme(unittest.TestCase):
    def test_the_table_is_what_the_command_prints(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(HOME)
        status, table, _ = run("readme", *RECORDS)
        self.assertEqual(status, 0)
        begin, end = "<!-- example: begin", "<!-- example: end -->"
        text = (HOME / "README.md").read_text(encoding="utf-8")
        self.assertIn(table.strip(), text[text.index(begin) : text.index(end)])

    def test_a_case_counts_once_by_its_worst_answer(self):
        lines = [
            i
            for i in synthetic.record(builds=("9.19.0",), devices=(("h100-sxm", 90, "measured"),))
            if "case" in i
        ][:6]
        for item, verdict in zip(
            lines, ("pass", "unsupported", "wrong", "nan", "inconclusive", "pass")
        ):
            item["verdict"] = verdict
            item.pop("expectation", None)
        lines[3]["expectation"] = {"verdict": "nan", "met": True}
        lines.append(dict(lines[0], config=1, verdict="crash"))
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "six.jsonl"
            record.write_text(synthetic.text(lines))
            _, out, _ = run("readme", record)
        self.assertIn("| 9.19.0 | 6 | 1 | 1 | 1 | 2 | 1 |", out)

    def test_its_figures_are_those_of_the_printed_pages(self):
        readme, green, numbers, failures = (
            (HOME / name).read_text(encoding="utf-8")
            for name in (
                "README.md",
                "docs/explain-green.md",
                "docs/numerics.md",
                "docs/catalogue.md",
            )
        )
        one_line = re.sub(r"\s+", " ", readme)
        reported, found = (
            re.search(form, failures).groups()
            for form in (
                r"(\d+) of (\d+) reports reproduced",
                r"(\d+) of (\d+) failures that FACTS found",
            )
        )
        self.assertIn(f"reproduces {reported[0]} of {reported[1]} public failure reports", one_line)
        self.assertIn(f"{found[0]} of the {found[1]} failures that FACTS found itself", one_line)
        shares = {
            row[0].split(" (")[0].split(" 2e-2")[0]: row
            for row in (line.strip("| ").split(" | ") for line in numbers.splitlines())
            if row[0].endswith(("(gauss)", "gauss alone", "stair_up"))
        }
        for name, row in (
            ("cudnn-frontend",) * 2,
            ("flash-attention",) * 2,
            ("TransformerEngine",) * 2,
            ("FACTS", "FACTS, gauss alone"),
            ("FACTS, four kinds of data", "FACTS, gauss, needle, neglse, stair_up"),
        ):
            share = next(cells for key, cells in shares.items() if key.startswith(row))
            for page in (readme, green):
                line = next(
                    l
                    for l in page.splitlines()
                    if l.startswith("| " + name.split(",")[0])
                    and " % | " in l
                    and ("four" in name) == ("four" in l)
                )
                self.assertEqual(re.findall(r"\d+ %", line), [share[1], share[3], share[4]], line)

    def test_its_commands_can_be_typed_as_printed(self):
        readme = (HOME / "README.md").read_text(encoding="utf-8")
        commands = re.findall(r"python3 ci/docs/page\.py ([^`\n]*)", readme)
        self.assertEqual(len(commands), 2)
        for command in commands:
            name, *records = command.split()
            self.assertIn(name, page.PAGES)
            self.assertTrue(
                records and all((HOME / record).exists() for record in records), command
            )
        self.assertEqual(
            re.findall(r"`(?:ci/docs/page\.py|bench_criteria)[^`]*`", readme),
            [],
            "without a path, or without python3",
        )

    def test_readme_is_one_screen_and_a_bit(self):
        self.assertLessEqual(len((HOME / "README.md").read_text(encoding="utf-8").splitlines()), 90)


if __name__ == "__main__":
    unittest.main()
