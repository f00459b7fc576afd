"""The gate's answer: the decision first, known failures apart, and commands that carry every option they need."""

import contextlib
import io
import json
import re
import unittest
import xml.etree.ElementTree as ET

import support
import synthetic
from facts_reports.commands import diff
from facts_reports.compare import diff_files
from facts_reports.known import known
from test_diff import NAMES, NEW, OLD, Case as Base, record, row

CASE = NAMES[0]


class Case(Base):
    def gate(self, old, new, *words):
        """(exit code, first line, all of the text)"""
        code, out, _ = support.run(
            "gate", self.write("a.jsonl", old), self.write("b.jsonl", new), *words
        )
        return code, out.splitlines()[0], out


class Decision(Case):
    def test_each_exit_code_has_its_decision_and_one_clause_why(self):
        old = record([row(n) for n in NAMES])
        silent = {
            "verdict": "inconclusive",
            "reason": {"class": "environment", "status": "X", "text": "no NVRTC"},
        }
        other = {"engines": [{"mode": "A", "index": 3, "knobs": {}}]}
        for new, code, said in (
            (
                [row(n, NEW) for n in NAMES],
                0,
                "OK TO MOVE: nothing got worse. 16 answers compared, 16 same.",
            ),
            (
                [row(n, NEW, **(other if "f32" in n else {})) for n in NAMES],
                0,
                "OK TO MOVE: nothing got worse. 8 cases have other engines. 16 answers compared, 8 same.",
            ),
            (
                [row(n, NEW, "unsupported" if n == CASE else "pass") for n in NAMES],
                1,
                "DO NOT MOVE: 1 accepted case is refused now. 16 answers compared, 15 same.",
            ),
            (
                [row(n, NEW, "crash" if "f32" in n else "unsupported") for n in NAMES],
                1,
                "DO NOT MOVE: 8 accepted cases fail now and 8 accepted cases are refused now. 16 answers compared, 0 same.",
            ),
            (
                [row(n, NEW, **silent) for n in NAMES],
                3,
                "CANNOT TELL: cuDNN 9.27.0-jit-cu13 on h100-sxm could not be asked (X: no NVRTC). 16 answers compared, 0 same.",
            ),
            (
                [row(n, NEW, **(silent if n == CASE else {})) for n in NAMES],
                3,
                "CANNOT TELL: 1 case could not be asked. 16 answers compared, 15 same.",
            ),
            (
                [row(n, NEW) for n in NAMES[1:]],
                4,
                "CANNOT TELL: 1 case has an answer on one side only. 16 answers compared, 15 same.",
            ),
        ):
            self.assertEqual(self.gate(old, record(new))[:2], (code, said))
        self.assertEqual(
            self.gate(old, record([row(n, NEW) for n in NAMES]), "--where", "d.qk>4000")[:2],
            (5, "CANNOT TELL: the two sides have no case and target in common."),
        )

    def test_a_known_failure_is_a_finding_where_the_baseline_was_right(self):
        known = {"expectation": {"verdict": "crash", "met": True, "link": "a/b#1"}}
        new = record([row(n, NEW, "crash", **known) if n == CASE else row(n, NEW) for n in NAMES])
        for before, code, said in (
            (
                "pass",
                1,
                "DO NOT MOVE: 1 accepted case fails now (1 known). 16 answers compared, 15 same.",
            ),
            (
                "unsupported",
                0,
                "OK TO MOVE: only known failures changed. 1 case fails in a new way (1 known). 16 answers compared, 15 same.",
            ),
            ("crash", 0, "OK TO MOVE: nothing got worse. 16 answers compared, 16 same."),
        ):
            self.assertEqual(
                self.gate(
                    record([row(n, verdict=before if n == CASE else "pass") for n in NAMES]), new
                )[:2],
                (code, said),
            )

    def test_a_file_without_an_end_is_named_and_counts_where_it_holds_a_build_that_is_compared(
        self,
    ):
        whole, cut = (
            self.write("whole.jsonl", record([row(n, b) for b in (OLD, NEW) for n in NAMES])),
            self.write("cut.jsonl", record([row(n, "9.14.0") for n in NAMES], complete=False)),
        )
        for old, code in ((OLD, 0), ("9.14.0", 4)):
            got, out, _ = self.run_diff(whole, cut, f"--baseline={old}", f"--candidate={NEW}")
            self.assertEqual(
                (
                    got,
                    "Incomplete: cut.jsonl: the record has no end." in out,
                    "whole.jsonl:" in out,
                ),
                (code, code == 4, False),
                out,
            )
        self.write("cut.jsonl", record([row(n, "9.14.0") for n in NAMES]) + "x\nx\n")
        self.assertIn(
            "Incomplete: cut.jsonl: 2 unreadable lines.",
            self.run_diff(whole, cut, "--baseline=9.14.0", f"--candidate={NEW}")[1],
        )

    def test_what_fail_on_leaves_out_is_not_called_nothing(self):
        old = record([row(n) for n in NAMES])
        lost = record([row(n, NEW, "unsupported" if n == CASE else "pass") for n in NAMES])
        self.assertEqual(
            self.gate(old, lost, "--fail-on", "worse")[:2],
            (
                0,
                "OK TO MOVE: --fail-on leaves out what got worse. 1 accepted case is refused now. 16 answers compared, 15 same.",
            ),
        )

    def test_every_form_has_the_decision(self):
        old, new = (
            record([row(n) for n in NAMES]),
            record([row(n, NEW, "unsupported") for n in NAMES]),
        )
        code, first, _ = self.gate(old, new, "--junit", self.folder / "j.xml", "--markdown")
        self.assertEqual(
            first,
            "**DO NOT MOVE: 16 accepted cases are refused now. 16 answers compared, 0 same.**",
        )
        decided = ET.parse(self.folder / "j.xml").getroot().find("testsuite/testcase")
        self.assertEqual(
            (decided.get("name"), decided.find("failure").get("message")),
            ("decision", first.strip("*")),
        )
        self.assertEqual(
            json.loads(self.gate(old, new, "--json")[1])["diff"]["decision"], "DO NOT MOVE"
        )
        self.assertIn(
            f"::error title=FACTS%3A DO NOT MOVE::{first.strip('*')}\n",
            self.gate(old, new, "--annotations")[2],
        )
        self.assertLessEqual(
            len(
                [
                    line
                    for line in self.gate(old, new, "--annotations")[2].splitlines()
                    if line.startswith("::")
                ]
            ),
            10,
        )

    def test_builds_that_could_not_be_asked_are_an_answer_in_every_form(self):
        said = "CANNOT TELL: cuDNN 9.28.1 could not be asked (no disk)."
        for words, first in (
            ((), said),
            (("--markdown",), f"**{said}**"),
            (("--json",), {"diff": {"decision": "CANNOT TELL", "answer": said}}),
        ):
            args = diff.COMMAND.parse(["A", "--junit", str(self.folder / "j.xml"), *words])
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                diff_files.unasked("cuDNN 9.28.1 could not be asked (no disk)", args)
            out = out.getvalue()
            self.assertEqual(
                json.loads(out) if "--json" in words else out.rstrip("\n").replace("\\", ""),
                first,
            )
            self.assertEqual(support.junit_breaches(self.folder / "j.xml"), [])
            self.assertEqual(
                ET.parse(self.folder / "j.xml")
                .getroot()
                .find("testsuite/testcase/error")
                .get("message"),
                said,
            )

    def test_a_test_of_junit_has_the_same_name_when_only_the_counts_differ(self):
        def names(crashes):
            rows = [row(n, NEW, "crash" if n in crashes else "pass") for n in NAMES]
            self.gate(
                record([row(n) for n in NAMES]), record(rows), "--junit", self.folder / "j.xml"
            )
            return [
                case.get("name")
                for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase")
            ]

        f32 = [n for n in NAMES if "f32" in n]
        self.assertEqual(names(f32), ["decision", "worse: dtype=f32: supported -> crash"])
        self.assertEqual(names(f32), names(f32))

    def test_a_test_of_junit_keeps_the_digits_of_types_and_of_no_size(self):
        def names(said):
            refusal = {"reason": {"class": "unsupported", "status": "S", "text": said}}
            self.gate(
                record([row(n) for n in NAMES]),
                record([row(n, NEW, "unsupported", **refusal) for n in NAMES]),
                "--junit",
                self.folder / "j.xml",
            )
            return [
                case.get("name")
                for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase")
            ][1]

        for said, kept in (
            ("SDPA only supports FP16/BF16/FP8 I/O", "SDPA only supports FP16/BF16/FP8 I/O"),
            ("e4m3 and INT4 need sm_90 or SM100", "e4m3 and INT4 need sm_90 or SM100"),
            ("d 192 is above 128, 4MiB at 0x7ffd12ab", "d # is above #, #MiB at #"),
        ):
            self.assertEqual(names(said), f"lost: every case: supported -> S: {kept}")

    def test_a_test_of_junit_says_what_asking_took(self):
        self.gate(
            record([row(n, wall_ms=1500) for n in NAMES]),
            record([row(n, NEW, "crash" if "f32" in n else "pass", wall_ms=500) for n in NAMES]),
            "--junit",
            self.folder / "j.xml",
        )
        times = {
            case.get("name"): case.get("time")
            for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase")
        }
        self.assertEqual(
            times,
            {
                "decision": "32.000",
                "worse: dtype=f32: supported -> crash": f"{2 * sum('f32' in n for n in NAMES):.3f}",
            },
        )

    def test_a_gate_writes_its_page(self):
        old, new = (
            record([row(n) for n in NAMES]),
            record([row(n, NEW, "unsupported") for n in NAMES]),
        )
        code, _, _ = self.gate(old, new, "--page", self.folder / "page")
        self.assertEqual(code, 1)
        self.assertIn(
            'DO NOT MOVE <span class="clause">16 accepted cases are refused now.',
            (self.folder / "page/index.html").read_text(encoding="utf-8"),
        )


