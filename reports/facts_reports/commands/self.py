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


def suites(lines):
    """Of each suite: the faults that it shows in some type, and in every type whose data can show them."""
    shown, every, blind = {}, {}, set()
    for of in lines:
        shown.setdefault(of["suite"], set())
        every.setdefault((of["fault"], of["dtype"]), set())
        if of.get("blind"):
            blind.add((of["fault"], of["dtype"]))
        if of["red"]:
            shown[of["suite"]].add(of["fault"])
            every[of["fault"], of["dtype"]].add(of["suite"])
    faults = {fault for fault, _ in every}

    def always(of):
        return sum(
            all(every[key] & of for key in every if key[0] == fault and key not in blind)
            for fault in faults
        )

    rows = [(suite, str(len(of)), str(always({suite}))) for suite, of in shown.items()]
    together = set().union(*shown.values())
    rows.append(("together", str(len(together)), str(always(set(shown)))))
    return _table((f"suite, of {len(faults)} faults", "shown", "in every type"), rows)


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
    if len({of["suite"] for of in lines[1:]}) > 1:
        print(suites(lines[1:]) + "\n")
    print(survey(lines))
    return 0
