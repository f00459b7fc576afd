#!/usr/bin/env python3
"""Runs the commands that a page shows and prints the page with what they print now, so that nobody types output by hand.

    python3 ci/cookbook.py PAGE >NEW          print the page; the file stays as it is
    python3 ci/cookbook.py --check PAGE...    exit 1 when a page is not what its commands print
    python3 ci/cookbook.py --check --cudnn 9.20.0,9.27.0 PAGE...    only the commands that need no other version

In a page a command stands in a comment, what it printed in the block under it:

    <!-- 20 lines: facts bisect 'pass=fwd dtype=bf16 d=512' -->
    ```text
    $ facts bisect 'pass=fwd dtype=bf16 d=512'
    ...
    ```

"20 lines: " cuts what is longer. Files are named from the project's folder. Times of day and places of records are left out. A command that answers nothing (it prints
nothing, or exits 2, 3 or 130) ends the script with that command's exit.
"""

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

NO_ANSWER = (2, 3, 130)  # bad input, not possible here, interrupted
HOME = Path(__file__).resolve().parents[1]
BLOCK = re.compile(
    r"^<!-- (?:(\d+) lines: )?(facts [^\n]*?) -->\n```text\n.*?^```$", re.MULTILINE | re.DOTALL
)


def run(command):
    """The stdout of a command, without the line that names its record. The program is FACTS, or ./facts."""
    words = shlex.split(command)
    words[0] = os.environ.get("FACTS") or str(HOME / "facts")
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=HOME, check=False)
    if done.returncode in NO_ANSWER or done.returncode < 0 or not done.stdout.strip():
        raise subprocess.CalledProcessError(done.returncode, command)
    shown = re.sub(r"\S+/facts/runs/\S+\.jsonl", "RECORD", done.stdout)
    shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}Z", "(time)", shown)
    return "\n".join(line.rstrip() for line in shown.split("\n") if not line.startswith("record: "))


def cut(text, most):
    """The first lines of a text, and how many follow."""
    lines = text.rstrip("\n").split("\n")
    if most and len(lines) > most:
        more = len(lines) - most
        lines[most:] = [f"[{more} more line{'s' if more > 1 else ''}]"]
    return "\n".join(lines)


def needs(command):
    """The cuDNN versions that a command asks; it asks none if it reads a record."""
    words = shlex.split(command)
    if any(word.endswith((".jsonl", ".jsonl.xz")) and (HOME / word).is_file() for word in words):
        return set()
    options = ("--cudnn", "--baseline", "--candidate")
    given = [value for word, value in zip(words, words[1:]) if word in options]
    return {version.split("-")[0] for value in given for version in value.split(",")}


def renew(page, ask=run, only=None):
    """The text of a page with every block as its command prints it; `only`: the versions that are here."""

    def block(found):
        """The text of one block, printed again."""
        most, command = found.groups()
        if only is not None and not needs(command) <= only:
            return found[0]
        head = found[0].split("\n", 1)[0]
        return f"{head}\n```text\n$ {command}\n{cut(ask(command), int(most or 0))}\n```"

    return BLOCK.sub(block, page)


def main():
    """Prints a page, or checks the pages named on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    said = "print no page; exit 1 when one would change"
    parser.add_argument("--check", action="store_true", help=said)
    said = "leave commands as they are that need another version"
    parser.add_argument("--cudnn", metavar="V,V", help=said)
    parser.add_argument("pages", nargs="+", metavar="PAGE", type=Path)
    options = parser.parse_args()
    if not options.check and len(options.pages) > 1:
        parser.error("one page at a time; --check takes several")
    stale = 0
    for page in options.pages:
        try:
            before = page.read_text(encoding="utf-8")
        except OSError as failed:
            print(f"{page}: {failed.strerror}", file=sys.stderr)
            return 2
        if not BLOCK.search(before):
            print(f"{page}: no command in it", file=sys.stderr)
            return 2
        try:
            after = renew(before, only=options.cudnn and set(options.cudnn.split(",")))
        except subprocess.CalledProcessError as failed:  # the command has printed the reason
            print(f"{page}: exit {failed.returncode}: {failed.cmd}", file=sys.stderr)
            return failed.returncode if failed.returncode > 0 else 3
        if not options.check:
            sys.stdout.write(after)
        elif after != before:
            stale = 1
            said = f"is not what its commands print; python3 ci/cookbook.py {page} >NEW"
            print(f"{page}: {said}", file=sys.stderr)
            both = before.splitlines(True), after.splitlines(True)
            sys.stderr.writelines(difflib.unified_diff(*both, "page", "now", n=1))
    return stale


if __name__ == "__main__":
    sys.exit(main())
