"""The golden matrix for other programs: the text that people review, as JSON. cases/golden/golden.schema.json describes it."""

import json
import re
from pathlib import Path

from . import golden

FORMAT = 1
_CASE = re.compile(r"^# +(\d+) (\S.*)$")
_MARKS = {"-": False, "!": "crash", "*": True}


def _sm(device, folder):
    """The architecture of a described device, as its name or its description has it."""
    named = re.match(r"sm(\d+)", device)
    if named:
        return int(named[1])
    try:
        return (
            json.loads((folder / f"{device}.json").read_text(encoding="utf-8"))["device"][
                "deviceVer"
            ]
            // 10
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _cases(text):
    """{group: [case]}: the numbered lines above the lines of a group."""
    out, told = {}, []
    for line in text.split("\n"):
        found = _CASE.match(line)
        if found:
            told = told + [found[2]] if found[1] != "1" else [found[2]]
        elif line and not line.startswith("#"):
            out.setdefault(line.split()[0], told)
    return out


def of(text, name, devices=None):
    """The object. `devices`: the folder of descriptions. Raises golden.GoldenError."""
    suite, versions, lines = golden.parse(text, name)
    cases, made = _cases(text), re.search(r"^# facts (\S+), (\S+), suite", text, re.M)
    groups = {}
    for (group, device), spans in lines.items():
        answers = [
            {
                "from": first,
                "to": last,
                "engines": [_MARKS.get(m, int(m) if m.isdigit() else None) for m in marks],
            }
            for first, last, marks, _ in spans
        ]
        groups.setdefault(group, {})[device] = answers
    named = sorted({device for _, device in lines})
    return {
        "format": FORMAT,
        "facts": made[1] if made else "",
        "made": made[2] if made else "",
        "suite": suite,
        "builds": [
            {"cudnn": version, "build": build, "libcudnn_graph": digits}
            for version, (build, digits) in versions.items()
        ],
        "devices": [{"name": device, "sm": _sm(device, devices or Path("."))} for device in named],
        "groups": [
            {"name": group, "cases": cases[group], "answers": answers}
            for group, answers in groups.items()
        ],
    }


def as_text(text, name, devices=None):
    """One line for each build, device and range, so that a change is a readable diff."""
    made = of(text, name, devices)

    def one(value):
        return json.dumps(value, ensure_ascii=False)

    def several(values, indent):
        return "[\n" + ",\n".join(" " * indent + v for v in values) + "]"

    groups = [
        f'{{"name": {one(g["name"])}, "cases": {several(map(one, g["cases"]), 3)},\n  "answers": {{\n'
        + ",\n".join(
            f"   {one(device)}: {several(map(one, spans), 4)}"
            for device, spans in g["answers"].items()
        )
        + "}}"
        for g in made["groups"]
    ]
    head = "".join(
        f" {one(key)}: {one(made[key])},\n" for key in ("format", "facts", "made", "suite")
    )
    return f'{{\n{head} "builds": {several(map(one, made["builds"]), 2)},\n "devices": {several(map(one, made["devices"]), 2)},\n "groups": {several(groups, 2)}\n}}\n'
