"""`facts known propose`: the file cases/known/proposed.known for failures that no file explains, as a unified diff to review.

A cause is a verdict on one architecture with the same tensors and status, by the same side (guards on or off): what separates such rows from all others of
the same target is looked for over the axes (separate.py). Each cause is one `failure:`; the same records show the versions where it is right. The same
records give the same diff. Nothing is written unless asked.
"""

import difflib
import re
import sys
import tempfile
from pathlib import Path

from ..read import files, findings, separate, text
from ..read.cases import as_asked, bare
from . import expectations, known, observe

OK, FINDINGS = 0, 1
NAME = "proposed"
_LATE = {"b", "h", "s", "d", "seed", "fill", "lens", "poison", "repeat", "guards"}
_SUBJECT = ("engine", "config", "backend")
_HEAD = """# Proposed by `facts known propose`. Move each failure to a file of its own, with its title, its link, what is expected, and its cases.
title: Failures that no other file explains.
kind: failure
verdict: {}
expected: to be written
contract: silent; to be written
sent-by: nobody; to be written
frontend: accepts; to be written
checked: no
"""


def propose(store, entries, folder, write):
    """Prints the diff; exit 1 when there is one. An earlier proposal explains nothing: this one replaces it. What a guard would refuse
    today is explained, because a record can be older than the guard."""
    others = [e for e in entries if e.name != NAME]
    lines = expectations.lines_of(others, before_guards=True)
    rows, failed = expectations.unexplained(store, lines)
    found = _causes(rows, failed)
    path = Path(folder) / f"{NAME}.known"
    if found:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = _file(found, store, folder, others)
        shown = f"cases/known/{path.name}"
        names = (f"a/{shown}" if before else "/dev/null", f"b/{shown}")
        both = before.splitlines(), after.splitlines()
        for said in difflib.unified_diff(*both, *names, lineterm=""):
            print(said)
        if write:
            files.write(path, after)
    done = f"; written to cases/known/{path.name}" if found and write else ""
    print(f"{text.count(len(found), 'failure')} proposed{done}", file=sys.stderr)
    return FINDINGS if found else OK


def _file(found, store, folder, entries):
    """The text of the file, with the versions where these records show that a failure is gone, and the known cause that each is nearest to."""
    verdicts = sorted({rows[0]["verdict"] for _, _, rows in found})
    body, labels = _HEAD.format(" ".join(verdicts)).splitlines(), {}
    for where, tensors, rows in found:
        label = "-".join([rows[0]["verdict"], *tensors]).lower().replace("_", "-")
        labels[label] = labels.get(label, 0) + 1
        body += _failure(store, f"{label}-{labels[label]}", where, tensors, rows)
        body[-1] += _nearest(entries, rows[0])
    body += ["", "cases:", *sorted({r["case"] for _, _, rows in found for r in rows}), ""]
    with tempfile.TemporaryDirectory() as aside:
        path = Path(aside) / f"{NAME}.known"
        path.write_text("\n".join(body), encoding="utf-8")
        entry = known.read_file(path, known.read_families(Path(folder) / "engines.families"))
        fresh, _ = observe.news(observe.observe([entry], store))
        changed = observe.proposals(fresh, store)
        return "\n".join(changed[entry.path][1] if changed else body)


def _causes(all_rows, failed):
    """[(predicate, tensors, rows)], in a fixed order."""
    alike, asked = {}, {}
    for row in failed:
        guarded, tensors = "guards=off" in as_asked(row).split(), findings.bad_tensors(row)
        key = (row["sm"] or 0, row["verdict"], row["grade"] or "", guarded, tuple(tensors))
        alike.setdefault(key, []).append(row)
    out = []
    for (_, _, grade, _, tensors), rows in sorted(alike.items(), key=lambda c: str(c[0])):
        targets = frozenset((r["build"], r["device"]) for r in rows)
        if (targets, grade) not in asked:
            asked[targets, grade] = _asked(all_rows, targets, grade)
        out += [
            (where, [t for t in tensors if t], mine)
            for where, mine in _separated(*asked[targets, grade], rows)
        ]
    return out


