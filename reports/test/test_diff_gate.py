"""The gate's answer: the decision first, known failures apart, and commands that carry every option they need."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import support
import synthetic
from facts_reports.commands import diff
from facts_reports.compare import diff_files
from synthetic import engines, reason
from test_diff import MOVED, NAMES, NEW, OLD, Case as Base, record, row, rows

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
        found, first, _ = self.gate(old or rows(), new, *words)
        self.assertEqual((found, first), (code, said.replace(": ", f" {MOVED}: ", 1)))

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
        decided = "Numbers were not computed."
        silent = "cuDNN 9.27.0-jit-cu13 on h100-sxm could not be asked (X: no NVRTC)"
        both = "8 accepted cases fail now; 8 accepted cases are refused now"
        fine = "OK TO MOVE: nothing got worse."
        one_side = "CANNOT TELL: 1 case has an answer on one side only."
        for new, code, counts, said in (
            (rows(NEW), 0, "16 same.", f"{fine} {decided}"),
            (other, 0, "8 same. 8 cases have other engines.", f"{fine} {decided}"),
            (
                rows(NEW, is_case),
                1,
                "15 same.",
                f"DO NOT MOVE: 1 accepted case is refused now. {decided}",
            ),
            (two, 1, "0 same.", f"DO NOT MOVE: {both}. {decided}"),
            (dumb, 3, "0 same.", f"CANNOT TELL: {silent}."),
            (some, 3, "15 same.", f"CANNOT TELL: 1 case could not be asked. {decided}"),
            (rows(NEW)[1:], 4, "15 same.", f"{one_side} {decided}"),
        ):
            self.decided(new, code, said)
            counted = f"\n16 answers compared, {counts}\n"
            self.assertIn(counted, self.gate(rows(), new)[2])
        said = "CANNOT TELL: the two sides have no case and target in common."
        self.decided(rows(NEW), 5, said, "--where", "d.qk>4000")
        said = f"OK TO MOVE: --fail-on leaves out what got worse. {decided}"
        self.decided(rows(NEW, is_case), 0, said, "--fail-on", "worse")

    def test_a_known_failure_is_a_finding_where_the_baseline_was_right(self):
        new = rows(NEW, is_case, "crash")
        new[0]["expectation"] = {"verdict": "crash", "met": True, "link": "a/b#1"}
        new_way = "OK TO MOVE: only known failures changed."
        for before, code, said in (
            ("pass", 1, "DO NOT MOVE: 1 accepted case fails now (1 known)."),
            ("unsupported", 0, new_way),
            ("crash", 0, "OK TO MOVE: nothing got worse."),
        ):
            said += " Numbers were not computed."
            self.decided(new, code, said, old=rows(OLD, is_case, before))

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

    def test_a_page_that_cannot_be_written_hides_no_finding(self):
        for name in ("--page", "--junit"):
            code, first, _ = self.gate(rows(), rows(NEW, ""), name, self.folder / "a.jsonl/x")
            self.assertEqual((code, first.split(" (")[0]), (1, "DO NOT MOVE"))
        script = (
            "import sys; sys.modules['jinja2'] = None; from facts_reports import commands;"
            "sys.exit(commands.main(['gate', 'a.jsonl', 'b.jsonl', '--page', 'page']))"
        )
        env = {**os.environ, "PYTHONPATH": str(support.HERE.parent)}
        how = {"cwd": self.folder, "env": env, "capture_output": True, "text": True}
        done = subprocess.run([sys.executable, "-c", script], check=False, **how)
        self.assertEqual((done.returncode, done.stdout), (3, ""), "nothing was asked")
        self.assertIn("'jinja2' is missing; install it", done.stderr)

    def test_every_form_has_the_decision(self):
        old, new = rows(), rows(NEW, "")
        why = "16 accepted cases are refused now. Numbers were not computed."
        said = f"FACTS: DO NOT MOVE (cuDNN 9.20.0 → 9.27.0 on h100-sxm): {why}"
        link = ("--link", "https://ci/1")
        files = ("--junit", self.folder / "j.xml", "--page", self.folder / "page", *link)
        first = self.gate(old, new, "--markdown", *files)[1]
        self.assertEqual(first, f"**{said}** [Page](https://ci/1)")
        properties = {
            p.get("name"): p.get("value")
            for p in ET.parse(self.folder / "j.xml").getroot().iter("property")
        }
        sides = [properties[name] for name in ("baseline", "candidate", "devices", "link")]
        self.assertEqual(sides, [f"{OLD}-jit-cu13", f"{NEW}-jit-cu13", "h100-sxm", link[1]])
        decided = ET.parse(self.folder / "j.xml").getroot().find("testsuite/testcase")
        found = decided.get("name"), decided.find("failure").get("message")
        self.assertEqual(found, ("decision", said))
        head = json.loads(self.gate(old, new, "--json")[1])["diff"]
        self.assertEqual(head["decision"], "DO NOT MOVE")
        out = self.gate(old, new, "--annotations", *link)[2]
        self.assertIn(f"::error title=FACTS%3A DO NOT MOVE::{said} {link[1]}\n", out)
        self.assertLessEqual(len(re.findall("^::", out, re.M)), 10)
        said = 'DO NOT MOVE (cuDNN 9.20.0 → 9.27.0) <span class="clause">16 accepted cases are refused now.'
        self.assertIn(said, (self.folder / "page/index.html").read_text(encoding="utf-8"))

    def test_builds_that_could_not_be_asked_are_an_answer_in_every_form(self):
        why = "cuDNN 9.28.1 could not be asked (no disk)"
        said = f"CANNOT TELL {MOVED}: {why}."
        titled = f"FACTS: {said}"
        for words, first in (
            ((), said),
            (("--markdown",), f"**{titled}**"),
            (("--json",), {"diff": {"decision": "CANNOT TELL", "answer": said}}),
        ):
            sides = "--baseline", OLD, "--candidate", NEW
            args = diff.COMMAND.parse(["A", *sides, "--junit", str(self.folder / "j.xml"), *words])
            with contextlib.redirect_stdout(io.StringIO()) as out:
                diff_files.unasked(why, args)
            out = out.getvalue()
            found = json.loads(out) if "--json" in words else out.rstrip("\n").replace("\\", "")
            self.assertEqual(found, first)
            self.assertEqual(support.junit_breaches(self.folder / "j.xml"), [])
            error = ET.parse(self.folder / "j.xml").getroot().find("testsuite/testcase/error")
            self.assertEqual(error.get("message"), titled)

    def test_a_test_of_junit_says_what_asking_took_and_names_no_count(self):
        old, new = rows(wall_ms=1500), rows(NEW, "f32", "crash", wall_ms=500)
        due = ["decision", "worse: fp32 inputs, forward: supported -> crash"]
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


def failure(name="a", **more):
    """What is known: of every case, from 9.21.0 on, as known.jsonl has it."""
    span = {"from": "9.21.0", "to": "", "fixed": ""}
    return {
        "id": name, "label": "", "title": f"{name} fails.", "kind": "failure", "verdict": ["nan"],
        "sometimes": False, "says": "to be wrong", "serious": True, "contract": "documented",
        "sent_by": ["jax"], "data": "", "for": "", "problem": "pass=fwd", "engines": [],
        "sm": [[90, 90]], "suspected": [], "ranges": [span], "seen": ["9.21.0"], "right": [],
        "remedy": "", "link": "a/b#1", **more,
    }  # fmt: skip


class KnownFailures(Case):
    """What the files say decides as an answer does, with the same words for it in every form."""

    def first(self, *lines, old=None, new=None, words=()):
        self.known(*lines)
        code, first, out = self.gate(old or rows(), new or rows(NEW), *words)
        return code, first.partition(f"{MOVED}: ")[2], out

    def test_a_grave_failure_that_begins_where_the_baseline_answers_is_a_finding(self):
        crash = failure("b", verdict=["crash"], says="to crash")
        for lines, said in (
            ([failure()], "1 known wrong result begins"),
            ([failure(), failure("c"), crash], "1 known crash begins; 2 known wrong results begin"),
        ):
            code, first, out = self.first(*lines)
            self.assertEqual((code, first), (1, f"{said}. Numbers were not computed."))
        self.assertIn("\n3 known failures begin: b fails (b); a fails (a); c fails (c).\n", out)
        self.assertIn("\n⚑ begins in 16 cases: b fails (b)\n", out)
        self.assertIn("contract: documented; failure; sent by jax", out)

    def test_whatever_is_not_grave_is_a_note(self):
        for more in (
            {"contract": "silent"},
            {"kind": "should-be-refused"},
            {"verdict": ["nondeterministic"]},
            {"sm": [], "suspected": [[90, 90]]},
        ):
            code, first, out = self.first(failure(**more))
            self.assertEqual((code, first[:17]), (0, "nothing got worse"), more)
            self.assertIn("⚐ noted in 16 cases: a fails (a)", out)
        code, _, out = self.first(failure(), old=rows(OLD, ""), new=rows(NEW))
        self.assertEqual((code, "1 known failure begins" in out), (0, True), "a new feature")

    def test_a_run_that_is_right_outweighs_the_file_unless_it_had_other_data(self):
        measured = {"old": rows(grade="measured"), "new": rows(NEW, grade="measured")}
        self.assertEqual(self.first(failure(), **measured)[0], 0)
        data = {"data": "fill=neglse", "for": "very negative scores"}
        self.assertEqual(self.first(failure(**data), **measured)[0], 1)

    def test_no_entry_begins_and_ends_and_one_that_goes_on_does_not_end(self):
        until = {"from": "9.10.0", "to": "9.25.0", "fixed": "9.25.0"}
        half = {"problem": "dtype=f32", "ranges": [until]}
        _, _, out = self.first(failure(label="x", **half), failure())
        self.assertIn("\n1 known failure begins: a fails (a).\n", out)
        _, _, out = self.first(failure(**half))
        self.assertIn("\n1 known failure ends: a fails (a).\n", out)
        other = {"problem": "dtype=bf16", "ranges": [{**until, "to": ""}]}
        _, _, out = self.first(failure(label="x", **half), failure(**other))
        self.assertIn("\nNo known failure of these cases begins or ends.\n", out)

    def test_the_calls_of_a_model_weigh_what_changes(self):
        def counted(some):
            calls = {NAMES[0]: 100, NAMES[1]: 300}
            return [{**one, "calls": calls.get(one["case"])} for one in some]

        always = {"from": "9.10.0", "to": "", "fixed": ""}
        old = counted(rows(grade="measured", exec_us=10.0))
        new = counted(rows(NEW, is_case, grade="measured", exec_us=8.0))
        known = failure(problem="impl=unified", ranges=[always])
        code, first, out = self.first(known, old=old, new=new)
        refused = "1 accepted case is refused now (25 % of the model's calls)."
        self.assertEqual((code, first), (1, refused))
        said = "400 calls of the model on h100-sxm: cuDNN 9.27.0 refuses 25 % (9.20.0: 0 %); known failures of 9.27.0 may touch 75 %: a (75 %)."
        time = " Attention of 75 % of the calls takes 3 ms -> 2.4 ms (0.800 times; one run each).\n"
        self.assertIn(f"\n{said}{time}", out)
        found = json.loads(self.gate(old, new, "--json")[1])["diff"]["model"]
        self.assertEqual(found[0]["refused"], [0, 100])

    def test_an_older_candidate_is_said(self):
        until = {"from": "9.10.0", "to": "9.25.0", "fixed": "9.25.0"}
        self.known(failure(ranges=[until]))
        code, first, _ = self.gate(rows(NEW), rows(OLD))
        said = "DO NOT MOVE (cuDNN 9.27.0 -> 9.20.0, an older version): 1 known wrong result begins"
        self.assertEqual((code, first[: len(said)]), (1, said))


class Accepting(Case):
    def accept(self, text, *words, new=None):
        path = self.write("accept.txt", text)
        return self.gate(rows(), new or rows(NEW, "f32"), "--accept", path, *words)

    def test_an_accepted_loss_is_printed_and_does_not_decide_until_its_day(self):
        for until, code in (("2999-01-01", 0), ("2026-01-01", 1)):
            got, first, out = self.accept(f"dtype=f32; not used; 2026-01-01; {until}\n")
            self.assertEqual((got, "8 losses are accepted" in first), (code, code == 0), first)
        self.assertIn("accept.txt:1 has expired, and its cases decide again.", out)
        *_, out = self.accept("dtype=f32; not used; 2026-01-01; 2999-01-01\n")
        self.assertIn("☐ 8 accepted: fp32 inputs", out)
        self.assertIn("not used, until 2999-01-01", out)

    def test_it_accepts_nothing_else(self):
        code, first, out = self.accept("dtype=f16; not used; 2026-01-01; 2999-01-01\n")
        self.assertEqual((code, "8 accepted cases are refused" in first), (1, True))
        self.assertIn("accept.txt:1 accepts no finding of these cases.", out)

    def test_what_is_proposed_needs_a_reason_and_then_accepts_all(self):
        self.known(failure())
        new = rows(NEW, lambda n: n in NAMES[::5])
        code, _, lines = self.accept("", "--write-accept", new=new)
        self.assertEqual(code, 1)
        self.assertIn("known=a; ; ", lines)
        code, first, _ = self.accept(lines.replace("; ;", "; why;"), new=new)
        self.assertEqual((code, first[:10]), (0, "OK TO MOVE"), lines)

    def test_a_wrong_line_is_named(self):
        for line, said in (
            ("dtype=f32; no day; soon; later", "accept.txt:2: want 'PREDICATE; REASON"),
            ("dtpe=f32; x; 2026-01-01; 2026-01-02", "accept.txt:2: column 1: no key 'dtpe'"),
            ("dtype=f32; ; 2026-01-01; 2026-01-02", "accept.txt:2: want"),
        ):
            path = self.write("accept.txt", f"# head\n{line}\n")
            both = self.write("a.jsonl", rows()), self.write("b.jsonl", rows(NEW))
            code, out, err = support.run("gate", *both, "--accept", path)
            self.assertEqual((code, out, said in err), (2, "", True), err)


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
