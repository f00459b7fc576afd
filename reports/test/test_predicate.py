import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import support

from facts_reports.read import cases, features, predicate


def lines():
    """[(word, text, row)] of the file that every evaluator answers; of a mistake the text begins with its column."""
    out, row = [], {}
    for line in (support.HERE.parents[1] / "cases/predicates.test").read_text("utf-8").splitlines():
        word, _, text = line.partition(" ")
        if word == "row":
            case, _, known = text.partition(" |")
            row = {"case": case, **dict(pair.split("=") for pair in known.split())}
        elif word in ("yes", "no", "bad"):
            out.append((word, text, row))
    return out


def getter(row):
    said = cases.parse(row.get("case", ""))

    def get(key):
        if key in row:
            return row[key]
        return cases.value_of(said, key) if (key not in cases.SUBJECT or key == "engine") else None

    return get


class Predicates(unittest.TestCase):
    def test_answers_as_the_file_that_every_evaluator_answers(self):
        for word, text, row in lines():
            with self.subTest(text, row=row):
                if word != "bad":
                    self.assertEqual(
                        predicate.holds(predicate.parse(text), getter(row)), word == "yes"
                    )
                    continue
                column, _, text = text.partition(" ")
                with self.assertRaises(predicate.PredicateError) as caught:
                    predicate.parse(text)
                self.assertEqual(str(caught.exception.column), column)

    def test_a_mistake_is_one_line_with_its_column_and_the_nearest_key(self):
        for text, message in (
            ("dtpye=bf16", "column 1: no key 'dtpye'; nearest: dtype"),
            ("pass", "column 5: expected = != < <= > >= ~ or in (...) after pass"),
            ("d>128", "column 2: d has no order; its parts have: d.qk d.v"),
            ("(" * 61 + "b=1", "column 61: more than 60 ( and ! inside one another"),
        ):
            with self.subTest(text), self.assertRaises(predicate.PredicateError) as caught:
                predicate.parse(text)
            self.assertEqual(str(caught.exception), message)

    def test_text_of_any_kind_is_parsed_or_refused(self):
        odd = ["(" * 5000, "!" * 5000, "a" * 5000, "pass=\x00", "in in in", "pass in ()", "\t\n"]
        for text in (*odd, *"(((( ~~~ pass=fwd, =".split()):
            with self.subTest(text[:20]):
                try:
                    predicate.parse(text)
                except predicate.PredicateError as error:
                    self.assertNotIn("\n", str(error))


class Harness(unittest.TestCase):
    """The same predicate keeps the same cases here and in `facts list`."""

    FACTS = Path(os.environ.get("FACTS_BIN", "")) / "facts"

    @unittest.skipUnless(os.environ.get("FACTS_BIN") and FACTS.exists(), "FACTS_BIN is not set")
    def test_keeps_the_same_cases_as_the_harness(self):
        names = self.listed("core")
        self.assertGreater(len(names), 1000)
        texts = """d.qk>128; !(dtype=bf16) & layout~sb*; s.kv%128=64 & s.q<=s.kv; window.left!=inf
want~*stats*; align=br; k=bs2hd | q~bs*; out=f16; padding in (random, zero:kv); stats=th1; h.q>h.k
mask=none & window=inf:inf; engine=auto & scale=auto; stride!=dense & d.qk!=d.v"""
        for text in texts.replace("\n", "; ").split("; "):
            tree = predicate.parse(text)
            with self.subTest(text):
                due = [n for n in names if predicate.holds(tree, getter({"case": n}))]
                self.assertEqual(self.listed("core", "--where", text), due)

    def listed(self, *args):
        environment = {**os.environ, "FACTS_HOME": str(support.HERE.parents[1])}
        return subprocess.run(
            [self.FACTS, "list", *args], capture_output=True, text=True, timeout=60, env=environment
        ).stdout.splitlines()


class Keys(unittest.TestCase):
    def test_names_are_read_with_their_defaults(self):
        said = cases.parse("pass=bwd dtype=f16 h=16/4 s=1/777 d=192/128 bias=bool:11ss")
        keys = "h.q h.k h.v s.q s.kv d.qk d.v b fill out bias_fill"
        found = " ".join(cases.value_of(said, key) for key in keys.split())
        self.assertEqual(found, "16 4 4 1 777 192 128 2 gauss f16 random")
        self.assertTrue(all(re.fullmatch(r"[a-z_]+", k) for k in cases.defaults()))

    def test_every_slice_is_one_of_attention(self):
        slices = [where for axis in features._SPELLED.values() for _, where in axis]
        for where in slices + [where for _, _, where in features._HEAT]:
            self.assertTrue(predicate.of_attention(where), where)
        self.assertLessEqual({key for _, key in features._BY_VALUE}, set(cases.defaults()))

    def test_another_operation_brings_its_keys(self):
        rows = [{"key": "rows", "default": "4", "number": True}, {"key": "data", "default": "big"}]
        program = """if True:
            from facts_reports.read import cases, features, predicate
            column = cases.Columns(["rows=3", "rows=5 data=small"])
            print(predicate.holding(predicate.parse("rows>=4 & data=small"), column))
            print(features.of(column), cases.query_keys()[:3])"""
        env = {"FACTS_KEYS": json.dumps(rows), "PYTHONPATH": str(support.HERE.parent)}
        command, env = [sys.executable, "-c", program], {**os.environ, **env}
        found = subprocess.run(command, env=env, capture_output=True, text=True)
        self.assertEqual(found.stderr, "")
        self.assertEqual(found.stdout, "[False, True]\n([], []) ['rows', 'data', 'cudnn']\n")
