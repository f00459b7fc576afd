"""decision.known of the Python module says what `facts known CASE` says of the same problem."""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "ci/test"))
import needs
import fattn
from fattn import known

SIZE = {"batch": 2, "heads_q": 8, "seq_q": 512, "seq_kv": 512, "dim_qk": 128}
BWD = {**SIZE, "pass_": "bwd"}
ONE = {"batch": 1, "heads_q": 1, "seq_kv": 64, "dim_qk": 64}
LONG = {"seq_q": 704, "seq_kv": 704, "dim_qk": 64}
# (fields of a problem, the same as a case)
PROBLEMS = (
    (SIZE, "pass=fwd b=2"),
    ({**BWD, **LONG}, "pass=bwd s=704 d=64"),
    ({**BWD, **LONG, "causal": True}, "pass=bwd s=704 d=64 mask=causal"),
    ({**BWD, **ONE, "seq_q": 1}, "pass=bwd b=1 h=1 s=1/64 d=64"),
    ({**BWD, "dtype": "e4m3", "seq_q": 200, "seq_kv": 200}, "pass=bwd dtype=e4m3 s=200"),
    ({**BWD, "alibi": 1, "seq_q": 200, "seq_kv": 200}, "pass=bwd alibi=1 s=200"),
    ({**SIZE, "seq_q": 1, "heads_k": 2, "dtype": "f16"}, "pass=fwd dtype=f16 h=8/2 s=1/512"),
    ({**SIZE, "sink": 1, "training": 1}, "pass=fwd softmax=sink want=stats"),
    ({**SIZE, "outputs": ("max", "sum_exp")}, "pass=fwd want=max+sum_exp"),
    ({**SIZE, "dropout": 0.1}, "pass=fwd dropout=0.1"),
    ({**SIZE, "attn_scale": -1.0, "window": (64, 0)}, "pass=fwd scale=-1 window=64:0"),
    ({**SIZE, "dtype": "e4m3"}, "pass=fwd dtype=e4m3"),
    (
        {**BWD, "has_bias": 1, "dbias": 1, "bias_dim": (1, 8, 512, 512)},
        "pass=bwd bias=1hss dbias=1",
    ),
    ({**SIZE, "dtype": "f32", "impl": "unified"}, "pass=fwd dtype=f32 impl=unified"),
    (
        {**BWD, "dtype": "f16", "heads_q": 16, "seq_q": 1000, "seq_kv": 1000, "dim_qk": 256},
        "pass=bwd dtype=f16 h=16 s=1000 d=256",
    ),
    ({**SIZE, "rope": 1, "seq_kv": 640, "causal": True}, "pass=fwd rope=1 s=512/640 mask=causal"),
)
ASKED = """if True:
    import json, sys, fattn
    context = fattn.Context(sys.argv[1], sys.argv[2], nvrtc=sys.argv[3] or None)
    for fields in json.loads(sys.argv[4]):
        decision = fattn.decide(fattn.Problem(**fields), context=context)
        assert [str(one) for one in decision.known] == [s.strip() for s in repr(decision).splitlines() if s[2:7] in ("known", "suspe")]
        print(json.dumps([[one.id, one.sure, one.fixed, one.remedy] for one in decision.known]))
"""


class Known(unittest.TestCase):
    def in_python(self, build, device):
        words = device, build.dir, build.nvrtc, json.dumps([fields for fields, _ in PROBLEMS])
        done = subprocess.run(
            [sys.executable, "-c", ASKED, *words], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return [list(map(tuple, json.loads(line))) for line in done.stdout.splitlines()]

    def in_facts(self, build, device):
        cases = [f"{case} guards=on" for _, case in PROBLEMS]
        words = "--cudnn", build.name, "--device", device, "--json"
        done = subprocess.run(
            [needs.FACTS, "known", *cases, *words], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        names = subprocess.run(
            [needs.FACTS, "list", "--", *cases], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        said = {name: [] for name in names}
        for one in map(json.loads, done.stdout.splitlines()):
            found = one["known"]
            if found["says"]:
                said[one["case"]].append(
                    tuple(found[key] for key in ("id", "sure", "fixed", "remedy"))
                )
        return [said[name] for name in names]

    def test_a_decision_says_what_facts_known_says(self):
        total = 0
        for build, device in (
            (needs.OLD, "h100-sxm"),
            (needs.NEW, "h100-sxm"),
            (needs.NEW, "sm100-spec"),
        ):
            build = needs.need(build)
            both = zip(
                PROBLEMS, self.in_python(build, device), self.in_facts(build, device), strict=True
            )
            for (_, case), here, there in both:
                self.assertEqual(sorted(here), sorted(there), f"{case} {build.name} {device}")
                total += len(here)
        self.assertGreater(total, 8)

    def test_layouts_are_read_from_strides_and_ragged_tensors(self):
        more = {"padding": 1, "ragged_bits": 32}
        turned = {f"{name}_strides": (512 * 8 * 128, 512 * 128, 128, 1) for name in "qkvo"}
        for fields, layout in (
            (SIZE, "bshd"),
            ({**SIZE, **turned}, "bhsd"),
            ({**SIZE, **more}, "thd"),
            ({**SIZE, **more, "ragged": ("q", "o")}, "thd_bshd"),
        ):
            said = known.case_of(fattn.Problem(**fields).resolve())
            self.assertEqual((said["layout"], said["o"]), (layout, "auto"))

    def test_what_is_not_known_excludes_nothing(self):
        either = ["or", [["=", "pass", "bwd", 0], ["=", "mod", "none", 0]]]
        values = {"pass": "fwd", "mod": None}
        self.assertIsNone(known.holds(either, values))
        self.assertIs(known.holds(["and", either[1]], values), False)
        for op, value, held in (
            ("<", "9.9.0", False),
            (">=", "9.9.0", True),
            ("=", "9.20.0", True),
        ):
            self.assertEqual(known.holds([op, "cudnn", value, 0], {"cudnn": "9.20.0"}), held)
        self.assertTrue(known.holds(["=", "s.q", "64", 128], {"s.q": "704"}))
        self.assertTrue(known.holds([">", "s.kv", "s.q", 0], {"s.q": "64", "s.kv": "704"}))


if __name__ == "__main__":
    unittest.main()
