"""What the programs and scripts of facts repro --standalone say of answers: those of the CPU backend pass, wrong ones fail. A cuDNN that copies answers
stands in for the real one."""

import glob
import json
import os
import shutil
import subprocess

import e2e
from programs import PYTHON, SHIMS, Compiling

GENERATOR = os.path.join(e2e.SOURCE, "harness/repro/standalone.py")


class Answers(Compiling):
    def answered(self, case, plant=None):
        """What the program says of the CPU backend's answers; `plant`: an output with one wrong sign."""
        build, folder = e2e.need(e2e.NEW), self.path("program")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "data"))
        os.makedirs(os.path.join(folder, "answers"))
        rows = e2e.ask(
            build, case + " guards=off", device=e2e.description("sm100-spec" if "dtype=mx" in case else "h100-sxm"), standalone=os.path.join(folder, "data")
        ).rows
        self.assertEqual(len(rows), 1)
        with open(os.path.join(folder, "data", "rows.jsonl"), "w", encoding="utf-8") as file:
            file.write(json.dumps(rows[0]) + "\n")
        subprocess.run([PYTHON, GENERATOR, folder, "--keep"], check=True, capture_output=True, timeout=60)
        program = self.compile(build, [os.path.join(folder, "repro.c"), os.path.join(SHIMS, "fake_cudnn.c")], os.path.join(folder, "repro"), "-lm", "-fopenmp")
        self.assertStatus(e2e.facts("repro", case, "--device", "cpu", "--dump", os.path.join(folder, "dump")), 0)
        words = [os.path.join(folder, "dump"), os.path.join(folder, "data", "case.json"), os.path.join(folder, "answers")]
        subprocess.run(
            [PYTHON, os.path.join(e2e.SOURCE, "harness/test/e2e/answers.py"), *words, *(["--plant", plant] if plant else [])], check=True, timeout=60
        )
        env = {**os.environ, "FAKE_ANSWERS": os.path.join(folder, "answers")}
        return e2e.Done(subprocess.run([program], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False))

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

    def need_numpy(self):
        if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False).returncode:
            if os.environ.get("FACTS_CI"):
                self.fail("NumPy is missing: ci/requirements-test.txt has it")
            self.skipTest("NumPy is not installed")

    def test_right_answers_pass(self):
        self.need_numpy()
        for case in e2e.some(self.ANSWERS):
            with self.subTest(case):
                done = self.answered(case)
                self.assertStatus(done, 0)
                self.assertTrue(done.out.endswith("PASS\n"), done.out)

    def test_a_wrong_sign_fails(self):
        self.need_numpy()
        for case, name in e2e.some(self.ANSWERS.items(), 1):
            with self.subTest(case=case, name=name):
                done = self.answered(case, name)
                self.assertStatus(done, 1)
                self.assertRegex(done.out, rf"(?m)^{name} .*FAIL$")
                self.assertTrue(done.out.endswith("\nFAIL\n"), done.out)

    def test_what_is_not_written_fails(self):
        self.need_numpy()
        case = "pass=fwd b=2 h=4 s=64 d=16"
        self.assertStatus(self.answered(case), 0)
        for name in glob.glob(self.path("program", "answers", "*")):
            os.unlink(name)
        env = {**os.environ, "FAKE_ANSWERS": self.path("program", "answers")}
        done = e2e.Done(
            subprocess.run([self.path("program", "repro")], cwd=self.path("program"), env=env, capture_output=True, text=True, timeout=60, check=False)
        )
        self.assertStatus(done, 1)
        self.assertRegex(done.out, r"(?m)^o .*got -?nan.*FAIL$")

    def test_what_is_written_behind_the_lengths_fails(self):
        self.need_numpy()
        self.assertStatus(self.answered("pass=fwd b=3 h=2 s=64 d=16 lens=64+20+40"), 0)
        (answer,) = glob.glob(self.path("program", "answers", "*"))
        with open(answer, "r+b") as file:
            file.seek(2 * (2 * 64 - 1) * 2 * 16)  # the last row of the second entry, in bf16
            file.write(b"\x80\x3f" * 3)
        env = {**os.environ, "FAKE_ANSWERS": self.path("program", "answers")}
        done = e2e.Done(
            subprocess.run([self.path("program", "repro")], cwd=self.path("program"), env=env, capture_output=True, text=True, timeout=60, check=False)
        )
        self.assertStatus(done, 1)
        self.assertRegex(done.out, r"(?m)^o +3 elements in rows past the lengths are neither 0 nor unchanged: FAIL$")

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

    def frontend(self, case):
        """The folder of a script for the frontend, and the CPU backend's answers."""
        folder = self.path("script")
        shutil.rmtree(folder, ignore_errors=True)
        done = e2e.facts("repro", case + " guards=off", "--cudnn", e2e.need(e2e.NEW).version, "--device", "h100-sxm", "--standalone", folder, "--frontend")
        self.assertIn("repro.py", done.err)
        with open(os.path.join(folder, "repro.py"), encoding="utf-8") as file:
            text = file.read()
        compile(text, "repro.py", "exec")
        self.assertNotIn("@{", text)
        self.assertStatus(e2e.facts("repro", case, "--device", "cpu", "--dump", os.path.join(folder, "dump")), 0)
        return folder

    def checked(self, folder, plant=None):
        """What check.py says of storages with those answers."""
        words = [os.path.join(folder, "dump"), os.path.join(folder, "data", "case.json"), os.path.join(folder, "data")]
        subprocess.run(
            [PYTHON, os.path.join(e2e.SOURCE, "harness/test/e2e/answers.py"), *words, *(["--plant", plant] if plant else [])], check=True, timeout=60
        )
        return e2e.Done(
            subprocess.run([PYTHON, os.path.join(folder, "check.py"), os.path.join(folder, "data")], capture_output=True, text=True, timeout=120, check=False)
        )

    def test_the_script_of_the_frontend_is_checked_by_its_storages(self):
        self.need_numpy()
        for case, name in self.FRONTEND.items():
            with self.subTest(case):
                folder = self.frontend(case)
                self.assertStatus(self.checked(folder), 0)
                done = self.checked(folder, name)
                self.assertStatus(done, 1)
                self.assertRegex(done.out, rf"(?m)^{name} .*FAIL$")


if __name__ == "__main__":
    e2e.main()
