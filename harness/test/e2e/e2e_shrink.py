"""shrink as a user runs it: the path is printed, and the same one again; a case that does not fail, or kills its workers; bad input is one line."""

import os
import unittest

import e2e


class Shrink(e2e.TestCase):
    def liar(self, name):
        """A worker that lies in one way: what FACTS_WORKER takes."""
        path = self.write(name, f"#!/bin/sh\nexec {e2e.LIARS} --liar {name}\n")
        os.chmod(path, 0o755)
        return path

    def test_shrink_tells_its_path_and_the_same_one_again(self):
        liar = self.liar("mod-no-gradient")
        case = "pass=bwd dtype=f16 b=3 h=4/2 s=30/44 d=24 mod=softcap:12 fill=uniform padding=random layout=bhsd"

        def shrunk(*words):
            done = e2e.facts("shrink", case, "--device", "cpu", *words, FACTS_WORKER=liar)
            self.assertStatus(done, 1)
            return done.out

        record = ("-o", self.path("s.jsonl"))
        first = shrunk(*record)
        for line in (
            r" +\d+  kept  wrong +layout default +pass=bwd",
            r" +\d+  -     pass +mod default",
            r"pass=bwd dtype=\w+ b=1 h=1 s=1/2 d=\d mod=softcap:1$",
        ):
            self.assertRegex(first, rf"(?m)^{line}")
        self.assertEqual(shrunk("-j1"), first.replace(f"record: {record[1]}\n", ""))
        rows = len(e2e.Record(record[1]).rows)
        self.assertEqual(shrunk(*record, "--resume"), first)
        self.assertEqual(len(e2e.Record(record[1]).rows), rows)
        few = shrunk("--steps", "4")
        self.assertIn("4 steps", few)
        self.assertIn("no steps left", few)

    def test_shrink_of_what_does_not_fail_says_so(self):
        done = e2e.facts("shrink", "pass=fwd s=20 d=8 h=1", "--device", "cpu")
        self.assertStatus(done, 0)
        said = "the case does not fail here (pass), so there is nothing to shrink\n"
        self.assertEqual(done.out, said)

    def test_shrink_survives_what_kills_its_workers(self):
        case = "pass=bwd dtype=f16 b=1 h=1 s=1/128 d=64 guards=off mask=causal"
        done = self.asked("shrink", case)
        self.assertStatus(done, 1)
        for said in ("\npass=bwd dtype=bf16 b=1 h=1 s=1 d=8\n", "**crash", "SIGSEGV"):
            self.assertIn(said, done.out)

    def test_bad_input_is_one_line(self):
        for arguments, words in (
            (["shrink"], ["CASE is missing"]),
            (["shrink", "pass=fwd", "s=3"], ["one case"]),
            (["shrink", "mask=causl", "--device", "cpu"], ["did you mean causal?"]),
            (["shrink", "pass=fwd", "--device", "cpu", "--steps", "x"], ["--steps"]),
        ):
            self.assertOneLine(e2e.facts(*arguments), 2, *words)


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
