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
HEAD = {"version": "0.0.0", "origin": "facts fuzz --seed 7", "folder": ""}
HEAD["flags"] = "--cudnn 9.19.0-full-cu13 --device 0"
FORM = {"best": BEST, "start": "pass=bwd dtype=bf16 s=320 fill=neglse", "controls": [CONTROL]}
FORM |= {"cudnn": "9.19.0", "build": "9.19.0-full-cu13", "device": "h100-80gb-hbm3", "sm": "90"}
FORM |= {"ratio": "inf", "index": "[0,0,5,3]", "got": "nan", "want": "0.25", "bound": "0.002"}
FORM |= {"counts": "12 not_finite of 64", "reason": "", "failed": 2, "asked": 2}
BUCKET = {"verdict": "wrong", "text": "wrong dq (t1), engine 6", "tensors": "dq dk", "gate": "t1"}
BUCKET |= {"backend": "cudnn", "class": "", "engine": 6, "cases": 3, "known": False, "rank": 1}
BUCKET |= {"ordinary": True, "explained": False, "forms": [FORM | {"unfinished": False}]}
NAME = "wrong-dq-e6-t1-bwd"
FILES = ["README.md", f"{NAME}-fill.known", f"{NAME}-fill.md"]


def of(**form):
    return {**BUCKET, "forms": [{**BUCKET["forms"][0], **form}]}


class Texts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = Path(folder.name)
        self.found = self.at / "r.findings"

    def hand(self, *buckets):
        """The names of the files of these buckets."""
        fuzz._write_all(self.found, list(buckets), HEAD)
        return sorted(path.name for path in self.found.iterdir())

    def read(self, name):
        return (self.found / name).read_text(encoding="utf-8")

    def test_a_known_failure_reads_back_as_its_cases(self):
        path = self.at / "x.known"
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
            "title: wrong dq (t1), engine 6, with cuDNN 9.19.0 (build 9.19.0-full-cu13) on h100-80gb-hbm3 (sm_90).\n",
            "kind: failure\n",
            f'failure:\nverdict: wrong\nwhen: case="{BEST}"\nengine: 6\nsm: 90\n',
            "seen: 9.19.0; h100-80gb-hbm3, facts fuzz --seed 7\ndate: 20",
            "note: dq dk\n",
        ):
            self.assertIn(f"\n{line}", said)
        said = "\n".join(fuzz.known(of(cudnn=""), HEAD))
        self.assertIn(
            "\nkind: behaviour\nabout: caller\n", said
        )  # another backend than cuDNN failed
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
        for other, said in (
            ("engine=8 d=64", "d=64 instead of 128"),
            ("engine=8", "engine=8 instead of 6"),
        ):
            case = "pass=fwd dtype=bf16 "
            self.assertEqual(fuzz.difference(f"{case}engine=6", case + other), said)

    def test_files_have_the_name_of_the_bucket(self):
        other = {"engine": -1, "backend": "cpu", "class": "a b", "known": True}
        for bucket, name in (
            (BUCKET, f"{NAME}-fill"),
            ({**BUCKET, **other}, "wrong-dq-cpu-t1-a-b-bwd-fill-known"),
        ):
            self.assertEqual(fuzz.ident(bucket), name)
        self.assertEqual(self.hand(BUCKET), FILES)
        self.assertEqual(self.read(FILES[2]), fuzz.paragraph(BUCKET, HEAD, 1))
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(fuzz.main([str(self.at / "none"), ""]), 3)
        self.assertEqual(err.getvalue().count("\n"), 1)

    def test_the_page_lists_the_ranking_and_what_is_explained(self):
        other = {**of(best=CONTROL), "rank": 2, "ordinary": False}
        link = "https://example.org/1"
        known = of(known_as=CONTROL, link=link) | {"rank": 3, "explained": True}
        known |= {"text": "nan dv (t0), engine 7", "verdict": "nan"}
        self.assertEqual(len(self.hand(BUCKET, other, known)), 5, "no files of what is explained")
        first = f"wrong dq (t1), engine 6 | 3 | `{BEST}` | `{FILES[1]}`, `.md`"
        for said in (
            "2 findings, 1 of them ordinary",
            f"\n| 1 | yes | {first} |\n| 2 | no |",
            f"\n| nan dv (t0), engine 7 | `{BEST}` | `{CONTROL}` | {link} |\n",
        ):
            self.assertIn(said, self.read("README.md"))
        self.assertIn("Finding 2 of 2, no ordinary case.", self.read(f"{NAME}.md"))

    def test_files_of_what_was_folded_since_go_unless_somebody_edited_them(self):
        other = {**of(best=CONTROL), "rank": 2}
        self.assertIn(f"{NAME}.md", self.hand(BUCKET, other))
        self.assertEqual(self.hand(BUCKET), FILES)
        self.hand(BUCKET, other)
        (self.found / f"{NAME}.known").write_text("title: mine\n", encoding="utf-8")
        self.hand(BUCKET)
        self.assertEqual(self.read(f"{NAME}.known"), "title: mine\n")
