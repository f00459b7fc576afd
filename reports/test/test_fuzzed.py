"""The two texts about what a fuzzer found: a file for cases/known, and a paragraph."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401  (the path of the package)

from facts_reports.commands import fuzz
from facts_reports.known import known

BEST = "pass=bwd dtype=bf16 b=1 h=1 s=64 d=65 fill=neglse"
CONTROL = "pass=bwd dtype=bf16 b=1 h=1 s=64 d=65"
HEAD = {
    "version": "0.0.0",
    "origin": "facts fuzz --seed 7",
    "flags": "--cudnn 9.19.0-full-cu13 --device 0",
    "folder": "",
}
FORM = {
    "best": BEST,
    "start": "pass=bwd dtype=bf16 s=320 fill=neglse",
    "cudnn": "9.19.0",
    "build": "9.19.0-full-cu13",
    "device": "h100-80gb-hbm3",
    "sm": "90",
    "ratio": "inf",
    "index": "[0,0,5,3]",
    "got": "nan",
    "want": "0.25",
    "bound": "0.002",
    "counts": "12 not_finite of 64",
    "reason": "",
    "failed": 2,
    "asked": 2,
    "unfinished": False,
    "controls": [CONTROL],
}
BUCKET = {
    "verdict": "wrong",
    "text": "wrong dq (t1), engine 6",
    "tensors": "dq dk",
    "gate": "t1",
    "backend": "cudnn",
    "class": "",
    "engine": 6,
    "cases": 3,
    "known": False,
    "rank": 1,
    "ordinary": True,
    "explained": False,
    "forms": [FORM],
}


def of(**form):
    return {**BUCKET, "forms": [{**FORM, **form}]}


class Texts(unittest.TestCase):
    def test_a_known_failure_reads_back_as_its_cases(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.known"
            path.write_text("\n".join(fuzz.known(BUCKET, HEAD)) + "\n", encoding="utf-8")
            entry = known.read_file(path, {})
        groups = {
            kind: [line for line in lines if line and not line.startswith("why:")]
            for kind, _, _, lines in entry.groups
        }
        self.assertEqual(groups, {"cases": [BEST], "controls": [CONTROL]})
        self.assertEqual(entry.failures[0].verdicts, ["wrong"])

    def test_a_failure_says_what_fails_and_where(self):
        said = "\n".join(fuzz.known(BUCKET, HEAD))
        for line in (
            "\ntitle: wrong dq (t1), engine 6, with cuDNN 9.19.0 (build 9.19.0-full-cu13) on h100-80gb-hbm3 (sm_90).\n",
            "\nkind: number\n",
            f'\nfailure:\nverdict: wrong\nwhen: case="{BEST}"\nengine: 6\nsm: 90\n',
            "\nseen: 9.19.0; h100-80gb-hbm3, facts fuzz --seed 7\ndate: 20",
            "\nnote: dq dk\n",
        ):
            self.assertIn(line, said)
        said = "\n".join(fuzz.known(of(cudnn=""), HEAD))
        self.assertIn("\nkind: caller\n", said)  # another backend than cuDNN failed
        self.assertNotIn("\nfailure:", said)  # of cuDNN alone

    def test_the_paragraph_says_what_a_report_needs(self):
        said = fuzz.paragraph(BUCKET, HEAD)
        for words in (
            "wrong dq (t1), engine 6",
            "cuDNN 9.19.0 (build 9.19.0-full-cu13)",
            "h100-80gb-hbm3 (sm_90)",
            "dq[0,0,5,3]: got nan, want 0.25, bound 0.002",
            "12 not_finite of 64",
            "failed 2 of 2 times",
            "fill=gauss instead of neglse",
            f"facts repro '{BEST}' --cudnn 9.19.0-full-cu13 --device 0",
            "FACTS 0.0.0",
            "--seed 7",
            "3 drawn cases",
            "backward, bf16, batch 1, heads 1, queries/keys 64, head dim 65, fill=neglse",
        ):
            self.assertIn(words, said)

    def test_a_control_that_keeps_the_engine_is_told_by_its_other_key(self):
        self.assertEqual(
            fuzz.difference("pass=fwd dtype=bf16 engine=6", "pass=fwd dtype=bf16 engine=8 d=64"),
            "d=64 instead of 128",
        )
        self.assertEqual(
            fuzz.difference("pass=fwd dtype=bf16 engine=6", "pass=fwd dtype=bf16 engine=8"),
            "engine=8 instead of 6",
        )

    def test_files_have_the_name_of_the_bucket(self):
        self.assertEqual(fuzz.ident(BUCKET), "wrong-dq-e6-t1-bwd-fill")
        self.assertEqual(
            fuzz.ident({**BUCKET, "engine": -1, "backend": "cpu", "class": "a b", "known": True}),
            "wrong-dq-cpu-t1-a-b-bwd-fill-known",
        )
        with tempfile.TemporaryDirectory() as folder:
            found = Path(folder) / "r.findings"
            fuzz._write_all(found, [BUCKET], HEAD)
            self.assertEqual(
                sorted(path.name for path in found.iterdir()),
                ["README.md", "wrong-dq-e6-t1-bwd-fill.known", "wrong-dq-e6-t1-bwd-fill.md"],
            )
            self.assertEqual(
                (found / "wrong-dq-e6-t1-bwd-fill.md").read_text(encoding="utf-8"),
                fuzz.paragraph(BUCKET, HEAD, 1),
            )
            with contextlib.redirect_stderr(io.StringIO()) as err:
                self.assertEqual(fuzz.main([str(Path(folder) / "none"), ""]), 3)
            self.assertEqual(err.getvalue().count("\n"), 1)

    def hand(self, folder, *buckets):
        fuzz._write_all(folder / "r.findings", list(buckets), HEAD)
        return folder / "r.findings"

    def test_the_page_lists_the_ranking_and_what_is_explained(self):
        other = {**of(best=CONTROL), "rank": 2, "ordinary": False}
        known = {
            **of(known_as=CONTROL, link="https://example.org/1"),
            "rank": 3,
            "explained": True,
            "text": "nan dv (t0), engine 7",
            "verdict": "nan",
        }
        with tempfile.TemporaryDirectory() as folder:
            found = self.hand(Path(folder), BUCKET, other, known)
            page = (found / "README.md").read_text(encoding="utf-8")
            names = sorted(path.name for path in found.iterdir())
            second = (found / "wrong-dq-e6-t1-bwd.md").read_text(encoding="utf-8")
        self.assertIn("2 findings, 1 of them ordinary", page)
        self.assertIn(
            f"\n| 1 | yes | wrong dq (t1), engine 6 | 3 | `{BEST}` | `wrong-dq-e6-t1-bwd-fill.known`, `.md` |\n| 2 | no |",
            page,
        )
        self.assertIn(
            f"\n| nan dv (t0), engine 7 | `{BEST}` | `{CONTROL}` | https://example.org/1 |\n", page
        )
        self.assertEqual(len(names), 5, "no files of what is explained")
        self.assertIn("Finding 2 of 2, no ordinary case.", second)

    def test_files_of_what_was_folded_since_go_unless_somebody_edited_them(self):
        other = {**of(best=CONTROL), "rank": 2}
        with tempfile.TemporaryDirectory() as folder:
            found = self.hand(Path(folder), BUCKET, other)
            self.assertTrue((found / "wrong-dq-e6-t1-bwd.md").exists())
            self.hand(Path(folder), BUCKET)
            self.assertEqual(
                sorted(path.name for path in found.iterdir()),
                ["README.md", "wrong-dq-e6-t1-bwd-fill.known", "wrong-dq-e6-t1-bwd-fill.md"],
            )
            self.hand(Path(folder), BUCKET, other)
            edited = found / "wrong-dq-e6-t1-bwd.known"
            edited.write_text("title: mine\n", encoding="utf-8")
            self.hand(Path(folder), BUCKET)
            self.assertEqual(edited.read_text(encoding="utf-8"), "title: mine\n")


if __name__ == "__main__":
    unittest.main()
