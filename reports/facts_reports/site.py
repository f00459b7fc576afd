"""The page's data: columns with dictionaries, so that 100,000 rows stay a few megabytes and filter in milliseconds."""
import base64
import hashlib
import json
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

from . import cases, features, findings as wrong, sides, words
from .page import numbers, opening, steps, trusted
from .vocabulary import CHANGES, KNOWN, OUTCOMES, is_good, standing

_HERE = Path(__file__).parent / "page"
_SCRIPTS = ("predicate.js", "data.js", "document.js", "state.js", "keys.js", "matrix.js", "heat.js", "boundary.js", "trust.js", "timeline.js", "numbers.js", "detail.js", "rows.js", "compare.js", "drop.js", "save.js", "app.js")
_STYLES = ("page.css", "tables.css", "heat.css", "narrow.css")
_ALL_DETAILS = 20000   # above this many rows the numbers of right answers stay in results.json


class _Dictionary:
    def __init__(self):
        self.items, self.index = [], {}

    def add(self, value):
        key = json.dumps(value, ensure_ascii=False, sort_keys=True)
        if key not in self.index:
            self.index[key] = len(self.items)
            self.items.append(value)
        return self.index[key]


def _short(value):
    return float(f"{value:.5g}") if isinstance(value, float) else value


def _worst_ratio(row):
    ratios = [words.ratio_of(e.get("ratio")) for e in row["errors"].values() if isinstance(e, dict)] if row.get("errors") else []
    ratios = [r for r in ratios if r is not None]
    if not ratios:
        return None
    return "inf" if max(ratios) == float("inf") else _short(max(ratios))


def _errors(row):
    return {t: {k: _short(v) for k, v in e.items()} for t, e in row.get("errors", {}).items() if isinstance(e, dict)}


def _reason(row):
    reason = dict(row.get("reason") or {})
    chain = [c for c in reason.get("chain") or [] if isinstance(c, dict)] if isinstance(reason.get("chain"), list) else []
    reason["chain"] = chain[:24]
    reason["ours"] = row["verdict"] == "unsupported" and sides.is_ours(*(str(reason.get(k) or "") for k in ("class", "status", "text"))) or None
    return {k: v for k, v in reason.items() if v not in ("", None, [])}


def payload(store, title, answer, compared=None):
    """The data of the page, and the steps.Steps in it."""
    builds, devices = store.builds(), store.devices()
    labels = words.build_labels(builds)
    dictionaries = {n: _Dictionary() for n in ("case", "target", "verdict", "grade", "backend", "engine", "reason", "engines", "group", "run")}
    sms = dict(store.db.execute("SELECT device, max(json_extract(json, '$.sm')) FROM row GROUP BY device").fetchall())
    for device in devices:
        for build, version in builds:
            if store.one("SELECT EXISTS(SELECT 1 FROM row WHERE build=? AND device=?)", (build, device)):
                dictionaries["target"].add([build, device])
    place = {o.word: i for i, o in enumerate(OUTCOMES)}
    columns = {n: [] for n in (*dictionaries, "outcome", "config", "supported", "ratio", "plan_ms", "exec_us", "decide_us", "workspace_bytes", "attempt")}
    errors = numbers.Errors()
    details, known, many = {}, [], store.one("SELECT count(*) FROM row") > _ALL_DETAILS
    for i, (outcome, row) in enumerate(store.rows()):
        values = {"case": row["case"], "target": [row["build"], row["device"]], "verdict": row["verdict"], "grade": row.get("grade"),
                  "backend": row.get("backend") or None, "engine": row.get("engine"), "reason": _reason(row), "engines": row.get("engines") or [],
                  "group": row.get("group") or "", "run": row.get("run") or ""}
        for name, value in values.items():
            columns[name].append(dictionaries[name].add(value))
        columns["outcome"].append(place[outcome])
        columns["ratio"].append(_worst_ratio(row))
        errors.add(row)
        for name in ("config", "supported", "plan_ms", "exec_us", "decide_us", "workspace_bytes", "attempt"):
            value = row.get(name)
            columns[name].append(_short(value) if isinstance(value, (int, float)) else None)
        if standing(outcome, row["verdict"], row.get("expectation")) == KNOWN:
            known.append(i)
        if not many or not is_good(outcome):
            kept = {"errors": _errors(row), "padded": row.get("padded"), "pictures": row.get("pictures"), "expectation": row.get("expectation"), "inputs_from": row.get("inputs_from"),
                    "tflops": row.get("tflops"), "wall_ms": row.get("wall_ms")}
            kept = {k: v for k, v in kept.items() if v}
            if kept:
                details[i] = kept
    found, still = features.of(dictionaries["case"].items)
    every = [*features.groups(store), *features.heat(dictionaries["case"].items, found)]
    versions, by_device = dict(builds), {d: words.device_labels(store, d) for d in devices}
    changed = steps.Steps(store, {name: place for place, name in enumerate(dictionaries["case"].items)}, compared)
    return {
        "title": title, "answer": answer, "steps": changed.steps, "others": changed.others, "changes": {c.word: c.mark for c in CHANGES}, "runs": trusted.runs(store), "claims": trusted.rules(), "figures": {"errors": errors.as_object(), "speeds": numbers.speeds(store)}, "totals": store.totals(), "complete": store.complete(),
        "outcomes": [[o.word, o.mark, o.kind, o.says] for o in OUTCOMES], "keys": cases.key_table(),
        "parts": {k: list(v) for k, v in cases.parts().items()}, "query_keys": cases.query_keys(),
        "numbers": sorted(cases.numbers()),
        "targets": [{"build": b, "device": d, "cudnn": versions[b], "label": by_device[d][b], "spec": labels[b], "ask": store.gpus.get(d, d), "sm": sms.get(d)}
                    for b, d in dictionaries["target"].items],
        "features": [[f.axis, f.label, f.where, f.why, f.heat, f.alone] for f in every], "still": still,
        "suite_hashes": [str(r.get("suite_hash", "unknown")) for r in store.runs.values()],
        "dictionaries": {n: d.items for n, d in dictionaries.items() if n != "target"}, "columns": columns, "details": details, "known": known,
    }, changed


