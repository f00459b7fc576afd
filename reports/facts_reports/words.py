"""The answer in words: what was asked, of whom, what came out. The page, the Markdown and the terminal say the same."""
from . import text
from .versions import range_words, segments
from .vocabulary import BY_WORD, FINDING_KINDS, OUTCOMES, RANK, is_finding


def build_labels(builds):
    """{build: what people call it}: the version alone where that names one build only."""
    versions = [v for _, v in builds]
    return {b: v if versions.count(v) == 1 else b for b, v in builds}


def several(items, most=6):
    items = list(items)
    if len(items) > most:
        return f"{items[0]} … {items[-1]}"
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else "none"


def suites(store):
    """What was asked, as the run's command line says it."""
    found = []
    for run in store.runs.values():
        for word in [run.get("suite"), *(run.get("suites") or [] if isinstance(run.get("suites"), list) else [])]:
            if isinstance(word, str) and word and word not in found:
                found.append(word)
    return found


def answer(store):
    """(headline, sentence). The headline is the answer; the sentence its scope."""
    counts, totals = store.counts(), store.totals()
    findings = sum(n for o, n in counts.items() if is_finding(o))
    labels = build_labels(store.builds())
    if findings:
        kinds = [f"{counts[o.word]:,} {o.word}" for o in OUTCOMES if o.kind in FINDING_KINDS and counts.get(o.word)]
        head = f"{text.count(findings, 'finding')}: {several(kinds, 20)}."
    elif totals["rows"] == 0:
        head = "No rows."
    elif totals["missing"] or counts.get("inconclusive") or counts.get("mistrusted"):
        head = "No findings, but not everything could be answered."
    else:
        head = "Nothing to see: no findings."
    asked = f" of {several(suites(store))}" if suites(store) else ""
    said = [f"{counts[w]:,} {w}" for w in reversed([o.word for o in OUTCOMES]) if counts.get(w) and not is_finding(w)]
    sentence = (f"{text.count(totals['cases'], 'case')}{asked} asked of {text.count(len(labels), 'cuDNN build')} ({several(labels.values())}) "
                f"on {text.count(len(store.devices()), 'device')} ({several(store.devices())}): {text.count(totals['rows'], 'row')}"
                f"{'; ' + several(said, 20) if said else ''}.")
    return head, sentence


def findings(store, limit=200):
    """Findings by (case, device, config): each with its history over the builds, so that one defect is one line."""
    builds = [b for b, _ in store.builds()]
    labels = build_labels(store.builds())
    keys = store.db.execute("SELECT case_name, device, config, min(rank) FROM row WHERE finding=1 GROUP BY case_name, device, config"
                            " ORDER BY min(rank), case_name, device LIMIT ?", (limit,)).fetchall()
    out = []
    for case, device, config, _ in keys:
        by_build, first = {}, None
        for outcome, row in store.rows("case_name=? AND device=? AND config=?", (case, device, config), order="cudnn"):
            by_build[row["build"]] = outcome
            if is_finding(outcome) and (first is None or RANK[outcome] < RANK[first[0]]):
                first = (outcome, row)
        asked = [b for b in builds if b in by_build]
        names = [labels[b] for b in asked]
        history = [(by_build[asked[a]], range_words(names, a, z)) for a, z in segments([by_build[b] for b in asked])]
        known = first[1].get("expectation")
        out.append({"case": case, "device": device, "config": config, "outcome": first[0], "row": first[1], "history": history, "known": known})
    return out


def history_words(history):
    return ", ".join(f"{when} {BY_WORD[outcome].mark} {outcome}" for outcome, when in history)


def repro(row, labels, verb="repro"):
    return f"facts {verb} {text.shell(row['case'])} --cudnn {text.shell(labels.get(row['build'], row['build']))} --device {text.shell(row['device'])}"


def why(row, limit=200):
    """One line: the worst number, or the reason."""
    worst = None
    for tensor, e in row["errors"].items() if isinstance(row.get("errors"), dict) else ():
        if isinstance(e, dict):
            ratio = _ratio(e.get("ratio"))
            if ratio is not None and (worst is None or ratio > worst[0]):
                worst = (ratio, tensor, e)
    if worst and worst[0] > 1:
        _, tensor, e = worst
        place = ",".join(str(i) for i in e["worst_index"][:4]) if isinstance(e.get("worst_index"), list) else ""
        return text.line(f"{tensor}[{place}]: got {e.get('got')}, want {e.get('want')}, ratio {e.get('ratio')} ({e.get('gate')})", limit)
    reason = row.get("reason") or {}
    return text.line(": ".join(str(reason[k]) for k in ("status", "text") if reason.get(k)), limit)


def _ratio(value):
    if value in ("inf", "nan"):
        return float("inf")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
