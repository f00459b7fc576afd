"""The commands as a user types them: what they print, what they leave behind, how they end, and what bad input gets."""

import json
import os
import re
import resource
import shlex
import signal
import subprocess
import time

import e2e

TWO = "pass=fwd dtype=bf16 b=1 h=2 s=64 d=64,100"
BOTH = "pass=fwd,bwd b=1 h=2 s=64 d=64"
BACKWARD = "pass=bwd dtype=bf16 b=1 h=1 s=64 d=64"
MANY = "pass=fwd,bwd dtype=bf16,f16 b=1 h=2 s=64,128 d=32,64,100,128"


def facts(text, *more, **environment):
    """A command as it is typed; words that follow are taken as they are."""
    return e2e.facts(*shlex.split(text), *more, **environment)


class Commands(e2e.TestCase):
    def right(self, text, *more, **environment):
        done = facts(text, *more, **environment)
        self.assertStatus(done, 0)
        return done

    def record(self, name="r"):
        return e2e.Record(self.path(name))

    def on_cpu(self, cases=BOTH, *more, name="r"):
        done = self.right("run --device cpu", cases, *more, "-o", self.path(name))
        return done, self.record(name).rows

    def decided(self, cases, *more, status=0, version=e2e.NEW):
        """`facts decide` of one build, and its record."""
        words = ("--cudnn", e2e.need(version).name, "-o", self.path("r"))
        done = e2e.facts("decide", cases, *words, *more)
        self.assertStatus(done, status)
        return done, self.record()

    def reads(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()


class Listing(Commands):
    def test_a_name_that_was_listed_is_a_case_and_names_itself(self):
        names = facts("list smoke").out.splitlines()
        self.assertGreater(len(names), 150)
        self.assertEqual(facts("list smoke --count").out.strip(), str(len(names)))
        self.assertEqual(facts("list", *names[:40]).out.splitlines(), names[:40])

    def test_where_shards_and_json_select_the_same_cases(self):
        text = "list smoke --where pass=bwd"
        names = sorted(facts(text).out.splitlines())
        parts = "".join(facts(f"{text} --shard {i}/3").out for i in (1, 2, 3))
        self.assertEqual(sorted(parts.splitlines()), names)
        objects = [json.loads(line) for line in facts(text + " --json").out.splitlines()]
        self.assertEqual(len(objects), len(names))
        self.assertOneLine(facts("list smoke --where 'd.qk>4000'"), 5)


class Timing(Commands):
    def test_two_workers_of_the_cpu_take_turns_and_every_case_has_a_time(self):
        cases = "'pass=fwd,bwd dtype=f32 b=1 h=2 s=64 d=32'"
        done = self.right(
            f"bench {cases} --device cpu --twice --rounds 4 --json -o", self.path("r")
        )
        lines = [json.loads(line) for line in done.out.splitlines()]
        found = [(line["pass"], line["side"], line["change"] is None) for line in lines]
        sides = [("fwd", 0, True), ("fwd", 1, False), ("bwd", 0, True), ("bwd", 1, False)]
        self.assertEqual(found, sides)
        for line in lines:
            self.assertTrue(line["us"] > 0 and line["rounds"] == 4 and line["tflops"] > 0)
        verdicts = [row["verdict"] for row in self.record().rows]
        self.assertEqual((verdicts, self.record().bad), (["pass"] * 4, 0))
        described = f"--cudnn {e2e.need(e2e.NEW).name} --device h100-sxm"
        self.assertOneLine(facts(f"bench pass=fwd {described}"), 2)


class Deciding(Commands):
    def test_a_yes_and_a_no_are_both_answers(self):
        done, record = self.decided(TWO, "--device", "h100-sxm", version=e2e.OLD)
        self.assertRegex(done.out, r"9\.20\.0-jit-cu13 +h100-sxm +yes 1 +no 1")
        self.assertIn("not a multiple of 8", done.out)
        run = record.runs[0]["id"]
        found = [(row["verdict"], row["grade"], row["run"]) for row in record.rows]
        self.assertEqual(found, [(v, "decided", run) for v in ("supported", "unsupported")])
        (end,) = record.ends
        self.assertEqual((end["complete"], end["rows"], record.bad), (True, 2, 0))
        done, _ = self.decided("pass=fwd d=0,100", "pass=fwd dbias=1", "--overwrite")
        self.assertRegex(done.out, r"h100-sxm +no 3 \(2 refused by FACTS\)\n")

    def test_json_is_one_row_a_line_and_the_rest_goes_to_stderr(self):
        done, record = self.decided(TWO, "--json")
        rows = [json.loads(line) for line in done.out.splitlines()]
        callers = [{one["project"] for one in row.pop("callers")} for row in rows]
        self.assertEqual(rows, record.rows)
        self.assertEqual(callers[0], set())
        self.assertIn("PyTorch", callers[1])

    def test_what_was_expected_otherwise_is_a_finding_with_its_repro(self):
        text = "name: wrong\nwhy: a refusal\nexpect: unsupported d\npass=fwd b=1 h=1 s=64 d=64\n"
        done, record = self.decided(self.write("wrong.cases", text), status=1)
        case = "pass=fwd dtype=bf16 b=1 h=1 s=64 d=64"
        self.assertIn(f"facts repro '{case}' --cudnn 9.27.0", done.out)
        self.assertIs(record.rows[0]["expectation"]["met"], False)

    def test_a_record_is_neither_overwritten_nor_mixed_unasked(self):
        self.decided(TWO)
        command = ("--cudnn", e2e.need(e2e.NEW).name, "-o")
        again = facts("decide", TWO, *command, self.path("r"))
        self.assertOneLine(again, 2, self.path("r"), "--resume", "--overwrite")
        for option in ("--resume", "--overwrite"):
            self.assertEqual(len(self.decided(TWO, option)[1].rows), 2)
        notes = self.write("notes.md", "# notes\n\nnot of ours\n")
        self.assertOneLine(facts("decide", TWO, *command, notes, "--resume"), 2, "is not a record")
        self.assertEqual(self.reads("notes.md"), "# notes\n\nnot of ours\n")

    def test_a_yes_for_a_described_device_is_never_called_a_pass(self):
        build = e2e.need(e2e.NEW).name
        done = self.right(f"run --cudnn {build} --device h100-sxm,cpu", TWO, "-o", self.path("r"))
        self.assertRegex(done.out, r"h100-sxm +yes 1 +no 1")
        found = {(row["device"], row["grade"]) for row in self.record().rows}
        self.assertEqual(found, {("h100-sxm", "decided"), ("cpu", "measured")})

    def test_an_interrupt_ends_with_130_and_resume_does_the_rest(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        worker.set("hold", 20)
        command = ["decide", MANY, "--cudnn", e2e.need(e2e.NEW).name, "-o", self.path("r")]
        with subprocess.Popen(
            [e2e.FACTS, *command],
            env=e2e.environment(FACTS_WORKER=worker.worker),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as program:
            self.assertTrue(worker.wait_until_held(program))
            program.send_signal(signal.SIGINT)
            worker.release()
            program.communicate(timeout=300)
        self.assertEqual(program.returncode, 130)
        worker.set()
        self.assertStatus(e2e.facts(*command, "--resume", FACTS_WORKER=worker.worker), 0)
        names = {row["case"] for row in self.record().rows}
        self.assertEqual(names, set(facts("list", MANY).out.splitlines()))
        self.assertIs(self.record().ends[-1]["complete"], True)


class Running(Commands):
    def test_the_cpu_backend_is_measured_and_right_and_reported(self):
        done, rows = self.on_cpu()
        self.assertRegex(done.out, r"cpu +pass 2")
        found = {(row["grade"], row["backend"], row["verdict"]) for row in rows}
        self.assertEqual(found, {("measured", "cpu", "pass")})
        for row in rows:
            self.assertLess(max(error["ratio"] for error in row["errors"].values()), 1)
        self.right("report", self.path("r"), "-o", self.path("page"))
        files = {"index.html", "results.csv", "results.json", "summary.md", "junit.xml"}
        self.assertLessEqual(files, set(os.listdir(self.path("page"))))
        page = self.reads("page/index.html")
        self.assertNotRegex(page, r"<(script|link|img)[^>]+(src|href)=\"?https?:")
        self.assertIn("pass=bwd dtype=bf16 b=1 h=2 s=64 d=64", page)
        # A record that was cut short is 4.
        lines = self.reads("r").splitlines(True)
        cut = self.write("cut", "".join(lines[:3]) + lines[3][:50])
        self.assertStatus(facts("report", cut, "-o", self.path("page")), 4)

    def test_repro_dumps_every_tensor(self):
        text = "repro 'pass=bwd b=1 h=1 s=16 d=16' --device cpu --dump"
        self.right(text, self.path("dump"))
        files = {"q.npy", "k.npy", "v.npy", "dq.npy", "dq.want.npy", "dv.want.npy"}
        self.assertLessEqual(files, set(os.listdir(self.path("dump"))))

    def test_merge_joins_shards_and_says_what_is_missing(self):
        for i in "12":
            self.on_cpu("pass=fwd b=1 h=1 s=16..19 d=8", "--shard", f"{i}/2", name=i)
        alone = facts("merge", self.path("1"), "-o", self.path("half"))
        self.assertStatus(alone, 4)
        self.assertIn("incomplete", alone.err)
        self.right("merge", self.path("1"), self.path("2"), "-o", self.path("whole"))
        self.assertEqual(len(self.record("whole").rows), 4)

    def test_an_issue_is_about_a_case_in_any_spelling(self):
        self.on_cpu(BACKWARD, name="r.jsonl")
        spelled = ("--issue", BACKWARD), ("--issue=d=64/64 s=64 h=1/1 pass=bwd dtype=bf16 b=1",)
        for words in spelled:
            done = self.right("report", self.path("r.jsonl"), *words)
            self.assertIn(f"## pass: `{BACKWARD}`", done.out)
        for case, *words in (
            ("pass=bwd dd=64", "dd", "--issue"),
            ("pass=bwd d=128", "no row has the case"),
        ):
            self.assertOneLine(facts("report", self.path("r.jsonl"), "--issue", case), 2, *words)
        self.assertStatus(facts("report", self.path("r.jsonl"), "--issue"), 2)


class Explaining(Commands):
    def test_repro_says_what_was_decided_and_that_numbers_need_a_gpu(self):
        case = "pass=bwd dtype=bf16 b=1 h=2 s=192 d=64 layout=bhsd fill=neglse"
        version = e2e.need(e2e.OLD).version
        done = self.right(f"repro '{case}' --device h100-sxm --cudnn {version}")
        self.assertEqual(done.err, "")
        for words in (
            case,
            "9.20.0-jit-cu13 on h100-sxm (described)",
            "  verdict     supported\n",
            "  grade       decided\n",
            "mode=A index=6",
            "  plan_ms ",
            "Numbers need a GPU",
            "--cudnn 9.20.0 --device 0",
            "--device cpu",
        ):
            self.assertIn(words, done.out)

    def test_repro_of_a_refusal_shows_cudnns_own_chain(self):
        done = self.right(
            f"repro 'pass=fwd d=100' --device h100-sxm --cudnn {e2e.need(e2e.NEW).name}"
        )
        for words in (
            "  verdict     unsupported\n",
            "chain: engine=2 status=CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
            "condition=d_qk % 8 != 0\n",
        ):
            self.assertIn(words, done.out)
        self.assertOneLine(facts("repro", TWO, "--cudnn", e2e.NEW), 2, "2 cases")

    def test_decide_explain_names_what_is_accepted_near_a_refusal(self):
        done, record = self.decided("pass=fwd dtype=bf16 d=96,100", "--explain")
        self.assertIn(
            "pass=fwd dtype=bf16 d=100\n"
            "  9.27.0-jit-cu13 on h100-sxm: d=100 is refused here; accepted: d=104 d=112 d=128 d=192/128 d=256 d=96 d=64\n"
            "  cuDNN:      Embedding dim per head for q and k is not a multiple of 8\n",
            done.out,
        )
        self.assertIn("  accepted    pass=fwd dtype=bf16 d=104\n", done.out)
        rows = sorted(record.rows, key=lambda row: row["case"])
        found = [("nearest" in row, row["verdict"]) for row in rows]
        self.assertEqual(found, [(True, "unsupported"), (False, "supported")])

    def test_one_refused_case_is_explained_by_its_neighbours(self):
        for device, case, words in (
            ("B200", "pass=bwd dtype=bf16 b=1 s=256 d=192", "accepted: d=128 d=192/128 d=256"),
            (
                "sm100-spec",
                "pass=bwd h=8/2 d=64 impl=unified",
                "impl=unified is refused here; accepted: impl=auto\n",
            ),
            (
                "h100-sxm",
                "pass=fwd dtype=e4m3 out=bf16",
                "out=bf16 is refused here; accepted: out=e4m3",
            ),
            ("T4", "pass=fwd d=64", "cuDNN's attention needs sm_80 or newer; this GPU is sm_75"),
            (
                "h100-sxm",
                "pass=bwd dtype=bf16 b=3 h=2 s=200 d=64 padding=random lens_shape=bcast",
                "the backward is accepted; its forward is not\n  forward     pass=fwd ",
            ),
        ):
            done = self.decided(case, "--device", device, "--overwrite")[0]
            self.assertIn(words, done.out)
            self.assertEqual("accepted" in done.out, device != "T4", done.out)
            self.assertNotIn("inconclusive", done.out)

    def test_a_matrix_of_given_cases(self):
        at = self.path("matrix")
        words = f"matrix 'pass=fwd d=64,100' --cudnn {e2e.need(e2e.NEW).name} --device B200 -o {at}"
        done = self.right(words)
        self.assertIn("sm100-spec (B200)  yes 1  no 1\n", done.out)
        with open(os.path.join(at, "index.html"), encoding="utf-8") as page:
            self.assertIn("sm100-spec (B200)", page.read())

    def test_doctor_compiles_a_plan_and_says_what_can_be_done(self):
        done = self.right("doctor")
        names = [e2e.need(name).name for name in e2e.CI_BUILDS]
        for words in (*names, "h100-sxm", "decided and compiled", "decide yes"):
            self.assertIn(words, done.out)
        for line in facts("doctor --json").out.splitlines():
            self.assertLessEqual({"what", "ok", "text"}, set(json.loads(line)))

    def test_cudnn_list_and_path_agree(self):
        listed = self.right("cudnn list")
        for name in e2e.CI_BUILDS:
            folder = facts("cudnn path", e2e.need(name).name).out.strip()
            self.assertIn(folder, listed.out)
            self.assertTrue(os.path.exists(os.path.join(folder, "libcudnn_graph.so.9")))
        self.assertIn("installable:", listed.out)


class BadInput(Commands):
    """One line with place and remedy; nothing on stdout; no traceback."""

    def decide(self, *arguments):
        return e2e.facts("decide", "pass=fwd b=1 h=1 s=64 d=64", *arguments)

    def refused(self, *table, status=2):
        """Each row: a command as it is typed, and what its one line says."""
        for text, *words in table:
            with self.subTest(text):
                self.assertOneLine(facts(text), status, *words)

    def undecided(self, *table, status=2):
        """Each row: a value of --cudnn and the words after it, and what the one line says."""
        for values, *words in table:
            with self.subTest(values):
                self.assertOneLine(self.decide("--cudnn", *values), status, *words)

    def test_of_cases(self):
        for case, *words in (
            ("pass=fwd dtyp=bf16", "1:10", "dtyp", "did you mean dtype?"),
            ("pass=fwd dtype=bf17", "1:16", "bf17", "allowed:", "did you mean bf16?"),
            ("pass=fwd d=0..", "1:13", "a..b"),
            ("smok", "smok", "did you mean smoke?"),
            ("", "the case is empty"),
            (" ", "the case is empty"),
            ("foo=3", "foo is not a key; `facts"),
            ("d=-1", "case:1:3", "allowed: 1 or more, or Q/V: d=192/128"),
            ("h=x", "allowed: 1 or more, or Q/KV: h=8/2"),
            ("s=x", "allowed: 1 or more, or queries/keys: s=1/512"),
            ("b=x", "allowed: N (N: a whole number)"),
            ("repeat=0", "allowed: M (M: a whole number above 0)"),
            ("pass=fwd \x01",),
            ("pass=fwd d=" + "9" * 5000,),
        ):
            with self.subTest(case=case[:40]):
                self.assertOneLine(e2e.facts("list", case), 2, *words)

    def test_a_mistake_is_not_accepted_in_silence(self):
        new = e2e.need(e2e.NEW).name
        self.refused(
            ("decide d=64 mask=causal", "write 'd=64 mask=causal'"),
            ("list smoke d=64 b=1 h=2", "write 'd=64 b=1 h=2'"),
            ("known list --cudnn foo", "foo", "9.28.1"),
            ("known list foo", "facts known list", "foo"),
            ("decide smoke --cudnn 9.20.0 --cudnn 9.27.0", "twice", "write --cudnn 9.20.0,9.27.0"),
            ("list smoke --shard 1/2 --shard=2/2", "--shard", "twice"),
            ("decide smoke -o a --output b", "--output", "twice"),
            *((f"list {option}", option.split()[0], "CASES") for option in ("--json", "--count")),
            ("list --where d=64", "--where", "CASES"),
            ("list --with d=64", "--with", "CASES"),
            ("list --shard 1/2", "--shard", "CASES"),
            ("self --first 3", "--first", "--clean"),
            (f"run pass=fwd --device cpu --cudnn {new}", "--device cpu", "--cudnn"),
            ("decide smoke --overwrite", "--overwrite", "-o FILE"),
        )

    def test_several_cases_may_still_be_given(self):
        for text, count in (("'pass=fwd d=64' mask=causal", 2), ("d=64 d=128", 2), ("d=64,128", 2)):
            self.assertEqual(len(self.right(f"list {text}").out.splitlines()), count)
        self.right("list smoke d=64", self.write("a=1", "name: a\nwhy: b\npass=fwd d=64\n"))
        self.right("list -- smoke")

    def test_a_mistake_is_refused_before_anything_is_asked_or_written(self):
        new, text = e2e.need(e2e.NEW).name, self.write("notes.txt", "not a record")
        record, none = self.path("r"), self.path("none")
        run = f"run smoke --cudnn {new} --device h100-sxm -o {record}"
        self.refused((run, "facts decide", "h100-sxm"), status=3)  # there is no GPU
        self.refused(
            (f"decide smok --plan-dir {none}", "did you mean smoke?"),
            (f"run pass=fwd --device cpu --resume -o {text}", text, "is not a record"),
            (f"matrix --cudnn {new} -o {text}", "facts matrix", text, "give a folder"),
            (f"diff a b --page {text}", "--page", text, "give a folder"),
            (f"audit --cudnn {new} --page {text}", "--page", text, "give a folder"),
        )
        self.assertEqual(os.listdir(self.folder), ["notes.txt"])
        self.assertEqual(self.reads("notes.txt"), "not a record")

    def test_of_files(self):
        bad = self.write("bad.cases", "name: a\nwhy: b\npass=fwd d=64\npass=fwd fil=gauss\n")
        none, out = self.path("none"), self.path("out")
        self.refused(
            (f"list {bad}", bad, ":4:10:", "fil", "did you mean fill?"),
            (f"list {none}.cases", none),
            (f"list {self.folder}", self.folder),
            (f"report {none} -o {out}", none),
            (f"merge {none} -o {out}", none),
        )

    def test_of_predicates_and_options(self):
        self.refused(
            ("list smoke --where 'dd>64'", "dd", "did you mean d?"),
            ("list smoke --wher d=64", "--where"),
            ("decid smoke", "did you mean decide?"),
            ("run", "CASES"),
            ("foo", 'no command "foo" (`facts --help`'),
            ("keys maks", "did you mean mask?"),
            ("run smoke --retry", 'no option "--retry" (`facts run --help`'),
            ("list smoke --with d=x", "--with:1:3: d=x"),
            ("cudnn foo", "facts cudnn", '"foo"', "list, install, lock, remove, path"),
            ("known show foo", "no known failure is called foo", "facts known list"),
            ("known check nosuch", "no known failure is called nosuch"),
            ("known show bool-mask-wron", "did you mean bool-mask-wrong?"),
            ("decide smoke --shard 3/2", "--shard", "I/N"),
            ("decide smoke --jobs x", "--jobs", "number"),
            ("decide smoke --timeout -1", "--timeout"),
        )

    def test_an_oracle_on_a_gpu_that_is_not_there_is_refused(self):
        for command, oracle in (("run", "gpu"), ("repro", "gpu")):
            text = f"{command} 'pass=fwd s=64' --device cpu --oracle {oracle}"
            self.refused((text, f"--oracle {oracle}", "cpu is no GPU"))
        self.on_cpu("pass=fwd s=64", "--oracle", "cpu")

    def test_of_versions(self):
        range_ = "the range ends before it begins; write 9.20..9.30"
        self.undecided(
            (("8.9.0",), "8.9.0", "FACTS asks cuDNN 9", "the oldest is 9.8.0"),
            (("9.30..9.20",), range_),
            (("banana",), "banana"),
        )
        there = {build.version for build in e2e.needs.installed().values()}
        for absent in [v for v in ("9.25.0", "9.17.1", "9.12.0") if v not in there][:1]:
            done = self.decide("--cudnn", absent)
            self.assertStatus(done, 3)  # tests reach no index
            self.assertIn(f"installing {absent}", done.err)
        self.undecided((("9.99.0",), "9.99.0", "ci/cudnn.lock"), status=3)

    def test_of_folders(self):
        os.symlink("loop", self.path("loop"))
        os.mkdir(self.path("locked"), 0o000)
        none, library = self.path("none"), "libcudnn.so.9"
        self.undecided(
            ((none,), "--cudnn " + none, library),
            ((self.path("loop") + "/",), self.path("loop")),
            ((self.path("locked"),), self.path("locked")),
            ((self.folder,), self.folder, library),
        )
        build = e2e.need(e2e.NEW)  # two folders with one build
        for name in (library, "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9"):
            os.symlink(os.path.join(build.dir, name), self.path(name))
        self.undecided(((f"{e2e.NEW},{self.folder}",), self.folder, build.dir))

    def test_of_descriptions(self):
        good, new = e2e.description(), e2e.need(e2e.NEW).name
        for name, text, *words in (
            ("cut.json", '{"a":', ":1:", "end of file"),
            ("list.json", "[]", "object"),
            ("empty.json", ""),
            ("short.json", {"deviceVer": 900}, "multiProcessorCount"),
            ("text.json", dict(good, deviceVer="9.0"), "deviceVer"),
            ("old.json", dict(good, deviceVer=905), "deviceVer"),
        ):
            self.undecided(((new, "--device", self.write(name, text)), self.path(name), *words))
        none = self.path("none.json")
        other = {"name": "h100-sxm", "device": e2e.description(multiProcessorCount=66)}
        twin = self.write("twin.json", other)  # two descriptions of one name
        self.undecided(
            ((new, "--device", none), "--device " + none, "facts devices"),
            ((new, "--device", "h1000"), "h100-sxm", "a product"),
            ((new, "--device", f"h100-sxm,{twin}"), "h100-sxm"),
        )
        _, record = self.decided("pass=fwd s=64", "--device", "h100-sxm,h100-sxm")
        self.assertEqual(len(record.rows), 1)

    def test_of_places_to_write(self):
        new, none = e2e.need(e2e.NEW).name, self.path("none", "r")
        self.undecided(
            ((new, "-o", none), none, "its folder does not exist; make it"),
            ((new, "-o", self.folder), self.folder, "is a folder; give a file"),
            ((new, "-o", "/dev/full", "--overwrite"), "/dev/full", "No space left"),
            status=3,
        )

    def test_a_disk_that_fills_up_is_3_and_loses_no_row(self):
        command = ["decide", MANY, "--cudnn", e2e.need(e2e.NEW).name, "-o", self.path("r")]

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (32768, 32768))

        limited = e2e.started([e2e.FACTS, *command], env=e2e.environment(), preexec_fn=limit)
        self.assertEqual(limited.returncode, 3, limited.stderr)
        self.assertRegex(limited.stderr, rf"\A.*{re.escape(self.path('r'))}.*\n\Z")
        before = self.record().rows
        self.assertGreater(len(before), 8)
        self.assertStatus(e2e.facts(*command, "--resume"), 0)
        after = self.record()
        self.assertEqual(after.rows[: len(before)], before)
        self.assertEqual(len(after.rows), len(after.by("case", "config")))
        names = {row["case"] for row in after.rows}
        self.assertEqual(names, set(facts("list", MANY).out.splitlines()))

    def test_a_record_that_nobody_named_stays_for_30_days(self):
        runs = self.path("facts/runs")
        os.makedirs(runs)
        for name, days in (("old.jsonl", 31), ("new.jsonl", 29), ("old.txt", 31)):
            with open(os.path.join(runs, name), "w", encoding="utf-8"):
                pass
            os.utime(os.path.join(runs, name), (time.time() - days * 86400,) * 2)
        self.right("run 'pass=fwd s=16' --device cpu", XDG_CACHE_HOME=self.path(""))
        found = os.listdir(runs)
        self.assertEqual((len(found), "old.jsonl" in found), (3, False), found)

    def test_a_gpu_that_is_not_here_is_inconclusive_and_3(self):
        if os.path.exists("/dev/nvidia0"):
            return
        _, record = self.decided("pass=fwd s=64", "--device", "0", status=3)
        found = [(row["verdict"], row["reason"]["class"]) for row in record.rows]
        self.assertEqual(found, [("inconclusive", "environment")])

    def test_no_command_ever_shows_a_traceback(self):
        for text in (
            "report",
            "report /dev/null -o p",
            "cudnn",
            "cudnn bogus",
            "cudnn path x",
            "cudnn remove 9.99.0",
            "merge",
            "repro",
            "run x",
            "doctor x",
        ):
            with self.subTest(text):
                done = facts(text, cwd=self.folder)
                self.assertIn(done.status, (2, 3, 5), done.text)
                self.assertNotRegex(done.text, "Traceback|Assertion|core dumped")
                self.assertTrue(done.err.strip())


if __name__ == "__main__":
    e2e.main()
