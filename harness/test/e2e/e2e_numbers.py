"""The suite `numbers` on the cpu, as a user runs it: every fill passes, and every check is made and holds."""

import re
import time

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

    def test_rows_say_where_their_time_went_if_they_are_asked_to(self):
        case = "pass=fwd,bwd dtype=bf16 b=1 h=2 s=96 d=32"
        words = ("run", case, "--device", "cpu", "-j", "1", "--overwrite", "-o", self.path("r"))
        for times in ("", "1"):
            began = time.monotonic()
            self.assertStatus(e2e.facts(*words, FACTS_TIMES=times), 0)
            took = (time.monotonic() - began) * 1e3
            rows = self.record().rows
            self.assertEqual({"spent_ms" in row for row in rows}, {bool(times)})
        steps = "decide plan allocate fill oracle arm execute read_back compare judge"
        for row in rows:
            self.assertLessEqual(set(steps.split()), set(row["spent_ms"]))
            self.assertGreater(min(row["spent_ms"].values()), 0)
        why = "one worker spends no more than the whole command"
        self.assertLess(sum(sum(row["spent_ms"].values()) for row in rows), took, why)


if __name__ == "__main__":
    e2e.main()
