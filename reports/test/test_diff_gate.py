"""The gate's answer: the decision first, known failures apart, and commands that carry every option they need."""

import contextlib
import io
import json
import re
import xml.etree.ElementTree as ET

import support
import synthetic
from facts_reports.commands import diff
from facts_reports.compare import diff_files
from facts_reports.known import known
from synthetic import engines, reason
from test_diff import NAMES, NEW, OLD, Case as Base, record, row, rows

CASE = NAMES[0]


def is_case(name):
    return name == CASE


class Case(Base):
    def gate(self, old, new, *words):
        """(exit code, first line, all of the text)"""
        paths = self.write("a.jsonl", old), self.write("b.jsonl", new)
        code, out, _ = support.run("gate", *paths, *words)
        return code, out.splitlines()[0], out

    def decided(self, new, code, said, *words, old=None):
        """The gate's exit code and first line, after the build that has no failure."""
        self.assertEqual(self.gate(old or rows(), new, *words)[:2], (code, said))

    def junit(self, old, new, key="name"):
        """An attribute of each test of the gate's JUnit file."""
        self.gate(old, new, "--junit", self.folder / "j.xml")
        return [
            case.get(key) for case in ET.parse(self.folder / "j.xml").getroot().iter("testcase")
        ]


class Decision(Case):
    def test_each_exit_code_has_its_decision_and_one_clause_why(self):
        silent = {"verdict": "inconclusive", **reason("no NVRTC", "X", "environment")}
        dumb, some, other, two = (rows(NEW) for _ in range(4))
        for i, n in enumerate(NAMES):
            dumb[i] = row(n, NEW, **silent)
            some[i] |= silent if n == CASE else {}
            other[i] |= engines(3) if "f32" in n else {}
            two[i] = row(n, NEW, "crash" if "f32" in n else "unsupported")
        some[0]["supported"] = None
        silent = "cuDNN 9.27.0-jit-cu13 on h100-sxm could not be asked (X: no NVRTC)"
        both = "8 accepted cases fail now and 8 accepted cases are refused now"
        fine = "OK TO MOVE: nothing got worse."
        one_side = "CANNOT TELL: 1 case has an answer on one side only."
        for new, code, same, said in (
            (rows(NEW), 0, 16, fine),
            (other, 0, 8, f"{fine} 8 cases have other engines."),
            (rows(NEW, is_case), 1, 15, "DO NOT MOVE: 1 accepted case is refused now."),
            (two, 1, 0, f"DO NOT MOVE: {both}."),
            (dumb, 3, 0, f"CANNOT TELL: {silent}."),
            (some, 3, 15, "CANNOT TELL: 1 case could not be asked."),
            (rows(NEW)[1:], 4, 15, one_side),
        ):
            self.decided(new, code, f"{said} 16 answers compared, {same} same.")
        said = "CANNOT TELL: the two sides have no case and target in common."
        self.decided(rows(NEW), 5, said, "--where", "d.qk>4000")
        said = "OK TO MOVE: --fail-on leaves out what got worse. 1 accepted case is refused now. 16 answers compared, 15 same."
        self.decided(rows(NEW, is_case), 0, said, "--fail-on", "worse")

    def test_a_known_failure_is_a_finding_where_the_baseline_was_right(self):
        new = rows(NEW, is_case, "crash")
        new[0]["expectation"] = {"verdict": "crash", "met": True, "link": "a/b#1"}
        new_way = "OK TO MOVE: only known failures changed. 1 case fails in a new way (1 known)."
        for before, code, said in (
            ("pass", 1, "DO NOT MOVE: 1 accepted case fails now (1 known)."),
            ("unsupported", 0, new_way),
            ("crash", 0, "OK TO MOVE: nothing got worse."),
        ):
            count = f" 16 answers compared, {15 + (before == 'crash')} same."
            self.decided(new, code, said + count, old=rows(OLD, is_case, before))

    def test_a_file_without_an_end_is_named_and_counts_where_it_holds_a_build_of_the_two(self):
        whole = self.write("whole.jsonl", rows(OLD) + rows(NEW))
        cut = self.write("cut.jsonl", record(rows("9.14.0"), complete=False))
        for old, code in ((OLD, 0), ("9.14.0", 4)):
            got, out, _ = self.run_diff(whole, cut, f"--baseline={old}", f"--candidate={NEW}")
            said = "Incomplete: cut.jsonl: the record has no end." in out
            self.assertEqual((got, said, "whole.jsonl:" in out), (code, code == 4, False), out)
        self.write("cut.jsonl", record(rows("9.14.0")) + "x\nx\n")
        _, out, _ = self.run_diff(whole, cut, "--baseline=9.14.0", f"--candidate={NEW}")
        self.assertIn("Incomplete: cut.jsonl: 2 unreadable lines.", out)

    def test_every_form_has_the_decision(self):
        old, new = rows(), rows(NEW, "")
        said = "DO NOT MOVE: 16 accepted cases are refused now. 16 answers compared, 0 same."
        files = ("--junit", self.folder / "j.xml", "--page", self.folder / "page")
        self.decided(new, 1, f"**{said}**", "--markdown", *files)
        decided = ET.parse(self.folder / "j.xml").getroot().find("testsuite/testcase")
        found = decided.get("name"), decided.find("failure").get("message")
        self.assertEqual(found, ("decision", said))
        head = json.loads(self.gate(old, new, "--json")[1])["diff"]
        self.assertEqual(head["decision"], "DO NOT MOVE")
        out = self.gate(old, new, "--annotations")[2]
        self.assertIn(f"::error title=FACTS%3A DO NOT MOVE::{said}\n", out)
        self.assertLessEqual(len(re.findall("^::", out, re.M)), 10)
        said = 'DO NOT MOVE <span class="clause">16 accepted cases are refused now.'
        self.assertIn(said, (self.folder / "page/index.html").read_text(encoding="utf-8"))

    def test_builds_that_could_not_be_asked_are_an_answer_in_every_form(self):
        why = "cuDNN 9.28.1 could not be asked (no disk)"
        said = f"CANNOT TELL: {why}."
        for words, first in (
            ((), said),
            (("--markdown",), f"**{said}**"),
            (("--json",), {"diff": {"decision": "CANNOT TELL", "answer": said}}),
        ):
            args = diff.COMMAND.parse(["A", "--junit", str(self.folder / "j.xml"), *words])
            with contextlib.redirect_stdout(io.StringIO()) as out:
                diff_files.unasked(why, args)
            out = out.getvalue()
            found = json.loads(out) if "--json" in words else out.rstrip("\n").replace("\\", "")
            self.assertEqual(found, first)
            self.assertEqual(support.junit_breaches(self.folder / "j.xml"), [])
            error = ET.parse(self.folder / "j.xml").getroot().find("testsuite/testcase/error")
            self.assertEqual(error.get("message"), said)

    def test_a_test_of_junit_says_what_asking_took_and_names_no_count(self):
        old, new = rows(wall_ms=1500), rows(NEW, "f32", "crash", wall_ms=500)
        due = ["decision", "worse: dtype=f32: supported -> crash"]
        self.assertEqual(self.junit(old, new), due)
        self.assertEqual(self.junit(old[:-1], new[:-1]), due)
        half = sum("f32" in n for n in NAMES)
        self.assertEqual(self.junit(old, new, "time"), ["32.000", f"{2 * half:.3f}"])

    def test_a_test_of_junit_keeps_the_digits_of_types_and_of_no_size(self):
        for said, kept in (
            ("SDPA only supports FP16/BF16/FP8 I/O", "SDPA only supports FP16/BF16/FP8 I/O"),
            ("e4m3 and INT4 need sm_90 or SM100", "e4m3 and INT4 need sm_90 or SM100"),
            ("d 192 is above 128, 4MiB at 0x7ffd12ab", "d # is above #, #MiB at #"),
        ):
            name = self.junit(rows(), rows(NEW, "", **reason(said, "S")))[1]
            self.assertEqual(name, f"lost: every case: supported -> S: {kept}")


