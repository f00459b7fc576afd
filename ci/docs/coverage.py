"""The coverage of the case language: for each key and value the number of cases, the versions that decided them and the versions that ran them. Also the
answers of both implementations to the same case.
"""

import re

from facts_reports import cases, latest, text
from facts_reports.compare import bits_of
from facts_reports.versions import version_key

_NUMBERED = re.compile(r"(?<![a-z0-9_])[NMXPL](?::[NMXPL])?(?![a-z0-9_])")
NO_ANSWER = ("missing", "inconclusive", "not_run")


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
        f"{store.one('SELECT count(DISTINCT case_name) FROM row'):,} cases, {len(versions)} versions ({_versions(versions)}). `N` stands for every number, and",
        '`lengths` for every list of lengths. "Decided" is cuDNN\'s answer for a described device.',
        "",
    ]
    tail = ["", "**Values without a case:** " + (", ".join(text.code(n) for n in never) or "none")]
    return "\n".join([*head, *lines, *tail]) + "\n", len(never)


# ---- one case, two implementations ---------------------------------------------------------------------------------------------


def _twin(case):
    """(the case without impl=, which implementation)."""
    words = [w for w in case.split() if not w.startswith("impl=")]
    impl = next((w[5:] for w in case.split() if w.startswith("impl=")), "auto")
    return " ".join(words), impl


def twins(store):
    """[(case, build, device, {impl: (outcome, row)})] where composite and unified were both asked, by name: an unsaid impl= may be either."""
    found = {}
    for outcome, row in store.rows(
        "outcome NOT IN ('missing','inconclusive','not_run')",
        (),
        "case_name, build, device, config",
    ):
        name, impl = _twin(row["case"])
        group = found.setdefault((name, row["build"], row["device"], latest.config(row)), {})
        group[impl] = (outcome, row)
    pairs = []
    for (name, build, device, _), answers in found.items():
        if "composite" in answers and "unified" in answers:
            pairs.append((name, build, device, answers))
    return pairs


def _same_bits(one, other):
    one, other = bits_of(one), bits_of(other)
    common = one.keys() & other.keys()
    return (
        ""
        if not common
        else "same bits"
        if all(one[t] == other[t] for t in common)
        else "other bits: " + ", ".join(sorted(t for t in common if one[t] != other[t]))
    )


def implementations(store):
    """(Markdown, how many pairs disagree): a finding of one where the other has none, or one that refuses what the other takes is shown by case."""
    counts, rows, worse = {}, [], 0
    for name, build, device, answers in twins(store):
        (left, a), (right, b) = answers["composite"], answers["unified"]
        bits = _same_bits(a, b)
        key = (build, device, left, right, bits.split(":")[0])
        counts[key] = counts.get(key, 0) + 1
        if left != right:
            findings = {left, right} - {"pass", "supported", "unsupported"}
            worse += bool(findings)
            rows.append(
                (
                    not findings,
                    f"| {text.code(name)} | {build} {device} | {left} {a.get('engine') or ''} | {right} {b.get('engine') or ''} |",
                )
            )
    lines = ["| build, device | composite | unified | bits | cases |", "|---|---|---|---|---|"]
    lines += [
        f"| {build} {device} | {left} | {right} | {bits} | {n:,} |"
        for (build, device, left, right, bits), n in sorted(counts.items())
    ]
    shown = [line for _, line in sorted(rows)[:40]]
    if shown:
        lines += [
            "",
            "Where they differ (findings first):",
            "",
            "| case | build, device | composite, engine | unified, engine |",
            "|---|---|---|---|",
            *shown,
        ]
        if len(rows) > len(shown):
            lines += ["", f"and {len(rows) - len(shown):,} more"]
    return "\n".join(lines) + "\n", worse
