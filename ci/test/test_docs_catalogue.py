"""The catalogue of failures."""

import tempfile
import unittest
from pathlib import Path

from pages import HOME, page, printed, support, synthetic

import catalogue
from facts_reports.known import known

CASE, OTHER = "pass=fwd dtype=bf16 mask=causal", "pass=fwd dtype=bf16"
EXPANDED = page.cases_of


def row(version, case=CASE, verdict="nan", grade="measured", cls=None, **change):
    reason = {"reason": {"class": cls, "text": "no"}} if cls else {}
    return {
        "case": case,
        "build": f"{version}-jit-cu13",
        "cudnn": version,
        "device": "h100-80gb-hbm3" if grade == "measured" else "h100-sxm",
        "sm": 90,
        "grade": grade,
        "verdict": verdict,
        "supported": verdict != "unsupported",
        "attempt": 1,
        "run": "r1",
        "engines": [],
        **reason,
        **change,
    }


class Catalogue(unittest.TestCase):
    def judge(self, *rows, about="", verdicts=("nan",), reported="any", seen=""):
        entry = catalogue.Entry(
            "e", "failure", about, verdicts, reported, seen, affected={CASE}, controls={OTHER}
        )
        with tempfile.TemporaryDirectory() as folder:
            lines = [
                {"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}},
                *rows,
                {"end": {"run": "r1", "complete": True}},
            ]
            store = support.store(folder, synthetic.text(lines))
        return catalogue.Judged(entry, catalogue.answers(store))

    def test_it_is_reproduced_where_a_control_passed(self):
        judged = self.judge(row("9.19.0"), row("9.19.0", OTHER, "pass"))
        self.assertEqual((judged.state, judged.broken_on_gpu), ("reproduced", True))

    def test_without_a_control_or_with_one_that_ends_so_it_is_not(self):
        self.assertEqual(self.judge(row("9.19.0")).state, "not reproduced")
        self.assertEqual(self.judge(row("9.19.0"), row("9.19.0", OTHER)).state, "not reproduced")
        self.assertEqual(
            self.judge(row("9.19.0"), row("9.20.0", OTHER, "pass")).state, "not reproduced"
        )

    def test_where_a_control_of_the_same_pass_broke_it_is_another_failure(self):
        rows = (row("9.19.0"), row("9.27.0", verdict="pass"))
        self.assertEqual(self.judge(*rows, row("9.19.0", OTHER, "wrong")).state, "not reproduced")
        self.assertEqual(self.judge(*rows, row("9.19.0", OTHER, "pass")).state, "reproduced")

    def test_a_version_that_is_right_stands_for_a_control(self):
        self.assertEqual(
            self.judge(row("9.19.0"), row("9.27.0", verdict="pass")).state, "reproduced"
        )

    def test_outside_its_range_nothing_is_reproduced(self):
        rows = (row("9.19.0"), row("9.19.0", OTHER, "pass"))
        self.assertEqual(self.judge(*rows, reported="cudnn<9.10.0").state, "untested")
        self.assertEqual(
            self.judge(*rows, reported="cudnn<9.10.0", seen="cudnn<9.20.0").state, "reproduced"
        )

    def test_what_ends_so_everywhere_behind_the_range_does_not_show_it(self):
        good = row("9.19.0", OTHER, "pass")
        self.assertEqual(
            self.judge(row("9.19.0"), good, row("9.27.0"), reported="cudnn<9.20.0").state,
            "not reproduced",
        )
        self.assertEqual(
            self.judge(
                row("9.19.0"), good, row("9.27.0", verdict="pass"), reported="cudnn<9.20.0"
            ).state,
            "reproduced",
        )

    def test_a_refusal_counts_when_cudnn_made_it(self):
        for cls, state in (
            ("unsupported", "reproduced"),
            ("policy", "not reproduced"),
            ("bad_problem", "not reproduced"),
        ):
            rows = (
                row("9.8.0", verdict="unsupported", grade="decided", cls=cls),
                row("9.8.0", OTHER, "pass", "decided"),
            )
            self.assertEqual(self.judge(*rows, verdicts=("unsupported",)).state, state, cls)

    def test_a_refusal_by_what_we_know_of_a_version_is_not_cudnns(self):
        ours = "deterministic: nothing is known to repeat on sm_90 with cuDNN 9.8.0"
        for status, text, state in (
            (None, ours, "not reproduced"),
            (None, "Only D=128 for BPROP fp8 FMHA", "reproduced"),
            ("CUDNN_STATUS_NOT_SUPPORTED", "d: no", "reproduced"),
        ):
            reason = {
                "class": "unsupported",
                "text": text,
                **({"status": status} if status else {}),
            }
            rows = (
                row("9.8.0", verdict="unsupported", grade="decided", reason=reason),
                row("9.8.0", OTHER, "pass", "decided"),
            )
            self.assertEqual(self.judge(*rows, verdicts=("unsupported",)).state, state, text)

    def test_a_yes_that_nobody_ran_says_nothing_of_numbers(self):
        self.assertEqual(
            self.judge(row("9.19.0", verdict="pass", grade="decided")).state, "untested"
        )

    def test_a_design_is_confirmed_by_a_run_that_is_right(self):
        self.assertEqual(
            self.judge(row("9.19.0", verdict="pass"), about="design", verdicts=("pass",)).state,
            "confirmed",
        )
        self.assertEqual(
            self.judge(row("9.19.0", verdict="wrong"), about="design", verdicts=("pass",)).state,
            "not reproduced",
        )

    def test_engine_all_asks_the_same_question(self):
        judged = self.judge(
            row("9.19.0", CASE + " engine=all", config=1),
            row("9.19.0", OTHER + " engine=all", "pass", config=0),
        )
        self.assertEqual(judged.state, "reproduced")

    def test_the_command_says_by_its_exit_code_whether_anything_reproduced(self):
        with tempfile.TemporaryDirectory() as folder:
            head = Path(folder) / "e.known"
            (Path(folder) / "engines.families").write_text("")
            head.write_text(
                "title: y\nkind: failure\nlink: a/b#1\nverdict: nan\nreported: any\n\ncases:\npass=fwd\n\ncontrols:\npass=fwd\n"
            )
            page.cases_of = lambda path: [(CASE, "e"), (OTHER, "e/controls")]
            self.addCleanup(setattr, page, "cases_of", EXPANDED)
            record = Path(folder) / "r.jsonl"
            for verdict, code in (("nan", 0), ("pass", 1)):
                record.write_text(
                    synthetic.text(
                        [
                            {"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}},
                            row("9.19.0", verdict=verdict),
                            row("9.19.0", OTHER, "pass"),
                            {"end": {"run": "r1", "complete": True}},
                        ]
                    )
                )
                self.assertEqual(printed("catalogue", "--known", folder, record)[0], code)
            head.write_text("title: y\nkind: odd\n")
            code, _, said = printed("catalogue", "--known", folder, record)
            self.assertEqual(code, 2)
            self.assertIn("e.known:2: kind: 'odd' is none of", said)

    def test_groups_are_what_their_section_says_and_behaviour_is_no_entry(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "engines.families").write_text("")
            (Path(folder) / "e.known").write_text(
                "title: t\nkind: behaviour\nabout: design\nverdict: pass\nrange: sm=90\n\ncases:\na\n\ncases: more\nb\n\ncontrols: near\nc\n\nguarded:\nd\n"
            )
            (Path(folder) / "f.known").write_text("title: t\nkind: behaviour\n\ncases:\na\n")
            groups = [
                ("s=1 engine=all", "e"),
                ("s=2", "e/more"),
                ("s=3", "e/near"),
                ("s=4", "e/guarded"),
            ]
            (entry,) = catalogue.read(folder, lambda path: groups)
            self.assertEqual(
                (entry.name, entry.affected, entry.controls, entry.range, entry.links),
                ("e", {"s=1", "s=2"}, {"s=3"}, "sm=90", ()),
            )

    def test_the_program_expands_the_cases_of_a_file(self):
        found = page.cases_of(HOME / "cases/known/bool-mask-wrong.known")
        self.assertIn(
            (
                "pass=fwd dtype=bf16 h=4/2 s=130/200 d=64 bias=bool:111s engine=all guards=off",
                "bool-mask-wrong",
            ),
            found,
        )
        with self.assertRaisesRegex(known.KnownError, "`facts list` ended with 2"):
            page.cases_of(HOME / "README.md")

    def test_what_was_reported_has_a_link(self):
        entries = known.load(HOME / "cases/known")
        reported = [e for e in entries if e.reported]
        self.assertGreaterEqual(len(reported), 78)
        for entry in reported:
            self.assertTrue(entry.links, entry.path)


if __name__ == "__main__":
    unittest.main()
