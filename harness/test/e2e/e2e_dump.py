"""facts repro --dump: every tensor is there, and check.py passes what is right and fails what is not."""

import json
import os
import re
import shutil
import subprocess
import unittest

import e2e
import forked

# Small cases on the CPU backend: types, layouts, outputs. Each is right.
RIGHT = [
    "pass=fwd b=2 h=4/2 s=70/100 d=32 mask=causal want=stats+max+sum_exp",
    "pass=fwd dtype=f16 b=2 h=4/2 s=70/100 d=32 window=5:3 align=br padding=random want=stats2",
    "pass=fwd b=3 h=2 s=64 d=16 layout=thd padding=random slots=+3 tail=4",
    "pass=bwd b=3 h=4/2 s=64/80 d=16 layout=thd padding=random offsets=i64 mask=causal",
    "pass=fwd b=4 h=4 s=64 d=16 layout=thd lens=10+64+-1x2",
    "pass=bwd b=3 h=4 s=64 d=16 layout=bs3hd padding=random poison=nan",
    "pass=bwd dtype=f16 b=3 h=4 s=64 d=16 bias=11ss dbias=1 padding=random",
    "pass=fwd b=2 h=4 s=64 d=16 dropout=0.3 want=stats+rng_dump",
    "pass=bwd b=2 h=4 s=64 d=16 softmax=sink dsink=1",
    "pass=fwd dtype=e4m3 b=2 h=4/2 s=64 d=16 scales=odd mask=causal want=stats",
    "pass=bwd dtype=e5m2 b=2 h=4/2 s=64 d=16 scales=pow2 out=bf16 grad=bf16",
    "pass=fwd dtype=mxe4m3 b=2 h=4/2 s=64 d=64",
    "pass=bwd dtype=f32 b=2 h=4 s=64 d=16",
    "pass=bwd b=2 h=4 s=64 d=16 stride=broadcast:k.b+v.b;sum:dk.b",
]


# Arguments: the file; sign, heads or number.
PLANT = """path, kind = sys.argv[1:]
x = np.load(path)
f = x.reshape(-1)
if kind == 'heads': x[:, [0, 1]] = x[:, [1, 0]]
else:
    v = np.load(path.replace('.npy', '_f32.npy')).reshape(-1) if kind == 'sign' else f
    i = int(np.argmax(np.abs(np.where(np.isfinite(v), v, 0))))
    f[i:i + 1].view(np.uint8)[-1] ^= 0x80
np.save(path, x)
"""
# What a dump has beside the outputs that every case has.
FILES = {
    "pass=fwd b=3 h=2 s=64 d=16 layout=thd padding=random": "q.packed o.packed q_offsets seq_len_kv o.want o.sigma o.tolerance",
    "pass=fwd b=2 h=2 s=5/100 d=16 paged=16": "page_table_k page_table_v k",
    "pass=bwd b=1 h=2 s=32 d=16 softmax=sink dsink=1 alibi=1 scale=tensor": "sink dsink dsink.want dsink.tolerance alibi_slopes attn_scale",
    "pass=fwd b=1 h=2 s=32 d=16 dropout=0.5": "seed offset keep",
    "pass=fwd dtype=e4m3 b=1 h=2 s=32 d=16": "descale_q scale_s amax_o amax_o.want amax_o.tolerance",
    "pass=fwd dtype=mxe4m3 b=1 h=2 s=64 d=64": "sf_q sf_v",
    "pass=fwd b=1 h=2 s=300 d=32 blockmask=random": "block_mask",
    "pass=fwd b=1 h=2 s=32 d=32 rope=1": "rope_q",
}


