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

    def bisect(self, *arguments, **more):
        for option, value in (("--cudnn", PAIR), ("--device", "h100-sxm")):
            if option not in arguments:
                arguments += (option, value)
        return e2e.facts("bisect", *arguments, XDG_CACHE_HOME=self.cache(), **more)

    def cache(self):
        """A cache of our own, so that no answer is there before: its builds are the user's."""
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        os.makedirs(self.path("cache", "facts"), exist_ok=True)
        for name in ("cudnn", "nvrtc"):
            if not os.path.lexists(
                self.path("cache", "facts", name)
            ):  # there may be nothing behind it: no NVRTC is cached beside a toolkit
                os.symlink(os.path.join(user, "facts", name), self.path("cache", "facts", name))
        return self.path("cache")

    def worker(self, *lines):
        """A worker that lines of Python stand before; `target` is its first line, looked at and left."""
        peek = [
            "import os, socket, sys",
            "stdin, target = socket.socket(fileno=os.dup(0)), b''",
            "while b'\\n' not in target: target = stdin.recv(1 << 20, socket.MSG_PEEK)",
        ]
        path = self.write(
            "worker",
            "\n".join(
                [
                    f"#!{sys.executable}",
                    *peek,
                    *lines,
                    f"os.execv({e2e.WORKER!r}, [{e2e.WORKER!r}])",
                    "",
                ]
            ),
        )
        os.chmod(path, 0o755)
        return path


class Bisect(Versions):
    def test_the_edge_is_found_and_can_be_repeated(self):
        done = self.bisect(LOST)
        self.assertStatus(done, 0)
        self.assertIn("lost: last good 9.20.0, first bad 9.27.0\n", done.out)
        self.assertRegex(
            done.out,
            r"\n  9\.20\.0 +supported, .*\n  9\.27\.0 +unsupported: SDPA only supports FP16/BF16/FP8 I/O\n",
        )
        self.assertIn(
            f"  again: facts decide '{LOST}' --cudnn {PAIR} --device h100-sxm\n", done.out
        )

    def test_one_json_object_for_an_edge_and_one_for_the_whole(self):
        done = self.bisect(LOST, "--json")
        self.assertStatus(done, 0)
        edge, whole = map(json.loads, done.out.splitlines())
        self.assertEqual(
            (edge["change"], edge["before"]["cudnn"], edge["after"]["cudnn"]),
            ("lost", "9.20.0", "9.27.0"),
        )
        self.assertEqual(
            (edge["before"]["verdict"], edge["after"]["verdict"]), ("supported", "unsupported")
        )
        self.assertEqual(
            (whole["outcome"], whole["edges"], whole["whole"], whole["versions"]),
            ("found", 1, True, 2),
        )

    def test_equal_ends_are_said(self):
        done = self.bisect(KEPT)
        self.assertStatus(done, 0)
        self.assertIn("no change: 9.20.0 and 9.27.0 give the same answer; --all", done.out)
        self.assertRegex(done.out, r"\n  9\.20\.0 .*supported, engine")
        self.assertIn(
            "no change: 9.20.0 and 9.27.0 give the same answer, and so does",
            self.bisect(KEPT, "--all").out,
        )

    def test_an_edge_that_is_our_guards_is_told_apart(self):
        done = self.bisect(CRASH)
        self.assertStatus(done, 0)
        self.assertIn("a guard of FACTS refuses 9.27.0: ", done.out)
        self.assertIn(
            f"facts bisect '{CRASH} guards=off' --cudnn 9.20.0..9.27.0 --device h100-sxm\n",
            done.out,
        )
        done = self.bisect(CRASH + " guards=off")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"\n  9\.27\.0 +crash: the worker died of SIGSEGV")
        self.assertNotIn("a guard of FACTS", done.out)

    def test_both_sides_are_asked_again_by_workers_of_their_own(self):
        count, record = self.path("starts"), self.path("r.jsonl")
        # The worker of 9.27.0 is not ready before the answer of 9.20.0 is in the record.
        counts = self.worker(
            f"open({count!r}, 'a').write('.')",
            "import time",
            f"while b'9.27.0-jit-cu13' in target and b'\"verdict\"' not in open({record!r}, 'rb').read(): time.sleep(0.01)",
        )
        self.assertStatus(self.bisect(LOST, "-o", record, FACTS_WORKER=counts), 0)
        starts = os.path.getsize(count)
        self.assertEqual(starts, 4, "a worker that starts slowly is the only one")
        self.assertStatus(self.bisect(LOST, "-o", record, "--overwrite", FACTS_WORKER=counts), 0)
        self.assertGreaterEqual(os.path.getsize(count), starts + 2)

    def test_what_does_not_answer_again_is_no_edge(self):
        seen = self.path("seen")
        again = self.worker(
            "if b'9.27.0-jit-cu13' in target:",
            f"    if os.path.exists({seen!r}): sys.exit(3)",
            f"    open({seen!r}, 'w')",
        )
        done = self.bisect(LOST, FACTS_WORKER=again)
        self.assertStatus(done, 3)
        self.assertIn("fewer than two versions", done.out)
        self.assertIn(
            "facts bisect: fewer than two versions answered\n", done.err, "the reason of exit 3"
        )
        self.assertIn("9.27.0             is not repeatable: unsupported, then ", done.out)
        self.assertNotIn("last good", done.out)

    def test_a_version_that_cannot_be_asked_is_named(self):
        done = self.bisect(
            LOST,
            "--all",
            "--json",
            FACTS_WORKER=self.worker("if b'9.27.0-jit-cu13' in target: sys.exit(3)"),
        )
        self.assertStatus(done, 3)
        whole = json.loads(done.out)
        self.assertEqual((whole["outcome"], whole["whole"]), ("nothing", False))
        self.assertEqual([silent["cudnn"] for silent in whole["silent"]], ["9.27.0"])

    def test_the_record_holds_every_answer_and_is_gone_on_with(self):
        record = self.path("r.jsonl")
        self.assertStatus(self.bisect(LOST, "-o", record), 0)
        rows = [(row["build"], row["verdict"]) for row in e2e.Record(record).rows]
        self.assertEqual(
            sorted(rows), 2 * [(e2e.OLD, "supported")] + 2 * [(e2e.NEW, "unsupported")]
        )
        done = self.bisect(LOST, "-o", record, "--resume")
        self.assertStatus(done, 0)
        self.assertIn("lost: last good 9.20.0, first bad 9.27.0\n", done.out)
        self.assertEqual(len(e2e.Record(record).starts), 4, "nobody was asked")
        self.assertEqual(len(e2e.Record(record).rows), 4)
        self.assertStatus(self.bisect(LOST, "-o", record), 2)

    def test_other_knobs_of_the_same_engine_are_an_edge_and_a_record_without_them_is_refused(self):
        record = self.path("r.jsonl")
        done = self.bisect(KEPT, "--by", "knobs", "-o", record)
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out,
            r"changed: (engine \d+) KERNEL_CFG=\d+ up to 9\.20\.0, \1 KERNEL_CFG=\d+ STREAM_K=\d+ \S+ \S+ \S+ from 9\.27\.0\n",
        )
        with open(record, encoding="utf-8") as file:
            self.write("old.jsonl", re.sub(r'"knobs":\{[^}]*\},', "", file.read()))
        self.assertOneLine(
            self.bisect(KEPT, "--by", "knobs", "-o", self.path("old.jsonl"), "--resume"),
            2,
            "has no knobs",
        )
        self.assertStatus(
            self.bisect(KEPT, "--by", "engine", "-o", self.path("old.jsonl"), "--resume"), 0
        )

    def test_bad_input_is_one_line(self):
        self.assertOneLine(self.bisect("pass=fwd dtype=f99"), 2, "f99")
        self.assertOneLine(self.bisect(KEPT, KEPT), 2, "2 words")
        self.assertOneLine(self.bisect(KEPT, "--by", "speed"), 2, "speed", "verdict")
        self.assertOneLine(self.bisect(KEPT, "--resume"), 2, "-o FILE")
        self.assertOneLine(self.bisect(KEPT, "--device", "cpu"), 2, "cpu")
        self.assertOneLine(self.bisect(KEPT, "--device", "h100-sxm,sm80-spec"), 2, "give one")
        self.assertOneLine(self.bisect(KEPT, "--cudnn", "9.20.0"), 2, "one version")
        self.assertOneLine(self.bisect(KEPT, "--cudnn", "8.1..8.2"), 2, "8.1..8.2")


