#!/usr/bin/env python3
"""Prints a page of this project's documentation from records, as Markdown. README.md beside this file lists the pages.

The exit code is 1 when a page shows something lacking, 2 for bad input, and 4 when README's table comes from an incomplete record.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "reports"), str(Path(__file__).parent)]

import catalogue
import readme
from facts_reports.known import known
from facts_reports.read import predicate, reader
from facts_reports.read.store import load

OK, FINDINGS, BAD_INPUT, INCOMPLETE = 0, 1, 2, 4
PROGRAM = Path(os.environ.get("FACTS_BIN", ROOT / "build/release/bin")) / "facts"


def cases_of(path):
    """[(case, group)] of a file, as the program expands it."""
    done = subprocess.run(
        [PROGRAM, "list", path, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise known.KnownError(f"{path}: `facts list` ended with {done.returncode}")
    return [(one["case"], one["group"]) for one in map(json.loads, done.stdout.splitlines())]


def _readme(store, args):
    print(readme.table(store, args.records), end="")
    return OK if store.complete() else INCOMPLETE


def _catalogue(store, args):
    shown, reproduced, _ = catalogue.table(store, catalogue.read(args.known, cases_of))
    print(shown, end="")
    return OK if reproduced else FINDINGS


PAGES = {"readme": _readme, "catalogue": _catalogue}


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="ci/docs/page.py",
        description="Prints a page of this project's documentation from records, as Markdown.",
    )
    parser.add_argument("page", choices=PAGES)
    parser.add_argument(
        "records", metavar="RECORD", nargs="+", help="a record, or a folder of records"
    )
    parser.add_argument(
        "--known", type=Path, default=ROOT / "cases/known", help="the folder of known failures"
    )
    args = parser.parse_args(argv)
    try:
        store = load(args.records)
        reader.warn(store.files, parser.prog)
        return PAGES[args.page](store, args)
    except (
        reader.InputError,
        predicate.PredicateError,
        known.KnownError,
        OSError,
    ) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
