"""ci/sanitize_gpu.sh against tools that find something, find nothing, see no GPU, or whose program fails."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "sanitize_gpu.sh"


class Sanitize(unittest.TestCase):
    def sanitize(self, said, status=0):
        """With a compute-sanitizer that says this."""
        with tempfile.TemporaryDirectory() as folder:
            tool, program = (
                pathlib.Path(folder, "compute-sanitizer"),
                pathlib.Path(folder, "program"),
            )
            tool.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {status}\n")
            program.write_text("#!/bin/sh\n")
            for path in (tool, program):
                path.chmod(0o755)
            done = subprocess.run(
                [SCRIPT, program],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "FACTS_SANITIZER": str(tool)},
            )
            return done.returncode, done.stdout

    def test_no_finding_passes(self):
        status, said = self.sanitize(
            "========= ERROR SUMMARY: 0 errors\n========= ERROR SUMMARY: 0 errors"
        )
        self.assertEqual((status, said.count("ok ")), (0, 4), said)

    def test_no_hazard_passes(self):
        self.assertEqual(
            self.sanitize(
                "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
            )[0],
            0,
        )

    def test_a_finding_in_one_of_many_processes_fails(self):
        clean = "========= ERROR SUMMARY: 0 errors\n"
        status, said = self.sanitize(
            clean * 3
            + "========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"
            + clean
        )
        self.assertEqual(status, 1)
        self.assertIn("Invalid __global__ read", said)

    def test_a_warning_of_a_race_fails(self):
        self.assertEqual(
            self.sanitize("========= RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)")[
                0
            ],
            1,
        )

    def test_ten_errors_are_not_none(self):
        self.assertEqual(self.sanitize("========= ERROR SUMMARY: 10 errors")[0], 1)

    def test_a_program_that_used_no_gpu_was_not_checked(self):
        self.assertEqual(
            self.sanitize(
                "========= Error: Target application terminated before first instrumented API call"
            )[0],
            3,
        )

    def test_a_program_that_fails_fails(self):
        self.assertEqual(self.sanitize("========= ERROR SUMMARY: 0 errors", status=1)[0], 1)

    def test_the_tools_own_status_is_enough(self):
        self.assertEqual(self.sanitize("", status=9)[0], 1)


if __name__ == "__main__":
    unittest.main()
