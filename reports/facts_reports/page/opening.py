"""The first screen in words: the answer, and the lines beside the heat map that say why."""

from collections import Counter

from ..read import text, words
from ..read.vocabulary import BY_CHANGE, BY_WORD, KNOWN

_FINDINGS, _GROUPS, _GATE, _LINES = 10, 2, 6, 30
# Of a step: before engines, knobs and times.
_FIRST = ("worse", "changed kind", "lost", "begins", "missing", "inconclusive", "time unknown")
_FIRST += ("better", "gained")
_APART = ("not asked", "new knobs", "reason changed")
_FOLDED = {
    "slower": "slower case",
    "engine changed": "engine change",
    "knobs changed": "knob change",
    "plan slower": "slower plan",
    "workspace larger": "larger workspace",
}  # of steps in one entry
_KINDS = {
    **dict.fromkeys(("worse", "changed kind", "lost", "begins"), "failure"),
    **dict.fromkeys(("missing", "inconclusive", "time unknown"), "open"),
    **dict.fromkeys(("better", "gained"), "good"),
}


def _group_line(step, place, group, on_page):
    change = BY_CHANGE[group["class"]]
    return {
        "mark": change.mark,
        "kind": _KINDS.get(change.word, "refused"),
        "count": group["cases"],
        "what": change.word,
        "where": group["words"],
        "code": group["where"] == group["words"],
        "known": group["known"],
        "on": group["on"],
        "why": f"{group['before']} → {group['after']}" if on_page else "",
        "a": step["a"],
        "b": step["b"],
        "group": place,
        "example": group["example"],
        "fails": group["fails"],
    }


def _step(step, labels, groups):
    """A step that lost or gained something, for the list, with at most so many groups."""
    groups_ = [(i, g) for i, g in enumerate(step["groups"]) if g["class"] in _FIRST]
    lines = [_group_line(step, i, g, False) for i, g in groups_]
    rest = [said for word, said in step["sentences"].items() if word not in (*_FIRST, *_APART)]
    return {
        "title": f"{labels.get(step['a'], step['a'])} → {labels.get(step['b'], step['b'])}",
        "a": step["a"],
        "b": step["b"],
        "lines": lines[:groups],
        "more": max(0, len(lines) - groups),
        "rest": ", ".join(rest),
        "quiet": not lines,
        "folded": 1,
        "totals": Counter(step["totals"]),
    }


def _quiet(first, last):
    """Several steps that lost and gained nothing are one entry."""
    folded, totals = first["folded"] + last["folded"], first["totals"] + last["totals"]
    changes = [text.count(totals[word], said) for word, said in _FOLDED.items() if totals[word]]
    return {
        **last,
        "title": f"{first['title'].split(' → ')[0]} → {last['title'].split(' → ')[1]}",
        "a": first["a"],
        "b": last["b"],
        "folded": folded,
        "totals": totals,
        "rest": f"{folded} steps with {words.several(changes)}" if changes else "",
    }


def _steps(every, labels):
    """(the entries that have room, steps that have none), newest first."""
    out, room, shown = [], _LINES, 0
    for step in (_step(s, labels, _GROUPS if len(every) > 3 else 2 * _GROUPS) for s in every):
        if step["quiet"] and out and out[-1]["quiet"] and out[-1]["a"] == step["b"]:
            out[-1] = _quiet(step, out[-1])
        else:
            room -= 2 + 2 * len(step["lines"])
            if room < 0:
                break
            out.append(step)
        shown += 1
    return out, len(every) - shown


def _finding(found, on):
    outcome = BY_WORD[found["outcome"]]
    return {
        "mark": outcome.mark,
        "kind": outcome.kind,
        "what": outcome.word,
        "case": found["case"],
        "device": found["device"],
        "shown": found["shown"],
        "on": on,
        "pairs": found["pairs"],
        "more": len(found["cases"]) - 1,
        "when": next((when for word, when, _ in found["history"] if word == found["outcome"]), ""),
    }


def various(news):
    """Of the findings those that have room, as many of each outcome as of the others, the most serious first."""
    turns = Counter()
    for f in news:
        turns[f["outcome"]] += 1
        f["turn"] = turns[f["outcome"]]
    kept = {id(f) for f in sorted(news, key=lambda f: f["turn"])[:_FINDINGS]}
    cases = Counter(f["case"] for f in news)
    return [_finding(f, f["shown"] if cases[f["case"]] > 1 else "") for f in news if id(f) in kept]


def _decided(store, step, labels):
    """What the comparison says, as the gate says it: the headline, and of which versions and devices it is."""
    shown = [words.shown(store.runs, device) for device in step["devices"]]
    where = f"{text.count(len(shown), 'device')} ({words.several(shown)})"
    return {
        "tone": {0: "good", 1: "bad"}.get(step["code"], "open"),
        "head": f"{step['decision']} ({step['sides'].replace('->', '→')})",
        "clause": step["clause"],
        "sentence": f"cuDNN {labels.get(step['a'], step['a'])} → {labels.get(step['b'], step['b'])} on {where}.",
    }


def of(store, steps, findings):
    """{kind, tone, head, sentence, findings, steps, ...} for the template. `findings`: of findings.of, news first."""
    labels, (head, sentence) = words.build_labels(store.builds()), words.answer(store)
    news, known = [f for f in findings if not f["known"]], [f for f in findings if f["known"]]
    out = {
        "kind": "run",
        "tone": "bad" if news else "good",
        "head": head,
        "sentence": sentence,
        "clause": "",
        "findings": various(news),
        "more_findings": max(0, len(news) - _FINDINGS),
        "known": sum(store.pairs(KNOWN).values()),
        "links": len(known),
        "steps": [],
        "groups": [],
        "older": 0,
        "notes": [],
    }
    if steps.gate:
        groups = enumerate(steps.gate["groups"])
        out |= {
            **_decided(store, steps.gate, labels),
            "kind": "gate",
            "findings": [],
            "more_findings": 0,
            "groups": [_group_line(steps.gate, i, g, True) for i, g in groups][:_GATE],
            "older": max(0, len(steps.gate["groups"]) - _GATE),
            "notes": [n for n in (steps.gate["known"],) if n],
        }
        return out
    shown, older = _steps(steps.steps, labels) if not out["findings"] else ([], 0)
    out |= {"steps": shown, "older": older}
    if steps.steps and not news:
        ran = "SELECT EXISTS(SELECT 1 FROM row WHERE grade='measured' AND build<>?)"
        measured = store.one(ran, (words.NO_BUILD,))
        newest = _decided(store, steps.steps[0], labels)
        said = " ".join((newest["sentence"], head * bool(measured), sentence))
        out |= {**newest, "sentence": said, "kind": "run" if measured else "matrix"}
    return out
