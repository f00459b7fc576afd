"""`facts adopt`: the steps in order, where it stops, what its summary says. A script that notes its words plays the program facts."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CI = pathlib.Path(__file__).resolve().parent.parent
STUB = """#!/bin/sh
echo "$*" >>"$ROOM/asked"
case "$*" in
"cudnn lock"*) [ -z "$LOCK_SAYS" ] && echo "nvidia-cudnn-cu13 9.28.1.4 5 1 w" >>"$ROOM/home/ci/cudnn.lock"; echo "facts: $LOCK_SAYS" >&2; exit ${LOCK:-0} ;;
"cudnn install"*) printf '9.28.1-full-cu13\\t/x\\t-\\n'; exit ${INSTALL:-0} ;;
"known check"*) echo "3 known failures still fail, 0 no longer fail, 0 got no answer"; exit ${KNOWN:-0} ;;
"gate"*) echo "**NOT the same: 2 lost**"; exit ${GATE:-0} ;;
"expect golden check"*) echo "9.28.1 is new: 150 rows proposed, 149 answer as 9.28.0 does"; [ -z "$GOLDEN" ] || echo "golden: g h100: lost" >&2; exit ${GOLDEN:-0} ;;
"expect golden add"*) echo "a new row" >>"$ROOM/home/cases/golden/support.txt" ;;
esac
"""
MATRIX = "# head\n# build 9.9.0    9.9.0-full-cu12    1\n# build 9.28.0   9.28.0-full-cu13   2\n# build 9.29.0   9.29.0-full-cu13   3\n"


class Adopt(unittest.TestCase):
    def setUp(self):
        self.room = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.room)
        self.home = self.room / "home"
        for name, text in (
            ("ci/cudnn.lock", "# head\nnvidia-cudnn-cu13 9.28.0.42 4 1 w\n"),
            ("cases/golden/support.txt", MATRIX),
        ):
            (self.home / name).parent.mkdir(parents=True)
            (self.home / name).write_text(text)
        shutil.copy(CI / "adopt.py", self.home / "ci")
        self.facts = self.room / "facts"
        self.facts.write_text(STUB)
        self.facts.chmod(0o755)
        for words in (
            ("init", "-q"),
            ("add", "-A"),
            ("-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"),
        ):
            subprocess.run(["git", "-C", self.home, *words], check=True)

    def adopt(self, *words, **more):
        done = subprocess.run(
            [sys.executable, "-B", self.home / "ci/adopt.py", "--facts", self.facts, *words],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "ROOM": str(self.room), **more},
        )
        asked = (
            (self.room / "asked").read_text().splitlines() if (self.room / "asked").exists() else []
        )
        return done.returncode, done.stdout, asked

    def test_every_step_and_what_changed(self):
        status, out, asked = self.adopt(
            "9.28.1", "--device", "h100-sxm", "-o", str(self.room / "out.md")
        )
        self.assertEqual(status, 0, out)
        self.assertEqual(
            asked,
            [
                "cudnn lock 9.28.1",
                "cudnn install --pinned-only 9.28.1",
                "known check --cudnn 9.28.1-full-cu13 --write --device h100-sxm",
                "gate --baseline 9.28.0-full-cu13 --candidate 9.28.1-full-cu13 --markdown --device h100-sxm",
                "expect golden check --cudnn 9.28.1-full-cu13",
                "expect golden add --cudnn 9.28.1-full-cu13",
            ],
        )
        for part in (
            "| lock | 1 package added |",
            "| known failures | 3 known failures still fail",
            "150 rows proposed",
            "nvidia-cudnn-cu13 9.28.1.4 5 1 w",
            "ci/cudnn.lock ",
            "cases/golden/support.txt ",
            "2 files changed",
        ):
            self.assertIn(part, out)
        self.assertEqual((self.room / "out.md").read_text(), out)

    def test_findings_do_not_stop_it(self):
        for more, said in (
            ({"GATE": "1"}, "| gate | **findings**"),
            ({"GOLDEN": "1"}, "**1 lost or changed**"),
            ({"KNOWN": "1"}, "3 known failures still fail"),
        ):
            status, out, asked = self.adopt("9.28.1", **more)
            self.assertEqual(
                (status, asked[-1]), (1, "expect golden add --cudnn 9.28.1-full-cu13"), more
            )
            self.assertIn(said, out)

    def test_it_stops_at_the_first_step_that_cannot_be_done(self):
        for more, status, last in (
            ({"LOCK": "3", "LOCK_SAYS": "no network"}, 3, "cudnn lock 9.28.1"),
            ({"LOCK": "2", "LOCK_SAYS": "nearest"}, 2, "cudnn lock 9.28.1"),
            ({"LOCK": "1", "LOCK_SAYS": "REFUSED"}, 1, "cudnn lock 9.28.1"),
            ({"INSTALL": "3"}, 3, "cudnn install --pinned-only 9.28.1"),
            (
                {"GATE": "4"},
                3,
                "gate --baseline 9.28.0-full-cu13 --candidate 9.28.1-full-cu13 --markdown",
            ),
        ):
            code, out, asked = self.adopt("9.28.1", **more)
            self.assertEqual((code, asked[-1]), (status, last))
            self.assertIn(f"**stopped**: {more.get('LOCK_SAYS', '')}", out)
            self.assertIn("Files to review", out)

    def test_a_version_of_the_lock_needs_no_network(self):
        self.adopt("9.28.1")
        status, out, asked = self.adopt("9.28.1", LOCK="3", LOCK_SAYS="no network")
        self.assertEqual((status, len(asked)), (0, 12), asked)
        self.assertIn("has this version already", out)

    def test_without_an_older_version_the_baseline_must_be_said(self):
        status, out, _ = self.adopt("9.8.0", LOCK_SAYS="there")
        self.assertEqual(status, 0, "the build that was installed counts, not the word")
        (self.home / "cases/golden/support.txt").write_text("# build 9.29.0 9.29.0-full-cu13 1\n")
        status, out, _ = self.adopt("9.28.1")
        self.assertEqual(status, 2)
        self.assertIn("give --baseline V", out)


if __name__ == "__main__":
    unittest.main()
