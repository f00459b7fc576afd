"""The suite `numbers` on the cpu, as a user runs it: every fill passes, and every probe, law and identity is made and holds."""
import re

import e2e


class Numbers(e2e.TestCase):
    def test_every_fill_passes_and_every_check_is_made(self):
        done = e2e.facts("run", "numbers", "--device", "cpu", "-o", self.path("r"), timeout=230)
        self.assertStatus(done, 0)
        rows = e2e.Record(self.path("r")).rows
        self.assertGreater(len(rows), 250)
        self.assertEqual([row["case"] for row in rows if row["verdict"] != "pass"], [])
        for row in rows:
            asked = re.search(r" check=(\w+)", row["case"])
            if not asked:
                self.assertNotIn("check", row, row["case"])
                continue
            check = row.get("check", {})
            self.assertNotIn("skipped", check, row["case"])
            self.assertGreater(check["runs"], 0, row["case"])
            self.assertGreater(check["compared"], 50, row["case"])
            self.assertLessEqual(check["ratio"], 1, row["case"])


if __name__ == "__main__":
    e2e.main()
