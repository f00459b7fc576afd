"""The answer in words: what was asked, of whom, what came out. The page, the Markdown and the terminal say the same."""
from . import text
from .versions import range_words, segments
from .vocabulary import BY_WORD, FINDING_KINDS, OUTCOMES, RANK, is_finding


NO_BUILD = "none"   # the CPU backend: a device, but no cuDNN


def build_labels(builds):
    """{build: what people call it}: the version alone where that names one build only."""
    versions = [v for _, v in builds]
    return {b: "no cuDNN" if b == NO_BUILD else v if versions.count(v) == 1 else b for b, v in builds}


def several(items, most=6):
    items = list(items)
    if len(items) > most:
        return f"{items[0]} … {items[-1]}"
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1] if items else "none"


_SUITES = ("smoke", "core", "nightly", "exhaustive", "regress", "reject")


def suites(store):
    """What was asked, as the run's command line says it."""
    found = []
    for run in store.runs.values():
        for word in [run.get("suite"), *(run.get("suites") or [] if isinstance(run.get("suites"), list) else [])]:
            if isinstance(word, str) and word and word not in found:
                found.append(word)
        command = run.get("command") if isinstance(run.get("command"), list) else []
        found += [w for w in command if w in _SUITES and w not in found]
    return found


def answer(store):
    """(headline, sentence). The headline is the answer; the sentence its scope."""
    counts, totals = store.counts(), store.totals()
    findings = sum(n for o, n in counts.items() if is_finding(o))
    asked_builds = [b for b in store.builds() if b[0] != NO_BUILD]
    labels = build_labels(asked_builds)
    ran = store.one("SELECT EXISTS(SELECT 1 FROM row WHERE json_extract(json, '$.grade')='measured' AND build<>?)", (NO_BUILD,))
    if findings:
        kinds = [f"{counts[o.word]:,} {o.word}" for o in OUTCOMES if o.kind in FINDING_KINDS and counts.get(o.word)]
        cases = store.one("SELECT count(DISTINCT case_name) FROM row WHERE finding=1")
        known = store.one("SELECT count(*) FROM row WHERE finding=1 AND json_extract(json, '$.expectation') IS NOT NULL")
        said = f"; {'all' if known == findings else f'{known:,}'} known and accepted" if known else ""
        head = f"{text.count(findings, 'finding')} in {text.count(cases, 'case')}: {several(kinds, 20)}{said}."
    elif totals["rows"] == 0:
        head = "No rows."
    elif totals["missing"] or counts.get("inconclusive") or counts.get("mistrusted"):
        head = "No findings, but not everything could be answered."
    elif asked_builds and not ran:
        head = "No findings. Decisions only: nothing ran on a GPU."
    else:
        head = "Nothing to see: no findings."
    asked = f" of {several(suites(store))}" if suites(store) else ""
    said = [f"{counts[w]:,} {w}" for w in reversed([o.word for o in OUTCOMES]) if counts.get(w) and not is_finding(w)]
    sentence = (f"{text.count(totals['cases'], 'case')}{asked} asked of {text.count(len(labels), 'cuDNN build') + f' ({several(labels.values())})' if labels else 'no cuDNN'} "
                f"on {text.count(len(store.devices()), 'device')} ({several(store.devices())}): {text.count(totals['rows'], 'row')}"
                f"{'; ' + several(said, 20) if said else ''}.")
    return head, sentence


def findings(store):
    """What is wrong, worst first: cases that fail alike (outcome, device, tensor, history, known or not) are one finding with several cases."""
    builds = [b for b, _ in store.builds()]
    labels = build_labels(store.builds())
    histories = {}
    for case, device, config, build, outcome in store.db.execute(
            "SELECT case_name, device, config, build, outcome FROM row r WHERE EXISTS"
            " (SELECT 1 FROM row f WHERE f.case_name=r.case_name AND f.device=r.device AND f.config=r.config AND f.finding=1)"):
        histories.setdefault((case, device, config), {})[build] = outcome
    worst = {}
    for outcome, row in store.rows("finding=1"):
        worst.setdefault((row["case"], row["device"], store.config(row)), (outcome, row))
    groups = {}
    for key, (outcome, row) in worst.items():
        asked = [b for b in builds if b in histories[key]]
        names = [labels[b] for b in asked]
        history = tuple((histories[key][asked[a]], range_words(names, a, z)) for a, z in segments([histories[key][b] for b in asked]))
        known = bool(row.get("expectation"))
        alike = (outcome, row["device"], history, known, _worst_tensor(row), key[2])
        groups.setdefault(alike, {"outcome": outcome, "device": row["device"], "config": key[2], "history": history, "known": known, "row": row,
                                  "case": row["case"], "cases": []})["cases"].append(row["case"])
    return sorted(groups.values(), key=lambda g: (g["known"], RANK[g["outcome"]], -len(g["cases"]), g["case"]))


def history_words(history):
    return ", ".join(f"{when} {BY_WORD[outcome].mark} {outcome}" for outcome, when in history)


def repro(row, labels, verb="repro"):
    if row["build"] == NO_BUILD:
        return f"facts {verb} {text.shell(row['case'])} --device {text.shell(row['device'])}"
    return f"facts {verb} {text.shell(row['case'])} --cudnn {text.shell(labels.get(row['build'], row['build']))} --device {text.shell(row['device'])}"


def _worst_error(row):
    """(ratio, tensor, numbers) or None."""
    found = None
    for tensor, e in row["errors"].items() if isinstance(row.get("errors"), dict) else ():
        ratio = _ratio(e.get("ratio")) if isinstance(e, dict) else None
        if ratio is not None and (found is None or ratio > found[0]):
            found = (ratio, tensor, e)
    return found


def _worst_tensor(row):
    found = _worst_error(row)
    return found[1] if found and found[0] > 1 else (row.get("reason") or {}).get("status", "")


def why(row, limit=200):
    """One line: the worst number, or the reason."""
    worst = _worst_error(row)
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
