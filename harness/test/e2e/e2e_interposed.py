"""An engine that is right, and a wrong answer put between it and the judge: each ends in its own verdict, on the cpu here and on a GPU by
ci/liars_gpu.sh. Without a lie the same worker is green on the same cases.
"""

import unittest

import e2e

SHAPE = "dtype=bf16 b=2 h=4/2 s=192/256 d=64"
FORWARD, BACKWARD = f"pass=fwd {SHAPE} want=stats", f"pass=bwd {SHAPE}"
GAP = [f"pass=fwd {SHAPE} stride=gap:o.s.8", f"pass=bwd {SHAPE} stride=gap:dq.s.8"]
SURFACE = "dtype=bf16 b=3 h=4/2 s=64/96 d=32"
SINK = [
    f"pass=fwd {SURFACE} softmax=sink want=stats",
    f"pass=fwd {SURFACE} softmax=off_by_one want=stats",
    f"pass=bwd {SURFACE} softmax=sink dsink=1",
]
PAGED = [
    f"pass=fwd {SURFACE} padding=random paged=16",
    f"pass=fwd {SURFACE} padding=random paged=v:32",
]
RAGGED = [
    f"pass=fwd {SURFACE} layout=thd padding=random slots=+3",
    f"pass=bwd {SURFACE} layout=thd padding=random slots=+3 offsets=i64",
]
DROPPED = [f"pass=fwd {SURFACE} dropout=0.2", f"pass=bwd {SURFACE} dropout=0.2"]
REPLAYED = [f"{case} exec=graph" for case in DROPPED]
LENGTHS = [
    f"pass=fwd {SURFACE} padding=random exec=graph",
    f"pass=bwd {SURFACE} padding=random exec=graph_update",
    f"pass=fwd {SURFACE} padding=random cu=both exec=graph_update",
    f"pass=fwd {SURFACE} layout=thd padding=random exec=graph",
    f"pass=bwd {SURFACE} layout=thd padding=random exec=graph_update",
]
TABLES = [
    f"pass=fwd {SURFACE} padding=random paged=16 exec=graph",
    f"pass=fwd {SURFACE} paged=v:32 exec=graph_update",
]
SCALES = [
    "pass=fwd dtype=e4m3 b=2 h=2 s=64 d=32 exec=graph",
    "pass=bwd dtype=e5m2 b=2 h=2 s=64 d=32 scales=odd exec=graph_update",
    f"pass=fwd {SURFACE} scale=tensor exec=graph",
    f"pass=bwd {SURFACE} scale=tensor exec=graph_update",
]
SCALED = ["pass=fwd dtype=e4m3 b=2 h=2 s=64 d=32 scales=odd"]
BLOCKS = [
    "pass=fwd dtype=mxe4m3 b=2 h=2 s=128 d=64 want=stats",
    "pass=fwd dtype=mxe5m2 b=1 h=2 s=64/128 d=128",
]
CASES = {
    "answer-stats-head": [FORWARD],
    "answer-gap-byte": GAP,
    "input-sink-dropped": SINK,
    "input-page-next": PAGED,
    "input-offsets-late": RAGGED,
    "input-seed-other": DROPPED,
    "launch-mask-faults": DROPPED[:1],
    "replay-seed-captured": REPLAYED,
    "replay-lengths-captured": LENGTHS,
    "replay-table-captured": TABLES,
    "replay-scales-captured": SCALES,
    "answer-amax-late": SCALED,
    "input-factor-next": BLOCKS,
}


EVERY = [FORWARD, BACKWARD, *GAP, *SINK, *PAGED, *RAGGED, *DROPPED, *REPLAYED, *LENGTHS]
EVERY += [*TABLES, *SCALES, *SCALED, *BLOCKS]


def ask(cases, *arguments):
    asked = [(case, {"do": "run"}) for case in cases]
    return e2e.drive(e2e.CPU, asked, [e2e.LIARS, *arguments]).rows


class Interposed(e2e.TestCase):
    def setUp(self):
        super().setUp()
        listed = e2e.started([e2e.LIARS, "--interposed"], check=True).stdout
        self.known = [line.split("\t") for line in listed.splitlines()]

    def test_without_a_lie_all_is_green(self):
        for row in ask(EVERY):
            self.assertEqual(row["verdict"], "pass", row)

    def test_every_wrong_answer_ends_in_its_own_verdict(self):
        self.assertGreaterEqual(len(self.known), 20)
        for word, verdict, what in self.known:
            cases = CASES.get(word, [FORWARD, BACKWARD])
            rows = ask(cases, "--liar", word)
            self.assertEqual(len(rows), len(cases), word)
            for row in rows:
                with self.subTest(word=word, case=row["case"]):
                    said = f"{what}: {row.get('reason')} {row.get('errors')}"
                    self.assertEqual(row["verdict"], verdict, said)

    def test_normal_builds_hold_no_trace(self):
        self.assertNoTrace([word for word, _, _ in self.known])


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
