"""The commands as a user types them: what they print, what they leave behind, how they end, and what bad input gets."""

import json
import os
import re
import resource
import signal
import subprocess

import e2e

TWO = "pass=fwd dtype=bf16 b=1 h=2 s=64 d=64,100"


class Listing(e2e.TestCase):
    def test_a_name_that_was_listed_is_a_case_and_names_itself(self):
        names = e2e.facts("list", "smoke").out.splitlines()
        self.assertGreater(len(names), 150)
        self.assertEqual(e2e.facts("list", "smoke", "--count").out.strip(), str(len(names)))
        again = e2e.facts("list", *names[:40])
        self.assertEqual(again.out.splitlines(), names[:40])

    def test_where_shards_and_json_select_the_same_cases(self):
        all_names = set(e2e.facts("list", "smoke", "--where", "pass=bwd").out.splitlines())
        parts = [
            e2e.facts("list", "smoke", "--where", "pass=bwd", "--shard", f"{i}/3").out.splitlines()
            for i in (1, 2, 3)
        ]
        self.assertEqual(sum(len(p) for p in parts), len(all_names))
        self.assertEqual(set().union(*parts), all_names)
        objects = [
            json.loads(line)
            for line in e2e.facts("list", "smoke", "--where", "pass=bwd", "--json").out.splitlines()
        ]
        self.assertEqual(len(objects), len(all_names))

    def test_nothing_selected_is_5(self):
        self.assertOneLine(e2e.facts("list", "smoke", "--where", "d.qk>4000"), 5)


class Timing(e2e.TestCase):
    def test_two_workers_of_the_cpu_take_turns_and_every_case_has_a_time(self):
        cases = "pass=fwd,bwd dtype=f32 b=1 h=2 s=64 d=32"
        done = e2e.facts(
            "bench", cases, "--device", "cpu", "--twice", "--json", "-o", self.path("r")
        )
        self.assertStatus(done, 0)
        lines = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(
            [(line["pass"], line["side"]) for line in lines],
            [("fwd", 0), ("fwd", 1), ("bwd", 0), ("bwd", 1)],
        )
        self.assertTrue(
            all(line["us"] > 0 and line["rounds"] >= 16 and line["tflops"] > 0 for line in lines)
        )
        self.assertEqual([line["change"] is None for line in lines], [True, False, True, False])
        record = e2e.Record(self.path("r"))
        self.assertEqual(([row["verdict"] for row in record.rows], record.bad), (["pass"] * 4, 0))

    def test_a_described_device_has_no_times(self):
        self.assertOneLine(
            e2e.facts("bench", TWO, "--cudnn", e2e.need(e2e.NEW).name, "--device", "h100-sxm"), 2
        )


