"""atlas.py names what got slower, and how often the first choice is not the fastest; of an invented record of three versions."""

import contextlib
import io
import json
import pathlib
import random
import sys
import tempfile
import unittest

CI = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CI))
import atlas  # noqa: E402
from facts_reports import bench  # noqa: E402

VERSIONS = ("9.9.0", "9.14.0", "9.27.0")  # by number, not by letters
# case: {version: {config: µs}}; configuration c is engine 10 + c
TIMES = {
    "pass=fwd dtype=bf16 s=4096 engine=all": {
        "9.9.0": {0: 100.0, 1: 140.0},
        "9.14.0": {0: 100.2, 1: 140.0},
        "9.27.0": {0: 112.0, 1: 141.0},
    },  # slower at the end
    "pass=fwd dtype=bf16 s=1/8192 engine=all": {
        "9.9.0": {0: 50.0, 1: 40.0},
        "9.14.0": {0: 40.0, 1: 50.0},
        "9.27.0": {0: 40.0, 1: 50.0},
    },  # first choice was not the fastest
    "pass=bwd dtype=bf16 s=4096 engine=all": {
        "9.14.0": {0: 900.0},
        "9.27.0": {0: 800.0},
    },  # new, then faster
}


def lines():
    rng = random.Random(1)
    for case, sides in TIMES.items():
        for version, us in sides.items():
            side = VERSIONS[::-1].index(version)  # asked in another order
            engines = [
                {"mode": "A", "index": 10 + c, "config": c, "knobs": {"TILE_M": c}} for c in us
            ]
            for c in us:
                yield {
                    "case": case,
                    "cudnn": version,
                    "build": f"{version}-jit-cu13",
                    "device": "gpu",
                    "verdict": "pass",
                    "grade": "measured",
                    "engine": 10 + c,
                    "config": c,
                    "engines": engines,
                    "group": "bench.some" if "fwd" in case else "bench.other",
                    "run": "r",
                }
            for n in range(16):
                turn = {
                    "configs": [
                        {"config": c, "launches": 1, "us": [x * (1 + rng.gauss(0, 0.001))] * 5}
                        for c, x in us.items()
                    ]
                }
                yield {
                    "time": {
                        "run": "r",
                        "case": case,
                        "build": f"{version}-jit-cu13",
                        "device": "gpu",
                        "side": side,
                        "round": n,
                        "turn": turn,
                    }
                }


class Atlas(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.path = self.folder / "r.jsonl"
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines()), encoding="utf-8")

    def test_what_moved_is_named_between_neighbouring_versions(self):
        record, _ = bench.load([str(self.path)])
        forward, decode, backward = TIMES
        moved = [
            (name, a, b, found.word)
            for name, a, b, found, _, _ in atlas.steps(record)
            if found.word != "same"
        ]
        self.assertEqual(
            moved,
            [
                (forward, "9.14.0", "9.27.0", "slower"),
                (decode, "9.9.0", "9.14.0", "faster"),
                (backward, "9.14.0", "9.27.0", "faster"),
            ],
        )
        same = {
            (name, a, engine): found.word
            for name, a, _, found, engine, _ in atlas.same_engine_steps(record)
        }
        self.assertEqual(
            (
                same[forward, "9.14.0", "10 tile_m=0"],
                same[forward, "9.14.0", "11 tile_m=1"],
                same[decode, "9.9.0", "11 tile_m=1"],
            ),
            ("slower", "same", "slower"),
        )
        choices = atlas.first_choices(record)
        self.assertEqual(
            {v: (count, len(found)) for v, (count, found) in choices.items()},
            {"9.9.0": (2, 1), "9.14.0": (2, 0), "9.27.0": (2, 0)},
        )
        ratio, name, first, fastest = choices["9.9.0"][1][0]
        self.assertAlmostEqual(ratio, 1.25, delta=0.01)
        self.assertEqual((name, first, fastest), (decode, "10 tile_m=0", "11 tile_m=1"))

    def test_the_page_says_it(self):
        record, _ = bench.load([str(self.path)])
        page = atlas.page(record, [("bench.some", "bench.some.svg")])
        self.assertIn("| 9.9.0 | 2 | 1 (50%) | 1.25 | 1.25 |", page)
        self.assertIn("| 9.14.0 → 9.27.0 | 1 | 1 | 1 | 0 | 0 |", page)
        self.assertRegex(
            page, r"\| `pass=fwd s=4096` \| 9\.14\.0 → 9\.27\.0 \| 1\.11\d \(.*\) \| 10 tile_m=0 \|"
        )
        self.assertEqual(page.index("# Atlas"), 0)
        self.assertIn("![bench.some](bench.some.svg)", page)

    def test_each_group_is_a_plot_and_the_same_record_the_same_bytes(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(
                [
                    atlas.main([str(self.path), "-o", str(self.folder / name)])
                    for name in ("a", "b")
                ],
                [0, 0],
            )
        names = sorted(p.name for p in (self.folder / "a").iterdir())
        self.assertEqual(names, ["atlas.md", "bench.other.svg", "bench.some.svg"])
        for name in names:
            self.assertEqual(
                (self.folder / "a" / name).read_bytes(),
                (self.folder / "b" / name).read_bytes(),
                name,
            )

    def test_a_record_without_times_is_5(self):
        self.path.write_text(
            '{"case":"pass=fwd dtype=bf16","build":"b","device":"d","verdict":"pass"}\n',
            encoding="utf-8",
        )
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(atlas.main([str(self.path), "-o", str(self.folder / "a")]), 5)
            self.assertEqual(
                atlas.main([str(self.folder / "none"), "-o", str(self.folder / "a")]), 2
            )


if __name__ == "__main__":
    unittest.main()
