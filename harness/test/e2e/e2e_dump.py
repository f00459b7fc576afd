"""facts repro --dump: every tensor is there, and check.py, with NumPy alone, passes what is right and fails what is not."""

import json
import os
import re
import shutil
import subprocess
import unittest

import e2e
import forked

# In a row with few keys dP - D cancels, and dBias is as small as its errors.
CANCELLING = [
    "pass=bwd h=4/2 s=50 d=64 mask=causal bias=1hss dbias=1",
    "pass=bwd dtype=f16 h=4/2 s=50 d=64 mask=causal bias=bhss dbias=1",
    "pass=bwd b=3 h=4/2 s=60 d=64 padding=random bias=1hss dbias=1",
]
# Small cases on the CPU backend, by what they show. Each is right.
RIGHT = [
    "pass=fwd b=2 h=4/2 s=70/100 d=32 mask=causal want=stats+max+sum_exp",
    "pass=fwd b=2 h=4/2 s=70/100 d=32 mask=causal_br want=stats2",
    "pass=fwd dtype=f16 b=2 h=4/2 s=70/100 d=32 window=5:3 align=br padding=random want=stats",
    "pass=fwd b=3 h=2 s=64 d=16 layout=thd padding=random slots=+3 tail=4",
    "pass=bwd b=3 h=4/2 s=64/80 d=16 layout=thd padding=random offsets=i64 mask=causal",
    "pass=bwd b=2 h=4 s=64 d=16 layout=t3hd padding=random stats=ht1",
    "pass=fwd b=3 h=4 s=64 d=16 padding=random cu=q rmult=tokens layout=thd",
    "pass=fwd b=4 h=4 s=64 d=16 layout=thd lens=10+64+-1x2",
    "pass=bwd b=2 h=4/2/1 s=64 d=16/32 layout=bhsd",
    "pass=bwd b=3 h=4 s=64 d=16 layout=bs3hd padding=random poison=nan",
    "pass=fwd b=3 h=2 s=5/100 d=16 paged=16 padding=random table=packed",
    "pass=fwd b=3 h=2 s=1/100 d=16 paged=k:16 padding=random layout=bhsd",
    "pass=bwd dtype=f16 b=3 h=4 s=64 d=16 bias=11ss dbias=1 padding=random",
    "pass=bwd b=2 h=4 s=64 d=16 bias=bool:bhss",
    "pass=bwd b=2 h=6 s=64 d=16 alibi=custom",
    "pass=bwd b=2 h=6 s=64 d=16 mod=softcap:5",
    "pass=bwd b=2 h=6 s=64 d=16 mod=relpos",
    "pass=bwd b=2 h=6 s=64 d=16 mod=document:3",
    "pass=bwd b=2 h=6 s=64 d=16 mod=window:5:3",
    "pass=bwd b=2 h=4 s=64 d=16 mod=post_scale_bias",
    "pass=fwd b=2 h=4 s=64 d=16 softmax=sink want=stats+max+sum_exp",
    "pass=bwd b=2 h=4 s=64 d=16 softmax=sink dsink=1",
    "pass=fwd b=2 h=4 s=64 d=16 dropout=0.3 want=stats+rng_dump",
    "pass=bwd b=2 h=4 s=64 d=16 dropout=0.3",
    "pass=fwd b=2 h=4 s=64 d=16 scale=tensor",
    "pass=fwd dtype=e4m3 b=2 h=4/2 s=64 d=16 scales=odd mask=causal want=stats",
    "pass=bwd dtype=e4m3 b=2 h=4/2 s=64 d=16 do_dtype=e5m2 scales=odd",
    "pass=bwd dtype=e5m2 b=2 h=4/2 s=64 d=16 scales=pow2 out=bf16 grad=bf16",
    "pass=fwd dtype=mxe4m3 b=2 h=4/2 s=64 d=64",
    "pass=bwd dtype=mxe4m3 b=2 h=4/2 s=96/160 d=64 mask=causal",
    "pass=bwd dtype=f32 b=2 h=4 s=64 d=16",
    "pass=bwd b=1 h=2 s=64 d=32 rope=16",
    "pass=fwd b=2 h=4 s=300 d=16 blockmask=empty_row want=stats",
    "pass=bwd b=2 h=4 s=64 d=16 stride=broadcast:k.b+v.b;sum:dk.b",
    "pass=bwd b=2 h=4 s=64 d=16 stride=gap:4",
    "pass=bwd b=2 h=4 s=256 d=64 fill=hugelogit",
    "pass=bwd b=2 h=4 s=256 d=64 fill=offset_v",
    "pass=bwd b=2 h=4 s=256 d=64 fill=unip",
    *CANCELLING,
]