KNOWN = support.HERE.parents[1] / "cases/known"


class KnownFailures(Case):
    def known(self, build, verdict="crash", name="a/b#1", met=True, case=CASE, **more):
        expectation = {"verdict": "crash", "met": met, "link": name}
        return row(case, build, verdict, expectation=expectation, **more)

    def check(self, old, new, said):
        _, _, out = self.gate(old, new)
        self.assertIn(said, out)
        return out

    def test_those_that_still_fail_are_counted_by_name(self):
        said = "1 known failure still fails, 0 no longer fail, 0 got no answer."
        old, new = ([self.known(b, case=n) for n in NAMES[:2]] for b in (OLD, NEW))
        self.check(old, new, said)
        self.check([self.known(OLD)], [row(CASE, NEW, "crash")], said)
        out = self.check([row(CASE)], [row(CASE, NEW)], "No known failure is among these cases. ")
        said = " failures that FACTS guards against are not in these cases: facts known check --cudnn 9.27.0 asks about these failures."
        self.assertIn(said, out)

    def test_what_is_no_failure_is_counted_apart(self):
        entry = next(e for e in known.load(KNOWN) if e.kind == "offered-not-built")
        old, new = ([self.known(b, name=f) for f in ("a/b#1", entry.link)] for b in (OLD, NEW))
        for rows in (old, new):
            rows[1]["case"] = NAMES[1]
        said = "1 known failure still fails, 0 no longer fail, 0 got no answer; of 1 other entries 1 stay"
        self.check(old, new, said)

    def test_a_failure_that_an_old_record_names_by_its_page_is_among_these_cases(self):
        entry = next(
            e
            for e in known.load(KNOWN)
            if e.is_failure and not e.links and e.failures and e.failures[0].guarded
        )
        counts = []
        for name in (entry.link, f"docs/findings.md#{entry.name}", "a/b#1"):
            out = self.gate(*([self.known(b, name=name)] for b in (OLD, NEW)))[2]
            counts.append(int(re.search("([0-9]+) failures that FACTS guards", out)[1]))
        self.assertEqual(counts, [counts[0], counts[0], counts[0] + 1])

    def test_those_that_are_right_now_are_listed_with_their_commands(self):
        said = "0 known failures still fail, 1 no longer fails, 0 got no answer."
        command = (
            "    no longer fails: a/b#1\n"
            "      facts decide 'pass=fwd dtype=bf16 s=1/512 d=64' --cudnn 9.20.0,9.27.0 --device h100-sxm\n"
        )
        unmet = self.known(NEW, "pass", met=False)
        for old, new in (
            (self.known(OLD), row(CASE, NEW)),
            (self.known(OLD), row(CASE, NEW, "unsupported")),
            (self.known(OLD), unmet),
            (row(CASE), unmet),
        ):
            self.assertIn(command, self.check([old], [new], said))
        two = [self.known(OLD, case=n) for n in NAMES[:2]]
        said = "1 known failure still fails, 0 no longer fail"
        self.check(two, [row(NAMES[0], NEW), self.known(NEW, case=NAMES[1])], said)

    def test_those_that_could_not_be_asked_are_counted(self):
        said = "0 known failures still fail, 0 no longer fail, 1 got no answer."
        guard = reason("rule x", kind="policy", rule="x")
        for new in (
            row(CASE, NEW, "inconclusive"),
            row(NAMES[1], NEW),
            row(CASE, NEW, "unsupported", **guard),
        ):
            self.check([self.known(OLD)], [new], said)
        self.check([self.known(OLD, "wrong", grade="measured")], [row(CASE, NEW)], said)


