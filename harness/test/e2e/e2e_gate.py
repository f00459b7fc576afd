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


# Ten steps between versions, the exit code of the default gate, and the class and a part of the predicate of a group on its first page.
STEPS = (
    ("9.8.0-full-cu12", "9.9.0-full-cu12", 0, "gained", "dtype=f32"),
    ("9.9.0-full-cu12", "9.10.0-full-cu12", 0, "gained", "d.qk>=256"),
    ("9.12.0-jit-cu13", "9.13.0-jit-cu13", 0, "gained", "impl=unified"),
    ("9.14.0-jit-cu13", "9.15.1-jit-cu13", 0, "renumbered", ""),
    ("9.17.1-jit-cu13", "9.18.0-jit-cu13", 0, "engine changed", "sm=100"),
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
        builds = folders or [e2e.need(name).version for name in (e2e.OLD, e2e.NEW)]
        done = e2e.facts(
            "gate",
            "--bench",
            "--baseline",
            builds[0],
            "--candidate",
            builds[1],
            "--device",
            "0",
            "-o",
            self.path("r.jsonl"),
            "pass=fwd d=64,128",
            FACTS_WORKER=worker,
            FACTS_FAULT=fault,
            **environment,
        )
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
        self.assertEqual(
            {line["case"] for line in times},
            {line["case"] for line in e2e.Record(self.path("r.jsonl")).times},
        )

    def test_builds_that_only_their_folders_name_are_measured_again(self):
        folders = [e2e.need(name).dir for name in (e2e.OLD, e2e.NEW)]
        e2e.needs.link(self.path("cache"))  # a cache of its own, which has NVRTC and no build
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
    def gate(self, *words, cases=(CASES,)):
        return e2e.facts(
            "gate",
            "--baseline",
            e2e.need(e2e.OLD).version,
            "--candidate",
            e2e.need(e2e.NEW).version,
            *DEVICES,
            "-o",
            self.path("r.jsonl"),
            *words,
            *cases,
        )

    def test_what_9_27_refuses_and_9_20_took_comes_out_with_its_predicate(self):
        done = self.gate("--json", "--junit", self.path("j.xml"), "--page", self.path("page"))
        self.assertStatus(done, 1)
        with open(self.path("page/index.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(
            page,
            r'<h1 class="bad">DO NOT MOVE <span class="clause">4 accepted cases are refused now\.',
        )
        self.assertIn("<b>4 lost</b>: f32, unified, forward", page, "on the first screen")
        lines = [json.loads(line) for line in done.out.splitlines()]
        head, groups = lines[0]["diff"], [line["group"] for line in lines[1:]]
        self.assertEqual(
            (head["compared"], head["classes"]["lost"], head["axes"], head["complete"]),
            (16, {"cases": 4, "known": 0, "fails": True}, ["build"], True),
        )
        lost = groups[0]
        self.assertEqual(
            (lost["class"], lost["where"], lost["cases"], lost["others"], lost["of_others"]),
            ("lost", "dtype=f32 & impl=unified", 4, 0, 12),
        )
        self.assertIn("FP16/BF16", lost["candidate"]["answer"])
        self.assertEqual(
            (head["decision"], head["new_knobs"]),
            ("DO NOT MOVE", {"STREAM_K, TILE_CGA_M, TILE_M, TILE_N new": 12}),
        )
        repeated = e2e.facts("list", re.search(r"'(.*?)'", lost["repro"])[1])
        self.assertEqual(repeated.out.splitlines(), [lost["example"]])
        again = e2e.facts(
            "gate",
            self.path("r.jsonl"),
            "--baseline",
            "9.20.0",
            "--candidate",
            "9.27.0",
            "--markdown",
        )
        self.assertStatus(again, 1)
        self.assertTrue(
            again.out.startswith(
                "**DO NOT MOVE: 4 accepted cases are refused now. 16 answers compared, 12 same.**"
            ),
            again.out[:200],
        )
        self.assertIn("will pass it", again.out)
        self.assertTrue(os.path.getsize(self.path("j.xml")))

    @e2e.night
    def test_the_default_gate_finds_every_step_between_versions_that_is_known(self):
        for baseline, candidate, status, word, where in STEPS:
            with self.subTest(step=f"{baseline} -> {candidate}"):
                names = e2e.need(baseline).name, e2e.need(candidate).name
                done = e2e.facts(
                    "gate",
                    "--baseline",
                    names[0],
                    "--candidate",
                    names[1],
                    *DEVICES,
                    "-o",
                    self.path(f"{candidate}.jsonl"),
                    "--json",
                )
                self.assertStatus(done, status)
                head, *groups = [json.loads(line) for line in done.out.splitlines()]
                page = [(g["group"]["class"], g["group"]["where"] or "") for g in groups[:10]]
                if word == "renumbered":
                    self.assertIn(
                        ("4", "8"), [(r["old"], r["new"]) for r in head["diff"]["renumbered"]]
                    )
                elif word:
                    self.assertTrue([g for g in page if g[0] == word and where in g[1]], page)
                else:
                    self.assertEqual(head["diff"]["same"], head["diff"]["compared"])

    def test_what_was_stopped_goes_on_with_resume_and_is_the_same(self):
        whole = self.gate("--json", cases=(FEW,))
        self.assertStatus(whole, 1)
        with open(self.path("r.jsonl"), encoding="utf-8") as file:
            lines = file.readlines()
        rows = [line for line in lines if '"verdict"' in line]
        self.write(
            "r.jsonl",
            "".join(line for line in lines if line not in rows[3:] and '{"end"' not in line),
        )
        self.assertOneLine(self.gate(cases=(FEW,)), 2, "exists", "--resume")
        self.assertOneLine(self.gate("--resume", "--overwrite", cases=(FEW,)), 2, "exclude")
        done = self.gate("--json", "--resume", cases=(FEW,))
        self.assertStatus(done, 1)
        self.assertEqual(
            len(e2e.Record(self.path("r.jsonl")).rows),
            len(rows),
            "what has a row is not asked again",
        )
        (first, *groups), (again, *others) = (
            [json.loads(line) for line in said.splitlines()] for said in (whole.out, done.out)
        )
        self.assertEqual(groups, others)
        self.assertEqual(
            [first["diff"][key] for key in ("compared", "classes", "complete")],
            [again["diff"][key] for key in ("compared", "classes", "complete")],
        )

    def test_an_interrupt_ends_the_record_and_resume_does_the_rest(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        for number in (signal.SIGINT, signal.SIGTERM):
            worker.set("hold", 3)
            command = [e2e.FACTS, "gate", "--baseline", e2e.need(e2e.OLD).version, FEW, "-j1"]
            command += ["--candidate", e2e.need(e2e.NEW).version, "-o", self.path("r"), *DEVICES]
            with subprocess.Popen(
                [*command, *(["--resume"] if os.path.exists(self.path("r")) else [])],
                env=e2e.environment(FACTS_WORKER=worker.worker),
                stdout=subprocess.PIPE,
            ) as program:
                self.assertTrue(worker.wait_until_held(program))
                program.send_signal(number)
                time.sleep(3)  # until the run has it, on a machine with other work too
                worker.release()
                out, _ = program.communicate(timeout=300)
            self.assertEqual((program.returncode, out), (130, b""))
            self.assertIs(e2e.Record(self.path("r")).ends[-1]["complete"], False)
        worker.set()
        done = e2e.facts(*command[1:], "--resume", FACTS_WORKER=worker.worker)
        self.assertStatus(done, 1)
        self.assertIs(e2e.Record(self.path("r")).ends[-1]["complete"], True)

    def test_with_plan_described_devices_are_compiled_for(self):
        for words, plan in ((), False), (("--plan", "--overwrite"), True):
            done = self.gate(*words, cases=(FEW,))
            self.assertStatus(done, 1)
            rows = e2e.Record(self.path("r.jsonl")).rows
            self.assertEqual({row["verdict"] for row in rows}, {"supported", "unsupported"})
            commands = [
                line
                for line in done.out.splitlines()
                if line.startswith(("    facts decide", "    facts bisect"))
            ]
            self.assertEqual(
                [("--plan" in command) for command in commands], [plan] * len(commands)
            )
            self.assertTrue(commands)
            self.assertEqual(
                [
                    row
                    for row in rows
                    if ("plan_ms" in row) != (plan and row["verdict"] == "supported")
                ],
                [],
            )

    def test_a_build_beside_itself_on_another_device_is_a_diff_of_devices(self):
        for device in ("h100-sxm", "sm120-spec"):
            self.assertStatus(
                e2e.facts(
                    "decide",
                    CASES,
                    "--cudnn",
                    e2e.need(e2e.NEW).name,
                    "--device",
                    device,
                    "-o",
                    self.path(device),
                ),
                0,
            )
        done = e2e.facts("diff", self.path("h100-sxm"), self.path("sm120-spec"))
        self.assertIn(done.status, (0, 1))
        self.assertIn("The device differs", done.out)
        same = e2e.facts("diff", self.path("h100-sxm"), self.path("h100-sxm"))
        self.assertStatus(same, 0)
        self.assertTrue(
            same.out.startswith("NO REGRESSION: nothing got worse. 8 answers compared, 8 same."),
            same.out[:200],
        )

    def test_a_target_that_could_not_be_asked_is_never_green(self):
        done = e2e.facts(
            "gate",
            "--baseline",
            e2e.need(e2e.OLD).version,
            "--candidate",
            e2e.need(e2e.NEW).version,
            *DEVICES,
            "-o",
            self.path("r"),
            CASES,
            FACTS_WORKER="/bin/false",
        )
        self.assertStatus(done, 3)
        self.assertTrue(done.out.startswith("CANNOT TELL: "), done.out[:200])
        none = e2e.facts(
            "gate",
            "--baseline",
            e2e.need(e2e.OLD).version,
            "--candidate",
            e2e.need(e2e.NEW).version,
            *DEVICES,
            "-o",
            self.path("n"),
            CASES,
            FACTS_WORKER="/no/worker",
        )
        self.assertStatus(none, 3)
        self.assertTrue(
            none.out.startswith("CANNOT TELL: the two builds could not be asked"), none.out[:200]
        )

    def test_guards_of_facts_are_off_for_both_builds(self):
        crash = "pass=bwd dtype=bf16 b=1 h=1 s=1"
        done = e2e.facts(
            "gate",
            "--baseline",
            e2e.need(e2e.OLD).version,
            "--candidate",
            e2e.need(e2e.NEW).version,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r"),
            "--json",
            crash,
            f"{crash} guards=off",
        )
        rows = e2e.Record(self.path("r")).rows
        self.assertEqual(
            sorted((row["case"], row["verdict"]) for row in rows),
            [(f"{crash} guards=off", "crash"), (f"{crash} guards=off", "supported")],
        )
        self.assertStatus(done, 1)
        group = json.loads(done.out.splitlines()[1])["group"]
        self.assertEqual(group["class"], "worse")
        words = shlex.split(group["bisect"])[1:]
        self.assertEqual(
            words[words.index("--cudnn") + 1],
            f"{e2e.need(e2e.OLD).version}..{e2e.need(e2e.NEW).version}",
        )
        words[words.index("--cudnn") + 1] = (
            f"{e2e.OLD},{e2e.NEW}"  # the versions between need not be installed
        )
        again = e2e.facts(*words)
        self.assertStatus(again, 0)
        self.assertIn("lost: ", again.out)

    def test_kernels_of_facts_never_answer(self):
        self.gate(cases=("pass=fwd dtype=bf16 b=1 h=2 s=128 d=100 policy=math,any,guard,cudnn",))
        rows = e2e.Record(self.path("r.jsonl")).rows
        self.assertEqual(
            {(row["case"], row["verdict"], row["backend"]) for row in rows},
            {("pass=fwd dtype=bf16 b=1 h=2 s=128 d=100 guards=off", "unsupported", "cudnn")},
        )

    def test_no_case_is_an_answer_too(self):
        done = self.gate("--where", "d.qk>4000")
        self.assertStatus(done, 5)
        self.assertEqual(done.out, "CANNOT TELL: no case is selected.\n")

    def test_a_mistake_is_refused_before_a_build_is_installed_or_asked(self):
        old, new, text = (
            e2e.need(e2e.OLD).version,
            e2e.need(e2e.NEW).version,
            self.write("notes.txt", "text\n"),
        )
        absent = "9.25.0-jit-cu12"  # nothing may install it
        for words, said in (
            (("--candidate", "9.21..9.27"), "builds; give one"),
            (("--candidate", "9.1.0"), "cuDNN before 9.8 cannot read a described device"),
            (("--candidate", absent, "--fail-on", "foo"), "--fail-on"),
            (("--candidate", absent, "--page", text), "give a folder"),
            (("--candidate", absent, "pass=fwd d=64", "--device", "cpu"), "--device cpu"),
            (("--candidate", absent, "smok"), "did you mean smoke?"),
            (("--candidate", absent, "--device", "h100"), "h100-sxm"),
            (("--candidate", absent, "--bench", "--device", "h100-sxm"), "--bench"),
            (("--candidate", absent, "--trust-plans", self.path("none")), "--trust-plans"),
        ):
            with self.subTest(words=words):
                self.assertOneLine(
                    e2e.facts("gate", "--baseline", old, "-o", self.path("r"), *words), 2, said
                )
                self.assertEqual(os.listdir(self.folder), ["notes.txt"])
        self.assertOneLine(
            e2e.facts("gate", "--baseline", "9.21..9.27", "--candidate", new),
            2,
            "--baseline",
            "builds; give one",
        )

    def test_every_class_of_change_can_be_named(self):
        sys.path.insert(0, os.path.join(e2e.SOURCE, "reports"))
        from facts_reports.read.vocabulary import CHANGES

        names = ",".join(change.word.replace(" ", "-") for change in CHANGES)
        for words in (names, names.replace("-", "_"), "any"):
            self.assertIn(
                "no such file",
                e2e.facts("diff", self.path("none"), self.path("none"), "--fail-on", words).err,
            )
        said = e2e.facts("diff", self.path("none"), "--fail-on", "worse,foo")
        self.assertOneLine(said, 2, "--fail-on", *names.split(","))

    def test_bad_input_is_one_line(self):
        for words, status, said in (
            (("--baseline", "9.20.0"), 2, "--candidate"),
            (("9.20.0", "9.27.0"), 2, "facts gate --baseline 9.20.0 --candidate 9.27.0"),
            (("--cudnn", "9.20.0,9.27.0"), 2, "facts gate --baseline 9.20.0 --candidate 9.27.0"),
            (("--baseline", "9.20.0", "--candidate", "9.20.0"), 2, "both"),
            ((self.write("r.jsonl", "{}\n"), "smoke"), 2, "not both"),
            (("--baseline", "9.20.0", "--candidate", "9.27.0", "--where", "dtpe=f16"), 2, "dtype"),
        ):
            self.assertOneLine(e2e.facts("gate", *words), status, said)
        missing = self.path("a.jsonl"), self.path("b.jsonl")
        self.assertOneLine(e2e.facts("gate", *missing), 2, missing[0], "no such file")
        self.assertNotIn(
            "--candidate", e2e.facts("gate", "--candidate", "9.20.0").err.split("Example")[0]
        )
        done = e2e.facts("gate", "--baseline", "9.20.0", "--candidate", "9.99.0")
        self.assertStatus(done, 3)
        self.assertTrue(
            done.out.startswith("CANNOT TELL: cuDNN 9.99.0 could not be asked"), done.out
        )
        self.assertIn("facts cudnn lock 9.99.0", done.err)
        self.assertOneLine(
            e2e.facts("diff", self.path("none"), self.path("none")), 2, "no such file"
        )


if __name__ == "__main__":
    e2e.main()
