"""A gate of two real builds, as CI runs it on every change: what moved comes out unprompted, with what separates it."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import e2e

CASES = "pass=fwd dtype=bf16,f32 impl=auto,unified b=1 h=2 s=1/128,128 d=64"
FEW = "pass=fwd dtype=bf16,f32 impl=unified b=1 h=2 s=128 d=64"
DEVICES = ("--device", "h100-sxm,sm100-spec")


def gate(baseline, candidate, *words, **environment):
    words = ("--baseline", baseline, "--candidate", candidate, *words)
    return e2e.facts("gate", *words, **environment)


def versions():
    return [e2e.need(name).version for name in (e2e.OLD, e2e.NEW)]


# Ten steps between versions, the exit code of the default gate, and the class and a part of the predicate of a group on its first page.
STEPS = (
    ("9.8.0-full-cu12", "9.9.0-full-cu12", 1, "gained", "dtype=f32"),
    ("9.9.0-full-cu12", "9.10.0-full-cu12", 0, "gained", "d.qk>=256"),
    ("9.12.0-jit-cu13", "9.13.0-jit-cu13", 1, "gained", "impl=unified"),
    ("9.14.0-jit-cu13", "9.15.1-jit-cu13", 1, "renumbered", ""),
    ("9.17.1-jit-cu13", "9.18.0-jit-cu13", 1, "engine changed", "sm=100"),
    ("9.22.0-jit-cu13", "9.23.0-jit-cu13", 0, "engine changed", "sm=100"),
    ("9.23.2-jit-cu13", "9.24.0-jit-cu13", 0, "engine changed", "sm=100"),
    ("9.25.1-jit-cu13", "9.26.0-jit-cu13", 1, "lost", "dtype=f32 & impl=unified"),
    ("9.26.1-jit-cu13", "9.27.0-jit-cu13", 0, "", ""),
    ("9.27.0-jit-cu13", "9.28.0-full-cu13", 0, "gained", "impl=unified"),
)


class Times(e2e.TestCase):
    """Builds that are really here, and a worker that only says how long things take."""

    def gate(self, fault, *folders, **environment):
        worker = os.path.join(e2e.BIN, "facts-fake-worker")
        if not os.path.exists(worker):
            self.skipTest("no facts-fake-worker: build with tests")
        words = ("--bench", "--device", "0", "-o", self.path("r.jsonl"), "pass=fwd d=64,128")
        given = {"FACTS_WORKER": worker, "FACTS_FAULT": fault, **environment}
        done = gate(*(folders or versions()), *words, **given)
        return done, os.path.exists(self.path("r.jsonl.again.jsonl"))

    def test_what_is_slower_is_measured_again_and_is_a_finding(self):
        done, again = self.gate("slow_build@9.27")
        self.assertStatus(done, 1)
        self.assertIn("2 cases are slower.", done.out.splitlines()[0])
        self.assertRegex(done.out, r"100(\.\d+)? µs  ->  (149|150)(\.\d+)? µs")
        self.assertIn("facts bench 'pass=fwd ", done.out, "a time is shown again by a measurement")
        self.assertTrue(again)
        times = e2e.Record(self.path("r.jsonl.again.jsonl")).times
        self.assertEqual(times[0]["build"], e2e.NEW, "in the opposite order")
        cases = {line["case"] for line in e2e.Record(self.path("r.jsonl")).times}
        self.assertEqual({line["case"] for line in times}, cases)

    def test_builds_that_only_their_folders_name_are_measured_again(self):
        folders = [e2e.need(name).dir for name in (e2e.OLD, e2e.NEW)]
        e2e.needs.place(self.path("cache"))  # a cache of its own, which has NVRTC and no build
        done, again = self.gate("slow_build@9.27", *folders, XDG_CACHE_HOME=self.path("cache"))
        self.assertStatus(done, 1)
        self.assertTrue(again)

    def test_what_is_not_slower_is_measured_once(self):
        for fault in ("", "slow_build@9.20"):
            done, again = self.gate(fault)
            self.assertStatus(done, 0)
            self.assertFalse(again)
            os.remove(self.path("r.jsonl"))


class Gate(e2e.TestCase):
    def gate(self, *words, cases=CASES, status=None, **environment):
        words = (
            *(() if "--device" in words else DEVICES),
            "-o",
            self.path("r.jsonl"),
            *words,
            cases,
        )
        done = gate(*versions(), *words, **environment)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def record(self):
        return e2e.Record(self.path("r.jsonl"))

    def test_what_9_27_refuses_and_9_20_took_comes_out_with_its_predicate(self):
        words = ("--json", "--junit", self.path("j.xml"), "--page", self.path("page"))
        done = self.gate(*words, status=1)
        with open(self.path("page/index.html"), encoding="utf-8") as file:
            page = file.read()
        clause = r'<span class="clause">4 accepted cases are refused now\.'
        head = r'<h1 class="bad">DO NOT MOVE \(cuDNN 9.20.0 → 9.27.0\) '
        self.assertRegex(page, head + clause)
        words = "<b>4 lost</b>: fp32 inputs with cuDNN&#39;s unified forward"
        self.assertIn(words, page, "on the first screen")
        first, lost, *_ = [json.loads(line) for line in done.out.splitlines()]
        head, lost = first["diff"], lost["group"]
        wanted = {
            "compared": 16,
            "axes": ["build"],
            "complete": True,
            "decision": "DO NOT MOVE",
            "new_knobs": {"STREAM_K, TILE_CGA_M, TILE_M, TILE_N new": 12},
        }
        self.assertEqual({key: head[key] for key in wanted}, wanted)
        self.assertEqual(head["classes"]["lost"], {"cases": 4, "known": 0, "fails": True})
        found = [lost[key] for key in ("class", "where", "cases", "others", "of_others")]
        self.assertEqual(found, ["lost", "dtype=f32 & impl=unified", 4, 0, 12])
        self.assertIn("FP16/BF16", lost["candidate"]["answer"])
        repeated = e2e.facts("list", re.search(r"'(.*?)'", lost["repro"])[1])
        self.assertEqual(repeated.out.splitlines(), [lost["example"]])
        self.assertTrue(os.path.getsize(self.path("j.xml")))
        sides = ("--baseline", "9.20.0", "--candidate", "9.27.0", "--markdown")
        again = e2e.facts("gate", self.path("r.jsonl"), *sides)
        self.assertStatus(again, 1)
        moved = "FACTS: DO NOT MOVE (cuDNN 9.20.0 → 9.27.0 on h100-sxm, sm100-spec (B200))"
        said = f"**{moved}: 4 accepted cases are refused now. Numbers were not computed.**\n"
        self.assertTrue(again.out.startswith(said), again.out[:200])
        self.assertIn("will pass it", again.out)

    @e2e.night
    def test_the_default_gate_finds_every_step_between_versions_that_is_known(self):
        for baseline, candidate, status, word, where in STEPS:
            with self.subTest(step=f"{baseline} -> {candidate}"):
                names = e2e.need(baseline).name, e2e.need(candidate).name
                done = gate(*names, *DEVICES, "-o", self.path(f"{candidate}.jsonl"), "--json")
                self.assertStatus(done, status)
                head, *groups = [json.loads(line) for line in done.out.splitlines()]
                page = [(g["group"]["class"], g["group"]["where"] or "") for g in groups[:10]]
                renumbered = [(r["old"], r["new"]) for r in head["diff"]["renumbered"]]
                if word == "renumbered":
                    self.assertIn(("4", "8"), renumbered)
                elif word:
                    self.assertTrue([g for g in page if g[0] == word and where in g[1]], page)
                else:
                    self.assertEqual(head["diff"]["same"], head["diff"]["compared"])

    def test_a_known_failure_that_begins_decides_where_the_baseline_answers(self):
        old, new = (e2e.need(name).version for name in (e2e.NEW, "9.20.0-jit-cu13"))
        words = ("--device", "h100-sxm", "-o", self.path("r.jsonl"))
        name = "bwd-nan-negative-lse-skv-mod128-eq-64"
        done = gate(old, new, *words, f"regress/{name}")
        self.assertStatus(done, 1)
        said = (
            "DO NOT MOVE (cuDNN 9.27.0 -> 9.20.0, an older version): 1 known wrong result begins."
        )
        self.assertTrue(done.out.startswith(said), done.out[:200])
        self.assertIn(f"({name})", done.out.splitlines()[1])

    def test_the_default_gate_asks_what_is_known_of_the_two_versions(self):
        where = "b=1 & h.q=1 & s.q=1 & pass=bwd & dtype=bf16 & d.qk=64"
        words = ("--device", "h100-sxm", "-o", self.path("r.jsonl"), "--where", where)
        done = gate(*versions(), *words)
        self.assertStatus(done, 1)
        self.assertIn("1 known crash begins", done.out.splitlines()[0])

    def test_what_was_stopped_goes_on_with_resume_and_is_the_same(self):
        whole = self.gate("--json", cases=FEW, status=1)
        with open(self.path("r.jsonl"), encoding="utf-8") as file:
            lines = file.readlines()
        rows = [line for line in lines if '"verdict"' in line]
        kept = [line for line in lines if line not in rows[3:] and '{"end"' not in line]
        self.write("r.jsonl", "".join(kept))
        self.assertOneLine(self.gate(cases=FEW), 2, "exists", "--resume")
        self.assertOneLine(self.gate("--resume", "--overwrite", cases=FEW), 2, "exclude")
        done = self.gate("--json", "--resume", cases=FEW, status=1)
        self.assertEqual(len(self.record().rows), len(rows), "what has a row is not asked again")
        (first, *groups), (again, *others) = (
            [json.loads(line) for line in said.splitlines()] for said in (whole.out, done.out)
        )
        self.assertEqual(groups, others)
        for key in ("compared", "classes", "complete"):
            self.assertEqual(first["diff"][key], again["diff"][key])
        sides = ("--baseline", "9.20.0", "--candidate", "9.27.0")
        self.expect_plans(False, e2e.facts("gate", self.path("r.jsonl"), *sides))

    def test_an_interrupt_ends_the_record_and_resume_does_the_rest(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        old, new = versions()
        command = ["gate", "--baseline", old, "--candidate", new, FEW, "-j1", *DEVICES]
        command += ["-o", self.path("r.jsonl")]
        for number, more in ((signal.SIGINT, []), (signal.SIGTERM, ["--resume"])):
            worker.set("hold", 3)
            with subprocess.Popen(
                [e2e.FACTS, *command, *more],
                env=e2e.environment(FACTS_WORKER=worker.worker),
                stdout=subprocess.PIPE,
            ) as program:
                self.assertTrue(worker.wait_until_held(program))
                program.send_signal(number)
                time.sleep(3)  # until the run has it, on a machine with other work too
                worker.release()
                out, _ = program.communicate(timeout=300)
            self.assertEqual((program.returncode, out), (130, b""))
            self.assertIs(self.record().ends[-1]["complete"], False)
        worker.set()
        done = e2e.facts(*command, "--resume", FACTS_WORKER=worker.worker)
        self.assertStatus(done, 1)
        self.assertIs(self.record().ends[-1]["complete"], True)

    def test_with_plan_described_devices_are_compiled_for(self):
        done = self.gate("--plan", "--device", "h100-sxm", cases=FEW, status=1)
        self.expect_plans(True, done)

    def expect_plans(self, plan, done):
        found = {(row["verdict"], "plan_ms" in row) for row in self.record().rows}
        self.assertEqual(found, {("supported", plan), ("unsupported", False)})
        commands = re.findall(r"(?m)^    facts (?:decide|bisect) .*", done.out)
        self.assertEqual({"--plan" in command for command in commands}, {plan})

    def test_a_build_beside_itself_on_another_device_is_a_diff_of_devices(self):
        for device in ("h100-sxm", "sm120-spec"):
            words = ("--cudnn", e2e.need(e2e.NEW).name, "--device", device)
            self.assertStatus(e2e.facts("decide", CASES, *words, "-o", self.path(device)), 0)
        done = e2e.facts("diff", self.path("h100-sxm"), self.path("sm120-spec"))
        self.assertIn(done.status, (0, 1))
        self.assertIn("The device differs", done.out)
        same = e2e.facts("diff", self.path("h100-sxm"), self.path("h100-sxm"))
        self.assertStatus(same, 0)
        said = (
            "NO REGRESSION (cuDNN 9.27.0): nothing got worse. Numbers were not computed.\n8 answers"
        )
        self.assertTrue(same.out.startswith(said), same.out[:200])

    def test_a_target_that_could_not_be_asked_is_never_green(self):
        for worker, said in (("/bin/false", ""), ("/no/worker", "the two builds could not be")):
            done = self.gate("--overwrite", status=3, FACTS_WORKER=worker)
            first = f"CANNOT TELL (cuDNN 9.20.0 -> 9.27.0): {said}"
            self.assertTrue(done.out.startswith(first), done.out[:200])

    def test_guards_of_facts_are_off_for_both_builds_and_kernels_of_facts_never_answer(self):
        crash = "pass=bwd dtype=bf16 b=1 h=1 s=1"
        words = ("--device", "h100-sxm", "-o", self.path("r.jsonl"), "--overwrite")
        case = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=100"
        done = gate(*versions(), *words, "--json", crash, case + " policy=math,any,cudnn")
        self.assertStatus(done, 1)
        found = {(row["case"], row["verdict"], row["backend"]) for row in self.record().rows}
        wanted = {(crash, "crash"), (crash, "supported"), (case, "unsupported")}
        self.assertEqual(found, {(*one, "cudnn") for one in wanted})
        self.assertEqual(self.record().runs[0]["guards"], "off")
        group = json.loads(done.out.splitlines()[1])["group"]
        self.assertEqual(group["class"], "worse")
        bisect = shlex.split(group["bisect"])[1:]
        at = bisect.index("--cudnn") + 1
        self.assertEqual(bisect[at], "..".join(versions()))
        bisect[at] = f"{e2e.OLD},{e2e.NEW}"  # the versions between need not be installed
        again = e2e.facts(*bisect)
        self.assertStatus(again, 0)
        self.assertIn("worse: ", again.out)

    def test_no_case_is_an_answer_too(self):
        done = self.gate("--where", "d.qk>4000", status=5)
        said = "CANNOT TELL (cuDNN 9.20.0 -> 9.27.0): no case is selected.\n"
        self.assertEqual(done.out, said)

    def test_a_mistake_is_refused_before_a_build_is_installed_or_asked(self):
        (old, new), text = versions(), self.write("notes.txt", "text\n")
        absent = "9.25.0-jit-cu12"  # nothing may install it
        for candidate, words, said in (
            ("9.21..9.27", (), "builds; give one"),
            ("9.1.0", (), "cuDNN before 9.8 cannot read a described device"),
            (absent, ("--fail-on", "foo"), "--fail-on"),
            (absent, ("--page", text), "give a folder"),
            (absent, ("pass=fwd d=64", "--device", "cpu"), "--device cpu"),
            (absent, ("smok",), "did you mean smoke?"),
            (absent, ("--device", "h10"), "h100-sxm"),
            (absent, ("--bench", "--device", "h100-sxm"), "--bench"),
        ):
            with self.subTest(candidate=candidate, words=words):
                done = gate(old, candidate, "-o", self.path("r"), *words)
                self.assertOneLine(done, 2, said)
                self.assertEqual(os.listdir(self.folder), ["notes.txt"])
        self.assertOneLine(gate("9.21..9.27", new), 2, "--baseline", "builds; give one")

    def test_every_class_of_change_can_be_named(self):
        sys.path.insert(0, os.path.join(e2e.SOURCE, "reports"))
        from facts_reports.read.vocabulary import CHANGES

        none = self.path("none")
        names = ",".join(change.word.replace(" ", "-") for change in CHANGES)
        for words in (names, names.replace("-", "_"), "any"):
            self.assertIn("no such file", e2e.facts("diff", none, none, "--fail-on", words).err)
        said = e2e.facts("diff", none, "--fail-on", "worse,foo")
        self.assertOneLine(said, 2, "--fail-on", *names.split(","))

    def test_bad_input_is_one_line(self):
        both = "facts gate --baseline 9.20.0 --candidate 9.27.0"
        moved = ("--baseline", "9.20.0", "--candidate")
        for words, said in (
            (moved[:2], "--candidate"),
            (("9.20.0", "9.27.0"), both),
            (("--cudnn", "9.20.0,9.27.0"), both),
            ((*moved, "9.20.0"), "both"),
            ((self.write("r.jsonl", "{}\n"), "smoke"), "not both"),
            ((*moved, "9.27.0", "--where", "dtpe=f16"), "dtype"),
            ((self.path("a.jsonl"), self.path("b.jsonl")), "a.jsonl: no such file"),
        ):
            self.assertOneLine(e2e.facts("gate", *words), 2, said)
        said = e2e.facts("gate", "--candidate", "9.20.0").err
        self.assertNotIn("--candidate", said.split("Example")[0])
        done = gate("9.20.0", "9.99.0")
        self.assertStatus(done, 3)
        told = "CANNOT TELL (cuDNN 9.20.0 -> 9.99.0): cuDNN 9.99.0 could not be asked"
        self.assertTrue(done.out.startswith(told), done.out)
        self.assertIn("facts cudnn lock 9.99.0", done.err)
        self.assertOneLine(e2e.facts("diff", *2 * (self.path("none"),)), 2, "no such file")


if __name__ == "__main__":
    e2e.main()
