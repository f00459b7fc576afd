"""ci/nightly.sh with a facts that says what it was asked."""
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
        done = subprocess.run([SCRIPT, self.facts, "9.20.0", device, out, *steps], capture_output=True, text=True, check=False)
        return done.returncode, {path.stem: path.read_text().strip() for path in out.glob("*.txt")}

    def test_every_step_is_asked_and_the_worst_counts(self):
        status, asked = self.night("0")
        self.assertEqual(status, 1)
        self.assertEqual(sorted(asked), ["clean", "fuzz", "liars", "suites"])
        self.assertEqual(asked["clean"], "self --clean 100000")
        self.assertTrue(asked["suites"].startswith("run nightly --cudnn 9.20.0 --device 0 -o "))
        self.assertNotIn("--resume", asked["suites"])

    def test_a_record_that_is_there_goes_on(self):
        (self.folder / "out").mkdir()
        (self.folder / "out" / "nightly.jsonl").write_text("")
        self.assertTrue(self.night("0", "suites")[1]["suites"].endswith("nightly.jsonl --resume"))

    def test_a_described_device_decides(self):
        status, asked = self.night("h100-sxm", "suites")
        self.assertEqual((status, asked["suites"].split()[0]), (0, "decide"))

    def test_a_step_that_there_is_not_is_wrong_usage(self):
        self.assertEqual(self.night("0", "sweep")[0], 2)


if __name__ == "__main__":
    unittest.main()