PLANT = {  # arguments: the file, and where or what
    "sign": """path, kind = sys.argv[1:]
x = np.load(path)
f = x.reshape(-1)
if kind == 'heads': x[:, [0, 1]] = x[:, [1, 0]]
else:
    v = np.load(path.replace('.npy', '_f32.npy')).reshape(-1) if kind == 'sign' else f
    i = int(np.argmax(np.abs(np.where(np.isfinite(v), v, 0))))
    f[i:i + 1].view(np.uint8)[-1] ^= 0x80
np.save(path, x)
""",
    "five tolerances": """path, place = sys.argv[1].removesuffix('.npy'), int(sys.argv[2])
x, want, bound, sigma = (np.load(path + end) for end in ('.npy', '.want.npy', '.bound.npy', '.sigma.npy'))
due = np.flatnonzero(bound)
at = due[place * (len(due) - 1) // 5]
wrong = want.flat[at] + (5 if want.flat[at] >= 0 else -5) * min(bound.flat[at], 5.5 * sigma.flat[at])
x.flat[at] = wrong if x.dtype == np.float16 else np.float32(wrong).view(np.uint32) + 0x8000 >> 16
np.save(path + '.npy', x)
""",
    "last row": "x = np.load(sys.argv[1]); x[0, 0, -1] = int(sys.argv[2], 0); np.save(sys.argv[1], x)",
    "offset": "x = np.load(sys.argv[1]); x[1] += int(sys.argv[2]); np.save(sys.argv[1], x)",
}
# What a dump has beside the outputs that every case has.
FILES = {
    "pass=fwd b=3 h=2 s=64 d=16 layout=thd padding=random": "q.packed o.packed q_offsets seq_len_kv o.want",
    "pass=fwd b=2 h=2 s=5/100 d=16 paged=16": "page_table_k page_table_v k",
    "pass=bwd b=1 h=2 s=32 d=16 softmax=sink dsink=1 alibi=1 scale=tensor": "sink dsink dsink.want alibi_slopes attn_scale",
    "pass=fwd b=1 h=2 s=32 d=16 dropout=0.5": "seed offset keep",
    "pass=fwd dtype=e4m3 b=1 h=2 s=32 d=16": "descale_q scale_s amax_o amax_o.want",
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

    def fails(self, folder, name, what, place, status=1):
        """With a mistake planted in a tensor, check.py fails for it; then the file is as it was."""
        path = os.path.join(folder, name + ".npy")
        with open(path, "rb") as file:
            kept = file.read()
        text = "import sys, numpy as np\n" + PLANT[what]
        self.assertStatus(self.forks.run(text, path, place, code=True), 0)
        done = self.check(folder)
        self.assertStatus(done, status)
        if status == 1:
            self.assertRegex(done.out, rf"(?m)^{name} .*FAIL$")
        self.put(folder, name + ".npy", kept)
        return done

    def put(self, folder, name, content):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)

    def dumps(self, *cases):
        """{case: (its folder, its case.json)}, of one worker."""
        found = {}
        for case in cases:
            folder = self.path(f"dump{len(found)}")
            os.mkdir(folder)
            shutil.copy(os.path.join(e2e.SOURCE, "harness/repro/check.py"), folder)
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

    def test_right_answers_pass_and_the_reference_agrees(self):
        for case, (folder, _) in self.dumps(*e2e.some(RIGHT)).items():
            with self.subTest(case):
                done = self.check(folder)
                self.assertStatus(done, 0)
                self.assertRegex(done.out, r"PASS\n?\Z")
                found = re.findall(r"reference results differ.* by (\S+)", done.out)
                self.assertTrue(found, done.out)
                self.assertLess(max(map(float, found)), 1e-9)

    def test_wrong_answers_fail(self):
        """Heads exchanged, and the sign of one element: in each output of a few cases."""
        places = (0, 2, 12, 21, 23, 25, 26, 29, 31)
        for case, (folder, about) in self.dumps(*e2e.some(RIGHT[i] for i in places)).items():
            tensors = {name: t["dim"] for name, t in about["tensors"].items() if t["output"]}
            plants = [(name, "sign") for name in tensors]
            plants += [(name, "heads") for name, dim in tensors.items() if dim[1] > 1]
            plants += [(name, "number") for name, a in about["arrays"].items() if a["output"]]
            for name, kind in plants:
                with self.subTest(case=case, name=name, kind=kind):
                    self.fails(folder, name, "sign", kind)

    def test_a_dbias_that_is_off_by_five_tolerances_fails(self):
        """Of FACTS: its bound, or 5.5 of its deviations."""
        for case, (folder, _) in self.dumps(*e2e.some(CANCELLING)).items():
            for place in range(6):
                with self.subTest(case=case, place=place):
                    self.fails(folder, "dbias", "five tolerances", place)

    def test_rows_behind_a_length_are_0_or_not_written(self):
        forward = "pass=fwd b=2 h=2 s=1/30 d=16 lens=0+1/20+30"
        backward = "pass=bwd b=2 h=2 s=30 d=16 lens=20+30"
        folders = self.dumps(forward, backward)
        for case, name, not_written in ((forward, "o", 0), (backward, "dk", 1)):
            codes = {"0": 0, "0x7fa5": not_written, "0x3e9a": 1, "0x7fc0": 1}
            for code, status in codes.items():
                with self.subTest(case=case, code=code):
                    self.fails(folders[case][0], name, "last row", code, status)

    def test_every_tensor_is_there(self):
        for case, (folder, _) in self.dumps(*FILES).items():
            names = {f"{name}.npy" for name in FILES[case].split()}
            self.assertLessEqual(names, set(os.listdir(folder)))

    def test_what_it_cannot_say_is_3_and_offsets_that_lead_elsewhere_are_2(self):
        dropout = "pass=fwd b=1 h=2 s=32 d=16 dropout=0.5"
        packed = "pass=fwd b=2 h=2 s=64 d=16 layout=thd lens=40+50"
        folders = self.dumps(dropout, packed)
        os.unlink(os.path.join(folders[dropout][0], "keep.npy"))
        done = self.check(folders[dropout][0])
        self.assertStatus(done, 3)
        self.assertRegex(done.err, r"\A.*keep\.npy.*\n\Z")
        done = self.fails(folders[packed][0], "q_offsets", "offset", 32, status=2)
        self.assertIn("q_offsets[1]", done.err)

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
        wrong = [("heads_k", value) for value in ("2", None, 0, -1, 2.0, True, [2], 3)]
        wrong += [("scale", value) for value in ("1", None, [0.25], True, {})]
        wrong += [("tensors", []), ("tensors", {**about["tensors"], "q": 5}), ("arrays", None)]
        wrong += [("seq_q", 10**12), ("dtype", "x"), ("dtype", 7)]
        for key, value in wrong:
            self.bad(folder, "case.json", json.dumps({**about, key: value}).encode())
        for text in (b"", b"5", b"[]", b"{", b"nonsense"):
            self.bad(folder, "case.json", text)
        self.put(folder, "case.json", json.dumps(about).encode())
        for name in ("q.npy", "dk.npy", "stats.npy"):
            with open(os.path.join(folder, name), "rb") as file:
                kept = file.read()
            for text in (b"", kept[:40], kept[:-1], b"nonsense"):
                self.bad(folder, name, text)
            self.put(folder, name, kept)
        self.assertStatus(self.check(folder), 0)


if __name__ == "__main__":
    e2e.main()
