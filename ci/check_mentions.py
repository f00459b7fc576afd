#!/usr/bin/env python3
"""Finds every file that names FACTS's repository or its released version, and compares with project() of CMakeLists.txt, the one place that defines both.

usage: ci/check_mentions.py [--write]     --write corrects the files. A finding is one line: FILE:LINE: what it names. Exit 1: there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
DEFINED = re.compile(
    r"^project\(facts VERSION (?P<version>\S+) HOMEPAGE_URL https://[^/\s]+/(?P<name>\S+)", re.M
)
NAME, VERSION = r"(?P<name>[\w.-]+/[\w.-]+)", r"(?P<version>\d+\.\d+\.\d+)"
MENTIONS = [
    re.compile(text, re.M)
    for text in (
        rf"uses: (?!actions/){NAME}@v{VERSION}",
        rf"\$CI_SERVER_FQDN/{NAME}/cudnn-gate@{VERSION}",
        rf"\b(?:github|gitlab)\.com/(?P<name>[\w-]+/facts)\b",
        rf"\bghcr\.io/{NAME}:{VERSION}",
        rf"\bghcr\.io/{NAME}\n *newTag: (?P<quote>\"?){VERSION}",
        rf"\bfacts-cudnn=={VERSION}",
        rf"^__version__ = \"{VERSION}\"$",
        rf"\(time\), FACTS {VERSION},",
        rf"Found by FACTS {VERSION},",
        rf"\bgithub\.com/{NAME}//ci/gate\?ref=v{VERSION}",
        rf"\blibfattn\.so\.{VERSION}",
        r"\blibfattn(?:\.so\.)?(?P<major>\d+)(?![\d.])",
    )
]


def named(text):
    found = DEFINED.search(text).groupdict()
    return found | {"major": found["version"].partition(".")[0]}


def mentions(text):
    """(first, last, found word, its kind) of every mention, the last first."""
    spans = {
        (*m.span(kind), m[kind], kind)
        for pattern in MENTIONS
        for m in pattern.finditer(text)
        for kind in ("name", "version", "major")
        if kind in pattern.groupindex
    }
    return sorted(spans, reverse=True)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def main(write):
    wanted = named((HOME / "CMakeLists.txt").read_text(encoding="utf-8"))
    bad = seen = 0
    listed = subprocess.run(
        [
            "git",
            "-C",
            HOME,
            "ls-files",
            "-z",
            "--",
            "*.md",
            "*.yml",
            "*.yaml",
            "*.py",
            "*.sh",
            "*.toml",
            "CMakeLists.txt",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    for path in filter(Path.is_file, (HOME / name for name in listed.stdout.split("\0") if name)):
        if path.parent == HOME / "ci/test":
            continue  # which plant other names
        text = path.read_text(encoding="utf-8")
        found, right = mentions(text), text
        for first, last, word, kind in found:
            if word != wanted[kind]:
                bad += 1
                print(
                    f"{path.relative_to(HOME)}:{line_of(text, first)}: {word}: CMakeLists.txt has {wanted[kind]}"
                )
                right = right[:first] + wanted[kind] + right[last:]
        places = {first for first, *_ in found} | {m.start("name") for m in DEFINED.finditer(text)}
        for other in re.finditer(re.escape(wanted["name"]), text):
            if other.start() not in places:
                bad += 1
                print(
                    f"{path.relative_to(HOME)}:{line_of(text, other.start())}: {other[0]}: in a form that MENTIONS of this script does not know"
                )
        seen += len(found)
        if write and right != text:
            path.write_text(right, encoding="utf-8")
    if not seen:
        print("CMakeLists.txt:2: no file names the repository")
    return int(bool(bad and not write) or not seen)


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
