"""A plan names a GPU by its number, its rows by what it is. The GPU here is told by a worker that only plays one; the programs are real."""

import os
import sys

import e2e

CASES = "pass=fwd d=8..96:8"
FAKE = os.path.join(e2e.BIN, "facts-fake-worker")


class Gpu(e2e.TestCase):
    def run_facts(self, *arguments, fault="", status=0, visible="0"):
        device = () if "--device" in arguments else ("--device", "0")
        done = e2e.facts(
            "run",
            CASES,
            "--cudnn",
            e2e.need(e2e.NEW).name,
            *device,
            "-o",
            self.path("r"),
            *arguments,
            FACTS_WORKER=FAKE,
            FACTS_FAULT=fault,
            CUDA_VISIBLE_DEVICES=visible,
        )
        self.assertStatus(done, status)

    def report(self):
        """Exit status of a report: 0 says that the record is complete."""
        return e2e.facts(
            "report",
            self.path("r"),
            "--issue",
            "pass=fwd dtype=bf16 d=8",
            FACTS_PYTHON=os.environ.get("FACTS_PYTHON", sys.executable),
        ).status

    def test_its_target_line_says_which_planned_one_it_is(self):
        self.run_facts()
        record = e2e.Record(self.path("r"))
        self.assertEqual([t["device"] for t in record.runs[0]["targets"]], ["gpu0"])
        self.assertEqual(
            [(t["device"], t["planned"]) for t in record.targets], [("fake-90", "gpu0")]
        )
        self.assertEqual({row["device"] for row in record.rows}, {"fake-90"})

    def test_a_version_that_was_not_measured_says_whose_constants_judge_it(self):
        done = e2e.facts(
            "run",
            CASES,
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "--device",
            "0",
            "-o",
            self.path("r"),
            FACTS_WORKER=FAKE,
        )
        self.assertEqual(
            done.err.count("error constants: cuDNN 9.20.0 was not measured, 9.19.0 is the nearest"),
            1,
            done.err,
        )
        self.assertEqual([t["calibration"] for t in e2e.Record(self.path("r")).targets], ["9.19.0"])

    def test_all_gpus_are_one_target_of_one_record(self):
        self.run_facts("--device", "all", "-j", "2", fault="slow", visible="0,1")
        record = e2e.Record(self.path("r"))
        self.assertEqual([t["device"] for t in record.runs[0]["targets"]], ["gpus"])
        self.assertEqual(
            [(t["device"], t["planned"], t["gpus"]) for t in record.targets],
            [("fake-90", "gpus", 2)],
        )
        self.assertEqual({row["device"] for row in record.rows}, {"fake-90"})
        self.assertEqual({start["gpu"] for start in record.starts}, {0, 1})
        self.assertEqual(len(record.rows), 12)
        self.assertStatus(e2e.facts("merge", self.path("r"), "-o", self.path("m")), 0)
        self.assertEqual(self.report(), 0)

    def test_merge_and_report_find_every_planned_row(self):
        self.run_facts()
        self.assertStatus(e2e.facts("merge", self.path("r"), "-o", self.path("m")), 0)
        self.assertEqual(self.report(), 0)

    def test_what_it_owes_is_missing_until_resume_has_asked(self):
        self.run_facts()
        with open(self.path("r"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        kept = [line for line in lines if "d=40" not in line and '{"end"' not in line]
        self.write("r", "\n".join(kept) + "\n")
        merged = e2e.facts("merge", self.path("r"), "-o", self.path("m"))
        self.assertStatus(merged, 4)
        self.assertIn("1 planned row", merged.err)
        self.assertEqual(self.report(), 4)
        self.run_facts("--resume")
        record = e2e.Record(self.path("r"))
        self.assertEqual(len(record.rows), 12)
        self.assertStatus(
            e2e.facts("merge", self.path("r"), "-o", self.path("m"), "--overwrite"), 0
        )
        self.assertEqual(self.report(), 0)


if __name__ == "__main__":
    e2e.main()
