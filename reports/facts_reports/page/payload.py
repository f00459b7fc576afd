"""The page's data: columns with dictionaries, so that 100,000 rows stay a few megabytes and filter in milliseconds."""

import json
import marshal

from ..compare import sides
from ..read import cases, features, text, words
from ..read.vocabulary import CHANGES, KNOWN, OUTCOMES, is_good, standing
from . import issues, numbers, trusted
from .steps import Steps

_ALL_DETAILS = 20000  # above this many rows the numbers of right answers stay in results.json
_PLAIN = ("config", "supported", "plan_ms", "exec_us", "decide_us", "workspace_bytes", "attempt")
# Columns that the first view reads; the page reads another when it is first asked for.
_FIRST = set("case target outcome reason grade engine config issues".split())
_NAMED = "case target verdict grade backend engine reason engines group run worst issues".split()
_PLACE = {o.word: i for i, o in enumerate(OUTCOMES)}

_DETAILS = ("errors", "padded", "pictures", "expectation", "inputs_from", "tflops", "wall_ms")
_HASHED = (str, tuple, type(None))


class _Dictionary:
    def __init__(self):
        self.items, self.index, self.said = [], {}, {}

    def add(self, value):
        kind = type(value)
        key = value if kind in _HASHED else marshal.dumps(value, 2)  # 1 is True, but not its bytes
        code = self.said.get(key)
        if code is None:
            same = key
            if kind in (dict, list):
                same = (kind, json.dumps(value, ensure_ascii=False, sort_keys=True))
            code = self.said[key] = self.index.setdefault(same, len(self.items))
            if code == len(self.items):
                self.items.append(value)
        return code


def _short(value):
    # as many digits as a comparison shows
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _details(row, names):
    kept = {name: row[name] for name in names if row.get(name)}
    if "errors" in kept:
        kept["errors"] = {t: {k: _short(v) for k, v in e.items()} for t, e in words.errors_of(row)}
    return {name: value for name, value in kept.items() if value}


def _reason(row):
    reason = dict(row.get("reason") or {})
    if not reason and row["verdict"] != "unsupported":
        return reason
    reason["chain"] = text.objects(reason, "chain")[:24]
    said = (str(reason.get(k) or "") for k in ("class", "status", "text"))
    reason["ours"] = row["verdict"] == "unsupported" and sides.is_ours(*said) or None
    return {k: v for k, v in reason.items() if v not in ("", None, [])}


class _Rows:
    """The rows of a store, column by column."""

    def __init__(self, store, rows):
        self.dictionaries = {name: _Dictionary() for name in _NAMED}
        for device in store.devices():
            for build, _ in store.builds():
                here = "SELECT EXISTS(SELECT 1 FROM row WHERE build=? AND device=?)"
                if store.one(here, (build, device)):
                    self.dictionaries["target"].add((build, device))
        self.columns = {name: [] for name in (*_NAMED, "outcome", "ratio", *_PLAIN)}
        self.details, self.known, self.errors = {}, [], numbers.Errors()
        self.issues = issues.Issues()
        self.dictionaries["issues"].add([])  # the code 0
        many = store.one("SELECT count(*) FROM row") > _ALL_DETAILS
        for place, (outcome, row) in enumerate(rows):
            self._add(outcome, row)
            self.errors.add(row)
            if standing(outcome, row["verdict"], row.get("expectation")) == KNOWN:
                self.known.append(place)
            if kept := _details(row, ("expectation",) if many and is_good(outcome) else _DETAILS):
                self.details[place] = kept

    def _add(self, outcome, row):
        values = {
            "case": row["case"],
            "target": (row["build"], row["device"]),
            "verdict": row["verdict"],
            "grade": row.get("grade"),
            "backend": row.get("backend") or None,
            "engine": row.get("engine"),
            "reason": _reason(row),
            "engines": row.get("engines") or [],
            "group": row.get("group") or "",
            "run": row.get("run") or "",
            "worst": words.why(row),
            "issues": self.issues.of(row),
        }
        for name, value in values.items():
            self.columns[name].append(self.dictionaries[name].add(value))
        self.columns["outcome"].append(_PLACE[outcome])
        self.columns["ratio"].append(words.worst_ratio(row))
        for name in _PLAIN:
            value = row.get(name)
            self.columns[name].append(_short(value) if isinstance(value, (int, float)) else None)


def _targets(store, pairs):
    labels, versions = words.build_labels(store.builds()), dict(store.builds())
    by_device = {d: words.device_labels(store, d) for d in store.devices()}
    sms = dict(store.db.execute("SELECT device, max(sm) FROM row GROUP BY device").fetchall())
    return [
        {
            "build": b,
            "device": d,
            "shown": words.shown(store.runs, d),
            "cudnn": versions[b],
            "label": by_device[d][b],
            "spec": labels[b],
            "ask": store.gpus.get(d, d),
            "sm": sms.get(d),
        }
        for b, d in pairs
    ]


def payload(store, title, compared=None, home="", audit=None, rows=None):
    """The data of the page, its later columns, and the Steps in it. `home`: where the page of every run is, on a site of several.
    `audit`: what `facts audit` found in these rows. `rows`: store.rows(), where somebody else reads them at the same time."""
    rows = _Rows(store, rows or store.rows())
    names = rows.dictionaries["case"].items
    column = cases.Columns(names)
    found, still = features.of(column)
    every = [*features.groups(store), *features.heat(column, found)]
    changed = Steps(store, {name: place for place, name in enumerate(names)}, compared)
    about = {
        "title": title,
        "home": home,
        "answer": words.answer(store),
        "totals": store.totals(),
        "complete": store.complete(),
        "still": still,
        "suite_hashes": [str(r.get("suite_hash", "unknown")) for r in store.runs.values()],
        "runs": trusted.runs(store),
        "files": [f.name for f in store.files],
        "claims": trusted.rules(),
        "audit": trusted.audited(audit, names, rows.dictionaries["target"].items),
    }
    language = {
        "outcomes": [[o.word, o.mark, o.kind, o.says] for o in OUTCOMES],
        "changes": {c.word: c.mark for c in CHANGES},
        "keys": cases.key_table(),
        "parts": {k: list(v) for k, v in cases.parts().items()},
        "query_keys": cases.query_keys(),
        "numbers": sorted(cases.numbers()),
    }
    seen = {
        "steps": changed.steps,
        "figures": {"errors": rows.errors.as_object(), "speeds": numbers.speeds(store)},
        "features": [[f.axis, f.label, f.where, f.why, f.heat, f.alone, f.inside] for f in every],
    }
    # the texts too are read when they are first asked for
    worst = rows.dictionaries.pop("worst").items
    rows.columns["worst"] = {"items": worst, "codes": rows.columns["worst"]}
    targets = _targets(store, rows.dictionaries["target"].items)
    data = {
        "targets": targets,
        "issues": {"answers": rows.issues.answers, "entries": issues.entries(targets)},
        "dictionaries": {n: d.items for n, d in rows.dictionaries.items() if n != "target"},
        "columns": {n: c for n, c in rows.columns.items() if n in _FIRST},
        "details": rows.details,
        "known": rows.known,
    }
    return (
        {**about, **language, **seen, **data},
        {n: c for n, c in rows.columns.items() if n not in _FIRST} | {"others": changed.others},
        changed,
    )
