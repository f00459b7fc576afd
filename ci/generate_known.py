#!/usr/bin/env python3
"""Makes from cases/known and cases/claims what the build needs.

usage: ci/generate_known.py [--guards FILE.c] [--known FILE.jsonl] [--claims FILE.jsonl]

  --guards  the library's guards in C
  --known   everything that is known of each failure, a JSON object each: what the programs and Python read
  --claims  the rules of other projects that refuse something, a JSON object each: what the programs read

Needs Python's own library alone. A mistake in a file is one line with its place and exit 2.
"""

import argparse
import json
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "reports"))
sys.dont_write_bytecode = True

from facts_reports.known import guards, known, knowledge  # noqa: E402
from facts_reports.read import claims  # noqa: E402


def _write(path, text):
    path = Path(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(
        prog="ci/generate_known.py", description=__doc__.split("\n", maxsplit=1)[0]
    )
    parser.add_argument("--folder", default=str(HOME / "cases/known"))
    for name in ("guards", "known", "claims"):
        parser.add_argument(f"--{name}")
    args = parser.parse_args()
    try:
        entries = known.load(args.folder)
        if args.guards:
            _write(
                args.guards,
                guards.emit(
                    [g for e in entries for f in e.failures if f.guarded for g in f.guard()]
                ),
            )
        if args.claims:
            rules, _ = claims.load([], HOME / "cases/claims")
            found = (json.dumps(rule.caller()) + "\n" for rule in rules.claims if rule.refuse)
            _write(args.claims, "".join(found))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if args.known:
        _write(args.known, knowledge.write(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
