"""What the programs and scripts of facts repro --standalone say of answers: those of the CPU backend pass, wrong ones fail. A cuDNN that copies answers
stands in for the real one."""

import glob
import json
import os
import shutil
import unittest

import e2e
import forked
from programs import SHIMS, Compiling


# Stand-ins for torch, cudnn-frontend and check.py, enough to run a script of --frontend: one byte of O differs in run OTHER_RUN.
FAKES = {
    "torch.py": """
import numpy as np

uint8 = np.uint8


class Tensor:
    def __init__(self, array):
        self.array = array

    def fill_(self, value):
        self.array[:] = value

    def cuda(self):
        return self

    cpu = cuda

    def numpy(self):
        return self.array

    def __getitem__(self, key):
        return Tensor(self.array[key])


class cuda:
    synchronize = staticmethod(lambda: None)
    get_device_name = staticmethod(lambda: "no GPU")


def full(size, value, **_):
    return Tensor(np.full(size, value, np.uint8))


def empty(size, **_):
    return full(size, 0)


from_numpy = Tensor
""",
    "cudnn.py": """
import atexit
import os
import sys
from unittest.mock import MagicMock

__version__, calls = "0", 0
data_type = heur_mode = attention_implementation = diagonal_alignment = MagicMock()
create_handle, backend_version = MagicMock(), lambda: 0


class cudnnGraphNotSupportedError(Exception):
    pass


class Node(MagicMock):
    def set_output(self, output):
        self.output = True
        return self


class pygraph(MagicMock):
    def sdpa(self, **_):
        return [Node(), Node()]

    def get_execution_plan_count(self):
        return 1

    def get_plan_name_at_index(self, index):
        import __main__
        return f"eng{__main__.ENGINE or 0}_" + "_".join(f"k{k}={v}" for k, v in (__main__.KNOBS or {}).items())

    def get_workspace_size(self):
        return 0

    def execute(self, tensors, workspace, handle):
        global calls
        for tensor, buffer in tensors.items():
            if isinstance(tensor, Node):
                buffer.array[:-4096] = 1  # not the guard behind it
                buffer.array[0] = str(calls) == os.environ["OTHER_RUN"]
        calls += 1


atexit.register(lambda: print(calls, "calls", file=sys.stderr))
""",
    **dict.fromkeys(("check.py", "reference.py"), "main = lambda words: 0\n"),
}


