"""ci/nightly.sh with a facts that says what it was asked."""

import os
import unittest

from scripts import CI, Folder, start

STEPS = """clean core core-needle core-neglse core-spiky fuzz liars-1 liars-2 liars-77003 models nightly
numbers-all peers-fe peers-te smoke surface""".split()


class Nightly(Folder):
    def setUp(self):
        super().setUp()
        self.facts = self.put("facts", '#!/bin/sh\necho "$@"\n[ "$1" != fuzz ] || exit 1\n')

    def night(self, device, *steps):
        """The exit status, and what each step asked."""
        out = self.at / "out"
        add = {
            "TARGETS": str(self.at / "fuzz"),
            "TARGET_SECONDS": "77",
            "PATH": f"{self.at}:{os.environ['PATH']}",
            **dict.fromkeys(("TORTURE", "THREADS", "MUTANTS", "PINS", "FRESH"), "/bin/true"),
        }
        done = start(CI / "nightly.sh", self.facts, "9.20.0", device, out, *steps, add=add)
        self.said = done.stdout
        return done.returncode, {path.stem: path.read_text().strip() for path in out.glob("*.txt")}

    def test_every_step_is_asked_and_the_worst_counts(self):
        status, asked = self.night("0")
        self.assertEqual((status, sorted(asked)), (1, STEPS))
        self.assertEqual(asked["clean"], "self --clean 100000")
        for step, words in (
            ("nightly", "run nightly --cudnn 9.20.0 --device 0 --plan-dir "),
            ("core-spiky", "run core --with fill=spiky --cudnn 9.20.0 "),
        ):
            self.assertTrue(asked[step].startswith(words), asked[step])
        self.assertNotIn("--resume", asked["nightly"])
        # A record that is there goes on; a described device decides.
        self.put("out/nightly.jsonl", "")
        self.assertTrue(self.night("0", "suites")[1]["nightly"].endswith("nightly.jsonl --resume"))
        status, asked = self.night("h100-sxm", "suites")
        self.assertEqual((status, asked["nightly"].split()[0]), (0, "decide"))
        self.assertEqual(self.night("0", "sweep")[0], 2)  # there is no such step

    def test_the_fuzz_targets_run_longer_where_they_are_built(self):
        tests = self.put(
            "fuzz/CTestTestfile.cmake",
            "add_test(one printenv FACTS_FUZZ_SECONDS)\n"
            'set_tests_properties(one PROPERTIES LABELS fuzz PASS_REGULAR_EXPRESSION "^77\n")\n',
        )
        status, asked = self.night("0", "targets")
        self.assertEqual(status, 0, asked)
        tidy = 'case "$*" in *max-nodes=225000*) ;; *) exit 1 ;; esac'
        self.put("clang-tidy", f"#!/bin/sh\n{tidy}\n")
        self.assertIn("targets", self.night("0")[1])
        for step in ("torture", "pins", "fresh-forky-amd64", "tidy"):
            self.assertIn(f"== {step}: exit 0", self.said)
        tests.write_text("")
        self.assertNotEqual(self.night("0", "targets")[0], 0)


if __name__ == "__main__":
    unittest.main()
