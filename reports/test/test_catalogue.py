import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import support
import synthetic

from facts_reports import catalogue, cli

HOME = Path(__file__).resolve().parents[2]
CASE, OTHER = "pass=fwd dtype=bf16 mask=causal", "pass=fwd dtype=bf16"


def row(version, case=CASE, verdict="nan", grade="measured", cls=None, **change):
    reason = {"reason": {"class": cls, "text": "no"}} if cls else {}
    return {"case": case, "build": f"{version}-jit-cu13", "cudnn": version, "device": "h100-80gb-hbm3" if grade == "measured" else "h100-sxm", "sm": 90, "grade": grade,
            "verdict": verdict, "supported": verdict != "unsupported", "attempt": 1, "run": "r1", "engines": [], **reason, **change}


class Catalogue(unittest.TestCase):
    def judge(self, *rows, kind="number", verdicts=("nan",), reported="any", seen=""):
        entry = catalogue.Entry("e", kind, verdicts, reported, seen, affected={CASE}, controls={OTHER})
        with tempfile.TemporaryDirectory() as folder:
            lines = [{"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}}, *rows, {"end": {"run": "r1", "complete": True}}]
            store = support.store(folder, synthetic.text(lines))
        return catalogue.Judged(entry, catalogue.answers(store))

    def test_it_is_reproduced_where_a_control_passed(self):
        judged = self.judge(row("9.19.0"), row("9.19.0", OTHER, "pass"))
        self.assertEqual((judged.state, judged.broken_on_gpu), ("reproduced", True))

    def test_without_a_control_or_with_one_that_ends_so_it_is_not(self):
        self.assertEqual(self.judge(row("9.19.0")).state, "not reproduced")
        self.assertEqual(self.judge(row("9.19.0"), row("9.19.0", OTHER)).state, "not reproduced")
        self.assertEqual(self.judge(row("9.19.0"), row("9.20.0", OTHER, "pass")).state, "not reproduced")

    def test_where_a_control_of_the_same_pass_broke_it_is_another_failure(self):
        rows = (row("9.19.0"), row("9.27.0", verdict="pass"))
        self.assertEqual(self.judge(*rows, row("9.19.0", OTHER, "wrong")).state, "not reproduced")
        self.assertEqual(self.judge(*rows, row("9.19.0", OTHER, "pass")).state, "reproduced")

    def test_a_version_that_is_right_stands_for_a_control(self):
        self.assertEqual(self.judge(row("9.19.0"), row("9.27.0", verdict="pass")).state, "reproduced")

    def test_outside_its_range_nothing_is_reproduced(self):
        rows = (row("9.19.0"), row("9.19.0", OTHER, "pass"))
        self.assertEqual(self.judge(*rows, reported="cudnn<9.10.0").state, "untested")
        self.assertEqual(self.judge(*rows, reported="cudnn<9.10.0", seen="cudnn<9.20.0").state, "reproduced")

    def test_what_ends_so_everywhere_behind_the_range_does_not_show_it(self):
        good = row("9.19.0", OTHER, "pass")
        self.assertEqual(self.judge(row("9.19.0"), good, row("9.27.0"), reported="cudnn<9.20.0").state, "not reproduced")
        self.assertEqual(self.judge(row("9.19.0"), good, row("9.27.0", verdict="pass"), reported="cudnn<9.20.0").state, "reproduced")

    def test_a_refusal_counts_when_cudnn_made_it(self):
        for cls, state in (("unsupported", "reproduced"), ("policy", "not reproduced"), ("bad_problem", "not reproduced")):
            rows = (row("9.8.0", verdict="unsupported", grade="decided", cls=cls), row("9.8.0", OTHER, "pass", "decided"))
            self.assertEqual(self.judge(*rows, kind="decision", verdicts=("unsupported",)).state, state, cls)

    def test_a_refusal_by_what_we_know_of_a_version_is_not_cudnns(self):
        ours = "deterministic: nothing is known to repeat on sm_90 with cuDNN 9.8.0"
        for status, text, state in ((None, ours, "not reproduced"), (None, "Only D=128 for BPROP fp8 FMHA", "reproduced"), ("CUDNN_STATUS_NOT_SUPPORTED", "d: no", "reproduced")):
            reason = {"class": "unsupported", "text": text, **({"status": status} if status else {})}
            rows = (row("9.8.0", verdict="unsupported", grade="decided", reason=reason), row("9.8.0", OTHER, "pass", "decided"))
            self.assertEqual(self.judge(*rows, kind="decision", verdicts=("unsupported",)).state, state, text)

    def test_a_yes_that_nobody_ran_says_nothing_of_numbers(self):
        self.assertEqual(self.judge(row("9.19.0", verdict="pass", grade="decided")).state, "untested")

    def test_a_design_is_confirmed_by_a_run_that_is_right(self):
        self.assertEqual(self.judge(row("9.19.0", verdict="pass"), kind="design", verdicts=("pass",)).state, "confirmed")
        self.assertEqual(self.judge(row("9.19.0", verdict="wrong"), kind="design", verdicts=("pass",)).state, "not reproduced")

    def test_engine_all_asks_the_same_question(self):
        judged = self.judge(row("9.19.0", CASE + " engine=all", config=1), row("9.19.0", OTHER + " engine=all", "pass", config=0))
        self.assertEqual(judged.state, "reproduced")

    def test_the_command_says_by_its_exit_code_whether_anything_reproduced(self):
        with tempfile.TemporaryDirectory() as folder:
            head = Path(folder) / "e.cases"
            head.write_text("# kind: number\n# verdict: nan\n# reported: any\n\nname: e\nwhy: y (z)\npass=fwd\n")
            listed = Path(folder) / "listed"
            listed.write_text("".join(json.dumps({"file": str(head), "case": case, "group": group}) + "\n" for case, group in ((CASE, "e"), (OTHER, "e/controls"))))
            record = Path(folder) / "r.jsonl"
            for verdict, code in (("nan", 0), ("pass", 1)):
                record.write_text(synthetic.text([{"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}}, row("9.19.0", verdict=verdict), row("9.19.0", OTHER, "pass"),
                                                  {"end": {"run": "r1", "complete": True}}]))
                with contextlib.redirect_stdout(io.StringIO()):
                    self.assertEqual(cli.main(["--catalogue", str(listed), str(record)]), code)
            head.write_text("# kind: odd\n")
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(cli.main(["--catalogue", str(listed), str(record)]), 2)
            self.assertIn("e.cases:1: want a line '# kind:", said.getvalue())

    def test_every_file_says_what_is_due_and_is_named_as_its_first_group(self):
        paths = [*(HOME / "cases/regress").glob("*.cases"), *(HOME / "cases/regress/big").glob("*.cases")]
        entries = [catalogue.read_head(path) for path in paths]
        self.assertGreaterEqual(sum(bool(e.reported) for e in entries), 78)
        for path, entry in zip(paths, entries):
            first = next(line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("name: "))[6:]
            self.assertEqual(first.split("/")[0], entry.name)
            self.assertTrue(entry.why, path)

    def test_a_bad_head_is_one_line_with_its_place(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.cases"
            for head, said in (("# verdict: nan", "kind:"), ("# kind: number\n# verdict: odd", "verdict:"), ("# kind: number\n# kind: speed", ":2: kind is said twice"),
                               ("# kind: number\n# verdict: nan\n# reported: cudn<9.9", ":3: ")):
                path.write_text(head + "\n\nname: x\nwhy: y (z)\npass=fwd\n")
                with self.assertRaisesRegex(catalogue.CatalogueError, said):
                    catalogue.read_head(path)


if __name__ == "__main__":
    unittest.main()
