#!/usr/bin/env python3
"""Checks the subjects of new commits: at most 72 columns, an imperative verb first, and a body where a verdict, a guard or a tolerance changes.

    python3 ci/check_commits.py [RANGE]

RANGE is as for `git log`. Without it: the commits of HEAD that origin/main, or else main, does not have. If there are none, the last commit. Older
commits are not read: some of them are older than these rules. Exit 1 when a subject is wrong, 2 when there is no such range.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[1]
LONGEST = 72
WHY = re.compile(
    r"^(cases/known/.*\.known|cases/calibration\.json|(harness/attention/numbers/judge|lib/src/policy)/.*\.[ch])$"
)  # verdicts, tolerances, guards
# Words that end like a verb of the past or of the third person, and are none.
VERBS = set(
    (
        "embed feed need seed shed speed bring ping string swing address bypass compress "
        "discuss express focus guess miss pass process stress suppress toss"
    ).split()
)
NOT_VERBS = set(
    (
        "a an the no not new more some this that it its what when where which who one "
        "each every all only if in of on to for with without two three both there"
    ).split()
)


def git(*words):
    """What git prints."""
    return subprocess.run(
        ["git", "-C", HOME, *words], capture_output=True, text=True, check=True
    ).stdout


def trouble(subject, body, files):
    """What is wrong with a commit, a line each."""
    if subject.startswith(("Merge ", "Revert ")):
        return
    if len(subject) > LONGEST:
        yield f"{len(subject)} columns: at most {LONGEST}"
    scope, colon, rest = subject.partition(": ")
    first = re.split(r"\W", (rest if colon else scope) + " ")[0].lower()
    if first not in VERBS and (
        first in NOT_VERBS or re.search(r"(ed|ing|[^s]s)$", first) or not first.isalpha()
    ):
        yield f'"{first}" is no imperative verb'
    if not body.strip() and any(WHY.match(name) for name in files):
        yield "changes a verdict, a guard or a tolerance: the body must say why"


def commits(span):
    """(id, subject, body, files) of a range."""
    for commit in git("rev-list", "--reverse", "--no-merges", span).split():
        subject, _, body = git("show", "-s", "--format=%B", commit).partition("\n")
        yield commit, subject, body, git("show", "--format=", "--name-only", commit).split("\n")


def new():
    """The range of new commits."""
    for base in ("origin/main", "main"):
        known = subprocess.run(
            ["git", "-C", HOME, "rev-parse", "-q", "--verify", base],
            capture_output=True,
            text=True,
            check=False,
        )
        if known.returncode == 0 and known.stdout.strip() != git("rev-parse", "HEAD").strip():
            return f"{base}..HEAD"
    return (
        "HEAD~1..HEAD"
        if subprocess.run(
            ["git", "-C", HOME, "rev-parse", "-q", "--verify", "HEAD~1"],
            capture_output=True,
            check=False,
        ).returncode
        == 0
        else "HEAD"
    )


def main():
    """1 when a commit is not as it should be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("range", nargs="?", metavar="RANGE")
    span, status = parser.parse_args().range or new(), 0
    if subprocess.run(
        ["git", "-C", HOME, "rev-list", "-n1", span, "--"], capture_output=True, check=False
    ).returncode:
        parser.error(f"{span}: no such range of commits")
    for commit, subject, body, files in commits(span):
        for what in trouble(subject, body, files):
            print(f"{commit[:10]} {subject}\n    {what}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