class Commands(Case):
    def with_run(self, one, target=None, **about):
        """A record whose run and target lines say how it was asked."""
        at = {key: one[key] for key in ("run", "build", "device", "cudnn")}
        run = synthetic.head(one["run"], (one["build"], one["device"]), **about)
        return synthetic.text(
            [run, {"target": at | (target or {})}, one, synthetic.end(one["run"])]
        )

    def group(self, target=None, **about):
        old = self.with_run(row(CASE), target, **about)
        new = self.with_run(row(CASE, NEW, "unsupported"), **about)
        return json.loads(self.gate(old, new, "--json")[2].splitlines()[1])["group"]

    def test_a_row_that_was_found_with_plan_is_repeated_with_plan(self):
        for do, more in (("plan", " --plan"), ("decide", "")):
            found = self.group(do=do)
            words = "'pass=fwd dtype=bf16 s=1/512 d=64' --cudnn 9.20.0{}9.27.0 --device h100-sxm"
            self.assertEqual(found["repro"], f"facts decide {words.format(',')}{more} --explain")
            self.assertEqual(found["bisect"], f"facts bisect {words.format('..')}{more}")

    def test_a_step_down_is_bisected_over_a_range_that_goes_up(self):
        _, _, out = self.gate([row(CASE, NEW)], [row(CASE, OLD, "unsupported")])
        self.assertIn(" --cudnn 9.20.0..9.27.0 ", out)

    def test_a_build_that_is_a_folder_is_named_by_its_folder_and_not_bisected(self):
        libraries = [{"path": "/opt/x/lib/libcudnn_graph.so.9", "in_build": True}]
        found = self.group({"origin": "folder", "libraries": libraries})
        self.assertIn(" --cudnn /opt/x/lib,9.27.0 ", found["repro"])
        self.assertIsNone(found["bisect"])

    def test_a_described_device_of_a_file_is_named_by_its_file(self):
        for devices, named in (
            ("sm100-spec,my/h100.json", "my/h100.json --explain"),
            ("h100-sxm,b.json", "h100-sxm --explain"),
        ):
            found = self.group(command=["facts", "gate", "--device", devices])["repro"]
            self.assertTrue(found.endswith(f" --device {named}"), found)
