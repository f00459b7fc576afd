"""facts repro --standalone: the programs compile and plan what the library plans (real cuDNN, a described GPU); what cannot be said is refused."""

import glob
import json
import os
import re
import shutil

import e2e
import programs

SECOND_WAY = os.path.join(e2e.SOURCE, "ci/second_way.sh")


def without_addresses(plan):
    """A plan's text keeps parameters of kernels with memory that nobody has written."""
    for kernel in plan["engine"]["payload"].get("kernels", []):
        kernel.get("kernelParams", {}).pop("rawData", None)
    return plan


class Plans(programs.Compiling):
    """Real cuDNN, a described GPU."""

    def plan(self, build, folder, device):
        """(exit status, what was said, the plan's text) of a program that may plan, and no more."""
        shim = self.path("described.so")
        if not os.path.exists(shim):
            source = os.path.join(programs.SHIMS, "described_cudnn.c")
            self.compile(build, [source], shim, "-shared", "-fPIC", "-ldl")
        source, out = (os.path.join(folder, name) for name in ("repro.c", "repro"))
        linked = ("-L", build.dir, "-l:libcudnn.so.9", "-lm", "-fopenmp")
        program = self.compile(build, [source], out, shim, *linked)
        text = os.path.join(folder, "plan.json")
        nvrtc = [os.path.dirname(build.nvrtc)] if build.nvrtc else []
        libraries = [os.path.dirname(e2e.NULL_DRIVER), build.dir, *nvrtc]
        env = {"DESCRIBED_DEVICE": device, "DESCRIBED_PLAN": text}
        env |= {"CUDNN_LIB_CONFIG": "GRAPH_JIT_ONLY", "LD_LIBRARY_PATH": ":".join(libraries)}
        done = e2e.Done(e2e.started([program], cwd=folder, env={**os.environ, **env}))
        return done, json.loads(e2e.read(text)) if os.path.exists(text) else None

    def expect_the_same_plans(self, build, cases):
        """The library compiles the plans of all cases in one worker, which also leaves what the programs are made of."""
        self.described()
        plans = self.path(f"plans-{build.name}")
        os.mkdir(plans, 0o700)
        folders = [self.path(f"{build.name}-{number}") for number in range(len(cases))]
        data = [os.path.join(folder, "data") for folder in folders]
        for folder in data:
            os.makedirs(folder)
        rows = e2e.ask(build, *cases, do="plan", plan_dir=plans, standalone=data).rows
        rows = [row for row in rows if not row.get("more")]
        self.assertEqual(len(rows), len(cases))
        kept, decoder = [], json.JSONDecoder()
        for path in glob.glob(os.path.join(plans, "*.plan")):
            with open(path, "rb") as file:
                text = file.read()
            text = text[text.index(b'{"cudnnVersion"') :].decode("latin-1")
            kept.append(without_addresses(decoder.raw_decode(text)[0]))
        for case, folder, row in zip(cases, folders, rows):
            with self.subTest(case):
                self.assertStatus(programs.standalone(folder, row), 0)
                said, plan = self.plan(build, folder, self.path("device.json"))
                self.assertEqual(said.status, 0, said.text)
                same = without_addresses(plan) in kept
                self.assertTrue(same, "no plan of the library is this plan")

    def test_programs_of_known_failures_make_the_plans_of_the_library(self):
        """Graph, engine, knobs and compiled kernels."""
        cases = """bwd b=1 h=2 s=256 d=160/128 fill=neglse; bwd h=4/2 s=130/200 d=64 bias=1h1s;
            bwd h=2 s=128 d=64 bias=1hss dbias=1 mod=softcap:5; bwd dtype=bf16 grad=f16 h=2 s=130 d=64;
            bwd b=3 h=8/2 s=200 d=64 layout=thd padding=random softmax=sink dsink=1 stats=bsh1;
            fwd b=3 h=2 s=200 d=64 padding=zero:kv want=stats; fwd b=3 h=4 s=200 d=64 o=thd padding=random want=stats;
            fwd h=4/2 s=200 want=stats+max+sum_exp spelling=expanded; fwd b=4 h=8/2 s=1/300 layout=thd padding=random want=stats;
            fwd h=4/2 s=1/256 d=128 padding=random softmax=sink paged=16 engine=1;
            fwd dtype=e4m3 b=3 h=4/2 s=256 d=128 padding=random want=stats scales=odd"""
        cases = [f"pass={case.strip()} guards=off" for case in cases.split(";")]
        for number, name in enumerate(e2e.CI_BUILDS):
            self.expect_the_same_plans(e2e.need(name), e2e.some(cases[number::2], of=8))

    def test_the_second_way_makes_a_case_and_its_control_and_compiles_both(self):
        out, environment = self.path("out"), {**os.environ, "CUDA": os.path.dirname(self.cuda)}
        words = ["bash", SECOND_WAY, e2e.FACTS, e2e.NEW, out, "--device", "h100-sxm"]
        done = e2e.Done(e2e.started([*words, "fp8-max-in-log2"], env=environment))
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"(?m)^fp8-max-in-log2 +accepted +compiles +made *$")
        self.assertEqual(set(os.listdir(out)) - {"000", "001"}, {f"{e2e.NEW.split('-')[0]}.jsonl"})

    def test_programs_of_the_unified_operation_too(self):
        cases = """b=3 h=4/2 s=200 d=64 layout=thd padding=random mask=causal want=stats
            b=2 h=4/2 s=100 d=64 paged=16 padding=random
            b=2 h=4/2 s=200 d=64 alibi=1 window=64:0 want=max+sum_exp""".splitlines()
        cases = [f"pass=fwd {case.strip()} impl=unified guards=off" for case in cases]
        self.expect_the_same_plans(e2e.need(e2e.NEW), e2e.some(cases))

    def test_a_plan_that_does_not_build_and_a_planner_that_ends_the_process(self):
        failed = "cudnnBackendFinalize(plan): CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"
        right = "every output is within the tolerance, and nothing is written outside a tensor."
        for case, status, words in (
            ("fwd dtype=e4m3 s=512 d=128 softmax=sink", 1, failed),
            ("fwd dtype=f32 h=8 s=512 impl=unified", 1, "cuDNN offers no engine"),
            ("fwd h=4/2 s=130/200 d=64 bias=bool:11ss", -6, ""),
            ("bwd b=1 h=1 s=1/128 d=64", -11, ""),  # where it makes the second configuration
        ):
            with self.subTest(case):
                folder = self.path("program")
                shutil.rmtree(folder, ignore_errors=True)
                self.asked("repro", f"pass={case} guards=off", "--standalone", folder)
                said, plan = self.plan(e2e.need(e2e.NEW), folder, self.described())
                self.assertEqual((said.status, plan), (status, None), said.text)
                self.assertIn(words, said.text)
                readme = e2e.read(folder, "README.md")
                self.assertNotRegex(readme, "(?i)facts|guards=|worker")
                self.assertEqual("cuDNN ended the process while it decided" in readme, status < 0)
                due = "a plan or a refusal." if status < 0 else right
                self.assertIn(f"\nExpected: {due}\n", readme)


