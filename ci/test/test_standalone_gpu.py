"""ci/standalone_gpu.sh with a FACTS that writes small programs: the table, and who agrees with whom."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "standalone_gpu.sh"

# A facts that knows one build, and whose programs end as the case says: "verdict=nan status=1".
FACTS = """#!/bin/sh
if [ "$1" = cudnn ]; then
    echo "9.20.0-jit-cu13    9.20.0.48   cu13  jit   cache    HERE/build/lib  (NVRTC: built in)"
    exit 0
fi
case=$2
while [ "$1" != --standalone ] && [ "$1" != --dump ]; do shift; done
eval "$case"
if [ "$verdict" = none ]; then
    echo "facts repro: --standalone: exec=graph_native: the program makes one call, eager or as a CUDA graph" >&2
    exit 3
fi
if [ "$1" = --dump ]; then
    echo "  verdict     ${first:-$verdict}"
    echo "  dumped      [o.npy]"
    echo "  verdict     $verdict"
    echo "  dumped      [o.npy]"
    echo "  verdict     $last"
    printf 'import sys\\nprint("o FAIL")\\nprint("FAIL" if %s else "PASS")\\nsys.exit(%s)\\n' "$status" "$status" >"$2/check.py"
    exit 1
fi
echo "- verdict: $verdict" >"$2/README.md"
printf 'repro:\\n\\tprintf "#!/bin/sh\\\\necho o FAIL; [ %s = 0 ] || echo FAIL; exit %s" > repro\\n\\tchmod +x repro\\n' "$status" "$status" >"$2/Makefile"
exit 1
"""


class Standalone(unittest.TestCase):
    def table(self, *lines, version="9.20.0", options=()):
        with tempfile.TemporaryDirectory() as folder:
            here = pathlib.Path(folder)
            (here / "build" / "lib").mkdir(parents=True)
            (here / "build" / "lib" / "libcudnn.so.9").touch()
            (here / "facts").write_text(FACTS.replace("HERE", folder))
            (here / "facts").chmod(0o755)
            (here / "list").write_text("# a comment\n" + "\n".join(lines) + "\n")
            done = subprocess.run(
                [SCRIPT, *options, here / "facts", version, here / "out", here / "list"],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
                env={**os.environ, "PROGRAM_SECONDS": "5"},
            )
            return done.returncode, done.stdout + done.stderr

    def test_a_program_that_shows_what_facts_saw_agrees(self):
        status, said = self.table(
            "a-nan verdict=nan status=1",
            "a-pass verdict=pass status=0",
            "a-crash verdict=crash status=139",
            "refused verdict=unsupported status=1",
        )
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(?m)^a-nan +nan +FAIL *$")
        self.assertRegex(said, r"(?m)^a-crash +crash +exit 139 *$")
        self.assertIn("4 of 4 programs", said)

    def test_a_program_that_does_not_fails_the_run(self):
        status, said = self.table(
            "missed verdict=nan status=0",
            "alarm verdict=pass status=1",
            "good verdict=nan status=1",
        )
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^missed +nan +PASS +DIFFERS")
        self.assertRegex(said, r"(?m)^alarm +pass +FAIL +DIFFERS")
        self.assertIn("1 of 3 programs", said)

    def test_what_cannot_be_said_is_counted_apart(self):
        status, said = self.table("unsaid verdict=none", "good verdict=nan status=1")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(?m)^unsaid +facts repro: --standalone: exec=graph_native")
        self.assertIn("1 cases cannot be said", said)

    def test_a_dump_is_judged_by_its_script(self):
        status, said = self.table(
            "a-nan first=pass verdict=nan status=1 last=pass",
            "missed verdict=wrong status=0",
            options=["--numpy"],
        )
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^a-nan +nan +FAIL *$")
        self.assertRegex(said, r"(?m)^missed +wrong +PASS +DIFFERS")

    def test_a_version_that_is_not_here_is_3(self):
        status, said = self.table("a verdict=nan status=1", version="9.21.0")
        self.assertEqual(status, 3, said)
        self.assertIn("cuDNN 9.21.0 is not here", said)


if __name__ == "__main__":
    unittest.main()
