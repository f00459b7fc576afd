"""The tester is tested: for every deliberate mistake of lib/src/liars the honest worker is green on a small set of cases, and the lying one turns
some of them red. Prints a table. Those that need a GPU too are repeated there by ci/liars_gpu.sh.
"""

import json
import os
import subprocess
import unittest

import e2e

LIARS = os.path.join(e2e.BIN, "facts-worker-liars")
SMALL = "dtype=bf16 b=2 h=4/2 s=40/56 d=32"
CPU = "cpu"
LAST, EDGE = "9.20.0-jit-cu13", "9.28.0-full-cu13"
GREEN = ("pass", "supported", "unsupported")
RED = (
    "wrong",
    "nan",
    "unwritten",
    "overrun",
    "nondeterministic",
    "graph_mismatch",
    "build_fail",
    "exec_fail",
    "crash",
)

# Every way of asking about dropout; the last case has none.
DROPS = "dtype=bf16 b=2 h=4/2 s=40/200 d=32 dropout=0.1"
DROPOUT = (
    "B dropout",
    CPU,
    [
        f"pass=fwd {DROPS}",
        f"pass=bwd {DROPS}",
        f"pass=fwd {DROPS} check=keep",
        f"pass=bwd {DROPS} check=keep",
        f"pass=fwd {DROPS} exec=graph",
        f"pass=fwd {DROPS} rng=99:4 want=rng_dump",
        f"pass=fwd {DROPS} want=stats",
        f"pass=fwd {SMALL}",
    ],
    set(range(7)),
)
BLOCKS = [
    "pass=bwd dtype=mxe4m3 b=1 h=4/2 s=256 d=64",
    "pass=bwd dtype=mxe4m3 b=2 h=2 s=200 d=128 mask=causal",
    "pass=bwd dtype=mxe5m2 b=1 h=4 s=256 d=64",
    "pass=fwd dtype=mxe4m3 b=1 h=4/2 s=256 d=64",
]

# liar: (family, target, cases, those that turn red). A case that is red for one liar must be green for the honest worker; the others show that
# the liar lies nowhere else.
PLAN = {
    "probe-o-format": (
        "A probe",
        LAST,
        [
            "pass=fwd dtype=bf16 b=2 h=4 s=512 d=128 stride=gap:o.s.4",
            "pass=fwd dtype=bf16 b=2 h=4 s=512 d=128",
        ],
        {0},
    ),
    "probe-batch": (
        "A probe",
        LAST,
        [
            "pass=fwd dtype=bf16 b=64 h=8 s=1/4096 d=128",
            "pass=fwd dtype=bf16 b=1 h=8 s=1/4096 d=128",
        ],
        {0},
    ),
    "probe-align": (
        "A probe",
        "9.9.0-full-cu12",
        [
            "pass=fwd dtype=bf16 b=2 h=4 s=1/1024 d=128 mask=causal_br",
            "pass=fwd dtype=bf16 b=2 h=4 s=512 d=128 mask=causal",
        ],
        {0},
    ),
    "guard-ends-too-early": (
        "A guards",
        EDGE,
        ["pass=fwd dtype=bf16 b=2 h=4 s=512 d=128", "pass=bwd dtype=bf16 b=1 h=1 s=1/128 d=128"],
        {1},
    ),
    "capture-stale": (
        "E graphs",
        CPU,
        [
            f"pass=fwd {SMALL} exec=graph",
            f"pass=fwd {SMALL} exec=graph_update want=stats",
            f"pass=bwd {SMALL} exec=graph_update",
            f"pass=bwd {SMALL} exec=graph",
        ],
        {1, 2},
    ),
    "launch-race": (
        "E races",
        CPU,
        [f"pass=fwd {SMALL} exec=graph", f"pass=bwd {SMALL} repeat=20", f"pass=fwd {SMALL}"],
        {0, 1},
    ),
    "batch-16-bits": (
        "F large grids",
        CPU,
        [
            "pass=fwd dtype=bf16 b=65537 h=1 s=1 d=8 want=stats",
            "pass=bwd dtype=bf16 b=65537 h=1 s=2 d=8",
            "pass=fwd dtype=bf16 b=2100 h=32 s=1 d=8",
        ],
        {0, 1},
    ),
    "mod-no-gradient": (
        "B score_mod",
        CPU,
        [
            f"pass=fwd {SMALL} mod=softcap:2",
            f"pass=bwd {SMALL} mod=softcap:2",
            f"pass=bwd {SMALL} mod=temperature:3",
            f"pass=bwd {SMALL}",
        ],
        {1, 2},
    ),
    "layout-zero-as-one": (
        "C zero strides",
        CPU,
        [
            f"pass=fwd {SMALL}",
            f"pass=fwd {SMALL} stride=broadcast:q.s",
            f"pass=fwd {SMALL} stride=broadcast:q.b",
        ],
        {1, 2},
    ),
    "zero-stride-gradient-unsummed": (
        "C zero strides",
        CPU,
        [
            f"pass=bwd {SMALL} stride=broadcast:k.b",
            f"pass=bwd {SMALL} stride=broadcast:k.b+v.b;sum:dk.b+dv.b",
        ],
        {1},
    ),
    "bias-shape": (
        "C bias",
        CPU,
        [
            f"pass=fwd {SMALL} bias=11ss",
            f"pass=fwd {SMALL} bias=1hss",
            f"pass=bwd {SMALL} bias=bhss dbias=1",
        ],
        {1, 2},
    ),
    "rope-pair": (
        "B rotation",
        CPU,
        [
            f"pass=fwd {SMALL} rope=1 want=stats",
            f"pass=fwd {SMALL} rope=16",
            f"pass=bwd {SMALL} rope=16",
            f"pass=fwd {SMALL}",
        ],
        {0, 1, 2},
    ),
    **{
        f"dropout-{what}": DROPOUT
        for what in ("batches", "heads", "rows", "period", "ignored-seed", "ignored-offset")
    },
    "nan-masked": (
        "B NaN and Inf",
        CPU,
        [
            f"pass=fwd {SMALL} check=nonfinite",
            f"pass=bwd {SMALL} check=nonfinite",
            f"pass=fwd {SMALL}",
        ],
        {0, 1},
    ),
    "overflow-zeroed": (
        "B NaN and Inf",
        CPU,
        [
            f"pass=fwd {SMALL} check=nonfinite",
            f"pass=bwd {SMALL} check=nonfinite",
            "pass=bwd dtype=f16 b=2 h=4/2 s=40/56 d=32 fill=unip scale=100000",
            f"pass=fwd {SMALL}",
        ],
        {0, 1, 2},
    ),
    "mx-copy-q": ("C blocks", CPU, BLOCKS, {0, 1, 2}),
    "mx-copy-k": ("C blocks", CPU, BLOCKS, {0, 1, 2}),
    "mx-copy-do": ("C blocks", CPU, BLOCKS, {0, 1, 2}),
    "policy-leak": (
        "D policy",
        LAST,
        [
            "pass=fwd dtype=bf16 b=2 h=4 s=512 d=128 policy=math",
            "pass=fwd dtype=bf16 b=2 h=4 s=512 d=128",
        ],
        {1},
    ),
}


