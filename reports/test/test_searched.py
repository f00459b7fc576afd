"""What a search left in a record: smallest cases that are one finding, their drawn cases, what their rows say, and the ranking."""

import json
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401  (the path of the package)

from facts_reports.commands import fuzz

CASE = "pass=bwd dtype=bf16 b=1 h=1 s=64 d=65"


def row(case, verdict="wrong", group="fuzz/asked", ratio=3, tensors=("dq", "dk"), **more):
    errors = {name: {"ratio": ratio, "wrong": 2, "checked": 64} for name in tensors}
    made = {"case": case, "verdict": verdict, "group": group, "backend": "cudnn", "engine": 6}
    failing = {"errors": {"o": {"ratio": 0.5}, **errors}} if verdict == "wrong" else {}
    return {**made, **failing, **more}


def drawn(case, *more, **other):
    return row(f"pass=bwd dtype={case}", *more, group="fuzz/drawn", **other)


def finding(best, start="", **more):
    about = {"best": best, "start": start or best, "verdict": "wrong", "tensors": "dq dk"}
    about |= {"text": "wrong dq (t1), engine 6", "gate": "t1", "backend": "cudnn", "class": ""}
    about |= {"engine": 6, "known": False, "unfinished": False, "failed": 2, "asked": 2}
    return {"finding": {**about, **more}}


def read(*lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.jsonl"
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path.write_text(text + '{"half', encoding="utf-8")
        return fuzz.Record(path)


class Searched(unittest.TestCase):
    def test_neighbours_set_the_same_keys_or_one_covers_the_other(self):
        for a, b, expected in (
            ("pass=bwd fill=spiky s=9", "pass=bwd fill=needle s=3 d=16", True),
            ("pass=bwd dtype=f16", "pass=bwd dtype=bf16", True),
            ("pass=bwd dtype=e4m3", "pass=bwd dtype=e5m2", True),
            ("pass=bwd dtype=e4m3", "pass=bwd dtype=bf16", False),
            ("pass=bwd dtype=f32", "pass=bwd dtype=bf16", False),
            ("pass=bwd", "pass=fwd", False),
            ("pass=bwd fill=spiky s=9", "pass=bwd fill=spiky mask=causal s=9", True),
            ("pass=bwd fill=spiky s=9", "pass=bwd fill=needle mask=causal s=9", False),
            ("pass=bwd fill=spiky s=9", "pass=bwd fill=spiky mask=causal s=8", False),
            ("pass=bwd fill=spiky", "pass=bwd mask=causal", False),
            ("pass=bwd engine=7", "pass=bwd", True),
        ):
            with self.subTest(a=a, b=b):
                self.assertEqual(fuzz.neighbours(a, b), expected)
                self.assertEqual(fuzz.neighbours(b, a), expected)

    def test_neighbours_that_fail_alike_are_forms_of_one_finding(self):
        lines = [finding(f"{CASE} fill={fill}") for fill in ("spiky", "needle", "neglse")]
        other = finding(f"{CASE} fill=spiky", engine=7, text="wrong dq (t1), engine 7")
        one, two = fuzz.buckets_of(read(*lines, other))
        self.assertEqual([len(one["forms"]), len(two["forms"])], [3, 1])
        self.assertEqual([one["rank"], two["rank"]], [1, 2])
        self.assertEqual(two["engine"], 7)

    def test_a_smaller_form_makes_one_finding_of_two(self):
        apart = [finding(f"{CASE} fill=spiky"), finding(f"{CASE} mask=causal")]
        self.assertEqual(len(fuzz.buckets_of(read(*apart))), 2)
        self.assertEqual(len(fuzz.buckets_of(read(*apart, finding(CASE)))), 1)

    def test_drawn_cases_count_for_the_form_that_stands_for_them(self):
        rows = [
            drawn("f16 s=300 fill=spiky"),
            drawn("bf16 s=300 mask=causal"),
            drawn("bf16 s=9"),
            drawn("e4m3 s=300"),
            drawn("bf16 s=300 b=3", "pass"),
            drawn("bf16 s=300 b=4", tensors=("dv",)),
        ]
        for start, count, why in (
            (0, 2, "not the smaller one, nor another type, tensor or verdict"),
            (3, 3, "it is known to fail in e4m3"),
        ):
            form = finding(CASE, start=rows[start]["case"])
            (bucket,) = fuzz.buckets_of(read(form, row(CASE), *rows))
            self.assertEqual(bucket["cases"], count, why)

    def test_a_form_has_what_its_row_says(self):
        said = row(CASE, cudnn="9.19.0", build="x", device="y", sm=90, reason={"text": "a\nb"})
        said["errors"]["dq"].update(worst_index=[0, 0, 5, 3], got="nan", want=0.25, bound=0.002)
        (bucket,) = fuzz.buckets_of(read(finding(CASE), said))
        form = bucket["forms"][0]
        self.assertEqual((form["cudnn"], form["sm"], form["reason"]), ("9.19.0", "90", "a b"))
        self.assertEqual((form["index"], form["got"], form["want"]), ("[0,0,5,3]", "nan", "0.25"))
        self.assertEqual(form["counts"], "2 wrong of 64")

    def test_controls_are_one_key_away_and_right(self):
        best = f"{CASE} fill=neglse"
        others = [
            row(CASE, "pass"),
            row(f"{CASE} fill=neglse mask=causal", "pass"),
            row(best.replace("s=64", "s=63"), "pass"),
            row(best.replace("s=64", "s=32"), "pass"),
            row(best.replace("d=65", "d=64")),
            row(f"{best} engine=4", "pass"),
            row(best.replace("s=64", "s=63").replace("b=1", "b=2"), "pass"),
        ]
        (bucket,) = fuzz.buckets_of(read(finding(best), row(best), *others))
        due = [CASE, best.replace("s=64", "s=63"), best.replace("s=64", "s=32")]
        self.assertEqual(bucket["forms"][0]["controls"], due)

    def test_ordinary_ones_come_first_then_those_of_fewest_features_and_explained_ones_last(self):
        cases = ("layout=bhsd", "fill=spiky mod=softcap:5", "poison=nan", "exec=graph alibi=1")
        lines = [finding(f"{CASE} {keys}", text=keys, **{"class": keys}) for keys in cases]
        known = finding(f"{CASE} repeat=2", known_as=CASE, text="known", **{"class": "k"})
        link = row(CASE, expectation={"met": True, "link": "https://example.org/1"})
        found = fuzz.buckets_of(read(*lines, known, link))
        order = [cases[2], cases[1], cases[0], cases[3], "known"]
        self.assertEqual([one["text"] for one in found], order)
        self.assertEqual([one["ordinary"] for one in found[:4]], [True, True, False, False])
        self.assertEqual(found[4]["forms"][0]["link"], "https://example.org/1")
