"""facts repro --standalone: the programs compile and plan what the library plans (real cuDNN, a described GPU); what cannot be said is refused."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

import e2e
import programs

ALL_LISTED = os.path.join(e2e.SOURCE, "ci/standalone.list")


def without_addresses(plan):
    """A plan's text keeps parameters of kernels with memory that nobody has written."""
    for kernel in plan["engine"]["payload"].get("kernels", []):
        kernel.get("kernelParams", {}).pop("rawData", None)
    return plan


class Plans(programs.Compiling):
    """Real cuDNN, a described GPU."""

    def plan(self, build, folder, device):
        """(exit status, what was said, the plan's text) of a program that may plan, and no more."""
        include = os.path.join(os.path.dirname(os.path.realpath(build.dir)), "include")
        shim = self.path("described.so")
        if not os.path.exists(shim):
            subprocess.run(
                [
                    programs.CC,
                    "-shared",
                    "-fPIC",
                    "-I",
                    include,
                    "-I",
                    self.cuda,
                    "-o",
                    shim,
                    os.path.join(programs.SHIMS, "described_cudnn.c"),
                    "-ldl",
                ],
                check=True,
                capture_output=True,
            )
        program = self.compile(
            build,
            [os.path.join(folder, "repro.c")],
            os.path.join(folder, "repro"),
            shim,
            "-L",
            build.dir,
            "-l:libcudnn.so.9",
            "-lm",
            "-fopenmp",
        )
        text = os.path.join(folder, "plan.json")
        libraries = [os.path.dirname(e2e.NULL_DRIVER), build.dir] + (
            [os.path.dirname(build.nvrtc)] if build.nvrtc else []
        )
        env = {
            **os.environ,
            "DESCRIBED_DEVICE": device,
            "DESCRIBED_PLAN": text,
            "CUDNN_LIB_CONFIG": "GRAPH_JIT_ONLY",
            "LD_LIBRARY_PATH": ":".join(libraries),
        }
        done = e2e.Done(
            subprocess.run(
                [program],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
        )
        if not os.path.exists(text):
            return done, None
        with open(text, encoding="utf-8") as file:
            return done, json.load(file)

    def expect_the_same_plans(self, build, cases):
        """The library compiles the plans of all cases in one worker, which also leaves what the programs are made of."""
        self.described()
        plans = self.path(f"plans-{build.name}")
        os.mkdir(plans, 0o700)
        folders = [self.path(f"{build.name}-{number}") for number in range(len(cases))]
        for folder in folders:
            os.makedirs(os.path.join(folder, "data"))
        rows = [
            row
            for row in e2e.ask(
                build,
                *cases,
                do="plan",
                plan_dir=plans,
                standalone=[os.path.join(folder, "data") for folder in folders],
            ).rows
            if not row.get("more")
        ]
        self.assertEqual(len(rows), len(cases))
        kept = []
        for path in glob.glob(os.path.join(plans, "*.plan")):
            with open(path, "rb") as file:
                text = file.read()
            kept.append(
                without_addresses(
                    json.JSONDecoder().raw_decode(
                        text[text.index(b'{"cudnnVersion"') :].decode("latin-1")
                    )[0]
                )
            )
        for case, folder, row in zip(cases, folders, rows):
            with self.subTest(case):
                with open(
                    os.path.join(folder, "data", "rows.jsonl"), "w", encoding="utf-8"
                ) as file:
                    file.write(json.dumps(row) + "\n")
                subprocess.run(
                    [
                        sys.executable,
                        "-B",
                        os.path.join(e2e.SOURCE, "harness/repro/standalone.py"),
                        folder,
                    ],
                    check=True,
                    capture_output=True,
                )
                said, plan = self.plan(build, folder, self.path("device.json"))
                self.assertEqual(said.status, 0, said.text)
                self.assertTrue(
                    without_addresses(plan) in kept, "no plan of the library is this plan"
                )

    def test_programs_of_known_failures_make_the_plans_of_the_library(self):
        """Graph, engine, knobs and compiled kernels."""
        ids = {
            "bwd-nan-negative-lse-d160-128",
            "bwd-one-row-for-all",
            "bwd-dbias-with-score-mod",
            "gradients-of-the-other-type",
            "dsink-packed-padded-stats",
            "empty-keys-unwritten",
            "expanded-max-sum-exp-unwritten",
            "packed-output-of-dense-inputs",
            "decode-paged-sink",
            "decode-packed-stats",
            "fp8-bias",
            "fp8-forward-padded-tiles",
            "fp8-backward-packed",
        }
        with open(ALL_LISTED, encoding="utf-8") as file:
            listed = [
                line.strip().split(" ", 1)
                for line in file
                if line.strip() and not line.startswith("#")
            ]
        self.assertLessEqual(ids, {name for name, _ in listed})
        cases = [case.replace(" engine=all", "") for name, case in listed if name in ids]
        for number, name in enumerate(e2e.CI_BUILDS):
            self.expect_the_same_plans(e2e.need(name), e2e.some(cases[number::2], of=4))

    def test_programs_of_the_unified_operation_too(self):
        self.expect_the_same_plans(
            e2e.need(e2e.NEW),
            (
                "pass=fwd b=3 h=4/2 s=200 d=64 impl=unified layout=thd padding=random mask=causal want=stats guards=off",
                "pass=fwd b=2 h=4/2 s=100 d=64 paged=16 padding=random impl=unified guards=off",
                "pass=fwd b=2 h=4/2 s=200 d=64 impl=unified alibi=1 window=64:0 want=max+sum_exp guards=off",
            ),
        )

    def test_a_plan_that_does_not_build_and_a_planner_that_ends_the_process(self):
        build = e2e.need(e2e.NEW)
        for case, status, words in (
            (
                "pass=fwd dtype=e4m3 s=512 d=128 softmax=sink guards=off",
                1,
                "cudnnBackendFinalize(plan): CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED",
            ),
            ("pass=fwd dtype=f32 h=8 s=512 impl=unified guards=off", 1, "cuDNN offers no engine"),
            ("pass=fwd h=4/2 s=130/200 d=64 bias=bool:11ss guards=off", -6, ""),
        ):
            with self.subTest(case):
                shutil.rmtree(self.path("program"), ignore_errors=True)
                e2e.facts(
                    "repro",
                    case,
                    "--cudnn",
                    build.version,
                    "--device",
                    "h100-sxm",
                    "--standalone",
                    self.path("program"),
                )
                said, plan = self.plan(build, self.path("program"), self.described())
                self.assertEqual((said.status, plan), (status, None), said.text)
                self.assertIn(words, said.text)
                with open(self.path("program", "README.md"), encoding="utf-8") as file:
                    readme = file.read()
                self.assertNotRegex(readme, "(?i)facts|guards=|worker")
                if status < 0:
                    self.assertIn("\n- cuDNN ended the process while it decided (SIGABRT)", readme)
                    self.assertIn("\nExpected: a plan or a refusal.\n", readme)
                else:
                    self.assertIn(
                        "\nExpected: every output is within the tolerance, and nothing is written outside a tensor.\n",
                        readme,
                    )


class Words(e2e.TestCase):
    """What is written, and what is refused with one line."""

    def refused(self, case, *words, more=()):
        done = e2e.facts(
            "repro",
            case,
            "--cudnn",
            e2e.need(e2e.NEW).version,
            "--device",
            "h100-sxm",
            "--standalone",
            self.path("p"),
            *more,
        )
        self.assertEqual(done.status, 3, done.text)
        line = [line for line in done.err.splitlines() if "--standalone" in line]
        self.assertEqual(len(line), 1, done.err)
        for word in words:
            self.assertIn(word, line[0])
        self.assertFalse(os.path.exists(self.path("p", "repro.c")))
        self.assertFalse(os.path.exists(self.path("p", "data")), "the data of a refused program")

    def test_what_a_program_cannot_say(self):
        self.refused("pass=fwd b=1 h=2 s=64 d=64 exec=graph_native", "exec=graph_native")
        self.refused("pass=fwd b=1 h=2 s=64 d=64 check=nonfinite", "check=nonfinite")
        self.refused("pass=fwd b=1 h=2 s=64 d=64 dropout=0.5", "dropout", "GPU")
        self.refused("pass=bwd h=4/2 s=130/200 d=64 bias=bool:11ss", "guards=off")

    def test_a_refusal_removes_nothing_of_others(self):
        os.makedirs(self.path("p", "data"))
        for name in ("mine.txt", "mine.npy"):
            self.write(os.path.join("p", "data", name), "mine")
        for case, more in (
            ("exec=graph_native", ()),
            ("dropout=0.5", ()),
            ("mod=softcap:5", ("--frontend",)),
        ):
            done = e2e.facts(
                "repro",
                f"pass=fwd b=1 h=2 s=64 d=64 {case}",
                "--cudnn",
                e2e.need(e2e.NEW).version,
                "--device",
                "h100-sxm",
                "--standalone",
                self.path("p"),
                *more,
            )
            self.assertEqual(done.status, 3, done.text)
            self.assertLessEqual({"mine.txt", "mine.npy"}, set(os.listdir(self.path("p", "data"))))

    def test_what_the_frontend_cannot_say(self):
        words = {
            "pass=fwd b=2 h=2 s=256 d=64 guards=off mod=softcap:5": "softcap",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off bias=bool:111s": "boolean mask",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off padding=random layout=thd rmult=tokens": "offsets in tokens",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off spelling=single": "spelling",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off blockmask=random": "mask of tiles",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off rope=1": "rotary",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off alibi=custom": "slopes",
            "pass=fwd b=2 h=2 s=256 d=64 guards=off exec=graph": "exec=graph",
        }
        folders = [self.path(f"program{number}") for number in range(len(words))]
        for folder in folders:
            os.makedirs(os.path.join(folder, "data"))
        rows = e2e.ask(
            e2e.need(e2e.NEW),
            *words,
            standalone=[os.path.join(folder, "data") for folder in folders],
        ).rows
        for (case, word), folder, row in zip(words.items(), folders, rows, strict=True):
            with self.subTest(case):
                with open(
                    os.path.join(folder, "data", "rows.jsonl"), "w", encoding="utf-8"
                ) as file:
                    file.write(json.dumps(row) + "\n")
                script = [
                    sys.executable,
                    "-B",
                    os.path.join(e2e.SOURCE, "harness/repro/standalone.py"),
                    folder,
                    "--frontend",
                ]
                done = e2e.Done(subprocess.run(script, capture_output=True, text=True, check=False))
                self.assertOneLine(done, 3, "cudnn-frontend", word)
                self.assertFalse(os.path.exists(os.path.join(folder, "repro.py")))
        self.refused(
            "pass=bwd b=2 h=2 s=64 d=64 guards=off stride=broadcast:k.b;sum:dk.b",
            "summed",
            more=["--frontend"],
        )

    def test_one_build_and_one_gpu(self):
        done = e2e.facts(
            "repro", "pass=fwd b=1 h=1 s=64 d=64", "--device", "cpu", "--standalone", self.path("p")
        )
        self.assertOneLine(done, 2, "--standalone")
        done = e2e.facts("repro", "pass=fwd b=1 h=1 s=64 d=64", "--device", "cpu", "--frontend")
        self.assertOneLine(done, 2, "--frontend")

    def test_a_crash_says_who_ended_what(self):
        done = e2e.facts(
            "repro", "pass=bwd dtype=bf16 b=1 h=1 s=1 d=64 guards=off", "--cudnn", e2e.need(e2e.NEW).version, "--device", "h100-sxm",
            "--standalone", self.path("p"),
        )  # fmt: skip
        with open(self.path("p", "README.md"), encoding="utf-8") as file:
            readme = file.read()
        self.assertIn("- cuDNN ended the process while it decided (SIGSEGV)\n", readme, done.err)
        self.assertIn("\nExpected: a plan or a refusal.\n", readme)
        self.assertNotIn("worker", readme)

    def test_the_folder_has_what_it_needs_and_nothing_of_ours(self):
        done = e2e.facts(
            "repro",
            "pass=bwd b=1 h=2 s=64 d=64",
            "--cudnn",
            e2e.need(e2e.NEW).version,
            "--device",
            "h100-sxm",
            "--standalone",
            self.path("a", "p"),
        )
        self.assertStatus(done, 0)
        self.assertEqual(
            set(os.listdir(self.path("a", "p"))), {"repro.c", "Makefile", "README.md", "data"}
        )
        self.assertEqual(
            set(os.listdir(self.path("a", "p", "data"))),
            {name + ".npy" for name in ("q", "k", "v", "o", "do", "stats")},
        )
        with open(self.path("a", "p", "repro.c"), encoding="utf-8") as file:
            text = file.read()
        self.assertNotRegex(text, r"fattn|facts_|@\{")
        self.assertEqual(
            set(re.findall(r"#include [<\"](.*?)[>\"]", text)),
            {
                "cuda_runtime_api.h",
                "cudnn.h",
                "math.h",
                "stdbool.h",
                "stdint.h",
                "stdio.h",
                "stdlib.h",
                "string.h",
            },
        )
        with open(self.path("a", "p", "README.md"), encoding="utf-8") as file:
            readme = file.read()
        for words in (
            "cuDNN 9.27.0",
            "h100-sxm",
            "sm_90",
            "Engine: engine ",
            "nothing ran",
            "make run",
        ):
            self.assertIn(words, readme)


if __name__ == "__main__":
    e2e.main()
