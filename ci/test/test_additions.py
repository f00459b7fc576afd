"""A new GPU, suite and known failure, added as the READMEs say, break no quick test: each is one file, and nothing counts or lists the others.

They are added in a copy of the project: links, but for the folders that get a file. The programs that were built run there, with the expectations made again. By
day these are the parts of the quick tests that read such folders; the night runs every quick test.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import needs

ADDED = ("lib/devices/h100-pcie.json", "cases/suites/new.cases", "cases/known/new-failure.known")
KNOWN = """title: The output is wrong for head dims that nobody uses.
kind: failure
verdict: wrong
expected: O of every row.

failure:
verdict: wrong
when: pass=fwd & d.qk=24 & d.v=16
shows: & engine=1
engine: hopper-forward
sm: 90
seen: 9.27.0; H100, a test
date: 2026-11-28
note: O

cases:
why: a forward with these head dims
pass=fwd b=1 h=1 s=64 d=24/16

controls:
why: other head dims
pass=fwd b=1 h=1 s=64 d=24
"""
SUITE = """# Two cases that a test added.

name: two
why: a suite is one file
pass=fwd,bwd b=1 h=1 s=32 d=16
"""
# Programs that read these folders, and what of them by day.
QUICK = {
    "harness_case": "*",
    "lib_problem": "*",
    "harness_search": "*",
    "harness_supervisor": "@(device|options|builds|expected|known|record)/*",
}


class Additions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.home = cls.folder / "facts"
        cls.home.mkdir()
        real = {
            pathlib.PurePath(parent) for path in ADDED for parent in pathlib.PurePath(path).parents
        } | {pathlib.PurePath("build"), pathlib.PurePath("build/release")}
        cls.link(pathlib.PurePath(), real)
        device = json.loads((needs.HOME / "lib/devices/h100-sxm.json").read_text(encoding="utf-8"))
        for path, text in zip(ADDED, (json.dumps({**device, "name": "h100-pcie"}), SUITE, KNOWN)):
            (cls.home / path).write_text(text, encoding="utf-8")
        # The programs look for the expectations beside themselves, so they are files of the copy.
        bin_folder = cls.home / "build/release/bin"
        bin_folder.unlink()
        shutil.copytree(needs.FACTS.parent, bin_folder, copy_function=cls.link_file, symlinks=True)
        (cls.home / "build/release/expectations").unlink()
        (cls.home / "build/release/expectations").mkdir()
        subprocess.run(
            [
                sys.executable,
                "-B",
                cls.home / "ci/generate_known.py",
                "--folder",
                cls.home / "cases/known",
                "--expectations",
                cls.home / "build/release/expectations/known.expect",
            ],
            check=True,
        )
        cls.environment = {
            **os.environ,
            "FACTS_SOURCE": str(cls.home),
            "FACTS_HOME": str(cls.home),
            "FACTS_BIN": str(bin_folder),
        }

    @classmethod
    def link(cls, folder, real):
        for path in sorted((needs.HOME / folder).iterdir()):
            name = folder / path.name
            if name in real:
                (cls.home / name).mkdir()
                cls.link(name, real)
            else:
                (cls.home / name).symlink_to(path)

    @staticmethod
    def link_file(source, to):
        try:
            os.link(source, to)
        except OSError:
            shutil.copy2(source, to)

    def facts(self, *words):
        return subprocess.run(
            [self.home / "build/release/bin/facts", *words],
            capture_output=True,
            text=True,
            check=False,
            env=self.environment,
        )

    def test_they_are_there(self):
        self.assertIn("h100-pcie", self.facts("devices").stdout)
        self.assertIn("new ", self.facts("list").stdout)
        self.assertIn(
            "The output is wrong for head dims that nobody uses.",
            self.facts("known", "list").stdout,
        )
        found = self.facts("list", "regress", "--where", "d.qk=24").stdout.splitlines()
        self.assertIn("pass=fwd dtype=bf16 b=1 h=1 s=64 d=24", found)

    def test_the_quick_tests_pass(self):
        for program, pattern in QUICK.items():
            with self.subTest(program):
                path = self.home / "build/release/bin" / program
                self.assertTrue(path.exists(), program)
                words = [] if needs.NIGHT else ["--filter", pattern]
                done = subprocess.run(
                    [path, "-j2", *words],
                    capture_output=True,
                    text=True,
                    check=False,
                    env=self.environment,
                    cwd=self.folder,
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("Tested: 0 ", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
