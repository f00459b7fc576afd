"""The catalogue of failures."""

import tempfile
import unittest
from pathlib import Path

from pages import HOME, page, printed, support, synthetic

import catalogue
from facts_reports.known import known

CASE, OTHER = "pass=fwd dtype=bf16 mask=causal", "pass=fwd dtype=bf16"
EXPANDED = page.cases_of


def row(version, case=CASE, verdict="nan", grade="measured", **change):
    device = "h100-80gb-hbm3" if grade == "measured" else "h100-sxm"
    about = {"case": case, "build": f"{version}-jit-cu13", "cudnn": version, "device": device}
    about |= {"sm": 90, "grade": grade, "verdict": verdict, "supported": verdict != "unsupported"}
    return {**about, "attempt": 1, "run": "r1", "engines": [], **change}


def record(*rows):
    head = {"run": {"id": "r1", "started": "2026-11-21T00:00:00Z"}}
    return synthetic.text([head, *rows, {"end": {"run": "r1", "complete": True}}])


class Catalogue(unittest.TestCase):
    def judge(self, *rows, about="", verdicts=("nan",), reported="any", seen=""):
        said = ("failure", about, verdicts, reported, seen)
        entry = catalogue.Entry("e", *said, affected={CASE}, controls={OTHER})
        with tempfile.TemporaryDirectory() as folder:
            store = support.store(folder, record(*rows))
        return catalogue.Judged(entry, catalogue.answers(store))

    def test_it_is_reproduced_where_a_control_or_another_version_was_right(self):
        bad, good = row("9.19.0"), row("9.19.0", OTHER, "pass")
        right = row("9.27.0", verdict="pass")
        self.assertTrue(self.judge(bad, good).broken_on_gpu)
        everything = CASE + " engine=all", OTHER + " engine=all"
        all_bad = row("9.19.0", everything[0], config=1)
        all_good = row("9.19.0", everything[1], "pass", config=0)
        old = {"reported": "cudnn<9.10.0"}
        design = {"about": "design", "verdicts": ("pass",)}
        for what, rows, about, state in (
            ("a control passed", (bad, good), {}, "reproduced"),
            ("of every engine too", (all_bad, all_good), {}, "reproduced"),
            ("no control", (bad,), {}, "not reproduced"),
            ("a control ends so", (bad, row("9.19.0", OTHER)), {}, "not reproduced"),
            ("of another version", (bad, row("9.20.0", OTHER, "pass")), {}, "not reproduced"),
            ("a control broke", (bad, right, row("9.19.0", OTHER, "wrong")), {}, "not reproduced"),
            ("a version is right", (bad, right), {}, "reproduced"),
            ("outside its range", (bad, good), old, "untested"),
            ("seen later", (bad, good), {**old, "seen": "cudnn<9.20.0"}, "reproduced"),
            (
                "it ends so behind the range",
                (bad, good, row("9.27.0")),
                {"reported": "cudnn<9.20.0"},
                "not reproduced",
            ),
            ("right behind it", (bad, good, right), {"reported": "cudnn<9.20.0"}, "reproduced"),
            ("nobody ran it", (row("9.19.0", verdict="pass", grade="decided"),), {}, "untested"),
            ("a design is right", (row("9.19.0", verdict="pass"),), design, "confirmed"),
            ("it is wrong", (row("9.19.0", verdict="wrong"),), design, "not reproduced"),
        ):
            self.assertEqual(self.judge(*rows, **about).state, state, what)

    def test_a_refusal_counts_when_cudnn_made_it(self):
        ours = "deterministic: nothing is known to repeat on sm_90 with cuDNN 9.8.0"
        for cls, status, text, state in (
            ("unsupported", "", "no", "reproduced"),
            ("policy", "", "no", "not reproduced"),
            ("bad_problem", "", "no", "not reproduced"),
            ("unsupported", "", ours, "not reproduced"),  # by what we know of a version
            ("unsupported", "", "Only D=128 for BPROP fp8 FMHA", "reproduced"),
            ("unsupported", "CUDNN_STATUS_NOT_SUPPORTED", "d: no", "reproduced"),
        ):
            reason = {"class": cls, "text": text, **({"status": status} if status else {})}
            refused = row("9.8.0", verdict="unsupported", grade="decided", reason=reason)
            rows = (refused, row("9.8.0", OTHER, "pass", "decided"))
            judged = self.judge(*rows, verdicts=("unsupported",))
            self.assertEqual(judged.state, state, (cls, text))

    def test_the_command_says_by_its_exit_code_whether_anything_reproduced(self):
        with tempfile.TemporaryDirectory() as folder:
            head = Path(folder) / "e.known"
            (Path(folder) / "engines.families").write_text("")
            head.write_text(
                "title: y\nkind: failure\nlink: a/b#1\nverdict: nan\nreported: any\n\ncases:\npass=fwd\n\ncontrols:\npass=fwd\n"
            )
            page.cases_of = lambda path: [(CASE, "e"), (OTHER, "e/controls")]
            self.addCleanup(setattr, page, "cases_of", EXPANDED)
            made = Path(folder) / "r.jsonl"
            for verdict, code in (("nan", 0), ("pass", 1)):
                rows = row("9.19.0", verdict=verdict), row("9.19.0", OTHER, "pass")
                made.write_text(record(*rows))
                self.assertEqual(printed("catalogue", "--known", folder, made)[0], code)
            head.write_text("title: y\nkind: odd\n")
            code, _, said = printed("catalogue", "--known", folder, made)
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
