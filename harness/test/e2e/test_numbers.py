"""What a person is shown of numbers: the picture of a wrong answer in `facts repro`, and what `facts calibrate` makes of right ones."""
import json
import os
import tempfile
import unittest

import e2e

LIARS = os.path.join(e2e.BIN, "facts-worker-liars")
SMALL = "dtype=bf16 b=2 h=4/2 s=40/56 d=32"


def lying_worker(folder, liar):
    path = os.path.join(folder, "worker")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\nexec {LIARS} --liar {liar} \"$@\"\n")
    os.chmod(path, 0o755)
    return path


class Pictures(unittest.TestCase):
    def test_a_wrong_answer_has_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            done = e2e.facts("repro", f"pass=fwd {SMALL} bias=1hss", "--device", "cpu", FACTS_WORKER=lying_worker(folder, "bias-shape"))
        self.assertEqual(done.status, 1, done.text)
        self.assertIn("wrong in   o", done.out)
        self.assertIn("from head 1 on", done.out)
        self.assertIn("0 |.###|", done.out)

    def test_a_right_answer_has_none(self):
        done = e2e.facts("repro", f"pass=fwd {SMALL} bias=1hss", "--device", "cpu")
        self.assertEqual(done.status, 0, done.text)
        self.assertNotIn("wrong in", done.out)


class Calibration(unittest.TestCase):
    CASES = "pass=fwd,bwd dtype=bf16 b=1 h=2 s=64,128 d=64 seed=1,2"

    def test_rows_of_the_table_are_proposed(self):
        with tempfile.TemporaryDirectory() as folder:
            table = os.path.join(folder, "table.json")
            done = e2e.facts("calibrate", self.CASES, "--device", "cpu", "-o", table, XDG_CACHE_HOME=folder)
            self.assertEqual(done.status, 0, done.text)
            self.assertIn("a rounding of the model does not happen", done.out, "the cpu keeps P in fp32")
            with open(table, encoding="utf-8") as file:
                rows = json.load(file)["rows"]
            self.assertEqual([(r["backend"], r["dtype"], r["pass"], r["cases"], r["calibrated"]) for r in rows],
                             [("cpu", "bf16", "fwd", 4, False), ("cpu", "bf16", "bwd", 4, False)])
            self.assertTrue(all(r["constants"] == {} and "proposed" not in r for r in rows))
            record = done.out.split("record: ")[1].strip()
            again = e2e.facts("calibrate", "--from", record)
            self.assertEqual(again.status, 0, again.text)
            self.assertEqual(again.out.strip(), done.out.split("\nrecord: ")[0].strip())
            self.assertEqual(e2e.facts("calibrate", "--from", record, "-o", table).status, 2, "it is there already")
            self.assertEqual(e2e.facts("calibrate", "--from", record, "-o", table, "--overwrite").status, 0)

    def test_bad_input_is_one_line(self):
        for words in ([], [self.CASES, "--from", "x"], ["--from", "/nowhere"]):
            done = e2e.facts("calibrate", *words)
            self.assertEqual(done.status, 2, done.text)
            self.assertEqual(len(done.err.strip().splitlines()), 1, done.err)


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
