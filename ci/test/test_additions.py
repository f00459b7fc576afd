"""A new GPU, suite and known failure, added as the READMEs say, break no quick test: each is one file, and nothing counts or lists the others.

They are added in a copy of the project: links, but for the folders that get a file. The programs that were built run there, with the expectations made again. By
day these are the parts of the quick tests that read such folders; the night runs every quick test.
"""

import json
import os
import pathlib
import shutil
import sys
import unittest

import needs
from scripts import BIN, HOME, OneFolder, run

ADDED = ("lib/devices/h100-pcie.json", "cases/suites/new.cases", "cases/known/new-failure.known")
TITLE = "The output is wrong for head dims that nobody uses."
KNOWN = f"""title: {TITLE}
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


class Additions(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = cls.at / "facts"
        cls.home.mkdir()
        real = {parent for path in ADDED for parent in pathlib.PurePath(path).parents}
        cls.link(pathlib.PurePath(), real | {pathlib.PurePath("build")})
        device = json.loads((HOME / "lib/devices/h100-sxm.json").read_text(encoding="utf-8"))
        texts = (json.dumps({**device, "name": "h100-pcie"}), SUITE, KNOWN)
        for path, text in zip(ADDED, texts):
            (cls.home / path).write_text(text, encoding="utf-8")
        # The programs look for known.jsonl beside themselves, so they are files of the copy.
        cls.bin = cls.home / "build/release/bin"
        (cls.home / "build/release").unlink()
        shutil.copytree(BIN, cls.bin, copy_function=cls.link_file, symlinks=True)
        words = ("--folder", cls.home / "cases/known", "--known")
        script = cls.home / "ci/generate_known.py"
        run(sys.executable, "-B", script, *words, cls.home / "build/release/known/known.jsonl")
        names = {"FACTS_SOURCE": cls.home, "FACTS_HOME": cls.home, "FACTS_BIN": cls.bin}
        cls.environment = {name: str(path) for name, path in names.items()}

    @classmethod
    def link(cls, folder, real):
        for path in sorted((HOME / folder).iterdir()):
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

    def test_they_are_there(self):
        for words, said in (
            (("devices",), "h100-pcie"),
            (("list",), "new "),
            (("known", "list"), TITLE),
            (
                ("list", "regress", "--where", "d.qk=24"),
                "\npass=fwd dtype=bf16 b=1 h=1 s=64 d=24\n",
            ),
        ):
            self.assertIn(said, "\n" + run(self.bin / "facts", *words, add=self.environment))

    def test_the_quick_tests_pass(self):
        for program, pattern in QUICK.items():
            with self.subTest(program):
                words = [] if needs.NIGHT else ["--filter", pattern]
                said = run(self.bin / program, "-j2", *words, add=self.environment, cwd=self.at)
                self.assertNotIn("Tested: 0 ", said)


if __name__ == "__main__":
    unittest.main()
