"""Programs that scripts and tests start, and whether a listed package has each of them."""

import shutil
import unittest

import check_programs

SHELL = rb"""#!/usr/bin/env bash
# a comment names nothing
own() { inside | filter "$(nested --option)"; }
own "text names nothing"
NAME=value program <<END
here names nothing
END
timeout -s KILL 5 limited && exec last
find . | xargs -r each
"$variable" argument
if check; then echo; fi
"""
PYTHON = """
import os, shutil, subprocess
from scripts import run
def output(*command): pass
subprocess.run(["first", "argument"], check=True)
subprocess.Popen([path, "argument"])
shutil.which("second")
output("third", "argument")
facts("no program")
run("fourth --option", "argument")
"""


@unittest.skipUnless(check_programs.tree_sitter, "needs tree-sitter: ci/requirements-test.txt")
class Programs(unittest.TestCase):
    def test_commands_of_a_script(self):
        words, functions = check_programs.of_shell(SHELL)
        asked = "own inside filter nested program timeout limited last find xargs check"
        self.assertEqual(words - check_programs.BUILTIN, set(asked.split()))
        self.assertEqual(functions, {"own"})

    def test_what_python_starts(self):
        self.assertEqual(check_programs.of_python(PYTHON), {"first", "second", "third", "fourth"})

    @unittest.skipUnless(shutil.which("dpkg-query"), "needs dpkg")
    def test_every_program_is_in_a_listed_package(self):
        self.assertEqual(check_programs.missing(), {})

    @unittest.skipUnless(shutil.which("dpkg-query"), "needs dpkg")
    def test_a_program_that_no_list_has_is_named_with_its_script(self):
        have = check_programs.provided() | check_programs.elsewhere()
        self.assertNotIn("strace", check_programs.named())
        self.assertFalse({"strace", "nosuchprogram"} & have)
        self.assertLessEqual({"make", "xz", "git", "objdump", "cmake"}, have)


if __name__ == "__main__":
    unittest.main()