def embedded(value):
    """JSON that may stand inside a script element: no '<', so no '</script' and no '<!--'."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _digest(source):
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"


def provenance(store):
    """What the head of the page shows of runs, targets and files."""
    labels = words.build_labels(store.builds())
    order = {b: i for i, (b, _) in enumerate(store.builds())}
    targets = []
    for (build, device), about in sorted(store.targets.items(), key=lambda t: (order.get(t[0][0], 999), t[0])):
        libraries = [lib for lib in about.get("libraries") or [] if isinstance(lib, dict)] if isinstance(about.get("libraries"), list) else []
        proofs = [{"name": str(lib.get("path", "")).rsplit("/", 1)[-1], "sha256": str(lib.get("sha256") or ""), "record": str(lib.get("record") or "unknown")}
                  for lib in libraries]
        targets.append({"label": labels.get(build, build), "build": build, "device": device, "about": about, "proofs": proofs})
    runs = [{"id": i, **r, "words": " ".join(str(w) for w in r["command"]) if isinstance(r.get("command"), list) else ""} for i, r in store.runs.items()]
    return {"runs": runs, "targets": targets, "files": store.files}


def render(store, title, compared=None):
    style, script = ("\n".join((_HERE / name).read_text(encoding="utf-8") for name in names) for names in (_STYLES, _SCRIPTS))
    script = '"use strict";\n(() => {\n' + script + "})();\n"
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    findings = wrong.of(store)
    labels = words.build_labels(store.builds())
    for f in findings:
        f["repro"], f["why"] = words.repro(store, f["row"]), words.why(f["row"])
    known = [f for f in findings if f["known"]]
    findings = [f for f in findings if not f["known"]]
    targets = [(labels[b], d, store.counts("build=? AND device=?", (b, d))) for b, _ in store.builds() for d in store.devices()]
    data, changed = payload(store, title, words.answer(store), compared)
    return environment.get_template("index.html.j2").render(
        title=title, first=opening.of(store, changed, findings + known), totals=store.totals(), complete=store.complete(),
        provenance=provenance(store), findings=findings, known=known, target_counts=[t for t in targets if t[2]], outcomes={o.word: o for o in OUTCOMES},
        style=style, style_digest=_digest(style), script=script, script_digest=_digest(script), still=", ".join(data["still"]).lower(), data=embedded(data))
