#!/usr/bin/env python3
"""Writes the C of libfattn's guards.

usage: ci/generate_guards.py --out FILE
Exit: 0 written, 2 a guard cannot be compiled (one line says which).
"""
import argparse
import json
import sys
from pathlib import Path
from types import SimpleNamespace

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "reports"))

from facts_reports import known_guards, predicate  # noqa: E402

SOURCE = HOME / "lib" / "src" / "guards.json"


def read(path):
    for guard in json.loads(path.read_text(encoding="utf-8")):
        try:
            tree = predicate.parse(guard["when"], known_guards.FACTS)
        except predicate.PredicateError as error:
            raise known_guards.GuardError(f"{path.name}: {guard['name']}: when: {error}") from None
        yield SimpleNamespace(**{**guard, "file": path.name, "tree": tree, "knobs": [tuple(knob) for knob in guard["knobs"]],
                                 "rules": [SimpleNamespace(**rule) for rule in guard["rules"]]})


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    options.add_argument("--out", type=Path, required=True)
    out = options.parse_args().out
    try:
        out.write_text(known_guards.emit(list(read(SOURCE))), encoding="utf-8")
    except known_guards.GuardError as error:
        print(f"generate_guards.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
