"""The known failures of cases/known for people: a table, and a page for each."""

import math

from ..read import text
from .known import CLAIMS, KINDS, NEWEST, sm_words, word

_FIRST = ("fp8-values-with-a-mean",)  # the first rows of the table
_CLAIMS = {"contract": "Contract", "sent-by": "Sent by", "frontend": "cudnn-frontend"}
_HEAD = """# Known failures of cuDNN's fused attention

Printed from `cases/known`, with a page for each file. [known.md](../known.md) explains the files. [catalogue.md](catalogue.md) lists the public reports.

A failure holds from the first version that was seen failing up to the next version that was seen right. If no newer version was seen right, the
failure holds for every newer version. "Suspected" architectures have the same engine and were not asked. With its guards on, libfattn refuses a guarded
problem, or leaves out the engine that fails.

"Contract" says what NVIDIA's public documentation promises: the call is documented, the documentation is silent or excludes it, or the operation is
unreleased. "Sent by" names the programs whose public code or report sends such a call.
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


def counted(entries):
    """ "52 failures, 25 calls that cuDNN should refuse": only kind `failure` counts as a failure."""
    found = {kind: sum(e.kind == kind for e in entries) for kind in KINDS}
    said = [
        text.count(n, *(words.format("") for words in KINDS[kind]))
        for kind, n in found.items()
        if n
    ]
    return ", ".join(said) or text.count(0, "failure")


def _range(first, end):
    if not end:
        return f"{word(first)} and newer" if first else "all"
    return f"{word(first)} to before {word(end)}" if first else f"before {word(end)}"


def _ranges(ranges):
    return ", ".join(_range(*one) for one in ranges)


def _sm(places):
    return " ".join("all" if place == (0, 0) else sm_words(place) for place in places)


def _where(failure):
    seen, suspected = map(_sm, failure.architectures)
    return "; ".join([seen] * bool(seen) + [f"suspected {suspected}"] * bool(suspected))


def _library(failure):
    if not failure.guarded:
        if "build_fail" in failure.verdicts:
            return "takes another engine, if there is one"
        return "does not refuse"
    engine = failure.fields.get("engine", "any")
    if engine == "any":
        return "refuses"
    if failure.knobs:
        return "leaves the configuration out"
    return "leaves the engine out"


def _failure(failure):
    label, engine = failure.label, failure.fields.get("engine", "any")
    label = f"**{label}** " if label else ""
    engine = f", engine {engine}" if engine != "any" else ""
    data = f" For such data: `{failure.data}`." if failure.data else ""
    yield f"- {label}`{failure.when}`{engine}: {' or '.join(failure.verdicts)}.{data}"
    yield f"  - Versions: {versions(failure)}. Architectures: {_where(failure)}. The library {_library(failure)}."
    for key in ("seen", "right"):
        said = [f"{' '.join(o.versions)} ({o.source})" for o in failure.observations[key]]
        if said:
            yield f"  - {key.capitalize()}: {'; '.join(said)}."
    if failure.fields.get("note"):
        yield f"  - Note: {failure.fields['note']}."
    if failure.guarded:
        yield f"  - Instead: {failure.fields['instead']}."


def section(entry):
    lines = ["", f"## {entry.name}", "", f"**{text.markdown(entry.title)}**"]
    if entry.links:
        lines += ["", "Reported: " + ", ".join(entry.links) + "."]
    if said := entry.expected:
        said = said[0].lower() + said[1:] if said[1:2].islower() else said
        lines += ["", f"Expected: {said}"]
    lines += ["", *_claims(entry)]
    if entry.failures:
        lines.append("")
    for failure in entry.failures:
        lines += _failure(failure)
    if entry.text:
        lines += ["", entry.text]
    return lines


def _claims(entry):
    """What the contract says of it, who sends it, and how it was checked."""
    for key, title in _CLAIMS.items():
        words, source = entry.claim(key)
        if words:
            yield f"- {title}: {' '.join(words)}; {source}."
    if entry.checked:
        yield f"- Checked without FACTS: {entry.checked}."


def _row(entry):
    """One line of the table: what happens, its verdicts, versions and architectures, and whether the library guards it."""
    verdicts = dict.fromkeys(v for f in entry.failures for v in f.verdicts)
    seen = dict.fromkeys(a for f in entry.failures for a in _sm(f.architectures[0]).split(" ") if a)
    guarded = any(f.guarded for f in entry.failures)
    cells = (
        f"[{text.markdown(entry.title)}](known/{entry.name}.md)",
        " ".join(verdicts),
        " ".join(entry.claim("contract")[0]),
        " ".join(w for w in entry.claim("sent-by")[0] if w != "nobody") or "-",
        all_versions(entry.failures),
        " ".join(seen),
        "yes" if guarded else "no",
    )
    return f"| {' | '.join(cells)} |"


def by_contract(entries):
    """How many entries of each kind have which contract."""
    words = CLAIMS["contract"]
    lines = [f"| kind | {' | '.join(words)} | all |", "|---|" + "--:|" * (len(words) + 1)]
    for kind in KINDS:
        said = [" ".join(e.claim("contract")[0]) for e in entries if e.kind == kind]
        counts = [said.count(word) for word in words] + [len(said)]
        lines.append(f"| {kind} | {' | '.join(map(str, counts))} |")
    return lines


def findings(entries):
    """The tables: one line for each entry, the failures first."""
    failing = [e for e in entries if e.failures]
    others = [e for e in entries if e.is_text and not e.failures]
    guarded = sum(any(f.guarded for f in e.failures) for e in failing)
    lines = [_HEAD, f"{counted(failing)}. The library guards {guarded} of these entries.", ""]
    lines += by_contract(failing)
    for kind, (_, several) in KINDS.items():
        some = [e for e in failing if e.kind == kind]
        several = several.format("")
        if some:
            lines += [
                "",
                f"## {several[0].upper()}{several[1:]}",
                "",
                "| entry | ends as | contract | sent by | cuDNN | seen on | guarded |",
                "|---|---|---|---|---|---|---|",
                *map(_row, sorted(some, key=lambda e: e.name not in _FIRST)),
            ]
    named = ", ".join(f"[{e.name}](known/{e.name}.md)" for e in others)
    gone = [f"[{e.name}](known/{e.name}.md)" for e in entries if e.about == "withdrawn"]
    lines += ["", f"These entries describe behaviour, not failures: {named}."]
    lines += ["", f"Withdrawn, as later measurements do not show it: {', '.join(gone)}."] * bool(
        gone
    )
    return text.wrapped("\n".join(lines)) + "\n"


def page(entry):
    """The page of one failure."""
    said = f"File: `cases/known/{entry.name}.known`. Its cases: `facts list regress/{entry.name}`."
    lines = [*section(entry)[1:], "", said]
    return text.wrapped("\n".join(lines)).replace("## ", "# ", 1) + "\n"
