"""facts self --markdown: which wrong kernels are found, as the tables of docs/numerics.md.

Reads what `facts self --json` prints, behind a line that says what is wrong with each liar.
"""

import json
from pathlib import Path


def _table(heads, rows):
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, *rows)).replace(
        "|\n", "|\n" + "|---" * len(heads) + "|\n", 1
    )


def _cell(found):
    """Of one liar and type: the weakest ratio over the sizes and the gate that found it; and the sizes where nothing found it."""
    killed = [f for f in found if f["result"] in ("killed", "near")]
    parts = []
    if killed:
        weakest = min(killed, key=lambda f: float(f["ratio"]))
        ratio = "" if weakest["ratio"] == "inf" else f"{weakest['ratio']:.3g} "
        parts.append(f"{ratio}{weakest['gate']} {weakest['tensor']}")
    missed = ", ".join(
        f"{f['result']} at {f['size']}"
        for f in found
        if f["result"] in ("near", "blind", "survived")
    )
    return "; ".join(parts + [missed] if missed else parts)


def survey(lines):
    what, liars, types = lines[0]["what"], {}, {}
    for found in lines[1:]:
        types[found["dtype"]] = True
        liars.setdefault(found["liar"], {}).setdefault(found["dtype"], []).append(found)
    return _table(
        ("liar", "what is wrong", *types),
        [
            (f"`{liar}`", what[liar], *(_cell(by_type.get(t, ())) for t in types))
            for liar, by_type in liars.items()
        ],
    )


def main(argv):
    lines = [json.loads(line) for line in Path(argv[0]).read_text(encoding="utf-8").splitlines()]
    print(survey(lines))
    return 0
