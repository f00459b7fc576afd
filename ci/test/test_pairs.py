"""core has all pairs and triples of features that cuDNN 9.27.0 accepts on an H100; the check can say no."""

import unittest

import needs
from scripts import BUILD, HOME, start

ASKED = ("--cudnn", "9.27.0", "--device", "h100-sxm")


class Pairs(unittest.TestCase):
    def ask(self, *words):
        add = {"FACTS_BIN": str(BUILD / "bin")}
        return start(HOME / "ci/pairs.py", *ASKED, *words, add=add)

    def test_core_has_what_is_accepted(self):
        for words, said in ((), r"1\d{3} pairs"), (("--triples",), r"\d{3} triples"):
            done = self.ask(*words)
            self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
            self.assertRegex(done.stdout, rf"^{said} in core; \d+ are in no case, 0 accepted\n$")

    @needs.night
    def test_a_missing_pair_is_printed(self):
        done = self.ask("--suite", "silent")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("\npass=bwd b=2 h=2 s=200 d=64 layout=", done.stdout)


if __name__ == "__main__":
    unittest.main()
