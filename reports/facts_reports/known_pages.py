"""docs/findings.md: every known failure for people, from cases/known."""

import math

from . import text
from .known import NEWEST, word

_ARCHITECTURES = {(0, 0): "all"}
_HEAD = """# Known failures of cuDNN's fused attention

Printed from `cases/known` by `ci/generate_known.py --page docs/findings.md`; a test fails when this page is out of date.
[known.md](known.md) explains the files. [catalogue.md](catalogue.md) lists the public reports.

A failure holds from the first version that was seen failing up to the next version that was seen right. If no newer version was seen right, the
failure holds for every newer version. "Suspected" architectures have the same engine and were not asked. "The library" is libfattn: with its guards on,
it refuses the problem, or leaves out the engine that fails.
"""


def versions(failure):
    return _ranges(failure.ranges)


def all_versions(failures):
    """The union of the versions of all failures."""
    union = []
    for first, end in sorted((first, end or math.inf) for f in failures for first, end in f.ranges):
        if union and first <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((first, end))
    return _ranges((first, end if end < math.inf else NEWEST) for first, end in union)


def _ranges(ranges):
    return ", ".join(
        (f"{word(first)} and newer" if first else "all")
        if not end
        else f"{word(first)} to before {word(end)}"
        if first
        else f"before {word(end)}"
        for first, end in ranges
    )


def _sm(places):
    return " ".join(
        _ARCHITECTURES.get(place)
        or (f"sm_{place[0]}" if place[0] == place[1] else f"sm_{place[0]} to sm_{place[1]}")
        for place in places
    )


def _where(failure):
    seen, suspected = failure.architectures
    return "; ".join(
        p for p in (_sm(seen), f"suspected {_sm(suspected)}" if suspected else "") if p
    )


def _library(failure):
    if not failure.guarded:
        return (
            "takes another engine, if there is one"
            if "build_fail" in failure.verdicts
            else "does not refuse"
        )
    engine = failure.fields.get("engine", "any")
    return (
        "refuses"
        if engine == "any"
        else "leaves the configuration out"
        if failure.knobs
        else "leaves the engine out"
    )


def _failure(failure):
    label = f"**{failure.label}** " if failure.label else ""
    engine = (
        f", engine {failure.fields['engine']}"
        if failure.fields.get("engine", "any") != "any"
        else ""
    )
    lines = [
        f"- {label}`{failure.when}`{engine}: {' or '.join(failure.verdicts)}.",
        f"  - Versions: {versions(failure)}. Architectures: {_where(failure)}. The library {_library(failure)}.",
    ]
    for key, word_of_key in (("seen", "Seen"), ("right", "Right")):
        if failure.observations[key]:
            lines.append(
                f"  - {word_of_key}: "
                + "; ".join(
                    f"{' '.join(o.versions)} ({o.source})" for o in failure.observations[key]
                )
                + "."
            )
    if failure.fields.get("note"):
        lines.append(f"  - Note: {failure.fields['note']}.")
    if failure.guarded:
        lines.append(f"  - Instead: {failure.fields['instead']}.")
    return lines


def section(entry):
    lines = ["", f"## {entry.name}", "", f"**{text.markdown(entry.title)}**"]
    if entry.links:
        lines += ["", "Reported: " + ", ".join(entry.links) + "."]
    if entry.expected:
        lines += [
            "",
            f"Expected: {entry.expected[0].lower() + entry.expected[1:] if entry.expected[1:2].islower() else entry.expected}",
        ]
    if entry.failures:
        lines.append("")
    for failure in entry.failures:
        lines += _failure(failure)
    if entry.text:
        lines += ["", entry.text]
    return lines


def findings(entries):
    """The page."""
    shown = [e for e in entries if e.failures or e.kind == "behaviour" or (e.text and e.found_here)]
    failing = [e for e in shown if e.failures]
    lines = [
        _HEAD,
        f"{len(failing)} failures, {sum(any(f.guarded for f in e.failures) for e in failing)} of them guarded by the library.",
        "",
        "| failure | what happens | versions | library |",
        "|---|---|---|---|",
    ]
    for entry in failing:
        first = entry.failures[0]
        lines.append(
            f"| [{entry.name}](#{entry.name}) | {' '.join(dict.fromkeys(v for f in entry.failures for v in f.verdicts))} | {versions(first)} "
            f"| {'guards' if any(f.guarded for f in entry.failures) else 'does not refuse'} |"
        )
    lines += [
        "",
        "These entries describe behaviour, not failures: "
        + ", ".join(f"[{e.name}](#{e.name})" for e in shown if not e.failures)
        + ".",
    ]
    for entry in shown:
        lines += section(entry)
    return text.wrapped("\n".join(lines)) + "\n"
