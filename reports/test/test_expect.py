"""Failures that no expectation explains, proposals, and the golden matrix: on records of our own."""

import contextlib
import io
import json
import unittest
from types import SimpleNamespace
from unittest import mock

import support
from support import run, store

from facts_reports.commands import expect
from facts_reports.commands import known as command
from facts_reports.known import expectations, known
from facts_reports.read.store import load

WRONG = "pass=bwd dtype=bf16 s=1/128"
RIGHT = "pass=bwd dtype=bf16 s=2/128"
TARGET = {"build": "9.27.0-jit-cu13", "cudnn": "9.27.0", "device": "h100", "sm": 90}


def record(*rows, do="run", **about):
    """A complete record of rows: (case, verdict, more)."""
    first = {
        "id": "r",
        "do": do,
        "started": "2026-11-21T00:00:00Z",
        "planned": len(rows),
        "suite_hash": "5",
        "facts": "0.3.0",
        "targets": [{"build": TARGET["build"], "device": TARGET["device"], "kind": "gpu"}],
    } | about
    lines = [{"run": first}]
    lines += [
        {
            "case": case,
            "verdict": verdict,
            "grade": "measured" if do == "run" else "decided",
            "run": "r",
            "group": "g",
        }
        | TARGET
        | more
        for case, verdict, more in rows
    ]
    return "".join(
        json.dumps(line) + "\n" for line in [*lines, {"end": {"run": "r", "complete": True}}]
    )


KNOWN = """title: NaN in dQ.
kind: number
link: a/b#1
verdict: nan
expected: numbers

failure:
verdict: nan
when: pass=bwd & s.q=1
engine: 6
sm: 90
seen: 9.20.0; here
date: 2026-11-21
suites: tiny
note: dQ

cases:
pass=bwd dtype=bf16 s=1/128
"""


def matrix(folder, versions, name="g.jsonl"):
    rows = []
    for version, engines in versions.items():
        for i, engine in enumerate(engines):
            more = {
                "build": f"{version}-jit-cu13",
                "cudnn": version,
                "group": "golden.g",
                "supported": engine != "-",
            }
            more |= {} if engine == "-" else {"engines": [{"mode": "A", "index": int(engine)}]}
            rows.append(
                (f"pass=fwd d={8 * (i + 1)}", "unsupported" if engine == "-" else "pass", more)
            )
    kept = store(folder, record(*rows, do="decide", groups={"golden.g": "why"}, targets=[]), name)
    return kept, expect.Matrix(kept)


def propose(folder, data, *files, write=False):
    """`facts known propose` over a folder with these files; (exit code, output)."""
    known_folder = folder / "known"
    known_folder.mkdir(exist_ok=True)
    (known_folder / "engines.families").write_text("")
    for i, text in enumerate(files):
        (known_folder / f"f{i}.known").write_text(text)
    (folder / "r.jsonl").write_text(data)
    with mock.patch.object(command, "folder", lambda: str(known_folder)):
        code, out, _ = run("known", "propose", folder / "r.jsonl", *(["--write"] if write else []))
    return code, out


