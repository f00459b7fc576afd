"""What is wrong, as few lines as can be read: cases that fail alike are one finding, over their configurations and the builds.

Alike: the same outcome on the same device in the same tensors and the same slice of the matrix. A known one keeps its link, and is one line for each link.
"""

from . import cases, latest, words
from .versions import range_words, segments
from .vocabulary import BY_WORD, KNOWN, NEWS, RANK

# What differs between cases of one slice.
_SIZES = set("dtype b h s d layout engine seed".split())


def slice_of(name):
    """What a case is about, its sizes left out: ('pass=bwd', 'fill=neglse', 's.q=1')."""
    said = cases.parse(name)
    out = []
    for key, value in said.items():
        if key in _SIZES:
            continue
        number = value.lstrip("+-").replace(".", "", 1).isdigit()
        out.append(key if number else f"{key}={value.split(':')[0]}")
    if cases.value_of(said, "s.q") == "1":
        out.append("s.q=1")
    return tuple(sorted(out))


def bad_tensors(row):
    """Names of the tensors that are out of their bound; the reason's status where no number says it."""
    ratios = [(t, words.ratio_of(e.get("ratio"))) for t, e in words.errors_of(row)]
    bad = sorted(t for t, ratio in ratios if ratio is not None and ratio > 1)
    return tuple(bad) or (str((row.get("reason") or {}).get("status", "")),)


def _link(row):
    expectation = row.get("expectation")
    expectation = expectation if isinstance(expectation, dict) else {}
    return str(expectation.get("link") or expectation.get("reason") or "")


def _collect(store):
    """{alike: {"rows": [(case, build, config, engine, row)], "tensors": set}}, from the rows that are findings."""
    failing = {}  # (case, device, outcome, standing, link) -> rows: tensors are joined over a case's configurations and builds
    for finding in (NEWS, KNOWN):
        for outcome, row in store.rows("finding=?", (finding,)):
            link = _link(row) if finding == KNOWN else ""
            failing.setdefault((row["case"], row["device"], outcome, finding, link), []).append(row)
    groups = {}
    for (case, device, outcome, finding, link), rows in failing.items():
        tensors = tuple(sorted({t for row in rows for t in bad_tensors(row) if t}))
        alike = finding, outcome, device, link
        if finding != KNOWN or not link:
            alike += slice_of(case), tensors
        groups.setdefault(alike, []).extend((case, row, tensors) for row in rows)
    return groups


class _Rows:
    """Outcomes of all rows of some cases on a device: what the others of a failing case did."""

    def __init__(self, store):
        self.at = {}
        for outcome, row in store.rows(
            "(case_name, device) IN (SELECT case_name, device FROM row WHERE finding>0)", order="id"
        ):
            self.at.setdefault((row["case"], row["device"]), {}).setdefault(
                row["build"], []
            ).append((latest.config(row), outcome, row.get("engine")))


def _span(outcome, failing, all_rows):
    """(outcome, note) of one build: which of the cases fail, in which engines; or how the worst of them ends."""
    if not failing:
        ends = (o for case in all_rows for _, o, _ in all_rows[case])
        return min(ends, key=RANK.get, default="missing"), ""
    notes = []
    bad = {case for case, _ in failing}
    if len(bad) < len(all_rows):
        notes.append(f"{len(bad)} of {len(all_rows)} cases")
    engines = {e for case, config in failing for c, _, e in all_rows[case] if c == config}
    offered = {e for case in bad for _, _, e in all_rows[case] if e is not None}
    if engines and engines < offered:
        notes.append("engine " + ", ".join(str(e) for e in sorted(engines, key=str)))
    rows = sum(len(all_rows[case]) for case in bad)
    if rows > len(failing) and not (engines and engines < offered):
        notes.append(f"{len(failing)} of {rows} configurations")
    return outcome, ", ".join(notes)


def _history(outcome, device, rows, every, builds, labels):
    """[(outcome, when, note)] over the builds that were asked."""
    members = list(dict.fromkeys(case for case, _, _ in rows))
    failing = {}
    for case, row, _ in rows:
        failing.setdefault(row["build"], set()).add((case, latest.config(row)))
    spans = []
    for build in builds:
        all_rows = {
            case: every.at[(case, device)][build]
            for case in members
            if build in every.at.get((case, device), {})
        }
        if all_rows:
            spans.append((labels[build], _span(outcome, failing.get(build, set()), all_rows)))
    names = [name for name, _ in spans]
    return tuple(
        (spans[a][1][0], range_words(names, a, z), spans[a][1][1])
        for a, z in segments([what for _, what in spans])
    )


def of(store):
    """News first, then what is known; worst first. [{outcome, device, known, link, tensors, cases, row, history}]"""
    if store.findings is None:  # the page and the summary ask
        store.findings = _found(store)
    return store.findings


def _found(store):
    builds = [b for b, _ in store.builds()]
    labels = {device: words.device_labels(store, device) for device in store.devices()}
    order = {b: i for i, b in enumerate(builds)}
    every, out = _Rows(store), []
    for (finding, outcome, device, link, *_), rows in _collect(store).items():
        members = list(dict.fromkeys(case for case, _, _ in rows))
        row = max(
            (r for _, r, _ in rows), key=lambda r: (order[r["build"]], -members.index(r["case"]))
        )  # the newest build that has it
        out.append(
            {
                "outcome": outcome,
                "device": device,
                "shown": words.shown(store.runs, device),
                "known": finding == KNOWN,
                "link": link,
                "row": row,
                "case": row["case"],
                "tensors": sorted({t for _, _, tensors in rows for t in tensors}),
                "cases": [row["case"], *(c for c in members if c != row["case"])],
                "pairs": len({(case, r["build"]) for case, r, _ in rows}),
                "rows": len(rows),
                "history": _history(outcome, device, rows, every, builds, labels[device]),
            }
        )
    return sorted(out, key=lambda g: (g["known"], RANK[g["outcome"]], -g["pairs"], g["case"]))


def history_words(history):
    return ", ".join(
        f"{when} {BY_WORD[outcome].mark} {outcome}{f' ({note})' if note else ''}"
        for outcome, when, note in history
    )