def target_of(name):
    if name == CPU:
        return {"device": {"kind": "cpu"}, "threads": 1}
    build = e2e.need(name)
    return {
        "cudnn_dir": build.dir,
        "nvrtc": build.nvrtc,
        "driver": e2e.NULL_DRIVER,
        "version": build.version,
        "build": build.name,
        "threads": 1,
        "device": {"kind": "described", "name": "test", "json": json.dumps(e2e.description())},
    }


def ask(name, cases, liar):
    """Verdicts in the order of the cases; what a death leaves open is the crash that the supervisor would write."""
    lines = [json.dumps({"target": target_of(name)})]
    lines += [
        json.dumps({"id": i, "case": c, "do": "run" if name == CPU else "plan"})
        for i, c in enumerate(cases)
    ]
    # Graphs on the cpu are emulated in the lying worker alone; without a lie it is honest.
    command = (
        [LIARS, "--liar", liar]
        if liar
        else [LIARS if any("exec=graph" in c for c in cases) else e2e.WORKER]
    )
    env = e2e.worker_environment(CUDNN_LIB_CONFIG="GRAPH_JIT_ONLY")
    answer = e2e.Answer(
        subprocess.run(
            command,
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=300,
            env=env,
        )
    )
    verdicts = [row["verdict"] for row in answer.rows]
    return verdicts + ["crash"] * (len(cases) - len(verdicts)), answer


class Liars(e2e.TestCase):
    table = []
    honest = {}  # by cases: several liars have the same

    @classmethod
    def tearDownClass(cls):
        print(f"\n{'liar':30} {'family':16} {'target':18} {'honest':24} lying")
        for row in sorted(cls.table):
            print("{:30} {:16} {:18} {:24} {}".format(*row))
        print(
            "On a GPU as well (ci/liars_gpu.sh): capture-stale, by the driver's graphs; policy-leak and probe-*, in runs."
        )

    def check(self, liar):
        family, target, cases, red = PLAN[liar]
        key = (target, *cases)
        if key not in Liars.honest:
            Liars.honest[key], answer = ask(target, cases, None)
            for case, verdict in zip(cases, Liars.honest[key]):
                self.assertIn(verdict, GREEN, f"{case}: {answer.rows} {answer.err[-300:]}")
        honest = Liars.honest[key]
        lying, answer = ask(target, cases, liar)
        Liars.table.append((liar, family, target, " ".join(honest), " ".join(lying)))
        for i, case in enumerate(cases):
            self.assertIn(lying[i], RED if i in red else GREEN, f"{case}: {answer.rows}")

    def test_every_liar_has_its_cases(self):
        known = subprocess.run(
            [LIARS, "--liars"], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        self.assertEqual({line.split("\t")[0] for line in known}, set(PLAN))
        for line in known:
            self.assertEqual(len(line.split("\t")), 3, line)

    def test_an_unknown_lie_is_refused(self):
        done = subprocess.run(
            [LIARS, "--liar", "no-such"], input="", capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 2)

    def test_normal_builds_hold_no_trace(self):
        for program in (e2e.WORKER, e2e.FACTS):
            with open(program, "rb") as file:
                content = file.read()
            for word in [*PLAN, "fattn__liar", "fattn__emulator", "--liar"]:
                self.assertNotIn(word.encode(), content, f"{word} in {program}")
        with open(LIARS, "rb") as file:
            self.assertIn(b"fattn__liar", file.read())


def add(liar):
    setattr(Liars, "test_" + liar.replace("-", "_"), lambda self: self.check(liar))


for name, (_, asked, _, _) in PLAN.items():
    if e2e.needs.NIGHT or asked == CPU or e2e.needs.listed()[asked] == "day":
        add(name)

if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
