"""`facts adopt`: the steps in order, where it stops, what its summary says. A script that notes its words plays the program facts."""

import sys
import unittest

from scripts import CI, Folder, run, start

STUB = """#!/bin/sh
echo "$*" >>"$ROOM/asked"
case "$*" in
"cudnn lock"*) [ -z "$LOCK_SAYS" ] && echo "nvidia-cudnn-cu13 9.28.1.4 5 1 w" >>"$ROOM/home/ci/cudnn.lock"; echo "facts: $LOCK_SAYS" >&2; exit ${LOCK:-0} ;;
"cudnn install"*) printf '9.28.1-full-cu13\\t/x\\t-\\n'; exit ${INSTALL:-0} ;;
"known check"*) echo "3 known failures still fail, 0 no longer fail, 0 got no answer"; exit ${KNOWN:-0} ;;
"gate"*) echo "**FACTS: DO NOT MOVE (cuDNN 9.28.0 → 9.28.1 on h100-sxm): 2 lost**"; exit ${GATE:-0} ;;
"expect golden check"*) echo "9.28.1 is new: 150 rows proposed, 149 answer as 9.28.0 does"; [ -z "$GOLDEN" ] || echo "golden: g h100: lost" >&2; exit ${GOLDEN:-0} ;;
"expect golden add"*) echo "a new row" >>"$ROOM/home/cases/golden/support.txt" ;;
esac
"""
MATRIX = "# head\n# build 9.9.0    9.9.0-full-cu12    1\n# build 9.28.0   9.28.0-full-cu13   2\n# build 9.29.0   9.29.0-full-cu13   3\n"
STEPS = """cudnn lock 9.28.1
cudnn install --pinned-only 9.28.1
known check --cudnn 9.28.1-full-cu13 --write --device h100-sxm
gate --baseline 9.28.0-full-cu13 --candidate 9.28.1-full-cu13 --markdown --device h100-sxm
expect golden check --cudnn 9.28.1-full-cu13
expect golden add --cudnn 9.28.1-full-cu13""".splitlines()


class Adopt(Folder):
    def setUp(self):
        super().setUp()
        self.put("home/ci/cudnn.lock", "# head\nnvidia-cudnn-cu13 9.28.0.42 4 1 w\n")
        self.matrix = self.put("home/cases/golden/support.txt", MATRIX)
        self.put("home/CMakeLists.txt", "")
        self.stub = self.put("facts", STUB)
        for words in ("init -q", "add -A", "-c user.name=x -c user.email=x@x commit -qm x"):
            run("git -C", self.at / "home", *words.split())

    def adopt(self, *words, **more):
        asked, home = self.at / "asked", {"FACTS_HOME": str(self.at / "home")}
        place = {"PYTHONPATH": str(CI.parent / "reports"), "FACTS_PROGRAM": str(self.stub)}
        place |= {"ROOM": str(self.at), **home, **more}
        done = start(sys.executable, "-m", "facts_reports", "adopt", *words, add=place)
        said = asked.read_text().splitlines() if asked.exists() else []
        return done.returncode, done.stdout, said

    def test_every_step_and_what_changed(self):
        file = self.at / "out.md"
        status, out, asked = self.adopt("9.28.1", "--device", "h100-sxm", "-o", file)
        self.assertEqual((status, asked), (0, STEPS), out)
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
        self.assertEqual(file.read_text(), out)
        # A version of the lock needs no network.
        status, out, asked = self.adopt("9.28.1", LOCK="3", LOCK_SAYS="no network")
        self.assertEqual((status, len(asked)), (0, 12), asked)
        self.assertIn("has this version already", out)

    def test_findings_do_not_stop_it(self):
        for more, said in (
            (
                {"GATE": "1"},
                "| gate | FACTS: DO NOT MOVE (cuDNN 9.28.0 → 9.28.1 on h100-sxm): 2 lost |",
            ),
            ({"GOLDEN": "1"}, "**1 lost or changed**"),
            ({"KNOWN": "1"}, "3 known failures still fail"),
        ):
            status, out, asked = self.adopt("9.28.1", **more)
            self.assertEqual((status, asked[-1], said in out), (1, STEPS[-1], True), out)

    def test_it_stops_at_the_first_step_that_cannot_be_done(self):
        gate = "gate --baseline 9.28.0-full-cu13 --candidate 9.28.1-full-cu13 --markdown"
        for more, status, last in (
            ({"LOCK": "3", "LOCK_SAYS": "no network"}, 3, STEPS[0]),
            ({"LOCK": "2", "LOCK_SAYS": "nearest"}, 2, STEPS[0]),
            ({"LOCK": "1", "LOCK_SAYS": "REFUSED"}, 1, STEPS[0]),
            ({"INSTALL": "3"}, 3, STEPS[1]),
            ({"GATE": "4"}, 3, gate),
        ):
            code, out, asked = self.adopt("9.28.1", **more)
            self.assertEqual((code, asked[-1]), (status, last))
            self.assertIn(f"**stopped**: {more.get('LOCK_SAYS', '')}", out)
            self.assertIn("Files to review", out)

    def test_without_an_older_version_the_baseline_must_be_said(self):
        status, _, _ = self.adopt("9.8.0", LOCK_SAYS="there")
        self.assertEqual(status, 0, "the build that was installed counts, not the word")
        self.matrix.write_text("# build 9.29.0 9.29.0-full-cu13 1\n")
        status, out, _ = self.adopt("9.28.1")
        self.assertEqual((status, "give --baseline V" in out), (2, True), out)


if __name__ == "__main__":
    unittest.main()