class Words(e2e.TestCase):
    """What is written, and what is refused with one line."""

    def repro(self, case, *more):
        return self.asked("repro", f"pass={case}", "--standalone", self.path("p"), *more)

    def refused(self, case, *words, frontend=False):
        done = self.repro(case, *["--frontend"] * frontend)
        self.assertStatus(done, 3)
        (line,) = [line for line in done.err.splitlines() if "--standalone" in line]
        for word in words:
            self.assertIn(word, line)
        self.assertFalse(os.path.exists(self.path("p", "repro.py" if frontend else "repro.c")))

    def test_what_a_program_cannot_say_leaves_nothing(self):
        for case, *words in (
            ("fwd b=1 h=2 s=64 d=64 exec=graph_native", "exec=graph_native"),
            ("fwd b=1 h=2 s=64 d=64 check=nonfinite", "check=nonfinite"),
            ("bwd h=4/2 s=130/200 d=64 bias=bool:11ss guards=on", "guards=off"),
            ("bwd b=2 h=2 s=64 d=64 guards=off stride=broadcast:k.b;sum:dk.b", "summed"),
        ):
            with self.subTest(case):
                self.refused(case, *words, frontend="summed" in words)
                there = os.path.exists(self.path("p", "data"))
                self.assertEqual(there, "summed" in words, "of a refused program")

    def test_a_refusal_removes_nothing_of_others(self):
        mine = {"mine.txt", "mine.npy"}
        os.makedirs(self.path("p", "data"))
        for name in mine:
            self.write(os.path.join("p", "data", name), "mine")
        self.refused("fwd b=1 h=2 s=64 d=64 dropout=0.5", "dropout", "GPU")
        self.refused("fwd b=1 h=2 s=64 d=64 mod=softcap:5", "softcap", frontend=True)
        self.assertLessEqual(mine, set(os.listdir(self.path("p", "data"))))

    def test_what_the_frontend_cannot_say(self):
        words = {
            "mod=softcap:5": "softcap",
            "bias=bool:111s": "boolean mask",
            "padding=random layout=thd rmult=tokens": "offsets in tokens",
            "spelling=single": "spelling",
            "blockmask=random": "mask of tiles",
            "rope=1": "rotary",
            "alibi=custom": "slopes",
            "exec=graph": "exec=graph",
        }
        cases = [f"pass=fwd b=2 h=2 s=256 d=64 guards=off {case}" for case in words]
        folders = [self.path(f"program{number}") for number in range(len(words))]
        data = [os.path.join(folder, "data") for folder in folders]
        for folder in data:
            os.makedirs(folder)
        rows = e2e.ask(e2e.need(e2e.NEW), *cases, standalone=data).rows
        for word, folder, row in zip(words.values(), folders, rows, strict=True):
            with self.subTest(word):
                done = programs.standalone(folder, row, "--frontend")
                self.assertOneLine(done, 3, "cudnn-frontend", word)
                self.assertFalse(os.path.exists(os.path.join(folder, "repro.py")))

    def test_one_build_and_one_gpu(self):
        for option in (["--standalone", self.path("p")], ["--frontend"]):
            words = ["repro", "pass=fwd b=1 h=1 s=64 d=64", "--device", "cpu", *option]
            self.assertOneLine(e2e.facts(*words), 2, option[0])

    def test_a_crash_says_who_ended_what(self):
        done = self.repro("bwd dtype=bf16 b=1 h=1 s=1 d=64 guards=off")
        readme = e2e.read(self.path("p", "README.md"))
        self.assertIn("- cuDNN ended the process while it decided (SIGSEGV)\n", readme, done.err)
        self.assertIn("\nExpected: a plan or a refusal.\n", readme)
        self.assertNotIn("worker", readme)

    def test_the_folder_has_what_it_needs_and_nothing_of_ours(self):
        self.assertStatus(self.repro("bwd b=1 h=2 s=64 d=64"), 0)
        names = set(os.listdir(self.path("p")))
        self.assertEqual(names, {"repro.c", "Makefile", "README.md", "data"})
        tensors = {name + ".npy" for name in ("q", "k", "v", "o", "do", "stats")}
        self.assertEqual(set(os.listdir(self.path("p", "data"))), tensors)
        text = e2e.read(self.path("p", "repro.c"))
        self.assertNotRegex(text, r"fattn|facts_|@\{")
        headers = "cuda_runtime_api.h cudnn.h math.h stdbool.h stdint.h stdio.h stdlib.h string.h"
        found = set(re.findall(r"#include [<\"](.*?)[>\"]", text))
        self.assertEqual(found, set(headers.split()))
        readme = e2e.read(self.path("p", "README.md"))
        for words in "cuDNN 9.27.0|h100-sxm|sm_90|Engine: engine |nothing ran|make run".split("|"):
            self.assertIn(words, readme)


if __name__ == "__main__":
    e2e.main()
