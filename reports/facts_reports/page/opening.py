"""The first screen in words: the answer, and the lines beside the heat map that say why."""
from .. import text, words
from ..vocabulary import BY_CHANGE, BY_WORD, KNOWN

_FINDINGS, _STEPS, _GROUPS, _LINES = 5, 12, 3, 16
_FIRST = ("worse", "changed kind", "lost", "missing", "inconclusive", "better", "gained")   # of a step: before engines, knobs and times
_KINDS = {"worse": "failure", "changed kind": "failure", "lost": "failure", "missing": "open", "inconclusive": "open", "better": "good", "gained": "good"}


def _group_line(step, place, group, on_page):
    change = BY_CHANGE[group["class"]]
    devices = list(group["counts"])
    return {"mark": change.mark, "kind": _KINDS.get(change.word, "refused"), "count": group["cases"], "what": change.word, "where": group["words"], "code": group["where"] == group["words"],
            "known": group["known"], "on": "" if len(devices) == len(step["devices"]) else ", ".join(devices), "why": f"{group['before']} → {group['after']}" if on_page else "",
            "a": step["a"], "b": step["b"], "group": place, "fails": group["fails"]}


def _rest(step, shown):
    """The classes that no line shows, as one line."""
    return [said for word, said in step["sentences"].items() if word not in shown and word not in ("not asked", "new knobs", "reason changed")]


def _step(step, labels):
    lines = [_group_line(step, i, g, False) for i, g in enumerate(step["groups"]) if g["class"] in _FIRST][:_GROUPS]
    more = sum(g["class"] in _FIRST for g in step["groups"]) - len(lines)
    rest = _rest(step, _FIRST)
    return {"title": f"{labels.get(step['a'], step['a'])} → {labels.get(step['b'], step['b'])}", "a": step["a"], "b": step["b"], "lines": lines, "more": more, "rest": ", ".join(rest),
            "same": not lines and not rest}


def _finding(found):
    outcome = BY_WORD[found["outcome"]]
    return {"mark": outcome.mark, "kind": outcome.kind, "what": outcome.word, "case": found["case"], "device": found["device"], "pairs": found["pairs"], "more": len(found["cases"]) - 1,
            "when": next((when for word, when, _ in found["history"] if word == found["outcome"]), "")}


def _change_words(step, labels):
    """What the newest version changed, as a headline."""
    old, new = labels.get(step["a"], step["a"]), labels.get(step["b"], step["b"])
    said = [step["sentences"][word] for word in _FIRST if word in step["sentences"]]
    return f"cuDNN {new}: " + (f"{', '.join(said)} ({old} before)." if said else f"accepts and refuses what {old} does.")


def of(store, steps, findings):
    """{kind, tone, head, sentence, findings, steps, ...} for the template. `findings`: of findings.of, news first."""
    labels, (head, sentence) = words.build_labels(store.builds()), words.answer(store)
    news, known = [f for f in findings if not f["known"]], [f for f in findings if f["known"]]
    out = {"kind": "run", "tone": "bad" if news else "good", "head": head, "sentence": sentence, "clause": "", "findings": [_finding(f) for f in news[:_FINDINGS]],
           "more_findings": max(0, len(news) - _FINDINGS), "known": sum(store.pairs(KNOWN).values()), "links": len(known), "steps": [], "groups": [], "older": 0, "notes": []}
    if steps.gate:
        word, _, clause = steps.gate["headline"].partition(": ")
        devices = text.count(len(steps.gate["devices"]), "device") + f" ({words.several(steps.gate['devices'])})"
        out |= {"kind": "gate", "tone": {0: "good", 1: "bad"}.get(steps.code, "open"), "head": word, "clause": clause,
                "sentence": f"cuDNN {labels.get(steps.gate['a'], steps.gate['a'])} → {labels.get(steps.gate['b'], steps.gate['b'])} on {devices}.",
                "groups": [_group_line(steps.gate, i, g, True) for i, g in enumerate(steps.gate["groups"])][:_GROUPS * 2], "older": max(0, len(steps.gate["groups"]) - _GROUPS * 2),
                "notes": [n for n in (steps.gate["known"],) if n]}
        return out
    room, shown = _LINES - len(out["findings"]), []
    for step in (_step(s, labels) for s in steps.steps):
        room -= 1 + len(step["lines"])
        if room < 0 or len(shown) == _STEPS:
            break
        shown.append(step)
    out |= {"steps": shown, "older": len(steps.steps) - len(shown)}
    measured = store.one("SELECT EXISTS(SELECT 1 FROM row WHERE json_extract(json, '$.grade')='measured' AND build<>?)", (words.NO_BUILD,))
    if steps.steps and not news and not measured and store.complete():
        out |= {"kind": "matrix", "head": _change_words(steps.steps[0], labels)}
        out["tone"] = "bad" if any(w in steps.steps[0]["totals"] for w in ("worse", "changed kind", "lost")) else "good"
    return out
