"""The suite `numbers` on the cpu, as a user runs it: every fill passes, and every check is made and holds."""

import re

import e2e


class Numbers(e2e.TestCase):
    def test_every_fill_passes_and_every_check_is_made(self):
        rows = []  # by day a third, and the fill that is not in it
        by_day = "--shard 1/3", "--where fill=biglogit"
        for words in ("",) if e2e.needs.NIGHT else by_day:
            more = ("-o", self.path("r"), "--overwrite", *words.split())
            done = e2e.facts("run", "numbers", "--device", "cpu", *more)
            self.assertStatus(done, 0)
            rows += self.record().rows
        self.assertGreater(len(rows), 60)
        checks = set(re.findall(r" check=(\w+)", e2e.facts("list", "numbers").out))
        cases = "\n".join(row["case"] for row in rows)
        self.assertEqual(set(re.findall(r" check=(\w+)", cases)), checks)
        self.assertEqual([row["case"] for row in rows if row["verdict"] != "pass"], [])
        for row in rows:
            asked = re.search(r" check=(\w+)", row["case"])
            if not asked:
                self.assertNotIn("check", row, row["case"])
                continue
            check = row.get("check", {})
            self.assertGreater(check["runs"], 0, row["case"])
            self.assertGreater(check["compared"], 50, row["case"])
            self.assertLessEqual(check["ratio"], 1, row["case"])


if __name__ == "__main__":
    e2e.main()