KNOWN = support.HERE.parents[1] / "cases/known"


class KnownFailures(Case):
    def known(self, build, verdict="crash", name="a/b#1", met=True, case=CASE, **more):
        return row(
            case, build, verdict, expectation={"verdict": "crash", "met": met, "link": name}, **more
        )

    def check(self, old, new, said):
        _, _, out = self.gate(record(old), record(new))
        self.assertIn(said, out)
        return out

    def test_those_that_still_fail_are_counted_by_name(self):
        two = [self.known(b, case=n) for b in (OLD, NEW) for n in NAMES[:2]]
        self.check(
            two[:2], two[2:], "1 known failure still fails, 0 no longer fail, 0 got no answer."
        )
        self.check(
            [self.known(OLD)],
            [row(CASE, NEW, "crash")],
            "1 known failure still fails, 0 no longer fail, 0 got no answer.",
        )
        out = self.gate(record([row(CASE)]), record([row(CASE, NEW)]))[2]
        self.assertIn("No known failure is among these cases. ", out)
        self.assertIn(
            " failures that FACTS guards against are not in these cases: facts known check --cudnn 9.27.0 asks about these failures.",
            out,
        )

    def test_a_failure_that_an_old_record_names_by_its_page_is_among_these_cases(self):
        entry = next(e for e in known.load(KNOWN) if not e.links and e.failures[0].guarded)
        now, old, other = (
            re.search(r"([0-9]+) failures that FACTS guards", self.gate(*records)[2])[1]
            for name in (entry.link, f"docs/findings.md#{entry.name}", "a/b#1")
            for records in [[record([self.known(b, name=name)]) for b in (OLD, NEW)]]
        )
        self.assertEqual((old, int(old) + 1), (now, int(other)))

    def test_those_that_are_right_now_are_listed_with_their_commands(self):
        said = "0 known failures still fail, 1 no longer fails, 0 got no answer."
        command = "    no longer fails: a/b#1\n      facts decide 'pass=fwd dtype=bf16 s=1/512 d=64' --cudnn 9.20.0,9.27.0 --device h100-sxm\n"
        for new in (
            row(CASE, NEW),
            row(CASE, NEW, "unsupported"),
            self.known(NEW, "pass", met=False),
        ):
            self.assertIn(command, self.check([self.known(OLD)], [new], said))
        self.assertIn(command, self.check([row(CASE)], [self.known(NEW, "pass", met=False)], said))
        self.check(
            [self.known(OLD, case=n) for n in NAMES[:2]],
            [row(NAMES[0], NEW), self.known(NEW, case=NAMES[1])],
            "1 known failure still fails, 0 no longer fail",
        )

    def test_those_that_could_not_be_asked_are_counted(self):
        said = "0 known failures still fail, 0 no longer fail, 1 got no answer."
        for new in (
            [row(CASE, NEW, "inconclusive")],
            [row(n, NEW) for n in NAMES[1:2]],
            [
                row(
                    CASE,
                    NEW,
                    "unsupported",
                    reason={"class": "policy", "text": "rule x", "rule": "x"},
                )
            ],
        ):
            self.check([self.known(OLD)], new, said)
        self.check([self.known(OLD, "wrong", grade="measured")], [row(CASE, NEW)], said)


