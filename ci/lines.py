#!/usr/bin/env python3
"""Prints code lines by folder: neither blank lines nor comments, C and Python apart, tests apart.

usage: ci/lines.py [--all] [--check]     --all: every folder; --check: fails where a limit is passed

A line counts as ci/format.sh lays it out (100 columns). Docstrings count as comments. Markdown
counts every line. Tests are what lies in a folder test/, fuzz/, torture/ or standalone/.
"""

import argparse
import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

HOME = pathlib.Path(__file__).resolve().parent.parent
LIMITS = {
    "C and CUDA": 62_000,
    "C and CUDA, tests": 29_000,
    "Python": 17_000,
    "Python, tests": 15_000,
    "Markdown": 7_000,
}
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def c_lines(text):
    code = TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else "\n" * m[0].count("\n"), text)
    return sum(bool(line.strip(" \t\\")) for line in code.splitlines())


def python_lines(text):
    lines, docstrings = set(), set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if ast.get_docstring(node, clean=False) is not None:
                docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def markdown_lines(text):
    return text.count("\n")


KINDS = {
    "C and CUDA": (("c", "h", "cu", "cuh", "cpp", "hpp"), c_lines),
    "Python": (("py",), python_lines),
    "Markdown": (("md",), markdown_lines),
}


def counted():
    """{kind: {folder: lines}} of the files that git knows."""
    listed = subprocess.run(
        ["git", "-C", HOME, "ls-files", "-z"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout
    sums = {}
    for name in filter(None, listed.split("\0")):
        path = HOME / name
        for kind, (suffixes, count) in KINDS.items():
            if path.suffix[1:] not in suffixes or not path.is_file():
                continue
            folders = name.split("/")[:-1]
            is_test = {"test", "fuzz", "torture", "standalone"} & set(folders)
            if is_test and kind != "Markdown":
                kind += ", tests"
            of = sums.setdefault(kind, {})
            folder = "/".join(folders) or "."
            of[folder] = of.get(folder, 0) + count(path.read_text(encoding="utf-8"))
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="print every folder")
    parser.add_argument("--check", action="store_true", help="exit 1 where a limit is passed")
    options = parser.parse_args()
    passed = False
    for kind, folders in sorted(counted().items()):
        total, limit = sum(folders.values()), LIMITS[kind]
        passed = passed or total > limit
        mark = "above the limit" if total > limit else "limit"
        print(f"{total:7,}  {kind} ({mark} {limit:,})")
        if options.all:
            for folder, lines in sorted(folders.items()):
                print(f"{lines:7,}    {folder}")
    return 1 if options.check and passed else 0


if __name__ == "__main__":
    sys.exit(main())
