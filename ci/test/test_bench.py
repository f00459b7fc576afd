"""bench.py reads records right; what of it needs neither a GPU nor a build of cuDNN."""

import pathlib
import sys
import unittest

CI = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CI))
import bench  # noqa: E402


def row(case, verdict="pass", **more):
    at = {"case": case, "build": "b", "device": "d", "backend": "cudnn"}
    return {**at, "verdict": verdict, "wall_ms": 10.0, **more}


class BenchRun(unittest.TestCase):
    def test_what_was_compiled_loaded_and_refused_is_counted(self):
        rows = [
            row("a", plan_ms=500.0),
            row("b", plan_ms=1.0, plan_loaded=True),
            row("c", "unsupported", refusal_loaded=True),
            row("d", "unsupported"),
        ]
        self.assertEqual(
            bench.counts(rows), {"rows": 4, "refused": 2, "compiled": 1, "loaded": 1, "refusals": 1}
        )
        self.assertEqual(
            bench.counts([row("e", plan_ms=0.0, backend="math")])["compiled"],
            0,
            "as facts run counts",
        )

    def test_a_configuration_has_its_own_time_and_not_that_since_its_request(self):
        rows = [
            row("a", wall_ms=5.0, more=True),
            row("b", wall_ms=7.0),
            row("a", wall_ms=8.0, more=True),
            row("a", wall_ms=20.0),
            row("a", wall_ms=4.0),
        ]
        self.assertEqual(bench.own_ms(rows), [5.0, 7.0, 3.0, 12.0, 4.0])

    def test_what_pytest_executed_is_read_from_its_last_line(self):
        self.assertEqual(
            bench.passed_of(
                "=== 3 failed, 1200 passed, 400 skipped, 2 warnings in 480.50s (0:08:00) ==="
            ),
            (1203, 480.5),
        )
        self.assertEqual(bench.passed_of("no tests ran"), (0, 0.0))
        self.assertEqual(
            bench.passed_of("ERROR test_mhas_v2.py\n1 error in 0.89s"),
            (0, 0.0),
            "a test that cannot be imported was not executed",
        )


if __name__ == "__main__":
    unittest.main()
