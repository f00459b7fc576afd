"""What facts fuzz and facts shrink left in a record: smallest cases (lines `finding`), joined into findings and sorted.

Smallest cases are one finding if they fail alike (verdict, backend, engine, class, a wrong tensor in common) and are neighbours: they set the same
keys, or one has every feature of the other and is nowhere smaller. A finding has at most four forms, the most ordinary first.
"""

import json
from pathlib import Path

from . import cases, predicate
from .vocabulary import is_good

SIZES = ("b", "h", "s", "d")
_NO_FEATURE = {*SIZES, "engine"}
MOST_FORMS = 4
_COUNTS = ("wrong", "not_finite", "unwritten", "overrun")
# What many users have: failures of such cases are listed first.
_ORDINARY = predicate.parse(
    " & ".join(
        (
            "s.q<4096 & s.kv<4096 & stride=dense & stats=bhs1",
            "layout=bshd & q=bshd & k=bshd & v=bshd",
            "o in (auto, bshd) & do in (auto, bshd) & dqkv in (auto, bshd)",
            "exec=eager & impl=auto & spelling=auto & guards=on",
            "engine=auto & knob=none & rescale=auto & scale=auto",
            "deterministic in (0, 1) & bwd_dtype=same",
            "(dtype=bf16 & out=bf16 & grad=bf16 & bias_dtype=bf16"
            " | dtype=f16 & out=f16 & grad=f16 & bias_dtype=f16)",
        )
    )
)


class Record:
    """The lines of a search."""

    def __init__(self, path):
        self.run, self.findings, self.rows, self.drawn = {}, {}, {}, {}
        with open(path, encoding="utf-8", errors="replace") as lines:
            for text in lines:
                try:
                    self._take(json.loads(text))
                except ValueError:  # half a line, of a killed run
                    continue

    def _take(self, line):
        if "run" in line and isinstance(line["run"], dict):
            self.run = line["run"]
        elif "finding" in line:
            one = line["finding"]
            if "best" in one:  # the lines of FACTS 1.0 have several forms
                self.findings[one["best"], one["start"], one["text"]] = one
        elif "verdict" in line and "case" in line:
            self.rows.setdefault(line["case"], []).append(line)
            if line.get("group") == "fuzz/drawn":
                self.drawn.setdefault(line["case"], []).append(line)


def features(name):
    return {key for key in cases.parse(name) if key not in _NO_FEATURE | {"pass", "dtype"}} | {
        key for key, usual in (("pass", "fwd"), ("dtype", "bf16")) if _value(name, key) != usual
    }


def _value(name, key):
    return cases.value_of(cases.parse(name), key)


def _kernels(name):
    """The pass and the family of types: they decide which kernels run."""
    dtype = _value(name, "dtype")
    return _value(name, "pass"), dtype if dtype == "f32" else dtype[0] if dtype[0] in "em" else "16"


def _numbers(name):
    said = cases.parse(name)
    return [int(cases.value_of(said, key)) for key in ("b", "h.q", "s.q", "s.kv", "d.qk", "d.v")]


def covers(small, large, kernels):
    """Has the larger case every feature of the smaller one, and is it nowhere smaller?"""
    if _kernels(large) not in kernels:
        return False
    free = {"pass", "dtype"} if _kernels(small) != _kernels(large) else set()
    return all(_value(small, key) == _value(large, key) for key in features(small) - free) and all(
        a <= b for a, b in zip(_numbers(small), _numbers(large))
    )


def neighbours(a, b):
    if _kernels(a) != _kernels(b):
        return False
    return (
        features(a) - {"dtype"} == features(b) - {"dtype"}
        or covers(a, b, {_kernels(a)})
        or covers(b, a, {_kernels(b)})
    )


def _alike(a, b):
    if any(a[key] != b[key] for key in ("verdict", "engine", "known", "backend", "class")):
        return False
    one, other = set(a["tensors"].split()), set(b["tensors"].split())
    return bool(one & other) if one and other else one == other


def _at_fault(row):
    """{tensor: its errors}, in the row's order."""
    errors = row["errors"] if isinstance(row.get("errors"), dict) else {}
    return {
        tensor: error
        for tensor, error in errors.items()
        if isinstance(error, dict)
        and (any(key in error for key in _COUNTS) or float(error.get("ratio", 0)) > 1)
    }


