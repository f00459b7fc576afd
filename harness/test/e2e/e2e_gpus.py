"""A plan names a GPU by its number, its rows by what it is. The GPU here is told by a worker that only plays one; the programs are real."""

import os
import sys

import e2e

CASES = "pass=fwd d=8..96:8"
FAKE = os.path.join(e2e.BIN, "facts-fake-worker")


class Gpu(e2e.TestCase):
    def run_facts(self, *words, status=0, device="0", **environment):
        given = {"FACTS_WORKER": FAKE, "CUDA_VISIBLE_DEVICES": "0", **environment}
        build = ("--cudnn", e2e.need(e2e.NEW).name, "--device", device)
        done = e2e.facts("run", CASES, *build, "-o", self.path("r"), *words, **given)
        self.assertStatus(done, status)
        return done

    def joined(self, status=0):
        """merge and report end with 0 where the record is complete."""
        merged = e2e.facts("merge", self.path("r"), "-o", self.path("m"), "--overwrite")
        self.assertStatus(merged, status)
        python = os.environ.get("FACTS_PYTHON", sys.executable)
        words = ("--issue", "pass=fwd dtype=bf16 d=8")
        self.assertStatus(e2e.facts("report", self.path("r"), *words, FACTS_PYTHON=python), status)
        return merged

    def test_its_target_line_says_which_planned_one_it_is_and_whose_constants_judge_it(self):
        done = self.run_facts()
        constants = "error constants: cuDNN 9.20.0 was not measured, 9.19.0 is the nearest"
        self.assertEqual(done.err.count(constants), 1, done.err)
        record = e2e.Record(self.path("r"))
        self.assertEqual([t["device"] for t in record.runs[0]["targets"]], ["gpu0"])
        found = [(t["device"], t["planned"], t["calibration"]) for t in record.targets]
        self.assertEqual(found, [("fake-90", "gpu0", "9.19.0")])
        self.assertEqual({row["device"] for row in record.rows}, {"fake-90"})

    def test_all_gpus_are_one_target_of_one_record(self):
        two = {"FACTS_FAULT": "slow", "CUDA_VISIBLE_DEVICES": "0,1"}
        self.run_facts("-j", "2", device="all", **two)
        record = e2e.Record(self.path("r"))
        self.assertEqual([t["device"] for t in record.runs[0]["targets"]], ["gpus"])
        found = [(t["device"], t["planned"], t["gpus"]) for t in record.targets]
        self.assertEqual(found, [("fake-90", "gpus", 2)])
        self.assertEqual({row["device"] for row in record.rows}, {"fake-90"})
        self.assertEqual({start["gpu"] for start in record.starts}, {0, 1})
        self.assertEqual(len(record.rows), 12)
        self.joined()

    def test_what_it_owes_is_missing_until_resume_has_asked(self):
        self.run_facts()
        self.joined()
        with open(self.path("r"), encoding="utf-8") as file:
            lines = file.read().splitlines(True)
        kept = [line for line in lines if "d=40" not in line and '{"end"' not in line]
        self.write("r", "".join(kept))
        self.assertIn("1 planned row", self.joined(status=4).err)
        self.run_facts("--resume")
        self.assertEqual(len(e2e.Record(self.path("r")).rows), 12)
        self.joined()


if __name__ == "__main__":
    e2e.main()
