"""ci/sanitize_gpu.sh against tools that find something, find nothing, see no GPU, or whose program fails."""

import unittest

from scripts import CI, Folder, start

CLEAN = "========= ERROR SUMMARY: 0 errors\n"
READ = "========= Invalid __global__ read of size 4 bytes\n========= ERROR SUMMARY: 1 error\n"
RACE = "========= RACECHECK SUMMARY: {} displayed (0 errors, {} warnings)"
NO_GPU = "========= Error: Target application terminated before first instrumented API call"


class Sanitize(Folder):
    def test_its_exit_is_what_the_tool_found(self):
        program = self.put("program", "#!/bin/sh\n")
        for what, said, tool, status in (
            ("no finding", CLEAN * 2, 0, 0),
            ("no hazard", RACE.format("0 hazards", 0), 0, 0),
            ("a finding in one of many processes", CLEAN * 3 + READ + CLEAN, 0, 1),
            ("a warning of a race", RACE.format("1 hazard", 1), 0, 1),
            ("ten errors", "========= ERROR SUMMARY: 10 errors", 0, 1),
            ("a program that used no GPU", NO_GPU, 0, 3),
            ("a program that fails", CLEAN, 1, 1),
            ("the tool's own status", "", 9, 1),
        ):
            script = f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit {tool}\n"
            add = {"FACTS_SANITIZER": str(self.put("compute-sanitizer", script))}
            done = start(CI / "sanitize_gpu.sh", program, add=add)
            self.assertEqual(done.returncode, status, what)
            self.assertEqual(done.stdout.count("ok "), 0 if status else 4, done.stdout)
            self.assertEqual("Invalid __global__ read" in done.stdout, READ in said)


if __name__ == "__main__":
    unittest.main()