class Dump(e2e.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.forks = forked.Forks()
        cls.addClassCleanup(cls.forks.close)
        if not cls.forks.has_numpy:
            raise unittest.SkipTest("NumPy is not installed")

    def check(self, folder):
        return self.forks.run(os.path.join(folder, "check.py"))

    def fails(self, folder, name, kind):
        """With a mistake planted in a tensor, check.py fails for it; then the file is as it was."""
        path = os.path.join(folder, name + ".npy")
        with open(path, "rb") as file:
            kept = file.read()
        text = "import sys, numpy as np\n" + PLANT
        self.assertStatus(self.forks.run(text, path, kind, code=True), 0)
        done = self.check(folder)
        self.assertStatus(done, 1)
        self.assertRegex(done.out, rf"(?m)^{name} .*FAIL$")
        self.put(folder, name + ".npy", kept)

    def put(self, folder, name, content):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)

    def dumps(self, *cases):
        """{case: (its folder, its case.json)}, of one worker."""
        found = {}
        for case in cases:
            folder = self.path(f"dump{len(found)}")
            os.mkdir(folder)
            shutil.copy(os.path.join(e2e.SOURCE, "harness/attention/repro/check.py"), folder)
            found[case] = folder
        rows = e2e.run_on_cpu(found.items())
        self.assertEqual({row["verdict"] for row in rows}, {"pass"}, rows)
        return {case: (folder, self.about(folder)) for case, folder in found.items()}

    def about(self, folder):
        with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
            return json.load(file)

    def repro(self, case, folder, status=0):
        """The command, which makes the folder with those above it, and check.py."""
        done = e2e.facts("repro", case, "--device", "cpu", "--dump", folder)
        self.assertStatus(done, status)
        return done

    def test_right_answers_pass(self):
        for case, (folder, about) in self.dumps(*RIGHT).items():
            with self.subTest(case):
                done = self.check(folder)
                self.assertStatus(done, 0)
                outputs = [
                    n for n, x in {**about["tensors"], **about["arrays"]}.items() if x["output"]
                ]
                for name in outputs:
                    if name not in ("scratch", "rng_dump"):
                        self.assertRegex(done.out, rf"(?m)^{name} .*: PASS$")
                self.assertRegex(done.out, r"PASS\n?\Z")

    def test_wrong_answers_fail(self):
        """Heads exchanged, and the sign of one element: in each output of a few cases."""
        for case, (folder, about) in self.dumps(*e2e.some(RIGHT)).items():
            tensors = {name: t["dim"] for name, t in about["tensors"].items() if t["output"]}
            plants = [(name, "sign") for name in tensors]
            plants += [(name, "heads") for name, dim in tensors.items() if dim[1] > 1]
            plants += [(name, "number") for name, a in about["arrays"].items() if a["output"]]
            for name, kind in plants:
                with self.subTest(case=case, name=name, kind=kind):
                    self.fails(folder, name, kind)

    def test_every_tensor_is_there(self):
        for case, (folder, _) in self.dumps(*FILES).items():
            names = {f"{name}.npy" for name in FILES[case].split()}
            self.assertLessEqual(names, set(os.listdir(folder)))

    def test_a_file_that_cannot_be_written_is_3_and_no_half_of_it_stays(self):
        folder = self.path("full")
        limited = ["bash", "-c", 'ulimit -f 128; exec "$@"', "bash", e2e.FACTS, "repro"]
        limited += ["pass=fwd b=1 h=8 s=256 d=64", "--device", "cpu", "--dump", folder]
        done = subprocess.run(limited, capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn(f"{folder}: q.npy: File too large", done.stderr)
        self.assertNotIn("q.npy", os.listdir(folder))
        self.write("file", "")
        done = self.repro("pass=fwd b=1 h=1 s=8 d=8", self.path("file", "x"), status=3)
        self.assertIn("--dump", done.err)

    def test_a_case_that_did_not_run_leaves_no_folder(self):
        done = self.repro("pass=bwd h=4/2 s=100/300 impl=unified", self.path("refused"), status=3)
        self.assertIn("nothing to dump", done.err)
        self.assertFalse(os.path.exists(self.path("refused")))

    def bad(self, folder, name, content):
        self.put(folder, name, content)
        with self.subTest(name=name, content=content[:60]):
            done = self.check(folder)
            self.assertStatus(done, 2)
            self.assertRegex(done.err, r"\Acheck\.py: [^\n]*\n\Z")

    def test_files_that_cannot_be_read_are_2_with_one_line(self):
        folder = self.path("a", "b")
        self.repro("pass=bwd b=1 h=2 s=32 d=16", folder)
        about = self.about(folder)
        for key, value in (("tensors", []), ("tensors", {"dq": 5}), ("arrays", None)):
            self.bad(folder, "case.json", json.dumps({**about, key: value}).encode())
        for text in (b"", b"5", b"[]", b"{", b"nonsense"):
            self.bad(folder, "case.json", text)
        self.put(folder, "case.json", json.dumps(about).encode())
        for name in ("dk.npy", "dk.want.npy", "dk.tolerance.npy"):
            with open(os.path.join(folder, name), "rb") as file:
                kept = file.read()
            for text in (b"", kept[:40], kept[:-1], b"nonsense"):
                self.bad(folder, name, text)
            self.put(folder, name, kept)
        self.assertStatus(self.check(folder), 0)


if __name__ == "__main__":
    e2e.main()
