#!/usr/bin/env python3
"""Runs the commands that a page shows and puts what they print under them, so that no output in the documentation is typed by hand.

    python3 ci/cookbook.py [--check] PAGE...

In a page a command stands in a comment, what it printed in the block under it:

    <!-- 20 lines: facts bisect 'pass=fwd dtype=bf16 d=512' -->
    ```text
    $ facts bisect 'pass=fwd dtype=bf16 d=512'
    ...
    ```

"20 lines: " cuts what is longer. Files are named from the project's folder. Needs the cuDNN versions that the commands name; --check writes nothing and
exits 1 when a page is not what its commands print now. A command that answers nothing (it prints nothing, or exits 2, 3 or 130) ends it with that
command's exit, and its page stays as it is.
"""
import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

NO_ANSWER = (2, 3, 130)  # bad input, not possible here, interrupted
HOME = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^<!-- (?:(\d+) lines: )?(facts [^\n]*?) -->\n```text\n.*?^```$", re.MULTILINE | re.DOTALL)


def run(command):
    """What a command prints on stdout, but for where its record went; its program is FACTS, or ./facts."""
    words = shlex.split(command)
    words[0] = os.environ.get("FACTS") or str(HOME / "facts")
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, cwd=HOME, check=False)
    if done.returncode in NO_ANSWER or done.returncode < 0 or not done.stdout.strip():
        raise subprocess.CalledProcessError(done.returncode, command)
    return "\n".join(line.rstrip() for line in done.stdout.split("\n") if not line.startswith("record: "))


def cut(text, most):
    """The first lines of a text, and how many follow."""
    lines = text.rstrip("\n").split("\n")
    if most and len(lines) > most:
        more = len(lines) - most
        lines[most:] = [f"[{more} more line{'s' if more > 1 else ''}]"]
    return "\n".join(lines)


def renew(page, ask=run):
    """The text of a page with every block as its command prints it."""

    def block(found):
        """One block anew."""
        most, command = found.groups()
        head = found[0].split("\n", 1)[0]
        return f"{head}\n```text\n$ {command}\n{cut(ask(command), int(most or 0))}\n```"

    return BLOCK.sub(block, page)


def main():
    """Renews or checks the pages named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when something would change")
    parser.add_argument("pages", nargs="+", metavar="PAGE", type=Path)
    options = parser.parse_args()
    changed = 0
    for page in options.pages:
        before = page.read_text(encoding="utf-8")
        if not BLOCK.search(before):
            print(f"{page}: no command in it", file=sys.stderr)
            return 2
        try:
            after = renew(before)
        except subprocess.CalledProcessError as failed:  # it has said why
            print(f"{page}: exit {failed.returncode}: {failed.cmd}", file=sys.stderr)
            return failed.returncode if failed.returncode > 0 else 3
        if after == before:
            continue
        changed += 1
        print(f"{page}: {'is not what its commands print' if options.check else 'renewed'}", file=sys.stderr)
        if not options.check:
            page.write_text(after, encoding="utf-8")
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