def _asked(all_rows, targets, grade):
    """(rows of these targets, their columns)."""
    near = [r for r in all_rows if (r["build"], r["device"]) in targets]
    near = [r for r in near if r["grade"] == (grade or None)]
    subjects = {k: [None if r.get(k) in (None, "") else str(r[k]) for r in near] for k in _SUBJECT}
    return near, separate.Columns([bare(r["case"]) for r in near], subjects)


def _separated(near, columns, failed):
    """[(predicate, rows)]: each predicate covers some of the failures; what none covers is named case by case."""
    ids = {id(r) for r in failed}
    changed = separate.bits_of([i for i, r in enumerate(near) if id(r) in ids], len(near))
    everything = separate.bits_of(range(len(near)), len(near))
    out, single = [], {}
    for rule in separate.rules(columns, changed, everything):
        mine = [near[i] for i in separate.members(rule.bits, len(near))]
        if rule.text and rule.others == 0:
            out.append((" & ".join([*_shared(mine, rule.text), rule.text]), mine))
            continue
        for row in mine:  # no predicate fits these alone: each by its name
            single.setdefault((row["case"], row.get("engine")), []).append(row)
    return out + [(f'case="{case}"', rows) for (case, _), rows in sorted(single.items(), key=str)]


def _shared(rows, where):
    """What all rows say of themselves, so that the predicate speaks of no others: the pass, and that guards were off."""
    said = [set(as_asked(r).split()) for r in rows]
    every = set.intersection(*said)
    return [t for t in ("pass=fwd", "pass=bwd", "guards=off") if t in every and t not in where]


def _nearest(entries, row):
    """The known failure with such a verdict whose case differs in the fewest keys; sizes and data count last."""
    own, near = dict(_pairs(bare(row["case"]))), []
    for entry in (e for e in entries if e.is_failure):
        if not any(row["verdict"] in failure.verdicts for failure in entry.failures):
            continue
        for line in (x for kind, *_, lines in entry.groups if kind == "cases" for x in lines):
            other = dict(_pairs(line))
            apart = {
                k for k in own.keys() | other.keys() if not own.get(k, {""}) <= other.get(k, {""})
            }
            rank = (own.get("pass") != other.get("pass"), len(apart - _LATE), len(apart & _LATE))
            near.append((rank, entry.name, sorted(apart)))
    if not near:
        return ""
    _, name, apart = min(near)
    return f"; nearest cause: {name}" + (f" (other in {', '.join(apart)})" if apart else "")


def _pairs(line):
    """Key and set of values of each word of a case or pattern."""
    for word in line.split("#")[0].split(" where ")[0].split():
        key, equal, values = word.partition("=")
        if equal:
            yield key, set(values.split(","))


def _failure(store, label, where, tensors, rows):
    runs = {r["run"] for r in rows}
    engines, devices = {r.get("engine") for r in rows}, sorted({r["device"] for r in rows})
    engine = engines.pop() if len(engines) == 1 else None
    if engine is not None and "|" not in where:  # the key `engine` says it
        parts = [part for part in where.split(" & ") if part != f"engine={engine}"]
        where = " & ".join(parts) or where
    suites = sorted(set().union(*(expectations.suites_of(store, r) for r in rows)))
    days = (str(store.runs.get(run, {}).get("started", ""))[:10] for run in runs)
    yield f"\nfailure: {label}\nverdict: {rows[0]['verdict']}\nwhen: {where}"
    if engine is not None and not re.search(r"\bengine\b", where):
        yield f"engine: {engine}"
    yield f"sm: {rows[0]['sm'] or 'any'}"
    yield f"seen: {' '.join(sorted({r['cudnn'] for r in rows}, key=known.number))}; {', '.join(devices)}, {observe.records(store, runs)}"
    yield f"date: {max(day or '2000-01-01' for day in days)}\nsuites: {' '.join(suites) or 'all'}"
    yield f"note: {', '.join(tensors) or rows[0]['verdict']}; {text.count(len({r['case'] for r in rows}), 'case')}"