class Commands(Case):
    def with_run(self, rows, **about):
        """A record whose run and target lines say how it was asked."""
        build, device = rows[0]["build"], rows[0]["device"]
        target = {
            "run": rows[0]["run"],
            "build": build,
            "device": device,
            "cudnn": rows[0]["cudnn"],
            **about.pop("target", {}),
        }
        run = {
            "id": rows[0]["run"],
            "started": "2026-11-21T10:00:00Z",
            "targets": [{"build": build, "device": device}],
            **about,
        }
        return synthetic.text(
            [
                {"run": run},
                {"target": target},
                *rows,
                {"end": {"run": run["id"], "complete": True, "rows": len(rows)}},
            ]
        )

    def group(self, *words, **about):
        old = self.with_run([row(CASE)], **about)
        about.pop("target", None)
        code, _, out = self.gate(
            old, self.with_run([row(CASE, NEW, "unsupported")], **about), "--json", *words
        )
        return json.loads(out.splitlines()[1])["group"]

    def test_a_row_that_was_found_with_plan_is_repeated_with_plan(self):
        for do, more in (("plan", " --plan"), ("decide", "")):
            found = self.group(do=do)
            self.assertEqual(
                found["repro"],
                f"facts decide 'pass=fwd dtype=bf16 s=1/512 d=64' --cudnn 9.20.0,9.27.0 --device h100-sxm{more} --explain",
            )
            self.assertEqual(
                found["bisect"],
                f"facts bisect 'pass=fwd dtype=bf16 s=1/512 d=64' --cudnn 9.20.0..9.27.0 --device h100-sxm{more}",
            )

    def test_a_step_down_is_bisected_over_a_range_that_goes_up(self):
        _, _, out = self.gate(record([row(CASE, NEW)]), record([row(CASE, OLD, "unsupported")]))
        self.assertIn(" --cudnn 9.20.0..9.27.0 ", out)

    def test_a_build_that_is_a_folder_is_named_by_its_folder_and_not_bisected(self):
        found = self.group(
            target={
                "origin": "folder",
                "libraries": [{"path": "/opt/x/lib/libcudnn_graph.so.9", "in_build": True}],
            }
        )
        self.assertIn(" --cudnn /opt/x/lib,9.27.0 ", found["repro"])
        self.assertIsNone(found["bisect"])

    def test_a_described_device_of_a_file_is_named_by_its_file(self):
        found = self.group(command=["facts", "gate", "--device", "sm100-spec,my/h100.json"])
        self.assertTrue(found["repro"].endswith(" --device my/h100.json --explain"), found["repro"])
        self.assertIn(
            " --device h100-sxm",
            self.group(command=["facts", "gate", "--device", "h100-sxm,b.json"])["repro"],
        )


if __name__ == "__main__":
    unittest.main()
