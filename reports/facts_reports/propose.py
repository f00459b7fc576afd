"""`facts expect update`: lines for failures that have none, and without the lines that nothing needs, as a unified diff to review.

A cause is a verdict on one architecture with the same tensors and status, by the same side (guards on or off): what separates such rows from all others of
the same target is looked for over the axes (separate.py), then narrowed by sm, versions and grade to what was seen. Text only: nothing is written unless
asked, and no date but the record's own goes in, so that the same records give the same diff.
"""
import difflib
import sys
from pathlib import Path

from . import findings, separate, text
from .cases import bare
from .expectations import FINDINGS, OK, Held, complaint
from .versions import version_key

_FILE = "proposed.expect"
_LINK = "docs/findings.md"   # to be replaced by who reviews: the line must say where this is told
_SUBJECT = ("engine", "config", "backend")


def update(store, lines, suites, folder, overwrite):
    """Prints the diff; exit 1 when there is one."""
    held = Held(store, lines, suites)
    stale = {(line.file, line.number) for line in lines if (why := complaint(line)) and why.startswith("no result needs")}
    new = _proposals(held, store)
    files = {path: _without(path, stale) for path in sorted({file for file, _ in stale})}
    if new:
        path = str(Path(folder) / _FILE)
        before = Path(path).read_text(encoding="utf-8").split("\n") if Path(path).exists() else []
        files[path] = (before, _with(before, new))
    for path, (before, after) in sorted(files.items()):
        shown = Path("cases/expect") / Path(path).name
        sys.stdout.writelines(f"{said}\n" for said in difflib.unified_diff(before, after, f"a/{shown}" if before else "/dev/null", f"b/{shown}", lineterm=""))
        if overwrite:
            Path(path).write_text("\n".join(after), encoding="utf-8")
    print(f"{text.count(len(new), 'line')} proposed, {len(stale)} no longer needed; "
          + ("written" if overwrite and files else "a link and a review are yours"), file=sys.stderr)
    return FINDINGS if files else OK


def _without(path, stale):
    before = Path(path).read_text(encoding="utf-8").split("\n")
    return before, [said for number, said in enumerate(before, 1) if (path, number) not in stale]


def _with(before, new):
    """The proposals by suites, behind what the file has."""
    after = [*before]
    while after and not after[-1]:
        after.pop()
    after = after or ["# Proposed by `facts expect update`: give each line its link and move it to the file of its cause."]
    last = None
    for suites, line in new:
        if suites != last:
            after.append("suites: " + (suites or "all"))
            last = suites
        after.append(line)
    return [*after, ""]


def _proposals(held, store):
    """[(suites, line)], in a fixed order."""
    causes = {}
    for row, _ in held.unexplained:
        tensors = findings.bad_tensors(row)
        alike = (row["sm"] or 0, row["verdict"], row["grade"] or "", "guards=off" in row["case"].split(), tuple(tensors))
        causes.setdefault(alike, []).append(row)
    out = []
    for (sm, verdict, grade, _, tensors), rows in sorted(causes.items(), key=lambda c: str(c[0])):
        out += _lines(held, store, sm, verdict, grade, tensors, rows)
    return sorted(set(out))


def _lines(held, store, sm, verdict, grade, tensors, failed):
    """A line for each predicate that covers some of the failures; what none covers is named case by case."""
    targets = {(r["build"], r["device"]) for r in failed}
    ids = {id(r) for r in failed}
    near = [r for r, _, _ in held.rows if (r["build"], r["device"]) in targets and r["grade"] == (grade or None) and r["verdict"] != "not_run"]
    subjects = {k: [None if r.get(k) in (None, "") else str(r[k]) for r in near] for k in _SUBJECT}
    columns = separate.Columns([bare(r["case"]) for r in near], subjects)
    changed = separate.bits_of([i for i, r in enumerate(near) if id(r) in ids], len(near))
    everything = separate.bits_of(range(len(near)), len(near))
    out = []
    for rule in separate.rules(columns, changed, everything):
        mine = [near[i] for i in separate.members(rule.bits, len(near))]
        if rule.text and rule.others == 0:
            out.append(_line(held, store, rule.text, sm, verdict, grade, tensors, mine))
            continue
        for row in sorted(mine, key=lambda r: (r["case"], r["build"])):   # no predicate fits these alone: each by its name
            engine = "" if row.get("engine") is None else f" & engine={row['engine']}"
            out.append(_line(held, store, f'case="{row["case"]}"{engine}', sm, verdict, grade, tensors, [row]))
    return out


def _shared(rows, where):
    """What all rows say of themselves, so that the line speaks of no others: the pass, and that guards were off."""
    said = [set(r["case"].split()) for r in rows]
    return [t for t in ("pass=fwd", "pass=bwd", "guards=off") if all(t in s for s in said) and t not in where]


def _versions(held, sm, rows):
    """A range, or a list where a version between was asked and did not fail."""
    seen = sorted({r["cudnn"] for r in rows}, key=version_key)
    asked = {t.cudnn for t in held.at if t.sm == str(sm or "")}
    between = [v for v in asked if version_key(seen[0]) < version_key(v) < version_key(seen[-1]) and v not in seen]
    if len(seen) == 1:
        return [f"cudnn={seen[0]}"]
    return [f"cudnn in ({', '.join(seen)})"] if between else [f"cudnn>={seen[0]}", f"cudnn<={seen[-1]}"]


def _line(held, store, where, sm, verdict, grade, tensors, rows):
    parts = [*_shared(rows, where), where, f"sm={sm}" if sm else "", *_versions(held, sm, rows)]
    versions = sorted({r["cudnn"] for r in rows}, key=version_key)
    parts.append("grade=measured" if grade == "measured" and verdict != "build_fail" else "")
    date = max(str(store.runs.get(r["run"], {}).get("started", ""))[:10] or "2000-01-01" for r in rows)
    about = sorted(set().union(*(held.about(bare(r["case"])) | set(str(store.runs.get(r["run"], {}).get("suites", "")).split()) for r in rows)))
    cases_seen = len({r["case"] for r in rows})
    note = f"{', '.join(t for t in tensors if t) or verdict}; seen with {', '.join(versions)}, {text.count(cases_seen, 'case')}"
    return " ".join(about), f"{date} {verdict} {' & '.join(p for p in parts if p)} {_LINK} # {text.line(note, 200)}"
