"""The tester is tested: for every deliberate mistake of lib/src/liars the honest worker is green on a small set of cases, and the lying one turns
some of them red. Prints a table. Those that need a GPU too are repeated there by ci/liars_gpu.sh.
"""

import unittest

import e2e

SMALL = "dtype=bf16 b=2 h=4/2 s=40/56 d=32"
WIDE = "dtype=bf16 b=2 h=4 s=512 d=128"
CPU = "cpu"
LAST, EDGE = "9.20.0-jit-cu13", "9.28.0-full-cu13"
GREEN = ("pass", "supported", "unsupported")
RED = (
    "wrong nan unwritten overrun nondeterministic graph_mismatch build_fail exec_fail crash".split()
)

# Every way of asking about dropout; the last case has none.
DROPS = "dtype=bf16 b=2 h=4/2 s=40/200 d=32 dropout=0.1"
DROPOUT = f"""B dropout, cpu
    red pass=fwd {DROPS}
    red pass=bwd {DROPS}
    red pass=fwd {DROPS} check=keep
    red pass=bwd {DROPS} check=keep
    red pass=fwd {DROPS} exec=graph
    red pass=fwd {DROPS} rng=99:4 want=rng_dump
    red pass=fwd {DROPS} want=stats
    pass=fwd {SMALL}"""
FAR = """B dropout, cpu
    red pass=fwd dtype=bf16 b=2 h=6 s=260/520 d=8 dropout=0.1"""
BLOCKS = """C blocks, cpu
    red pass=bwd dtype=mxe4m3 b=1 h=2/1 s=128 d=64
    red pass=bwd dtype=mxe4m3 b=2 h=1 s=100 d=128 mask=causal
    red pass=bwd dtype=mxe5m2 b=1 h=1 s=256 d=64
    pass=fwd dtype=mxe4m3 b=1 h=2/1 s=128 d=64"""

# liar: its family, its target, and cases. A case that is red for one liar must be green for the honest worker; the others show that the liar lies
# nowhere else.
LIES = {
    "probe-o-format": f"""A probe, {LAST}
        red pass=fwd {WIDE} stride=gap:o.s.4
        pass=fwd {WIDE}""",
    "probe-batch": f"""A probe, {LAST}
        red pass=fwd dtype=bf16 b=64 h=8 s=1/4096 d=128
        pass=fwd dtype=bf16 b=1 h=8 s=1/4096 d=128""",
    "probe-align": f"""A probe, 9.9.0-full-cu12
        red pass=fwd dtype=bf16 b=2 h=4 s=1/1024 d=128 mask=causal_br
        pass=fwd {WIDE} mask=causal""",
    "guard-ends-too-early": f"""A guards, {EDGE}
        pass=fwd {WIDE}
        red pass=bwd dtype=bf16 b=1 h=1 s=1/128 d=128""",
    "capture-stale": f"""E graphs, cpu
        pass=fwd {SMALL} exec=graph
        red pass=fwd {SMALL} exec=graph_update want=stats
        red pass=bwd {SMALL} exec=graph_update
        pass=bwd {SMALL} exec=graph""",
    "launch-race": f"""E races, cpu
        red pass=fwd {SMALL} exec=graph
        red pass=bwd {SMALL} repeat=20
        pass=fwd {SMALL}""",
    "batch-16-bits": """F large grids, cpu
        red pass=fwd dtype=bf16 b=65537 h=1 s=1 d=8 want=stats
        red pass=bwd dtype=bf16 b=65537 h=1 s=2 d=8
        pass=fwd dtype=bf16 b=2100 h=32 s=1 d=8""",
    "mod-no-gradient": f"""B score_mod, cpu
        pass=fwd {SMALL} mod=softcap:2
        red pass=bwd {SMALL} mod=softcap:2
        red pass=bwd {SMALL} mod=temperature:3
        pass=bwd {SMALL}""",
    "layout-zero-as-one": f"""C zero strides, cpu
        pass=fwd {SMALL}
        red pass=fwd {SMALL} stride=broadcast:q.s
        red pass=fwd {SMALL} stride=broadcast:q.b""",
    "zero-stride-gradient-unsummed": f"""C zero strides, cpu
        pass=bwd {SMALL} stride=broadcast:k.b
        red pass=bwd {SMALL} stride=broadcast:k.b+v.b;sum:dk.b+dv.b""",
    "bias-shape": f"""C bias, cpu
        pass=fwd {SMALL} bias=11ss
        red pass=fwd {SMALL} bias=1hss
        red pass=bwd {SMALL} bias=bhss dbias=1""",
    "rope-pair": f"""B rotation, cpu
        red pass=fwd {SMALL} rope=1 want=stats
        red pass=fwd {SMALL} rope=16
        red pass=bwd {SMALL} rope=16
        pass=fwd {SMALL}""",
    "nan-masked": f"""B NaN and Inf, cpu
        red pass=fwd {SMALL} check=nonfinite
        red pass=bwd {SMALL} check=nonfinite
        pass=fwd {SMALL}""",
    "overflow-zeroed": f"""B NaN and Inf, cpu
        red pass=fwd {SMALL} check=nonfinite
        red pass=bwd {SMALL} check=nonfinite
        red pass=bwd dtype=f16 b=2 h=4/2 s=40/56 d=32 fill=unip scale=100000
        pass=fwd {SMALL}""",
    "policy-leak": f"""D policy, {LAST}
        pass=fwd {WIDE} policy=math
        red pass=fwd {WIDE}""",
}
LIES |= {f"mx-copy-{tensor}": BLOCKS for tensor in ("q", "k", "do")}
LIES |= {f"dropout-{what}": DROPOUT for what in ("batches", "heads", "rows", "period")}
FAR_ONES = "entries heads-5 rows-256 keys-256 seed-high offset-high"
LIES |= {f"dropout-{what}": FAR for what in FAR_ONES.split()}
LIES |= {f"dropout-ignored-{what}": DROPOUT for what in ("seed", "offset")}


