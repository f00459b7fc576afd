"""The coverage of the case language: for each key and value the number of cases, the versions that decided them and the versions that ran them."""

import re

from facts_reports.read import cases, text
from facts_reports.read.versions import version_key

_NUMBERED = re.compile(r"(?<![a-z0-9_])[NMXPL](?::[NMXPL])?(?![a-z0-9_])")
NO_ANSWER = ("missing", "inconclusive")


def _short(value):
    """What numbers do to a value: 0.1 and 0.5 are one kind of dropout. Words stay."""
    return re.sub(r"(?<![a-z0-9_])-?(?:\d+(?:\.\d+)?|inf)(?![a-z0-9])", "N", value)


def _forms(key, value):
    """The values that one text counts for: members of a set, forms of a stride, kinds of numbers."""
    kind = key["kind"]
    if kind == "set":
        return value.split("+")
    if kind == "stride":
        return sorted({form.split(":")[0] for form in value.split(";")})
    if kind == "lens":
        return [
            value
            if value in ("none", "tight")
            else "lengths"
            if not value.startswith("+")
            else "+N"
        ]
    if kind == "knobs":
        return sorted({knob.split(":")[0] for knob in value.split("+")})
    if kind == "ratio":
        return ["/".join("N" * len(value.split("/")))] if value else []
    return [value if value in key["templates"] or value == key["default"] else _short(value)]


def _listed(key):
    """The values that the language lists, in its order; the default first."""
    default = [] if "follows" in key else [_forms(key, key["default"])[0]]
    more = ["lengths"] if key["kind"] == "lens" else []
    return list(dict.fromkeys([*default, *key["templates"], *more]))


class Value:
    def __init__(self):
        self.cases, self.decided, self.run, self.outcomes = set(), set(), set(), {}


def count(store):
    """{key: {value: Value}}: every listed value, and the other values of the records. A case without a key counts for its default."""
    table = {k["key"]: {v: Value() for v in _listed(k)} for k in cases.key_table()}
    said = {}
    for case, version, outcome, grade in store.db.execute(
        "SELECT case_name, cudnn, outcome, grade FROM row"
    ):
        if outcome in NO_ANSWER:
            continue
        if case not in said:
            one = cases.parse(case)
            said[case] = [
                (k["key"], f)
                for k in cases.key_table()
                for f in _forms(k, cases.value_of(one, k["key"]) or "")
                if f
            ]
        for key, form in said[case]:
            value = table[key].setdefault(form, Value())
            value.cases.add(case)
            (value.run if grade == "measured" else value.decided).add(version)
            value.outcomes[outcome] = value.outcomes.get(outcome, 0) + 1
    return table


def _versions(found):
    found = sorted((v for v in found if v), key=version_key)
    if not found:
        return "none"
    return found[0] if len(found) == 1 else f"{len(found)}: {found[0]} to {found[-1]}"


def table(store):
    """(Markdown, how many values nothing asked)."""
    counted, never = count(store), []
    lines = ["| key | value | cases | decided on | run on |", "|---|---|---|---|---|"]
    for key, values in counted.items():
        for word, value in values.items():
            if not value.cases:
                never.append(f"{key}={word}")
            lines.append(
                f"| {text.code(key)} | {text.code(word)} | {len(value.cases):,} | {_versions(value.decided | value.run)} | {_versions(value.run)} |"
            )
    versions = {
        v
        for values in counted.values()
        for value in values.values()
        for v in value.decided | value.run
    }
    head = [
        "# Coverage of the case language",
        "",
        "A value that cuDNN always refuses counts as well. Records that are not published do not count.",
        "",
        f"{store.one('SELECT count(DISTINCT case_name) FROM row'):,} cases, {len(versions)} versions ({_versions(versions)}). `N` stands for every number, and",
        '`lengths` for every list of lengths. "Decided" is cuDNN\'s answer for a described device.',
        "",
    ]
    tail = ["", "**Values without a case:** " + (", ".join(text.code(n) for n in never) or "none")]
    return "\n".join([*head, *lines, *tail]) + "\n", len(never)
