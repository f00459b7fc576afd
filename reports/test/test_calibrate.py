"""facts calibrate: what rows of a record say about constants."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import support
from facts_reports.commands import calibrate

FWD, BWD, GROUPED = (
    "pass=fwd dtype=bf16 s=128 want=stats",
    "pass=bwd dtype=bf16 s=128",
    "pass=bwd dtype=bf16 h=8/2 s=128",
)
LIMITS = {"bf16": (2**-17, 2**-17), "f16": (2**-17, 2**-17), "f32": (2**-17, 2**-17)}
HOME = Path(__file__).resolve().parents[2]


def record(case, errors, **change):
    about = {"cudnn": "9.19.0", "build": "9.19.0-jit-cu13", "device": "h100", "sm": 90}
    about |= {"backend": "cudnn", "engine": 5, "verdict": "pass", "grade": "measured"}
    return {"case": case, **about, "errors": errors, **change}


def gradient(case, tensor, rms, t1=0.5):
    """A row of O or a gradient."""
    one = {"ratio": t1, "gate": "t1", "rms": rms, "checked": 1000, "gates": {"t1": t1}}
    return record(case, {tensor: one | {"got": 1, "want": 1, "bound": 1}})


def stats(case, tl, off):
    one = {"ratio": tl, "gate": "tl", "rms": 0, "checked": 9, "gates": {"tl": tl}}
    return record(case, {"stats": one | {"got": 5 + off, "want": 5, "bound": 1e-6}})


def measured(*rows):
    found = calibrate.Measured()
    for row in rows:
        found.add_row(row)
    return found


def only_row(*rows):
    (row,) = measured(*rows).table("2026-11-21", LIMITS)["rows"]
    return row


GOOD = [gradient(FWD, "o", 0.74)] * 60


class Calibrate(unittest.TestCase):
    def calibrated(self, due, *rows, why=None):
        self.assertEqual(only_row(*rows)["calibrated"], due, why)

    def test_no_line_starts_with_the_text_of_a_record(self):
        """A runner of GitHub takes a line that starts with :: for its own command, after blanks too."""
        text = "::error title=x::y"
        marked = {"backend": text, "build": text}
        rows = [gradient(text, "o", 0.74, t1) | marked for t1 in (2.0, 0.99)] * 60
        said = [calibrate.describe(engine, LIMITS) for engine in measured(*rows).engines.values()]
        lines = "\n".join(map("\n".join, said))
        self.assertIn(text, lines)
        self.assertNotRegex(lines, r"(?m)^\s*(::|##\[)")

    def test_many_rows_as_the_model_says_are_calibrated(self):
        self.calibrated(False, *GOOD[:49], why="49 are few")
        row = only_row(*GOOD[:49], gradient(FWD, "o", 0.72))
        self.assertTrue(row["calibrated"])
        self.assertAlmostEqual(row["rms"]["o"], 0.74, delta=1e-3)
        self.assertEqual((row["engine"], row["cudnn"], row["constants"]), (5, ["9.19.0"], {}))
        self.assertNotIn("proposed", row)

    def test_a_row_has_the_members_of_the_table_that_the_program_reads(self):
        table = json.loads((HOME / "cases/calibration.json").read_text())
        self.assertLessEqual(set(only_row(*GOOD)), set(table["rows"][0]))
        self.assertEqual(measured(*GOOD).table("2026-11-21", LIMITS)["version"], table["version"])

    def test_a_kernel_that_rounds_elsewhere_is_not(self):
        for rms in (0.5, 0.6, 0.9, 1.1):
            self.calibrated(False, *[gradient(FWD, "o", rms)] * 60, why=rms)

    def test_an_answer_that_needs_the_factor_is_not(self):
        self.calibrated(False, *GOOD, gradient(FWD, "o", 0.74, 0.96))

    def test_a_row_that_is_wrong_does_not_calibrate(self):
        wrong = [*GOOD, gradient(FWD, "o", 100, 500)]
        self.calibrated(False, *wrong, why="an engine that has one is not believed")
        infinite = gradient(FWD, "o", 0.7)
        infinite["errors"]["o"] |= {"ratio": "inf", "gate": "t0", "not_finite": 1, "gates": {}}
        for rows in (wrong, [*wrong, infinite]):
            self.assertEqual(measured(*rows).rows(), 60)

    def test_what_a_known_failure_explains_says_nothing(self):
        known = gradient(FWD, "o", 100, 500) | {"verdict": "wrong"}
        known["expectation"] = {"verdict": "wrong", "met": True}
        self.assertEqual(measured(*GOOD, known).rows(), 60)
        self.calibrated(True, *GOOD, known)
        other = known | {"expectation": {"verdict": "nan", "met": False}}
        self.calibrated(False, *GOOD, other, why="it explains another verdict")

    def test_an_answer_that_any_gate_refuses_does_not_calibrate(self):
        """T1 has room in each of these rows, and so have the means."""
        law = gradient(FWD, "o", 0.74) | {"verdict": "wrong"}
        amax = {"ratio": 3, "gate": "amax", "rms": 0, "checked": 1, "gates": {}}
        rows = [law, record(FWD, {"amax_s": amax}, verdict="wrong")]
        for gate in ("t2", "t3", "tg"):
            refused = gradient(FWD, "o", 0.74) | {"verdict": "wrong"}
            refused["errors"]["o"].update(ratio=1.2, gate=gate, gates={"t1": 0.5, gate: 1.2})
            rows.append(refused)
        for row in rows:
            self.calibrated(False, *GOOD, row, why=row)

    def test_each_version_is_measured_for_itself(self):
        newer = [{**row, "cudnn": "9.28.0"} for row in GOOD]
        both = only_row(*GOOD, *newer)
        self.assertEqual((both["calibrated"], both["cudnn"]), (True, ["9.19.0", "9.28.0"]))
        self.calibrated(False, *GOOD, *newer[:3], why="3 rows of a version are few")
        louder = [{**gradient(FWD, "o", 0.9), "cudnn": "9.28.0"}] * 60
        why = "pooled with ten times as many, its mean would be in range"
        self.calibrated(False, *GOOD * 10, *louder, why=why)

    def test_partial_sums_in_fp32_show_in_grouped_heads(self):
        single = [gradient(BWD, "dk", 0.74)] * 60
        row = only_row(*single, *[gradient(GROUPED, "dk", 0.5)] * 20)
        self.assertIs(row["constants"]["partials_cast"], False, "it makes the bound narrower: set")
        self.assertFalse(row["calibrated"], "once more, with it")
        row = only_row(*single, *[gradient(GROUPED, "dk", 0.73)] * 20)
        self.assertEqual((row["constants"], row["calibrated"]), ({}, True))

    def test_what_would_widen_a_bound_is_proposed_with_its_record(self):
        rows = [*GOOD, stats(FWD + " seed=1", 0.9, 1e-6)]
        self.calibrated(True, *rows)
        rows.append(stats(FWD + " seed=2", 186, 1e-4))
        row = only_row(*rows)
        (proposed,) = row["proposed"]
        found = proposed["constant"], proposed["because"]["case"]
        self.assertEqual(found, ("eps_exp", FWD + " seed=2"))
        self.assertAlmostEqual(proposed["value"], 2e-4, delta=1e-8)
        self.assertAlmostEqual(proposed["limit"], 2**-17, delta=1e-10)
        self.assertEqual(
            (row["constants"], row["calibrated"]), ({}, False), "nothing widens itself"
        )
        (proposed,) = only_row(*rows, stats(FWD + " seed=3", 1e5, 0.7))["proposed"]
        why = "0.7 is no exponential's error"
        self.assertAlmostEqual(proposed["value"], 2e-4, delta=1e-8, msg=why)

    def test_what_the_accumulator_lost_is_read_where_v_is_1(self):
        law = {"law": "I6: a channel of ones in V stays 1 in O", "tensor": "o", "got": 0.99}
        law |= {"runs": 1, "compared": 9, "ratio": 2, "want": 1, "bound": 0.005}
        one = {"ratio": 0.5, "rms": 0.7, "checked": 9, "gates": {"t1": 0.5}}
        row = only_row(record(FWD + " fill=unip check=identities", {"o": one}, check=law))
        self.assertEqual([(p["constant"], p["value"]) for p in row["proposed"]], [("acc_pv", 0.01)])

    def test_engines_types_and_passes_are_rows_of_their_own(self):
        half = "pass=fwd dtype=f16 s=128"
        rows = [gradient(c, t, 0.74) for c, t in ((FWD, "o"), (BWD, "dq"), (half, "o"))]
        other = gradient(FWD, "o", 0.7) | {"engine": 6}
        self.assertEqual(len(measured(*rows, other, *rows, {**rows[0], "errors": {}}).engines), 4)

    def test_the_command_writes_the_table_and_says_why_it_cannot(self):
        with tempfile.TemporaryDirectory() as folder:
            path, table, empty = (Path(folder) / n for n in ("r.jsonl", "t.json", "empty.jsonl"))
            path.write_text("\n".join(map(json.dumps, GOOD)) + '\n{"case":\n')
            empty.write_text(json.dumps({"run": {"id": "r"}}) + "\n")
            words = ["calibrate", "--from"]
            code, out, err = support.run(*words, path, f"--output={table}")
            self.assertEqual((code, json.loads(table.read_text())["rows"][0]["cases"]), (4, 60))
            said = (
                "backend cudnn sm_90 bf16 fwd engine 5: 60 rows, calibrated\n"
                "  o          mean (E/sigma)^2 0.548, largest T1 0.500: errors are as the model says\n"
            )
            self.assertIn(said, out)
            self.assertIn("line 61: not JSON", err)
            for code, *more in (
                (5, empty),
                (2, table.with_name("none")),
                (3, path, "-o", f"{folder}/none/t"),
            ):
                self.assertEqual(support.run(*words, *more)[0], code)

    def test_the_limits_are_those_of_the_program(self):
        text = (HOME / "harness/attention/numbers/judge/calibration.h").read_text(encoding="utf-8")
        written = dict(re.findall(r"X\((eps_exp|acc_pv), 0, ([^)]*)\)", text))
        of = {key: [float.fromhex(n) for n in said.split(", ")] for key, said in written.items()}
        for name, limits in calibrate.LIMITS.items():
            bits = {"e": 0, "f3": 2}.get(name[: 1 + (name[0] == "f")], 1)
            self.assertEqual(limits, (of["eps_exp"][bits], of["acc_pv"][bits]), name)
