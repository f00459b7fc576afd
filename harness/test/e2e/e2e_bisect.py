"""bisect as a user runs it, and shrink of what is no failure: real edges between two real builds, an edge that is only our guard, versions that do not
answer or do not repeat, a record that is gone on with, bad input.
"""

import json
import os
import re
import sys
import unittest

import e2e

PAIR = f"{e2e.OLD},{e2e.NEW}"
LOST = "pass=fwd dtype=f32 impl=unified guards=off"  # taken up to 9.25.1; FACTS guards it there on sm_90
KEPT = "pass=fwd dtype=bf16"
CRASH = "pass=bwd dtype=bf16 b=1 h=1 s=1 d=64"  # the planner dies of it from 9.26.0 on


class Versions(e2e.TestCase):
    def setUp(self):
        super().setUp()
        for name in e2e.CI_BUILDS:
            e2e.need(name)

    def asked(self, command, *words, status=0, **more):
        """Of the two builds and a described device, unless the words name others."""
        for option, value in (("--cudnn", PAIR), ("--device", "h100-sxm")):
            words += () if option in words else (option, value)
        done = e2e.facts(command, *words, XDG_CACHE_HOME=self.cache(), **more)
        self.assertStatus(done, status)
        return done

    def bisect(self, *words, **more):
        return self.asked("bisect", *words, **more)

    def cache(self):
        """A cache of our own, so that no answer is there before: its builds are the user's."""
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        os.makedirs(self.path("cache", "facts"), exist_ok=True)
        for name in "cudnn nvrtc digests".split():  # what is not there is a link to nowhere
            if not os.path.lexists(self.path("cache", "facts", name)):
                os.symlink(os.path.join(user, "facts", name), self.path("cache", "facts", name))
        return self.path("cache")

    def worker(self, *lines):
        """A worker that lines of Python stand before; `target` is its first line, looked at and left."""
        peek = (
            f"#!{sys.executable}",
            "import os, socket, sys",
            "stdin, target = socket.socket(fileno=os.dup(0)), b''",
            "while b'\\n' not in target: target = stdin.recv(1 << 20, socket.MSG_PEEK)",
        )
        start = f"os.execv({e2e.WORKER!r}, [{e2e.WORKER!r}])\n"
        path = self.write("worker", "\n".join((*peek, *lines, start)))
        os.chmod(path, 0o755)
        return path