class Expectations(support.Folder):
    def test_a_line_is_read_with_its_suites(self):
        first, second, third = expectations.read(
            "# c\n2026-11-21 nan? pass=bwd & s.q=1 a/b#1 # note # more\nsuites: x y # z\n"
            "2026-11-21 wrong/nan s.q=2 a/b#2\nsuites: all\n2026-11-21 hang s.q=3 a/b#3\n"
        )
        self.assertEqual((first.verdicts, first.suites), (("nan",), ()))
        self.assertEqual((second.verdicts, second.suites), (("wrong", "nan"), ("x", "y")))
        self.assertEqual(third.suites, ())

    def test_a_line_explains_the_failures_of_its_suites_alone(self):
        lines = expectations.read(
            "suites: tiny\n2026-11-21 nan pass=bwd & s.q=1 & engine=6 & sm=90 a/b#1\n"
        )
        for suites, failed in (
            ("tiny", 1),
            ("tiny other", 1),
            ("tiny/part", 1),
            ("", 1),
            ("other", 2),
            ("tinyish", 2),
        ):
            with self.subTest(suites):
                kept = store(
                    self.folder,
                    record(
                        (WRONG, "nan", {"engine": 6}),
                        (WRONG + " d=64", "nan", {"engine": 2}),
                        (RIGHT, "pass", {"engine": 6}),
                        suites=suites,
                    ),
                )
                self.assertEqual(len(expectations.unexplained(kept, lines)[1]), failed)

    def test_a_line_explains_the_verdicts_that_it_expects_alone(self):
        lines = expectations.read("2026-11-21 wrong/nan pass=bwd & s.q=1 a/b#1\n")
        for verdict, failed in (("wrong", 0), ("nan", 0), ("exec_fail", 1)):
            with self.subTest(verdict):
                self.assertEqual(
                    len(
                        expectations.unexplained(
                            store(self.folder, record((WRONG, verdict, {"engine": 6}))), lines
                        )[1]
                    ),
                    failed,
                )

    def test_a_case_that_its_group_judges_needs_no_line(self):
        judged = (
            WRONG,
            "crash",
            {"expectation": {"verdict": "unsupported", "met": False, "reason": "policy"}},
        )
        self.assertEqual(expectations.unexplained(store(self.folder, record(judged)), [])[1], [])

    def test_what_separates_the_failures_is_proposed_and_nothing_is_written(self):
        data = record(
            (WRONG, "pass", {"engine": 2}),
            *(
                (
                    f"pass=bwd dtype=bf16 s={n}/128 d=64",
                    "wrong" if n > 64 else "pass",
                    {"engine": 6},
                )
                for n in (7, 64, 65, 200)
            ),
            suites="tiny",
        )
        shown = [propose(self.folder, data, KNOWN) for _ in range(2)]
        self.assertEqual(shown[0], shown[1])
        code, out = shown[0]
        self.assertEqual(code, 1)
        for line in (
            "+failure: wrong-1",
            "+verdict: wrong",
            "+when: pass=bwd & s.q>64",
            "+engine: 6",
            "+sm: 90",
            "+seen: 9.27.0; h100, r.jsonl",
            "+date: 2026-11-21",
            "+suites: tiny",
            "+pass=bwd dtype=bf16 s=65/128 d=64",
        ):
            self.assertIn(line + "\n", out)
        self.assertFalse((self.folder / "known/proposed.known").exists())

    def test_the_proposed_file_is_a_known_failure_that_ends_where_the_records_are_right(self):
        case = "pass=bwd dtype=bf16 s=65/128 d=64"
        rows = [
            (
                case,
                "wrong" if version == "9.20.0" else "pass",
                {"engine": 6, "cudnn": version, "build": f"{version}-jit-cu13"},
            )
            for version in ("9.14.0", "9.20.0", "9.27.0")
        ]
        crash = (
            "pass=bwd dtype=bf16 s=1/128 d=64",
            "crash",
            {"cudnn": "9.27.0", "grade": "decided"},
        )
        data = record(*rows, crash, (RIGHT, "pass", {"engine": 6}))
        code, out = propose(self.folder, data, write=True)
        self.assertEqual(code, 1)
        path = self.folder / "known/proposed.known"
        entry = known.read_file(path, {})
        self.assertEqual(
            [(f.label, f.verdicts) for f in entry.failures],
            [("crash-1", ["crash"]), ("wrong-1", ["wrong"])],
        )
        self.assertEqual(entry.failures[1].ranges, [(92000, 92700)])
        self.assertEqual(entry.fields["verdict"], "crash wrong")
        self.assertEqual(propose(self.folder, data), (1, ""), "the same proposal: no difference")
        path.rename(self.folder / "known/mine.known")
        self.assertEqual(propose(self.folder, data), (0, ""))

    def test_what_is_known_is_not_proposed(self):
        self.assertEqual(
            propose(self.folder, record((WRONG, "nan", {"engine": 6})), KNOWN), (0, "")
        )

    def test_versions_that_answer_alike_are_one_line_and_totals_hide_no_swap(self):
        kept, made = matrix(
            self.folder, {"9.9.0": "2-", "9.10.0": "2-", "9.11.0": "-2", "9.12.0": "6-"}
        )
        body = [
            line.split()
            for line in expect.render(made, kept).split("\n")
            if line and not line.startswith("#")
        ]
        self.assertEqual(
            [(w[2], w[3], w[6:]) for w in body],
            [
                ("9.9.0..9.10.0", "1", ["2", "-"]),
                ("9.11.0", "1", ["-", "2"]),
                ("9.12.0", "1", ["6", "-"]),
            ],
        )

    def test_the_matrix_holds_what_it_was_made_of_and_names_what_differs(self):
        kept, made = matrix(self.folder, {"9.9.0": "2-", "9.10.0": "22", "9.11.0": "22"})
        text = expect.render(made, kept)
        self.assertEqual(expect.compare(made, kept, text, "s.txt"), [])
        kept, made = matrix(self.folder, {"9.10.0": "26"})
        (said,) = expect.compare(made, kept, text, "s.txt")
        self.assertIn("g h100 9.10.0: golden 2 2, answered 2 6; first 'pass=fwd d=16'", said)
        with self.assertRaisesRegex(expect.GoldenError, "s.txt:2:1: not a line"):
            expect.parse("# facts x suite 5\nnonsense\n", "s.txt")

    def test_a_new_version_is_proposed_beside_the_newest_before_it_and_a_lost_feature_is_named(
        self,
    ):
        kept, made = matrix(self.folder, {"9.9.0": "2-", "9.10.0": "22", "9.13.0": "66"})
        text = expect.render(made, kept)
        for engines, said, lost in (
            ("22", "1 rows proposed, 1 answer as 9.10.0 does", 0),
            ("2-", "1 rows proposed, 0 answer as 9.10.0 does", 1),
            ("62", "0 answer as 9.10.0 does", 0),
        ):
            kept, made = matrix(self.folder, {"9.12.0": engines})
            self.assertEqual(expect.compare(made, kept, text, "s.txt"), [])
            shown, names = expect.propose(made, text, "s.txt")
            self.assertIn("9.12.0 is new: ", shown[0])
            self.assertIn(said, shown[0])
            self.assertIn("facts expect golden add --cudnn 9.12.0", shown[-1])
            self.assertEqual(len(names), lost)
        self.assertEqual(
            expect.propose(matrix(self.folder, {"9.12.0": "2-"})[1], text, "s.txt")[1],
            [
                "golden: g h100: 9.12.0 does not take 'pass=fwd d=16', which 9.10.0 takes by engine 2"
            ],
        )

    def test_adding_versions_gives_the_text_that_asking_all_would_have_given(self):
        kept, made = matrix(self.folder, {"9.9.0": "2-", "9.10.0": "22", "9.13.0": "22"})
        text = expect.render(made, kept)
        kept, made = matrix(self.folder, {"9.12.0": "66", "9.14.0": "22"})
        added = expect.add(made, kept, text, "s.txt")
        kept, made = matrix(
            self.folder,
            {"9.9.0": "2-", "9.10.0": "22", "9.12.0": "66", "9.13.0": "22", "9.14.0": "22"},
        )
        self.assertEqual(added, expect.render(made, kept))
        kept, made = matrix(self.folder, {"9.12.0": "66"})
        with self.assertRaisesRegex(expect.GoldenError, "also has h200"):
            expect.add(made, kept, text + "g h200 9.9.0 1 of 2 2 -\n", "s.txt")

    def test_check_and_add_as_commands(self):
        kept, made = matrix(self.folder, {"9.9.0": "2-", "9.10.0": "22"})
        path = self.folder / "s.txt"
        path.write_text(expect.render(made, kept))
        matrix(self.folder, {"9.12.0": "2-"}, "new.jsonl")
        args = SimpleNamespace(golden=path, output=None, overwrite=False)

        def run(task):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = expect.show(task, load([self.folder / "new.jsonl"]), args)
            return code, out.getvalue(), err.getvalue()

        code, out, err = run("check")
        self.assertEqual(code, 1, "a lost feature is a finding")
        self.assertIn("9.12.0 is new", out)
        self.assertIn("does not take", err)
        code, out, _ = run("add")
        self.assertEqual((code, "added 9.12.0" in out), (0, True))
        self.assertEqual(run("check")[0], 0)
        after = path.read_text()
        code, out, _ = run("add")
        self.assertEqual((code, "already" in out, path.read_text()), (0, True, after))

    def test_a_matrix_must_be_complete(self):
        kept = store(self.folder, record(("pass=fwd", "inconclusive", {}), do="decide"))
        with self.assertRaisesRegex(expect.GoldenError, "must be complete"):
            expect.show("print", kept, None)


if __name__ == "__main__":
    unittest.main()
