"""ci/nightly.sh with a facts that says what it was asked."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "nightly.sh"


class Nightly(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.facts = self.folder / "facts"
        self.facts.write_text('#!/bin/sh\necho "$@"\n[ "$1" != fuzz ] || exit 1\n')
        self.facts.chmod(0o755)

    def night(self, device, *steps):
        """The exit status, and what each step asked."""
        out = self.folder / "out"
        done = subprocess.run(
            [SCRIPT, self.facts, "9.20.0", device, out, *steps],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "TARGETS": str(self.folder / "fuzz"),
                "TARGET_SECONDS": "77",
                "TORTURE": "/bin/true",
                "THREADS": "/bin/true",
                "MUTANTS": "/bin/true",
                "PATH": f"{self.folder}:{os.environ['PATH']}",
            },
        )
        self.said = done.stdout
        return done.returncode, {path.stem: path.read_text().strip() for path in out.glob("*.txt")}

    def test_every_step_is_asked_and_the_worst_counts(self):
        status, asked = self.night("0")
        self.assertEqual(status, 1)
        self.assertEqual(
            sorted(asked),
            [
                "clean",
                "core",
                "core-needle",
                "core-neglse",
                "core-spiky",
                "fuzz",
                "liars-1",
                "liars-2",
                "liars-77003",
                "models",
                "nightly",
                "numbers-all",
                "peers-fe",
                "peers-te",
                "smoke",
                "surface",
            ],
        )
        self.assertEqual(asked["clean"], "self --clean 100000")
        self.assertTrue(
            asked["nightly"].startswith("run nightly --cudnn 9.20.0 --device 0 --plan-dir ")
        )
        self.assertTrue(
            asked["core-spiky"].startswith("run core --with fill=spiky --cudnn 9.20.0 ")
        )
        self.assertNotIn("--resume", asked["nightly"])

    def test_a_record_that_is_there_goes_on(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "nightly.jsonl").write_text("")
        self.assertTrue(self.night("0", "suites")[1]["nightly"].endswith("nightly.jsonl --resume"))

    def test_a_described_device_decides(self):
        status, asked = self.night("h100-sxm", "suites")
        self.assertEqual((status, asked["nightly"].split()[0]), (0, "decide"))

    def test_the_fuzz_targets_run_longer_where_they_are_built(self):
        tests = self.folder / "fuzz" / "CTestTestfile.cmake"
        tests.parent.mkdir()
        tests.write_text(
            'add_test(one printenv FACTS_FUZZ_SECONDS)\nset_tests_properties(one PROPERTIES LABELS fuzz PASS_REGULAR_EXPRESSION "^77\n")\n'
        )
        status, asked = self.night("0", "targets")
        self.assertEqual(status, 0, asked)
        (self.folder / "clang-tidy").write_text(
            '#!/bin/sh\ncase "$*" in *max-nodes=225000*) ;; *) exit 1 ;; esac\n'
        )
        (self.folder / "clang-tidy").chmod(0o755)
        self.assertIn("targets", self.night("0")[1])
        self.assertIn("== torture: exit 0", self.said)
        self.assertIn("== tidy: exit 0", self.said)
        tests.write_text("")
        self.assertNotEqual(self.night("0", "targets")[0], 0)

    def test_a_step_that_there_is_not_is_wrong_usage(self):
        self.assertEqual(self.night("0", "sweep")[0], 2)


if __name__ == "__main__":
    unittest.main()
