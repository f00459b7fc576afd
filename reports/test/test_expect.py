"""Failures that no expectation explains, proposals, and the golden matrix: on records of our own."""

import contextlib
import io
from types import SimpleNamespace
from unittest import mock

import support
import synthetic
from support import run, store

from facts_reports.commands import expect
from facts_reports.commands import known as command
from facts_reports.known import expectations, known
from facts_reports.read import predicate

WRONG = "pass=bwd dtype=bf16 s=1/128"
RIGHT = "pass=bwd dtype=bf16 s=2/128"
TARGET = {"build": "9.27.0-jit-cu13", "cudnn": "9.27.0", "device": "h100", "sm": 90}


def record(*rows, do="run", **about):
    """A complete record of rows: (case, verdict, more)."""
    run = synthetic.head("r", planned=len(rows), suite_hash="5", facts="0.3.0", do=do)
    targets = [{"build": TARGET["build"], "device": "h100", "kind": "gpu"}]
    run["run"] |= {"targets": targets, **about}
    at = {**TARGET, "run": "r", "group": "g", "grade": "measured" if do == "run" else "decided"}
    lines = [{"case": case, "verdict": verdict, **at, **more} for case, verdict, more in rows]
    return synthetic.text([run, *lines, synthetic.end("r")])


KNOWN = """title: NaN in dQ.
kind: failure
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
        at = {"build": f"{version}-jit-cu13", "cudnn": version, "group": "golden.g"}
        for i, engine in enumerate(engines):
            case, more = f"pass=fwd d={8 * (i + 1)}", {**at, "supported": engine != "-"}
            if engine == "-":
                rows.append((case, "unsupported", more))
            else:
                rows.append((case, "pass", more | synthetic.engines(int(engine))))
    kept = store(folder, record(*rows, do="decide", groups={"golden.g": "why"}, targets=[]), name)
    return kept, expect.Matrix(kept)


def rendered(folder, versions):
    kept, made = matrix(folder, versions)
    return expect.render(made, kept)


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
    def failed(self, lines, *rows, **about):
        kept = store(self.folder, record(*rows, **about))
        return len(expectations.unexplained(kept, lines)[1])

    def test_a_line_explains_the_failures_of_its_suites_alone(self):
        where = predicate.parse("pass=bwd & s.q=1 & engine=6 & sm=90")
        lines = [expectations.Line(("nan",), ("tiny",), where)]
        rows = (
            (WRONG, "nan", {"engine": 6}),
            (WRONG + " d=64", "nan", {"engine": 2}),
            (RIGHT, "pass", {"engine": 6}),
        )
        for suites in ("tiny", "tiny other", "tiny/part", "", "other", "tinyish"):
            due = 2 if suites in ("other", "tinyish") else 1
            self.assertEqual(self.failed(lines, *rows, suites=suites), due, suites)

    def test_a_line_explains_the_verdicts_that_it_expects_alone(self):
        where = predicate.parse("pass=bwd & s.q=1")
        lines = [expectations.Line(("wrong", "nan"), (), where)]
        for verdict, failed in (("wrong", 0), ("nan", 0), ("exec_fail", 1)):
            self.assertEqual(self.failed(lines, (WRONG, verdict, {"engine": 6})), failed, verdict)

    def test_a_case_that_its_group_judges_needs_no_line(self):
        judged = {"verdict": "unsupported", "met": False, "reason": "policy"}
        self.assertEqual(self.failed([], (WRONG, "crash", {"expectation": judged})), 0)

    def test_what_separates_the_failures_is_proposed_and_nothing_is_written(self):
        case, engine = "pass=bwd dtype=bf16 s={}/128 d=64", {"engine": 6}
        rows = [(case.format(n), "wrong" if n > 64 else "pass", engine) for n in (7, 64, 65, 200)]
        data = record((WRONG, "pass", {"engine": 2}), *rows, suites="tiny")
        shown = [propose(self.folder, data, KNOWN) for _ in range(2)]
        self.assertEqual(shown[0], shown[1])
        code, out = shown[0]
        self.assertEqual(code, 1)
        for line in (
            "failure: wrong-1\n+verdict: wrong\n+when: pass=bwd & guards=off & s.q>64\n+engine: 6\n+sm: 90",
            "seen: 9.27.0; h100, r.jsonl\n+date: 2026-11-21",
            "suites: tiny",
            case.format(65),
        ):
            self.assertIn(f"+{line}\n", out)
        self.assertFalse((self.folder / "known/proposed.known").exists())

    def test_the_proposed_file_is_a_known_failure_that_ends_where_the_records_are_right(self):
        def at(version, **more):
            return {"cudnn": version, "build": f"{version}-jit-cu13", **more}

        wrong, crash = ("pass=bwd dtype=bf16 s=%s/128 d=64" % n for n in (65, 1))
        data = record(
            *((wrong, "pass", at(v, engine=6)) for v in ("9.14.0", "9.27.0")),
            (wrong, "wrong", at("9.20.0", engine=6)),
            (crash, "crash", at("9.27.0", grade="decided")),
            (RIGHT, "pass", {"engine": 6}),
        )
        code, out = propose(self.folder, data, write=True)
        self.assertEqual(code, 1)
        path = self.folder / "known/proposed.known"
        entry = known.read_file(path, {})
        found = [(f.label, f.verdicts) for f in entry.failures]
        self.assertEqual(found, [("crash-1", ["crash"]), ("wrong-1", ["wrong"])])
        self.assertEqual(entry.failures[1].ranges, [(92000, 92700)])
        self.assertEqual(entry.fields["verdict"], "crash wrong")
        self.assertEqual(propose(self.folder, data), (1, ""), "the same proposal: no difference")
        path.rename(self.folder / "known/mine.known")
        self.assertEqual(propose(self.folder, data), (0, ""))

    def test_what_is_known_is_not_proposed(self):
        data = record((WRONG, "nan", {"engine": 6}))
        self.assertEqual(propose(self.folder, data, KNOWN), (0, ""))


class Golden(support.Folder):
    def test_versions_that_answer_alike_are_one_line_and_totals_hide_no_swap(self):
        versions = {"9.9.0": "2-", "9.10.0": "2-", "9.11.0": "-2", "9.12.0": "6-"}
        lines = rendered(self.folder, versions).split("\n")
        body = [line.split() for line in lines if line and not line.startswith("#")]
        due = ["9.9.0..9.10.0 1 2 -", "9.11.0 1 - 2", "9.12.0 1 6 -"]
        self.assertEqual([" ".join([w[2], w[3], *w[6:]]) for w in body], due)

    def test_the_matrix_holds_what_it_was_made_of_and_names_what_differs(self):
        kept, made = matrix(self.folder, {"9.9.0": "2-", "9.10.0": "22", "9.11.0": "22"})
        text = expect.render(made, kept)
        self.assertEqual(expect.compare(made, kept, text, "s.txt"), [])
        kept, made = matrix(self.folder, {"9.10.0": "26"})
        (said,) = expect.compare(made, kept, text, "s.txt")
        self.assertIn("g h100 9.10.0: golden 2 2, answered 2 6; first 'pass=fwd d=16'", said)
        with self.assertRaisesRegex(expect.GoldenError, "s.txt:2:1: not a line"):
            expect.parse("# facts x suite 5\nnonsense\n", "s.txt")

    def test_a_new_version_is_proposed_beside_the_newest_before_it_and_a_loss_is_named(self):
        text = rendered(self.folder, {"9.9.0": "2-", "9.10.0": "22", "9.13.0": "66"})
        lost = (
            "golden: g h100: 9.12.0 does not take 'pass=fwd d=16', which 9.10.0 takes by engine 2"
        )
        for engines, said, losses in (
            ("22", "1 rows proposed, 1 answer as 9.10.0 does", []),
            ("2-", "1 rows proposed, 0 answer as 9.10.0 does", [lost]),
            ("62", "0 answer as 9.10.0 does", []),
        ):
            kept, made = matrix(self.folder, {"9.12.0": engines})
            self.assertEqual(expect.compare(made, kept, text, "s.txt"), [])
            shown, names = expect.propose(made, text, "s.txt")
            self.assertIn("9.12.0 is new: ", shown[0])
            self.assertIn(said, shown[0])
            self.assertIn("facts expect golden add --cudnn 9.12.0", shown[-1])
            self.assertEqual(names, losses)

    def test_adding_versions_gives_the_text_that_asking_all_would_have_given(self):
        old = {"9.9.0": "2-", "9.10.0": "22", "9.13.0": "22"}
        new = {"9.12.0": "66", "9.14.0": "22"}
        text = rendered(self.folder, old)
        kept, made = matrix(self.folder, new)
        added = expect.add(made, kept, text, "s.txt")
        every = sorted((old | new).items(), key=lambda pair: int(pair[0].split(".")[1]))
        self.assertEqual(added, rendered(self.folder, dict(every)))
        kept, made = matrix(self.folder, {"9.12.0": "66"})
        with self.assertRaisesRegex(expect.GoldenError, "also has h200"):
            expect.add(made, kept, text + "g h200 9.9.0 1 of 2 2 -\n", "s.txt")

    def test_check_and_add_as_commands(self):
        path = self.folder / "s.txt"
        path.write_text(rendered(self.folder, {"9.9.0": "2-", "9.10.0": "22"}))
        kept, _ = matrix(self.folder, {"9.12.0": "2-"})
        args = SimpleNamespace(golden=path, output=None, overwrite=False)

        def run(task):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                return expect.show(task, kept, args), out.getvalue(), err.getvalue()

        code, out, err = run("check")
        self.assertEqual(code, 1, "a lost feature is a finding")
        self.assertIn("9.12.0 is new", out)
        self.assertIn("does not take", err)
        code, out, _ = run("add")
        self.assertEqual((code, "added 9.12.0" in out, run("check")[0]), (0, True, 0))
        after = path.read_text()
        code, out, _ = run("add")
        self.assertEqual((code, "already" in out, path.read_text()), (0, True, after))

    def test_a_matrix_must_be_complete(self):
        kept = store(self.folder, record(("pass=fwd", "inconclusive", {}), do="decide"))
        with self.assertRaisesRegex(expect.GoldenError, "must be complete"):
            expect.show("print", kept, None)

    def test_every_answer_of_the_text_is_in_the_json(self):
        home = support.HERE.parents[1]
        text = (home / "cases/golden/support.txt").read_text(encoding="utf-8")
        made = expect.as_json(text, "support.txt", home / "lib/devices")
        suite, versions, lines = expect.parse(text, "support.txt")
        found = made["suite"], [b["cudnn"] for b in made["builds"]]
        self.assertEqual(found, (suite, list(versions)))
        shown, said = {False: "-", "crash": "!", True: "*", None: "?"}, {}
        for group in made["groups"]:
            for device, ranges in group["answers"].items():
                for one in ranges:
                    marks = [str(e) if type(e) is int else shown[e] for e in one["engines"]]
                    spans = said.setdefault((group["name"], device), [])
                    spans.append((one["from"], one["to"], marks))
                    self.assertEqual(len(group["cases"]), len(marks), group["name"])
        self.assertEqual(said, {at: [one[:3] for one in spans] for at, spans in lines.items()})
        self.assertEqual({d["name"]: d["sm"] for d in made["devices"]}["h100-sxm"], 90)
