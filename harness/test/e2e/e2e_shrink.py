"""shrink as a user runs it: the path is printed, and the same one again; a case that does not fail, or kills its workers; bad input is one line."""

import os
import unittest

import e2e

LIARS = os.path.join(e2e.BIN, "facts-worker-liars")


class Shrink(e2e.TestCase):
    def liar(self, name):
        """A worker that lies in one way: what FACTS_WORKER takes."""
        path = self.write(name, f"#!/bin/sh\nexec {LIARS} --liar {name}\n")
        os.chmod(path, 0o755)
        return path

    def test_shrink_tells_its_path_and_the_same_one_again(self):
        liar = self.liar("mod-no-gradient")
        case = "pass=bwd dtype=f16 b=3 h=4/2 s=30/44 d=24 mod=softcap:12 fill=uniform padding=random layout=bhsd"
        first = e2e.facts("shrink", case, "--device", "cpu", FACTS_WORKER=liar)
        self.assertStatus(first, 1)
        self.assertRegex(first.out, r"(?m)^ +\d+  kept  wrong +layout default +pass=bwd")
        self.assertRegex(first.out, r"(?m)^ +\d+  -     pass +mod default")
        self.assertRegex(first.out, r"(?m)^pass=bwd dtype=\w+ b=1 h=1 s=1/2 d=\d mod=softcap:1$")
        self.assertEqual(
            e2e.facts("shrink", case, "--device", "cpu", "-j1", FACTS_WORKER=liar).out, first.out
        )
        few = e2e.facts("shrink", case, "--device", "cpu", "--steps", "4", FACTS_WORKER=liar)
        self.assertStatus(few, 1)
        self.assertIn("4 steps", few.out)
        self.assertIn("no steps left", few.out)
        kept = e2e.facts(
            "shrink", case, "--device", "cpu", "-o", self.path("s.jsonl"), FACTS_WORKER=liar
        )
        rows = len(e2e.Record(self.path("s.jsonl")).rows)
        self.assertEqual(kept.out.replace(f"record: {self.path('s.jsonl')}\n", ""), first.out)
        again = e2e.facts(
            "shrink",
            case,
            "--device",
            "cpu",
            "-o",
            self.path("s.jsonl"),
            "--resume",
            FACTS_WORKER=liar,
        )
        self.assertStatus(again, 1)
        self.assertEqual(again.out, kept.out)
        self.assertEqual(len(e2e.Record(self.path("s.jsonl")).rows), rows)

    def test_shrink_of_what_does_not_fail_says_so(self):
        done = e2e.facts("shrink", "pass=fwd s=20 d=8 h=1", "--device", "cpu")
        self.assertStatus(done, 0)
        self.assertEqual(
            done.out, "the case does not fail here (pass), so there is nothing to shrink\n"
        )

    def test_shrink_survives_what_kills_its_workers(self):
        build = e2e.need(e2e.NEW)
        done = e2e.facts(
            "shrink",
            "pass=bwd dtype=f16 b=1 h=1 s=1/128 d=64 guards=off mask=causal",
            "--cudnn",
            build.name,
            "--device",
            "h100-sxm",
        )
        self.assertStatus(done, 1)
        self.assertIn("\npass=bwd dtype=bf16 b=1 h=1 s=1 d=8 guards=off\n", done.out)
        self.assertIn("**crash", done.out)
        self.assertIn("SIGSEGV", done.out)

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
