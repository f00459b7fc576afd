"""What tests need: cuDNN builds, which ci/builds-test.txt lists, and time, which the night has."""

import functools
import os
import pathlib
import re
import subprocess
import unittest

HOME = pathlib.Path(os.environ.get("FACTS_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
FACTS = pathlib.Path(os.environ.get("FACTS_BIN") or HOME / "build/release/bin") / "facts"
LIST = HOME / "ci/builds-test.txt"
OLD = "9.20.0-jit-cu13"  # needs NVRTC
NEW = "9.27.0-jit-cu13"  # has it built in
NIGHT = bool(os.environ.get("FACTS_ALL"))


class Build:
    def __init__(self, name, folder, nvrtc):
        self.name, self.dir, self.nvrtc = name, folder, nvrtc
        self.version = name.split("-")[0]


def listed():
    """{build: "day" or "night"}."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return {words[1]: words[0] for words in map(str.split, lines) if words and words[0] != "#"}


@functools.cache
def installed():
    """What `facts cudnn list` shows, by name."""
    said = subprocess.run(
        [FACTS, "cudnn", "list"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FACTS_HOME": str(HOME)},
    ).stdout
    found = {}
    for name, folder, nvrtc in re.findall(
        r"(?m)^(\d\S*-(?:jit|full)-cu\d+)\s.*?\s(/\S+)(?:\s+\(NVRTC: (.*)\))?$", said
    ):
        found.setdefault(name, Build(name, folder, nvrtc if nvrtc.startswith("/") else ""))
    return found


def need(name):
    """A build that is installed. The test is skipped without it. (`./facts test` installs the builds of the day, so in CI only those of the night may lack.)"""
    when = listed().get(name)
    if not when:
        raise AssertionError(f"{name} is not in {LIST.relative_to(HOME)}: add it")
    if name in installed():
        return installed()[name]
    raise unittest.SkipTest(f"needs a build of the {when}: ./facts cudnn install {name}")


def night(test):
    """A test that only ci/nightly.sh runs: it takes minutes, or asks many builds. By day it does not exist, so nothing is reported as skipped."""
    return test if NIGHT else None


def place(cache, *names):
    """Puts these builds, every NVRTC that is installed, and the kept digests of their files into another cache folder, as soft links: nothing is copied or
    hashed. (A hard link would move a file's time of change, and its digests would count no more: harness/core/builds/digest.h.)"""
    root = (
        pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "facts"
    )
    folders = [root / "cudnn" / need(name).name for name in names] + sorted(
        (root / "nvrtc").glob("[0-9]*")
    )
    for folder in [*folders, root / "digests"]:
        here = pathlib.Path(cache) / "facts" / folder.relative_to(root)
        here.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        here.symlink_to(folder)