class Shrink(Versions):
    def shrink(self, case, *arguments):
        return e2e.facts(
            "shrink",
            case,
            "--cudnn",
            e2e.NEW,
            "--device",
            "h100-sxm",
            *arguments,
            XDG_CACHE_HOME=self.cache(),
        )

    def test_a_refusal_is_shrunk_by_its_reason(self):
        case = "pass=fwd dtype=bf16 b=4 h=16/4 s=1000/2000 d=100 mask=causal"
        done = self.shrink(case)
        self.assertStatus(done, 0)
        self.assertIn("--by reason", done.out)
        done = self.shrink(case, "--by", "reason")
        self.assertStatus(done, 0)
        self.assertIn(
            "the same reason: unsupported: Embedding dim per head for q and k is not a multiple of 8\n"
            f"  facts decide 'pass=fwd dtype=bf16 b=1 h=1 s=1 d=1' --cudnn {e2e.NEW} --device h100-sxm\n",
            done.out,
        )

    def test_what_an_engine_serves_is_shrunk_by_the_engine(self):
        done = self.shrink(
            "pass=fwd dtype=f16 b=4 h=16/4 s=1000/2000 mask=causal", "--by", "engine"
        )
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out, r"the same engine: engine \d+\n  facts decide 'pass=fwd dtype=\S+ b=1 h=1 "
        )

    def test_a_crash_of_the_planner_costs_a_worker_and_not_the_search(self):
        done = self.shrink("pass=bwd dtype=f16 b=1 h=1 s=1/128 d=64 mask=causal guards=off")
        self.assertStatus(done, 1)
        self.assertIn("\npass=bwd dtype=bf16 b=1 h=1 s=1 d=8 guards=off\n", done.out)


if __name__ == "__main__":
    unittest.TestCase.longMessage = True
    e2e.main()