class Deciding(e2e.TestCase):
    def test_a_yes_and_a_no_are_both_answers(self):
        done = e2e.facts(
            "decide",
            TWO,
            "--cudnn",
            e2e.need(e2e.OLD).name,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"9\.20\.0-jit-cu13 +h100-sxm +yes 1 +no 1")
        self.assertIn("not a multiple of 8", done.out)
        record = e2e.Record(self.path("r"))
        self.assertEqual([row["verdict"] for row in record.rows], ["supported", "unsupported"])
        self.assertEqual({row["grade"] for row in record.rows}, {"decided"})
        self.assertEqual(
            (record.ends[0]["complete"], record.ends[0]["rows"], record.bad), (True, 2, 0)
        )
        self.assertEqual({row["run"] for row in record.rows}, {record.runs[0]["id"]})

    def test_a_refusal_by_facts_is_told_from_a_no_of_cudnn(self):
        done = e2e.facts(
            "decide",
            "pass=fwd d=0,100",
            "pass=fwd dbias=1",
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"h100-sxm +no 3 \(2 refused by FACTS\)\n")

    def test_json_is_one_row_a_line_and_the_rest_goes_to_stderr(self):
        done = e2e.facts(
            "decide", TWO, "--cudnn", e2e.need(e2e.NEW).name, "--json", "-o", self.path("r")
        )
        self.assertStatus(done, 0)
        self.assertEqual(
            [json.loads(line) for line in done.out.splitlines()], e2e.Record(self.path("r")).rows
        )

    def test_what_was_expected_otherwise_is_a_finding_with_its_repro(self):
        cases = self.write(
            "wrong.cases",
            "name: wrong\nwhy: a refusal that will not come\nexpect: unsupported d\npass=fwd b=1 h=1 s=64 d=64\n",
        )
        done = e2e.facts("decide", cases, "--cudnn", e2e.need(e2e.NEW).name, "-o", self.path("r"))
        self.assertStatus(done, 1)
        self.assertIn(
            "facts repro 'pass=fwd dtype=bf16 b=1 h=1 s=64 d=64' --cudnn 9.27.0", done.out
        )
        self.assertIs(e2e.Record(self.path("r")).rows[0]["expectation"]["met"], False)

    def test_a_record_is_neither_overwritten_nor_mixed_unasked(self):
        command = ("decide", TWO, "--cudnn", e2e.need(e2e.NEW).name, "-o", self.path("r"))
        self.assertStatus(e2e.facts(*command), 0)
        self.assertOneLine(e2e.facts(*command), 2, self.path("r"), "--resume", "--overwrite")
        self.assertStatus(e2e.facts(*command, "--resume"), 0)
        self.assertEqual(len(e2e.Record(self.path("r")).rows), 2)
        self.assertStatus(e2e.facts(*command, "--overwrite"), 0)
        self.assertEqual(len(e2e.Record(self.path("r")).rows), 2)

    def test_a_file_that_is_no_record_is_left_alone(self):
        text = "# notes\n\nnot of ours\n"
        notes = self.write("notes.md", text)
        self.assertOneLine(
            e2e.facts("decide", TWO, "--cudnn", e2e.need(e2e.NEW).name, "-o", notes, "--resume"),
            2,
            "is not a record",
        )
        with open(notes, encoding="utf-8") as file:
            self.assertEqual(file.read(), text)

    def test_a_yes_for_a_described_device_is_never_called_a_pass(self):
        done = e2e.facts(
            "run",
            TWO,
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "--device",
            "h100-sxm,cpu",
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"h100-sxm +yes 1 +no 1")
        self.assertEqual(
            {(row["device"], row["grade"]) for row in e2e.Record(self.path("r")).rows},
            {("h100-sxm", "decided"), ("cpu", "measured")},
        )

    def test_an_interrupt_ends_with_130_and_resume_does_the_rest(self):
        worker = e2e.Between(self.path("held"), e2e.WORKER)
        worker.set("hold", 20)
        command = [
            e2e.FACTS,
            "decide",
            "smoke",
            "--cudnn",
            e2e.need(e2e.NEW).name,
            "-o",
            self.path("r"),
        ]
        with subprocess.Popen(
            command,
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
        self.assertStatus(e2e.facts(*command[1:], "--resume", FACTS_WORKER=worker.worker), 0)
        record = e2e.Record(self.path("r"))
        self.assertEqual(
            {row["case"] for row in record.rows}, set(e2e.facts("list", "smoke").out.splitlines())
        )
        self.assertIs(record.ends[-1]["complete"], True)


class Running(e2e.TestCase):
    CASES = "pass=fwd,bwd b=1 h=2 s=64 d=64"

    def test_the_cpu_backend_is_measured_and_right(self):
        done = e2e.facts("run", self.CASES, "--device", "cpu", "-o", self.path("r"))
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"cpu +pass 2")
        rows = e2e.Record(self.path("r")).rows
        self.assertEqual(
            {(row["grade"], row["backend"], row["verdict"]) for row in rows},
            {("measured", "cpu", "pass")},
        )
        for row in rows:
            self.assertTrue(
                all(error["ratio"] < 1 for error in row["errors"].values()), row["errors"]
            )

    def test_repro_dumps_every_tensor(self):
        done = e2e.facts(
            "repro", "pass=bwd b=1 h=1 s=16 d=16", "--device", "cpu", "--dump", self.path("dump")
        )
        self.assertStatus(done, 0)
        self.assertLessEqual(
            {"q.npy", "k.npy", "v.npy", "dq.npy", "dq.want.npy", "dv.want.npy"},
            set(os.listdir(self.path("dump"))),
        )

    def test_merge_joins_shards_and_says_what_is_missing(self):
        for i in (1, 2):
            self.assertStatus(
                e2e.facts(
                    "run",
                    "pass=fwd b=1 h=1 s=16..19 d=8",
                    "--device",
                    "cpu",
                    "--shard",
                    f"{i}/2",
                    "-o",
                    self.path(f"{i}"),
                ),
                0,
            )
        alone = e2e.facts("merge", self.path("1"), "-o", self.path("half"))
        self.assertStatus(alone, 4)
        self.assertIn("incomplete", alone.err)
        self.assertStatus(
            e2e.facts("merge", self.path("1"), self.path("2"), "-o", self.path("whole")), 0
        )
        self.assertEqual(len(e2e.Record(self.path("whole")).rows), 4)

    def test_report_writes_a_page_and_tables_without_a_link_to_the_net(self):
        self.assertStatus(e2e.facts("run", self.CASES, "--device", "cpu", "-o", self.path("r")), 0)
        done = e2e.facts("report", self.path("r"), "-o", self.path("page"))
        self.assertStatus(done, 0)
        self.assertLessEqual(
            {"index.html", "results.csv", "results.json", "summary.md", "junit.xml"},
            set(os.listdir(self.path("page"))),
        )
        with open(self.path("page", "index.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertNotRegex(page, r"<(script|link|img)[^>]+(src|href)=\"?https?:")
        self.assertIn("pass=bwd dtype=bf16 b=1 h=2 s=64 d=64", page)

    def test_an_issue_is_about_a_case_in_any_spelling(self):
        self.assertStatus(
            e2e.facts(
                "run", "pass=bwd s=64 d=64 b=1 h=1", "--device", "cpu", "-o", self.path("r.jsonl")
            ),
            0,
        )
        for words in (
            ("--issue", "pass=bwd s=64 d=64 b=1 h=1"),
            ("--issue=d=64/64 s=64 h=1/1 pass=bwd dtype=bf16 b=1",),
        ):
            done = e2e.facts("report", self.path("r.jsonl"), *words)
            self.assertStatus(done, 0)
            self.assertIn("## pass: `pass=bwd dtype=bf16 b=1 h=1 s=64 d=64`", done.out)
        self.assertOneLine(
            e2e.facts("report", self.path("r.jsonl"), "--issue", "pass=bwd dd=64"),
            2,
            "dd",
            "--issue",
        )
        self.assertOneLine(
            e2e.facts("report", self.path("r.jsonl"), "--issue", "pass=bwd d=128"),
            2,
            "no row has the case",
        )
        self.assertStatus(e2e.facts("report", self.path("r.jsonl"), "--issue"), 2)

    def test_report_of_a_record_cut_short_is_4_and_says_so(self):
        self.assertStatus(e2e.facts("run", self.CASES, "--device", "cpu", "-o", self.path("r")), 0)
        with open(self.path("r"), encoding="utf-8") as file:
            lines = file.readlines()
        self.write("cut", "".join(lines[:3]) + lines[3][:50])
        self.assertStatus(e2e.facts("report", self.path("cut"), "-o", self.path("page")), 4)


class Explaining(e2e.TestCase):
    REPORTED = "pass=bwd b=1 h=2 s=192 d=64 layout=bhsd fill=neglse"

    def test_repro_says_what_was_decided_and_that_numbers_need_a_gpu(self):
        done = e2e.facts(
            "repro", self.REPORTED, "--cudnn", e2e.need(e2e.OLD).version, "--device", "h100-sxm"
        )
        self.assertStatus(done, 0)
        self.assertEqual(done.err, "")
        for words in (
            "pass=bwd dtype=bf16 b=1 h=2 s=192 d=64 layout=bhsd fill=neglse",
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
        done = e2e.facts(
            "repro", "pass=fwd d=100", "--cudnn", e2e.need(e2e.NEW).name, "--device", "h100-sxm"
        )
        self.assertStatus(done, 0)
        for words in (
            "  verdict     unsupported\n",
            "chain: engine=2 status=CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
            "condition=d_qk % 8 != 0\n",
        ):
            self.assertIn(words, done.out)

    def test_decide_explain_names_what_is_accepted_near_a_refusal(self):
        e2e.need(e2e.NEW)
        done = e2e.facts(
            "decide",
            "pass=fwd dtype=bf16 d=96,100",
            "--cudnn",
            e2e.NEW,
            "--device",
            "h100-sxm",
            "--explain",
            "-o",
            self.path("r.jsonl"),
        )
        self.assertStatus(done, 0)
        self.assertIn(
            "pass=fwd dtype=bf16 d=100\n  9.27.0-jit-cu13 on h100-sxm: Embedding dim per head for q and k is not a multiple of 8\n"
            "  accepted    dim_qk and dim_v 104 instead of 100\n",
            done.out,
        )
        self.assertEqual(
            [
                ("nearest" in row, row["verdict"])
                for row in sorted(
                    e2e.Record(self.path("r.jsonl")).rows, key=lambda row: row["case"]
                )
            ],
            [(True, "unsupported"), (False, "supported")],
        )

    def test_repro_takes_one_case(self):
        self.assertOneLine(e2e.facts("repro", TWO, "--cudnn", e2e.need(e2e.NEW).name), 2, "2 cases")

    def test_doctor_compiles_a_plan_and_says_what_can_be_done(self):
        done = e2e.facts("doctor")
        self.assertStatus(done, 0)
        for words in (
            e2e.need(e2e.OLD).name,
            e2e.need(e2e.NEW).name,
            "h100-sxm",
            "decided and compiled",
            "decide yes",
        ):
            self.assertIn(words, done.out)
        for line in e2e.facts("doctor", "--json").out.splitlines():
            self.assertLessEqual({"what", "ok", "text"}, set(json.loads(line)))

    def test_cudnn_list_and_path_agree(self):
        listed = e2e.facts("cudnn", "list")
        self.assertStatus(listed, 0)
        for name in e2e.CI_BUILDS:
            folder = e2e.facts("cudnn", "path", e2e.need(name).name).out.strip()
            self.assertIn(folder, listed.out)
            self.assertTrue(os.path.exists(os.path.join(folder, "libcudnn_graph.so.9")))
        self.assertIn("installable:", listed.out)


class BadInput(e2e.TestCase):
    """One line with place and remedy; nothing on stdout; no traceback."""

    def decide(self, *arguments):
        return e2e.facts("decide", "pass=fwd b=1 h=1 s=64 d=64", *arguments)

    def test_of_cases(self):
        for case, words in {
            "pass=fwd dtyp=bf16": ("1:10", "dtyp", "did you mean dtype?"),
            "pass=fwd dtype=bf17": ("1:16", "bf17", "allowed:", "did you mean bf16?"),
            "pass=fwd d=0..": ("1:13", "a..b"),
            "smok": ("smok", "did you mean smoke?"),
            "": ("the case is empty",),
            " ": ("the case is empty",),
            "foo=3": ("foo is not a key; `facts",),
            "d=-1": ("case:1:3", "allowed: 1 or more, or Q/V: d=192/128"),
            "h=x": ("allowed: 1 or more, or Q/KV: h=8/2",),
            "s=x": ("allowed: 1 or more, or queries/keys: s=1/512",),
            "b=x": ("allowed: N (N: a whole number)",),
            "repeat=0": ("allowed: M (M: a whole number above 0)",),
            "pass=fwd \x01": (),
            "pass=fwd d=" + "9" * 5000: (),
        }.items():
            with self.subTest(case=case[:40]):
                self.assertOneLine(e2e.facts("list", case), 2, *words)

    def test_a_mistake_is_not_accepted_in_silence(self):
        new = e2e.need(e2e.NEW).name
        for arguments, words in (
            (("decide", "d=64", "mask=causal"), ("write 'd=64 mask=causal'",)),
            (("list", "smoke", "d=64", "b=1", "h=2"), ("write 'd=64 b=1 h=2'",)),
            (("known", "list", "--cudnn", "foo"), ("foo", "9.28.1")),
            (("known", "list", "foo"), ("facts known list", "foo")),
            (
                ("decide", "smoke", "--cudnn", "9.20.0", "--cudnn", "9.27.0"),
                ("--cudnn", "twice", "write --cudnn 9.20.0,9.27.0"),
            ),
            (("list", "smoke", "--shard", "1/2", "--shard=2/2"), ("--shard", "twice")),
            (("decide", "smoke", "-o", "a", "--output", "b"), ("--output", "twice")),
            (("list", "--json"), ("--json", "CASES")),
            (("list", "--count"), ("--count", "CASES")),
            (("list", "--where", "d=64"), ("--where", "CASES")),
            (("list", "--with", "d=64"), ("--with", "CASES")),
            (("list", "--shard", "1/2"), ("--shard", "CASES")),
            (("self", "--first", "3"), ("--first", "--clean")),
            (
                ("run", "pass=fwd s=64", "--device", "cpu", "--cudnn", new),
                ("--device cpu", "--cudnn"),
            ),
            (("decide", "smoke", "--overwrite"), ("--overwrite", "-o FILE")),
        ):
            with self.subTest(arguments=arguments):
                self.assertOneLine(e2e.facts(*arguments), 2, *words)

    def test_several_cases_may_still_be_given(self):
        for words, count in (
            (("pass=fwd d=64", "mask=causal"), 2),
            (("d=64", "d=128"), 2),
            (("d=64,128",), 2),
            (("regress/ends", "smoke")[1:], None),
        ):
            done = e2e.facts("list", *words)
            self.assertStatus(done, 0)
            self.assertIn(len(done.out.splitlines()), (count,) if count else range(100, 10000))
        self.assertStatus(
            e2e.facts(
                "list", "smoke", self.write("a=1", "name: a\nwhy: b\npass=fwd d=64\n"), "d=64"
            ),
            0,
        )
        self.assertStatus(e2e.facts("list", "--", "smoke"), 0)

    def test_a_mistake_is_refused_before_anything_is_asked_or_written(self):
        new, text = e2e.need(e2e.NEW).name, self.write("notes.txt", "not a record")
        for arguments, words in (
            (
                ("run", "smoke", "--cudnn", new, "--device", "h100-sxm", "-o", self.path("r")),
                ("facts decide", "h100-sxm"),
            ),
            (
                (
                    "decide",
                    "pass=fwd s=64",
                    "--cudnn",
                    new,
                    "--trust-plans",
                    self.path("none"),
                    "-o",
                    self.path("r"),
                ),
                ("--trust-plans", self.path("none"), "--plan-dir"),
            ),
            (("decide", "smok", "--plan-dir", self.path("none")), ("did you mean smoke?",)),
            (
                ("run", "pass=fwd s=64", "--device", "cpu", "-o", text, "--resume"),
                (text, "is not a record"),
            ),
            (("matrix", "--cudnn", new, "-o", text), ("facts matrix", text, "give a folder")),
            (("diff", "a", "b", "--page", text), ("--page", text, "give a folder")),
            (("audit", "--cudnn", new, "--page", text), ("--page", text, "give a folder")),
        ):
            with self.subTest(arguments=arguments):
                self.assertOneLine(
                    e2e.facts(*arguments),
                    3 if arguments[0] == "run" and "h100-sxm" in arguments else 2,
                    *words,
                )  # 3: there is no GPU
                self.assertEqual(os.listdir(self.folder), ["notes.txt"])
        with open(text, encoding="utf-8") as file:
            self.assertEqual(file.read(), "not a record")

    def test_of_files(self):
        bad = self.write("bad.cases", "name: a\nwhy: b\npass=fwd d=64\npass=fwd fil=gauss\n")
        self.assertOneLine(e2e.facts("list", bad), 2, bad, ":4:10:", "fil", "did you mean fill?")
        self.assertOneLine(e2e.facts("list", self.path("none.cases")), 2, self.path("none.cases"))
        self.assertOneLine(e2e.facts("list", self.folder), 2, self.folder)
        self.assertOneLine(
            e2e.facts("report", self.path("none"), "-o", self.path("page")), 2, self.path("none")
        )
        self.assertOneLine(
            e2e.facts("merge", self.path("none"), "-o", self.path("m")), 2, self.path("none")
        )

    def test_of_predicates_and_options(self):
        for arguments, words in (
            (("list", "smoke", "--where", "dd>64"), ("dd", "did you mean d?")),
            (("list", "smoke", "--wher", "d=64"), ("--where",)),
            (("decid", "smoke"), ("did you mean decide?",)),
            (("run",), ("CASES",)),
            (("foo",), ('no command "foo" (`facts --help`',)),
            (("keys", "maks"), ("did you mean mask?",)),
            (("run", "smoke", "--retry"), ('no option "--retry" (`facts run --help`',)),
            (("list", "smoke", "--with", "d=x"), ("--with:1:3: d=x",)),
            (("cudnn", "foo"), ("facts cudnn", '"foo"', "list, install, lock, remove, path")),
            (("known", "show", "foo"), ("no known failure is called foo", "facts known list")),
            (("known", "check", "nosuch"), ("no known failure is called nosuch",)),
            (("known", "show", "bool-mask-wron"), ("did you mean bool-mask-wrong?",)),
            (("decide", "smoke", "--shard", "3/2"), ("--shard", "I/N")),
            (("decide", "smoke", "--jobs", "x"), ("--jobs", "number")),
            (("decide", "smoke", "--timeout", "-1"), ("--timeout",)),
        ):
            with self.subTest(arguments=arguments):
                self.assertOneLine(e2e.facts(*arguments), 2, *words)

    def test_an_oracle_on_a_gpu_that_is_not_there_is_refused(self):
        for oracle in ("gpu", "both"):
            for command in ("run", "repro"):
                self.assertOneLine(
                    e2e.facts(command, "pass=fwd s=64", "--device", "cpu", "--oracle", oracle),
                    2,
                    f"--oracle {oracle}",
                    "cpu is no GPU",
                )
        self.assertStatus(
            e2e.facts(
                "run", "pass=fwd s=64", "--device", "cpu", "--oracle", "cpu", "-o", self.path("r")
            ),
            0,
        )

    def test_of_versions(self):
        self.assertOneLine(self.decide("--cudnn", "9.99.0"), 2, "9.99.0", "the newest is 9.")
        self.assertOneLine(
            self.decide("--cudnn", "8.9.0"), 2, "8.9.0", "FACTS asks cuDNN 9", "the oldest is 9.8.0"
        )
        self.assertOneLine(
            self.decide("--cudnn", "9.30..9.20"),
            2,
            "the range ends before it begins; write 9.20..9.30",
        )
        self.assertOneLine(self.decide("--cudnn", "banana"), 2, "banana")
        there = {build.version for build in e2e.needs.installed().values()}
        for absent in [v for v in ("9.25.0", "9.17.1", "9.12.0") if v not in there][:1]:
            self.assertOneLine(self.decide("--cudnn", absent), 3, f"./facts cudnn install {absent}")

    def test_of_folders(self):
        os.symlink("loop", self.path("loop"))
        os.mkdir(self.path("locked"), 0o000)
        self.assertOneLine(
            self.decide("--cudnn", self.path("none")),
            2,
            "--cudnn " + self.path("none"),
            "libcudnn.so.9",
        )
        self.assertOneLine(self.decide("--cudnn", self.path("loop") + "/"), 2, self.path("loop"))
        self.assertOneLine(self.decide("--cudnn", self.path("locked")), 2, self.path("locked"))
        self.assertOneLine(self.decide("--cudnn", self.folder), 2, self.folder, "libcudnn.so.9")

    def test_of_descriptions(self):
        e2e.need(e2e.NEW)
        good = e2e.description()
        for name, text, words in (
            ("cut.json", '{"a":', (":1:", "end of file")),
            ("list.json", "[]", ("object",)),
            ("empty.json", "", ()),
            ("short.json", {"deviceVer": 900}, ("multiProcessorCount",)),
            ("text.json", dict(good, deviceVer="9.0"), ("deviceVer",)),
            ("old.json", dict(good, deviceVer=905), ("deviceVer",)),
        ):
            with self.subTest(name=name):
                self.assertOneLine(
                    self.decide("--cudnn", e2e.NEW, "--device", self.write(name, text)),
                    2,
                    self.path(name),
                    *words,
                )
        self.assertOneLine(
            self.decide("--cudnn", e2e.NEW, "--device", self.path("none.json")),
            2,
            "--device " + self.path("none.json"),
            "facts devices",
        )
        self.assertOneLine(self.decide("--cudnn", e2e.NEW, "--device", "h100"), 2, "h100-sxm")

    def test_two_descriptions_of_one_name_are_not_told_apart_and_refused(self):
        twin = self.write(
            "twin.json", {"name": "h100-sxm", "device": e2e.description(multiProcessorCount=66)}
        )
        self.assertOneLine(
            self.decide("--cudnn", e2e.need(e2e.NEW).name, "--device", f"h100-sxm,{twin}"),
            2,
            "h100-sxm",
        )
        self.assertStatus(
            self.decide("--cudnn", e2e.NEW, "--device", "h100-sxm,h100-sxm", "-o", self.path("r")),
            0,
        )
        self.assertEqual(len(e2e.Record(self.path("r")).rows), 1)

    def test_two_folders_with_one_build_are_refused(self):
        build = e2e.need(e2e.NEW)
        for name in (
            "libcudnn.so.9",
            "libcudnn_graph.so.9",
            "libcudnn_engines_runtime_compiled.so.9",
        ):
            os.symlink(os.path.join(build.dir, name), self.path(name))
        self.assertOneLine(
            self.decide("--cudnn", f"{e2e.NEW},{self.folder}"), 2, self.folder, build.dir
        )

    def test_of_places_to_write(self):
        e2e.need(e2e.NEW)
        self.assertOneLine(
            self.decide("--cudnn", e2e.NEW, "-o", self.path("none", "r")),
            3,
            self.path("none", "r"),
            "its folder does not exist; make it",
        )
        self.assertOneLine(
            self.decide("--cudnn", e2e.NEW, "-o", self.folder),
            3,
            self.folder,
            "is a folder; give a file",
        )
        self.assertOneLine(
            self.decide("--cudnn", e2e.NEW, "-o", "/dev/full", "--overwrite"),
            3,
            "/dev/full",
            "No space left",
        )

    def test_a_disk_that_fills_up_is_3_and_loses_no_row(self):
        command = ["decide", "smoke", "--cudnn", e2e.need(e2e.NEW).name, "-o", self.path("r")]
        limited = subprocess.run(
            [e2e.FACTS, *command],
            env=e2e.environment(),
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536)),
        )
        self.assertEqual(limited.returncode, 3, limited.stderr)
        self.assertEqual(len(limited.stderr.splitlines()), 1, limited.stderr)
        self.assertIn(self.path("r"), limited.stderr)
        before = e2e.Record(self.path("r"))
        self.assertGreater(len(before.rows), 20)
        self.assertStatus(e2e.facts(*command, "--resume"), 0)
        after = e2e.Record(self.path("r"))
        self.assertEqual(after.rows[: len(before.rows)], before.rows)
        self.assertEqual(len(after.rows), len(after.by("case", "config")))
        self.assertEqual(
            {row["case"] for row in after.rows}, set(e2e.facts("list", "smoke").out.splitlines())
        )

    def test_a_gpu_that_is_not_here_is_inconclusive_and_3(self):
        if os.path.exists("/dev/nvidia0"):
            return
        done = self.decide("--cudnn", e2e.need(e2e.NEW).name, "--device", "0", "-o", self.path("r"))
        self.assertStatus(done, 3)
        self.assertEqual(
            [(row["verdict"], row["reason"]["class"]) for row in e2e.Record(self.path("r")).rows],
            [("inconclusive", "environment")],
        )

    def test_no_command_ever_shows_a_traceback(self):
        for arguments in (
            ("report",),
            ("report", "/dev/null", "-o", self.path("p")),
            ("cudnn",),
            ("cudnn", "bogus"),
            ("cudnn", "path", "x"),
            ("cudnn", "install", "9.99.0"),
            ("cudnn", "remove", "9.99.0"),
            ("merge",),
            ("repro",),
            ("run", "x"),
            ("doctor", "x"),
        ):
            with self.subTest(arguments=arguments):
                done = e2e.facts(*arguments)
                self.assertIn(done.status, (2, 3, 5), done.text)
                self.assertNotRegex(done.text, re.compile(r"Traceback|Assertion|core dumped"))
                self.assertTrue(done.err.strip(), arguments)


if __name__ == "__main__":
    e2e.main()
