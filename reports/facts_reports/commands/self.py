"""facts self --markdown: which suite shows which planted fault, as a table.

Reads what `facts self --json` prints, behind a line that says what is wrong with each fault.
"""

import json
from pathlib import Path


def _table(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, *rows)).replace(
        "|\n", "|\n" + "|---" * len(heads) + "|\n", 1
    )


def _cell(shown):
    """Of one fault and type: for each suite how many of the cases that ran are red, and the largest ratio."""
    parts = []
    for of in shown:
        if not of["able"]:
            continue
        part = f"{of['suite']} {of['red']} of {of['asked']}"
        if of["red"]:
            ratio = "" if of["ratio"] == "inf" else f"{of['ratio']:.3g} "
            part += f": {ratio}{of['gate']} {of['tensor']}"
        parts.append(part)
    return "; ".join(parts) or "no case"


def survey(lines):
    what, faults, types = lines[0]["what"], {}, {}
    for shown in lines[1:]:
        types[shown["dtype"]] = True
        faults.setdefault(shown["fault"], {}).setdefault(shown["dtype"], []).append(shown)
    return _table(
        ("fault", "what is wrong", *types),
        [
            (f"`{fault}`", what[fault], *(_cell(by_type[t]) if t in by_type else "" for t in types))
            for fault, by_type in faults.items()
        ],
    )


def main(argv):
    lines = [json.loads(line) for line in Path(argv[0]).read_text(encoding="utf-8").splitlines()]
    print(survey(lines))
    return 0
