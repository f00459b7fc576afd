"""bench_frontend.py asks both sides the same problem; what of it needs no GPU."""

import pathlib
import sys
import unittest

from scripts import start

CI = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CI / "bench"))
import bench_frontend as bench  # noqa: E402


class BenchFrontend(unittest.TestCase):
    def test_a_plan_is_its_engine_and_knobs_and_their_own_engines_are_none(self):
        self.assertEqual(bench.parse_plan("eng9_k24=1_k27=0_k41=2"), (9, {24: 1, 27: 0, 41: 2}))
        self.assertEqual(bench.parse_plan("eng8"), (8, {}))
        self.assertIsNone(bench.parse_plan("sdpa_fwd_prefill_sm90[TILE_M=128]"))
        self.assertEqual(bench.words_of_plan(9, {41: 2, 24: 1}), "9 24=1 41=2")

    def test_every_entry_has_a_length_and_every_page_its_own_place_in_the_pool(self):
        for p in bench.PACKED + bench.PAGED:
            self.assertEqual(len(p.lens), p.b)
            self.assertTrue(all(1 <= n <= p.s_kv for n in p.lens))
            if p.page:
                table, pool = bench.pages_of(p)
                self.assertEqual(
                    len(
                        {2 * (i * 7919 % (p.b * table)) for i in range(p.b * table)}
                        & set(range(pool))
                    ),
                    p.b * table,
                )

    def test_a_token_of_each_tensor_is_what_one_row_or_key_holds(self):
        p = bench.PACKED[-1]
        tokens = {name: token for name, (_, token) in bench.shapes_of(p).items()}
        self.assertEqual({tokens[n] for n in ("q", "o", "do", "dq")}, {p.h * p.d})
        self.assertEqual({tokens[n] for n in ("k", "v", "dk", "dv")}, {p.h_k * p.d})
        self.assertEqual(tokens["stats"], p.h)

    def test_a_ratio_is_of_turns_and_of_nothing_where_outputs_differ(self):
        self.assertEqual(
            bench.ratio_of([2.0, 3.0, 4.0], [2.0, 2.0, 2.0], 0.001), "1.500 (1.000 to 2.000)"
        )
        self.assertEqual(bench.ratio_of([1.0], [2.0], 0), "0.500 (0.500 to 0.500) below 0.98")
        self.assertEqual(bench.ratio_of([23.2], [172.4], 1.0), "not compared: outputs differ by 1")

    def test_every_case_is_in_the_list_once_and_gradients_come_last(self):
        self.assertEqual(sorted(bench.CASES), sorted(bench.PACKED + bench.PAGED))
        passes = [p.pas for p in bench.CASES]
        self.assertEqual(passes, sorted(passes, reverse=True))

    def test_what_is_missing_is_one_line_and_exit_3(self):
        done = start(sys.executable, CI / "bench.py", "frontend", "bench_device", "/nowhere")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
