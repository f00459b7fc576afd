"""The suites of the peers are what their generators make, and every configuration is there."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "ci/peers"))
import draws  # noqa: E402
import fe  # noqa: E402
import te  # noqa: E402
import write  # noqa: E402


class Peers(unittest.TestCase):
    def test_the_suites_are_what_is_made(self):
        for name, text in write.texts().items():
            self.assertTrue(
                (HOME / "cases/suites" / f"{name}.cases").read_text(encoding="utf-8") == text,
                f"{name}: python3 ci/peers/write.py",
            )

    def test_every_configuration_of_the_frontend_is_a_case(self):
        self.assertEqual(len(draws.TESTS), 22)
        self.assertEqual(sum(test["count"] for test in draws.TESTS.values()), 2336)
        self.assertEqual([lost for _, _, _, lost in fe.groups() if lost], [])
        self.assertEqual(sum(len(cases) for _, _, cases, _ in fe.groups()), 2336)

    def test_a_known_configuration_is_drawn(self):
        # test_sdpa_random_fwd_L0[test1] and its backward sister, as upstream's own generator gives them.
        number, first = draws.configurations("random_fwd")[0]
        self.assertEqual(
            (
                number,
                first["b"],
                first["h_q"],
                first["h_kv"],
                first["s_q"],
                first["s_kv"],
                first["d_qk"],
                first["d_v"],
                first["dtype"],
            ),
            KNOWN_FORWARD,
        )
        number, last = draws.configurations("random_bwd_ragged")[-1]
        self.assertEqual(
            (
                number,
                last["b"],
                last["h_q"],
                last["h_kv"],
                last["s_q"],
                last["s_kv"],
                last["d_qk"],
                last["d_v"],
                last["dtype"],
            ),
            KNOWN_BACKWARD,
        )

    def test_every_configuration_of_transformer_engine_has_a_case(self):
        tables = {}
        for table, name, c in te.rows():
            tables.setdefault(table, []).append(name)
            self.assertTrue(te.lines(table, c), f"{table} {name}")
        self.assertEqual(
            sum(len(names) for table, names in tables.items() if table not in te.WHERE), 214
        )
        self.assertEqual(len(set(tables) - set(te.WHERE)), 23)
        self.assertEqual(len(tables["flash_attn"]) + len(tables["fused_attn"]), 36)

    def test_the_harness_reads_them(self):
        program = Path(os.environ.get("FACTS_BIN", "")) / "facts"
        if not program.is_file():
            self.skipTest("no harness here")
        for suite, count in (("peers-fe", 2336), ("peers-te", 1580)):
            said = subprocess.run(
                [program, "list", suite, "--count"],
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"FACTS_SOURCE": str(HOME)},
            )
            self.assertEqual(int(said.stdout), count)


KNOWN_FORWARD = (1, 1, 3, 1, 380, 380, 128, 128, "f16")
KNOWN_BACKWARD = (256, 14, 1, 1, 138, 420, 64, 64, "bf16")

if __name__ == "__main__":
    unittest.main()
