"""What tests of scripts share: where the project and its build are, a folder for each test, and how a program is started."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

HOME = pathlib.Path(os.environ.get("FACTS_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
CI = HOME / "ci"
BIN = pathlib.Path(os.environ.get("FACTS_BIN") or HOME / "build/release/bin")
BUILD, FACTS = BIN.parent, BIN / "facts"
VERSION = re.search(
    r"^project\(facts VERSION ([0-9.]+)", (HOME / "CMakeLists.txt").read_text(), re.M
)[1]


def start(*command, add=(), **more):
    """A program that ended. The first of `command` may be several words; `add` is added to the environment."""
    first, *rest = command
    words = shlex.split(first) if isinstance(first, str) else [first]
    more = {"env": {**os.environ, **dict(add)}, "timeout": 550, "errors": "replace", **more}
    return subprocess.run(
        [str(word) for word in (*words, *rest)],
        capture_output=True,
        text=True,
        stdin=None if "input" in more else subprocess.DEVNULL,
        check=False,
        **more,
    )


def run(*command, **more):
    """What a program prints. It must succeed."""
    done = start(*command, **more)
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


class Folder(unittest.TestCase):
    """Each test has a folder of its own: self.at."""

    def setUp(self):
        self.at = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.at)

    def put(self, name, text, mode=0o755):
        """A file in the folder; a script unless `mode` says otherwise."""
        path = self.at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path


class OneFolder(unittest.TestCase):
    """All tests of the class share a folder: cls.at."""

    @classmethod
    def setUpClass(cls):
        cls.at = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.at)