def _same(symptom, row):
    """Does the row fail in this way?"""
    backend = row.get("backend", "")
    engine = row.get("engine", -1) if backend == "cudnn" else -1
    known = bool((row.get("expectation") or {}).get("met"))
    tensor = symptom["tensors"].partition(" ")[0]
    return (
        (symptom["verdict"], symptom["engine"], symptom["backend"])
        == (row["verdict"], engine, backend)
        and (symptom["known"] or not known)
        and (not tensor or tensor in _at_fault(row))
    )


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _form(record, one):
    """A smallest case with what its rows say of it."""
    rows = record.rows.get(one["best"], [])
    row = next((row for row in rows if _same(one, row)), rows[0] if rows else {})
    error = next(iter(_at_fault(row).values()), {}) if row else {}
    counts = ", ".join(f"{error[key]} {key}" for key in _COUNTS if key in error)
    form = {key: one[key] for key in ("best", "start", "failed", "asked", "unfinished")}
    for key in ("cudnn", "build", "device", "sm"):
        form[key] = str(row.get(key, ""))
    for key, of in (("ratio", "ratio"), ("got", "got"), ("want", "want"), ("bound", "bound")):
        form[key] = _text(error.get(of, ""))
    form["index"] = _text(error.get("worst_index", ""))
    form["counts"] = f"{counts} of {error['checked']}" if counts and "checked" in error else counts
    form["reason"] = " ".join(str((row.get("reason") or {}).get("text", "")).split())
    form["controls"] = _controls(record, one["best"])
    form["ordinary"] = predicate.holds(_ORDINARY, cases.asked_of(one["best"]))
    if "known_as" in one:
        form["known_as"] = one["known_as"]
        met = (row.get("expectation") or {} for row in record.rows.get(one["known_as"], ()))
        form["link"] = next((str(known["link"]) for known in met if known.get("link")), "")
    return form


def _controls(record, best):
    """Cases that pass and differ from the smallest one in one key: first features, then sizes."""
    said, found = cases.parse(best), []
    for name, rows in record.rows.items():
        other = cases.parse(name)
        differ = [key for key in {*said, *other} if said.get(key) != other.get(key)]
        if len(differ) == 1 and differ[0] != "engine" and is_good(rows[0]["verdict"]):
            key = differ[0]
            if key not in SIZES and key in other and key not in ("pass", "dtype"):
                continue  # it has another feature, and not one fewer
            away = sum(abs(a - b) for a, b in zip(_numbers(best), _numbers(name)))
            found.append((key in SIZES, away, name))
    return [name for _, _, name in sorted(found)][:MOST_FORMS]


def _order(form):
    return not form["ordinary"], len(features(form["best"])), form["best"]


def _bucket(record, group):
    """One finding out of the lines of its smallest cases."""
    forms = {}
    for one in group:
        forms.setdefault(one["best"], _form(record, one))
    symptom = min(group, key=lambda one: _order(forms[one["best"]]))
    kernels = {}
    for one in group:
        kernels.setdefault(one["best"], set()).update(
            {_kernels(one["best"]), _kernels(one["start"])}
        )
    bucket = {key: symptom[key] for key in ("verdict", "text", "tensors", "gate", "backend")}
    return {
        **bucket,
        **{key: symptom[key] for key in ("class", "engine", "known")},
        "explained": "known_as" in symptom,
        "forms": sorted(forms.values(), key=_order)[:MOST_FORMS],
        "ordinary": any(form["ordinary"] for form in forms.values()),
        "kernels": kernels,
        "starts": {one["start"] for one in group},
        "symptoms": group,
        "cases": 0,
    }


def _groups(findings):
    groups = []
    for one in findings:
        near = [
            group
            for group in groups
            if ("known_as" in group[0]) == ("known_as" in one)
            and any(
                _alike(other, one) and neighbours(other["best"], one["best"]) for other in group
            )
        ]
        joined = [other for group in near for other in group]
        groups = [group for group in groups if group not in near] + [[*joined, one]]
    return groups


def _count(record, buckets):
    """The drawn cases of each finding: a form stands for them, or forms that set only keys that they set too."""
    for name, rows in record.drawn.items():
        for bucket in buckets:
            if any(_same(one, row) for one in bucket["symptoms"] for row in rows) and (
                name in bucket["starts"]
                or any(covers(best, name, kernels) for best, kernels in bucket["kernels"].items())
                or sum(features(best) <= features(name) for best in bucket["kernels"]) >= MOST_FORMS
            ):
                bucket["cases"] += 1
                break


def buckets(record):
    """The findings in the order of their ranking; explained ones come last."""
    found = [_bucket(record, group) for group in _groups(record.findings.values())]
    found.sort(key=lambda one: (one["explained"], _order(one["forms"][0])))
    _count(record, found)
    found.sort(
        key=lambda one: (
            one["explained"],
            not one["ordinary"],
            len(features(one["forms"][0]["best"])),
            -one["cases"],
            one["forms"][0]["best"],
        )
    )
    for rank, one in enumerate(found, 1):
        one["rank"] = rank
    return found


def only(record, one):
    """The record as if this were its only finding."""
    record.findings = {"": one}
    return record


def head(record, path, flags):
    shrink = record.run.get("command", ["", ""])[1:2] == ["shrink"]
    folder = Path(path)
    return {
        "version": record.run.get("facts", ""),
        "origin": "facts shrink" if shrink else f"facts fuzz --seed {record.run.get('seed')}",
        "flags": flags.strip(),
        "folder": ""
        if shrink
        else f"{folder.with_suffix('') if folder.suffix == '.jsonl' else folder}.findings",
    }
