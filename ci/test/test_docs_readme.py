"""README's table is printed from the records beside it, never written by hand; that of suites has the sizes that they have."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from pages import HOME, page, printed, synthetic

README = (HOME / "README.md").read_text(encoding="utf-8")
RECORDS = ["reports/examples/smoke.jsonl.xz", "reports/examples/regress.jsonl.xz"]


class Readme(unittest.TestCase):
    def test_the_table_is_what_the_command_prints(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(HOME)
        status, table, _ = printed("readme", *RECORDS)
        self.assertEqual(status, 0)
        self.assertIn(table.strip(), README.split("<!-- example: ")[1])

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
            _, out, _ = printed("readme", record)
        self.assertIn("| 9.19.0 | 6 | 1 | 1 | 1 | 2 | 1 |", out)

    def test_suites_have_as_many_cases_as_facts_list_says(self):
        said = re.findall(r"(?m)^\| `([a-z-]+)` \| .+? \| ([\d,]+) \|", README)
        listed = subprocess.check_output([page.PROGRAM, "list"], text=True)
        for name, count in said:
            self.assertRegex(listed, f"(?m)^{name} +{count.replace(',', '')} ")
        self.assertEqual(len(said), 10)

    def test_readme_is_one_screen_and_a_bit(self):
        self.assertLessEqual(len(README.splitlines()), 105)


if __name__ == "__main__":
    unittest.main()