class Bisect(Versions):
    def test_the_edge_is_found_and_can_be_repeated(self):
        done = self.bisect(LOST)
        refused = "unsupported: impl=unified is refused here; accepted: impl=auto"
        words = r"\n +cuDNN: SDPA only supports FP16/BF16/FP8 I/O"
        self.assertIn("lost: last good 9.20.0, first bad 9.27.0\n", done.out)
        known = r"\(known: .*\(unified-f32-illegal-access\)\)\n +instead: use impl=composite, .*"
        sides = rf"\n  9\.20\.0 +supported, .*{known}\n  9\.27\.0 +{refused}{words}\n\n"
        self.assertRegex(done.out, sides)
        again = f"  again: facts decide '{LOST}' --cudnn {PAIR} --device h100-sxm\n"
        self.assertIn(again, done.out)
        edge, whole = map(json.loads, self.bisect(LOST, "--json").out.splitlines())
        found = [(edge[side]["cudnn"], edge[side]["verdict"]) for side in ("before", "after")]
        self.assertEqual(found, [("9.20.0", "supported"), ("9.27.0", "unsupported")])
        found = [edge["change"], *(whole[k] for k in ("outcome", "edges", "whole", "versions"))]
        self.assertEqual(found, ["lost", "found", 1, True, 2])

    def test_without_versions_those_between_two_answers_are_installed_or_a_gap(self):
        cache = self.path("two")
        e2e.needs.place(cache, *e2e.CI_BUILDS)
        offline = {"PIP_INDEX_URL": "http://127.0.0.1:9", "PIP_RETRIES": "0"}
        done = e2e.facts("bisect", LOST, XDG_CACHE_HOME=cache, **offline)
        self.assertStatus(done, 4)
        self.assertIn("lost between: good 9.20.0, bad 9.27.0\n", done.out)
        self.assertRegex(done.out, r"\n  9\.21\.0 .. 9\.26\.1 +could not be asked: .+")
        self.assertEqual(done.err.count(" installing "), 1, "one download that fails is enough")

    def test_equal_ends_are_said(self):
        same = "no change: 9.20.0 and 9.27.0 give the same answer"
        done = self.bisect(KEPT)
        self.assertIn(same + "; --all", done.out)
        self.assertRegex(done.out, r"\n  9\.20\.0 .*supported, engine")
        self.assertIn(same + ", and so does", self.bisect(KEPT, "--all").out)

    def test_cudnn_is_asked_and_the_library_if_the_case_says_so(self):
        done = self.bisect(CRASH)
        self.assertRegex(done.out, r"\n  9\.27\.0 +crash: the worker died of SIGSEGV")
        self.assertIn("worse: last good 9.20.0, first bad 9.27.0\n", done.out)
        done = self.bisect(CRASH + " guards=on")
        self.assertRegex(done.out, r"\n  9\.27\.0 +unsupported: rule bwd-plan-segfault")
        self.assertIn("lost: last good 9.20.0, first bad 9.27.0\n", done.out)

    def test_both_sides_are_asked_again_by_workers_of_their_own(self):
        count, record = self.path("starts"), self.path("r.jsonl")
        # The worker of 9.27.0 is not ready before the answer of 9.20.0 is in the record.
        counts = self.worker(
            f"open({count!r}, 'a').write('.')",
            "import time",
            f"while b'9.27.0-jit-cu13' in target and b'\"verdict\"' not in open({record!r}, 'rb').read(): time.sleep(0.01)",
        )
        self.bisect(LOST, "-o", record, FACTS_WORKER=counts)
        starts = os.path.getsize(count)
        self.assertEqual(starts, 4, "a worker that starts slowly is the only one")
        self.bisect(LOST, "-o", record, "--overwrite", FACTS_WORKER=counts)
        self.assertGreaterEqual(os.path.getsize(count), starts + 2)

    def test_what_does_not_answer_again_or_at_all_is_no_edge(self):
        seen = self.path("seen")
        again = self.worker(
            "if b'9.27.0-jit-cu13' in target:",
            f"    if os.path.exists({seen!r}): sys.exit(3)",
            f"    open({seen!r}, 'w')",
        )
        done = self.bisect(LOST, FACTS_WORKER=again, status=3)
        self.assertIn("facts bisect: fewer than two versions answered\n", done.err)
        unlike = "9.27.0             is not repeatable: unsupported, then "
        for words in ("fewer than two versions", unlike):
            self.assertIn(words, done.out)
        self.assertNotIn("last good", done.out)
        silent = self.worker("if b'9.27.0-jit-cu13' in target: sys.exit(3)")
        whole = self.bisect(LOST, "--all", "--json", FACTS_WORKER=silent, status=3)
        whole = json.loads(whole.out)
        found = [whole["outcome"], whole["whole"], [one["cudnn"] for one in whole["silent"]]]
        self.assertEqual(found, ["nothing", False, ["9.27.0"]])

    def test_the_record_holds_every_answer_and_is_gone_on_with(self):
        record = self.path("r.jsonl")
        self.bisect(LOST, "-o", record)
        rows = sorted((row["build"], row["verdict"]) for row in e2e.Record(record).rows)
        wanted = [(e2e.OLD, "supported"), (e2e.NEW, "unsupported")]
        self.assertEqual(rows, sorted(2 * wanted))
        done = self.bisect(LOST, "-o", record, "--resume")
        self.assertIn("lost: last good 9.20.0, first bad 9.27.0\n", done.out)
        found = len(e2e.Record(record).starts), len(e2e.Record(record).rows)
        self.assertEqual(found, (4, 4), "nobody was asked")
        self.bisect(LOST, "-o", record, status=2)

    def test_other_knobs_of_the_same_engine_are_an_edge_and_a_record_without_them_is_refused(self):
        record = self.path("r.jsonl")
        done = self.bisect(KEPT, "--by", "knobs", "-o", record)
        self.assertRegex(
            done.out,
            r"changed: (engine \d+) KERNEL_CFG=\d+ up to 9\.20\.0, \1 KERNEL_CFG=\d+ STREAM_K=\d+ \S+ \S+ \S+ from 9\.27\.0\n",
        )
        with open(record, encoding="utf-8") as file:
            old = self.write("old.jsonl", re.sub(r'"knobs":\{[^}]*\},', "", file.read()))
        resumed = ("-o", old, "--resume")
        refused = self.bisect(KEPT, "--by", "knobs", *resumed, status=2)
        self.assertOneLine(refused, 2, "has no knobs")
        self.bisect(KEPT, "--by", "engine", *resumed)

    def test_bad_input_is_one_line(self):
        for words, *said in (
            (("pass=fwd dtype=f99",), "f99"),
            ((KEPT, KEPT), "2 words"),
            ((KEPT, "--by", "speed"), "speed", "verdict"),
            ((KEPT, "--resume"), "-o FILE"),
            ((KEPT, "--device", "cpu"), "cpu"),
            ((KEPT, "--device", "h100-sxm,sm80-spec"), "give one"),
            ((KEPT, "--cudnn", "9.20.0"), "one version"),
            ((KEPT, "--cudnn", "8.1..8.2"), "8.1..8.2"),
        ):
            self.assertOneLine(self.bisect(*words, status=2), 2, *said)


class Shrink(Versions):
    def shrink(self, case, *words, status=0):
        return self.asked("shrink", case, "--cudnn", e2e.NEW, *words, status=status)

    def test_a_refusal_is_shrunk_by_its_reason(self):
        case = "pass=fwd dtype=bf16 b=4 h=16/4 s=1000/2000 d=100 mask=causal"
        self.assertIn("--by reason", self.shrink(case).out)
        reason = "unsupported: Embedding dim per head for q and k is not a multiple of 8"
        again = f"facts decide 'pass=fwd dtype=bf16 b=1 h=1 s=1 d=1' --cudnn {e2e.NEW}"
        done = self.shrink(case, "--by", "reason")
        self.assertIn(f"the same reason: {reason}\n  {again} --device h100-sxm\n", done.out)

    def test_what_an_engine_serves_is_shrunk_by_the_engine(self):
        case = "pass=fwd dtype=f16 b=4 h=16/4 s=1000/2000 mask=causal"
        engine = r"the same engine: engine \d+\n  facts decide 'pass=fwd dtype=\S+ b=1 h=1 "
        self.assertRegex(self.shrink(case, "--by", "engine").out, engine)

    def test_a_crash_of_the_planner_costs_a_worker_and_not_the_search(self):
        case = "pass=bwd dtype=f16 b=1 h=1 s=1/128 d=64 mask=causal guards=off"
        done = self.shrink(case, status=1)
        self.assertIn("\npass=bwd dtype=bf16 b=1 h=1 s=1 d=8\n", done.out)


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
