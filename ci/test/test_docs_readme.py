"""README's table is printed from the records beside it, never written by hand."""
import os
import tempfile
import unittest
from pathlib import Path

from pages import HOME, run, synthetic

RECORDS = ["reports/examples/smoke.jsonl.xz", "reports/examples/regress.jsonl.xz"]


class Readme(unittest.TestCase):
    def test_the_table_is_what_the_command_prints(self):
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(HOME)
        status, table, _ = run("readme", *RECORDS)
        self.assertEqual(status, 0)
        begin, end = "<!-- example: begin", "<!-- example: end -->"
        text = (HOME / "README.md").read_text(encoding="utf-8")
        self.assertIn(table.strip(), text[text.index(begin):text.index(end)])

    def test_ranges_join_only_what_ended_alike(self):
        """Equal totals, other cases: two ranges, never one."""
        lines = [i for i in synthetic.record(builds=("9.19.0", "9.20.0"), devices=(("h100-sxm", 90, "measured"),)) if "case" in i and "dtype=f16" in i["case"] and "pass=fwd" in i["case"]]
        for i, item in enumerate(lines):
            item["verdict"] = "unsupported" if i in (0, len(lines) - 1) else "pass"
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "swap.jsonl"
            record.write_text(synthetic.text(lines))
            _, out, _ = run("readme", record)
        mixed = next(line for line in out.splitlines() if line.startswith("| mask: ") and "unsupported" in line)
        self.assertIn("9.19.0", mixed)
        self.assertIn("since 9.20.0", mixed)


if __name__ == "__main__":
    unittest.main()