class Answers(Compiling):
    @classmethod
    def setUpClass(cls):
        cls.build, cls.forks = e2e.need(e2e.NEW), forked.Forks()
        cls.addClassCleanup(cls.forks.close)
        if not cls.forks.has_numpy:
            raise unittest.SkipTest("NumPy is not installed")

    def script(self, path, *words, **environment):
        done = self.forks.run(os.path.join(e2e.SOURCE, path), *words, **environment)
        self.assertStatus(done, 0)

    def made(self, cases, *more):
        """{case: its folder}: with a program or a script (--frontend), and a dump of the CPU backend's answers. Two workers decide all of the cases on two
        GPUs, and one computes them."""
        folders = {case: self.path(f"program{i}") for i, case in enumerate(cases)}
        for folder in folders.values():
            for name in ("data", "answers", "dump"):
                os.makedirs(os.path.join(folder, name))
        for device in ("sm100-spec", "h100-sxm"):
            asked = [case for case in cases if ("dtype=mx" in case) == (device == "sm100-spec")]
            data = [os.path.join(folders[case], "data") for case in asked]
            if not asked:
                continue
            off, how = (
                [f"{case} guards=off" for case in asked],
                {"device": e2e.description(device), "expected": "--frontend" in more},
            )
            rows = e2e.ask(self.build, *off, standalone=data, **how).rows
            self.assertEqual(len(rows), len(asked))
            for place, row in zip(data, rows):
                with open(os.path.join(place, "rows.jsonl"), "w", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
        dumps = [(case, os.path.join(folder, "dump")) for case, folder in folders.items()]
        found = [row["verdict"] for row in e2e.run_on_cpu(dumps)]
        self.assertEqual(found, ["pass"] * len(cases))
        for folder in folders.values():
            self.script("harness/attention/repro/standalone.py", folder, "--keep", *more)
        return folders

    def program(self, folder):
        fake = self.path("fake_cudnn.o")
        if not os.path.exists(fake):
            self.compile(self.build, [os.path.join(SHIMS, "fake_cudnn.c")], fake, "-c")
        source, out = (os.path.join(folder, name) for name in ("repro.c", "repro"))
        return self.compile(self.build, [source, fake], out, "-lm", "-fopenmp")

    def run_program(self, folder):
        env = {**os.environ, "FAKE_ANSWERS": os.path.join(folder, "answers")}
        program = os.path.join(folder, "repro")
        return e2e.Done(e2e.started([program], cwd=folder, env=env))

    def answered(self, folder, plant=None):
        """What the program says of the CPU backend's answers; `plant`: an output with one wrong sign."""
        words = [os.path.join(folder, name) for name in ("dump", "data/case.json", "answers")]
        self.script("harness/test/e2e/answers.py", *words, *(["--plant", plant] if plant else []))
        return self.run_program(folder)

    ANSWERS = {
        "pass=fwd b=2 h=4/2 s=70/100 d=32 mask=causal want=stats+max+sum_exp": "max",
        "pass=fwd b=2 h=4/2 s=64 d=16 want=stats2 window=9:3 align=br padding=random dtype=f16": "stats",
        "pass=fwd b=3 h=2 s=64 d=16 layout=t3hd padding=random offsets=i64": "o",
        "pass=bwd b=3 h=4/2 s=64/80 d=16 layout=thd padding=random mask=causal slots=+3": "dk",
        "pass=bwd b=3 h=4 s=64 d=16 layout=bs3hd padding=random": "dv",
        "pass=fwd b=3 h=2 s=5/100 d=16 paged=16 padding=random table=packed": "o",
        "pass=bwd b=2 h=4 s=64 d=16 bias=b1ss dbias=1 bias_dtype=f32": "dbias",
        "pass=bwd h=4/2 s=50 d=64 mask=causal bias=1hss dbias=1": "dbias",
        "pass=bwd dtype=f16 h=4/2 s=50 d=64 mask=causal bias=bhss dbias=1": "dbias",
        "pass=bwd b=2 h=6 s=64 d=16 mod=softcap:5 alibi=custom": "dq",
        "pass=bwd b=2 h=6 s=64 d=16 mod=document:3": "dq",
        "pass=bwd b=2 h=4 s=64 d=16 softmax=sink dsink=1": "dsink",
        "pass=bwd b=2 h=4 s=64 d=16 dropout=0.3 dropout_mask=1": "dv",
        "pass=fwd dtype=e4m3 b=2 h=4/2 s=64 d=16 scales=odd": "amax_o",
        "pass=bwd dtype=e4m3 b=2 h=4/2 s=64 d=16 scales=odd": "dq",
        "pass=fwd dtype=mxe4m3 b=2 h=4/2 s=64 d=64": "o",
        "pass=bwd dtype=mxe4m3 b=2 h=4/2 s=96/160 d=64 mask=causal": "dk",
        "pass=fwd b=2 h=4 s=300 d=16 blockmask=empty_row want=stats": "o",
        "pass=fwd b=1 h=2 s=64 d=32 rope=1": "o",
        "pass=bwd b=2 h=4 s=64 d=16 stride=gap:4": "dq",
    }

    def test_right_answers_pass_and_a_wrong_sign_fails(self):
        for case, folder in self.made(e2e.some(self.ANSWERS)).items():
            name = self.ANSWERS[case]
            with self.subTest(case=case, name=name):
                self.program(folder)
                for plant, status, said in (
                    (None, 0, r"PASS\n\Z"),
                    (name, 1, rf"(?ms)^{name} [^\n]*FAIL$.*\nFAIL\n\Z"),
                ):
                    done = self.answered(folder, plant)
                    self.assertStatus(done, status)
                    self.assertRegex(done.out, said)

    def test_what_is_not_written_or_is_written_behind_the_lengths_fails(self):
        cases = ["pass=fwd b=2 h=4 s=64 d=16", "pass=fwd b=3 h=2 s=64 d=16 lens=64+20+40"]
        dense, ragged = self.made(cases).values()
        for folder in (dense, ragged):
            self.program(folder)
            self.assertStatus(self.answered(folder), 0)
        (answer,) = glob.glob(os.path.join(dense, "answers", "*"))
        os.unlink(answer)
        done = self.run_program(dense)
        self.assertStatus(done, 1)
        self.assertRegex(done.out, r"(?m)^o .*got -?nan.*FAIL$")
        (answer,) = glob.glob(os.path.join(ragged, "answers", "*"))
        with open(answer, "r+b") as file:
            file.seek(2 * (2 * 64 - 1) * 2 * 16)  # the last row of the second entry, in bf16
            file.write(b"\x80\x3f" * 3)
        done = self.run_program(ragged)
        self.assertStatus(done, 1)
        said = r"(?m)^o +3 elements in rows past the lengths are neither 0 nor unchanged: FAIL$"
        self.assertRegex(done.out, said)

    # ---- cudnn-frontend

    FRONTEND = {
        "pass=fwd b=2 h=4/2 s=70/100 d=32 mask=causal want=stats+max+sum_exp": "max",
        "pass=bwd b=3 h=4/2 s=64/80 d=16 layout=thd padding=random mask=causal slots=+3": "dk",
        "pass=bwd b=3 h=4 s=64 d=16 layout=bs3hd padding=random": "dv",
        "pass=fwd b=3 h=2 s=5/100 d=16 paged=16 padding=random": "o",
        "pass=bwd b=2 h=4 s=64 d=16 bias=1hss dbias=1": "dbias",
        "pass=bwd b=2 h=4 s=64 d=16 softmax=sink dsink=1": "dsink",
        "pass=fwd dtype=e4m3 b=2 h=4/2 s=64 d=16 scales=odd want=stats": "amax_o",
        "pass=bwd b=2 h=4 s=64 d=16 dropout=0.3 dropout_mask=1": "dv",
    }

    def test_the_script_of_the_frontend_repeats_the_call_and_compares_bits(self):
        expected = "Expected: every output is within the tolerance, and nothing is written outside a tensor"
        for more, runs, also in (
            (" repeat=60", 50, ", and 50 runs give the same bits.\n"),
            ("", 1, ".\n"),
        ):
            case, folder = f"pass=fwd b=1 h=2 s=64 d=64{more} guards=off", self.path("script")
            shutil.rmtree(folder, ignore_errors=True)
            done = self.asked("repro", case, "--standalone", folder, "--frontend")
            self.assertIn("repro.py", done.err)
            for name, text in FAKES.items():
                self.write(os.path.join("script", name), text)
            for other in ("", "1", "40"):
                with self.subTest(case=case, other=other):
                    done = self.forks.run(os.path.join(folder, "repro.py"), OTHER_RUN=other)
                    bad = bool(other) and runs > 1
                    self.assertStatus(done, int(bad))
                    self.assertIn(f"{runs} calls", done.err)
                    line = f"run {int(other or 0) + 1} differs from the first in 1 bytes: FAIL\n"
                    self.assertEqual(f"o            {line}" in done.out, bad, done.out)
            self.assertIn(expected + also, e2e.read(folder, "README.md"))
            for name in ("README.md", "repro.py"):
                self.assertNotRegex(e2e.read(folder, name), "(?i)facts|guards=")

    def test_the_script_of_the_frontend_is_checked_by_its_storages(self):
        for case, folder in self.made(self.FRONTEND, "--frontend").items():
            with self.subTest(case):
                text = e2e.read(folder, "repro.py")
                compile(text, "repro.py", "exec")
                self.assertNotIn("@{", text)
                self.assertNotRegex(e2e.read(folder, "check.py"), "(?i)facts")
                for plant in (None, self.FRONTEND[case]):
                    words = [
                        os.path.join(folder, name) for name in ("dump", "data/case.json", "data")
                    ]
                    words += ["--plant", plant] if plant else []
                    self.script("harness/test/e2e/answers.py", *words)
                    done = self.forks.run(os.path.join(folder, "check.py"), words[2])
                    self.assertStatus(done, int(bool(plant)))
                    if plant:
                        self.assertRegex(done.out, rf"(?m)^{plant} .*FAIL$")


if __name__ == "__main__":
    e2e.main()