def plan_of(text):
    """(family, target, cases, the places of those that turn red)"""
    head, *lines = text.splitlines()
    lines = [line.strip() for line in lines]
    red = {i for i, line in enumerate(lines) if line.startswith("red ")}
    return *head.split(", "), [line.removeprefix("red ") for line in lines], red


PLAN = {liar: plan_of(text) for liar, text in LIES.items()}


def ask(name, cases, liar):
    """Verdicts in the order of the cases; what a death leaves open is the crash that the supervisor would write."""
    target = e2e.CPU if name == CPU else e2e.target(e2e.need(name))
    asked = [(case, {"do": "run" if name == CPU else "plan"}) for case in cases]
    # Graphs on the cpu are emulated in the lying worker alone; without a lie it is honest.
    emulated = any("exec=graph" in case for case in cases)
    honest = [e2e.LIARS if emulated else e2e.WORKER]
    command = [e2e.LIARS, "--liar", liar] if liar else honest
    answer = e2e.drive(target, asked, command, CUDNN_LIB_CONFIG="GRAPH_JIT_ONLY")
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
        known = e2e.started([e2e.LIARS, "--liars"], check=True).stdout.splitlines()
        self.assertEqual({line.split("\t")[0] for line in known}, set(PLAN))
        for line in known:
            self.assertEqual(len(line.split("\t")), 2, line)

    def test_an_unknown_lie_is_refused(self):
        self.assertEqual(e2e.started([e2e.LIARS, "--liar", "no-such"], input="").returncode, 2)

    def test_normal_builds_hold_no_trace(self):
        self.assertNoTrace([*PLAN, "fattn__liar", "fattn__emulator", "--liar"])
        with open(e2e.LIARS, "rb") as file:
            self.assertIn(b"fattn__liar", file.read())


def add(liar):
    setattr(Liars, "test_" + liar.replace("-", "_"), lambda self: self.check(liar))


for name, (_, asked, _, _) in PLAN.items():
    if e2e.needs.NIGHT or asked == CPU or e2e.needs.listed()[asked] == "day":
        add(name)

if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
