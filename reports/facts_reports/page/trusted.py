"""What a reader needs to trust a row: which run asked it and when, and the rules of other projects that say otherwise."""

from pathlib import Path

from ..read import claims, text, words

_CLAIMS = Path(__file__).resolve().parents[3] / "cases" / "claims"


def runs(store):
    """{run: when it began, its suite, its builds, the command, and what judged it}."""
    out = {}
    for name, run in store.runs.items():
        targets, command = text.objects(run, "targets"), text.texts(run, "command")
        out[name] = {
            "started": str(run.get("started", "")),
            "suite": str(run.get("suite_hash", "")),
            "suites": words.suites_of(run),
            "builds": sorted({str(t.get("build")) for t in targets}),
            "by": command[1] if len(command) > 1 else "",
            "tolerance": f"FACTS {run.get('facts', '')}".strip(),
        }
    return out


def _about(claim):
    return {
        "id": claim.id,
        "project": f"{claim.project.name} {claim.project.version}",
        "says": claim.says,
        "link": claim.project.link.split(" ")[0],
    }


def audited(audit, names, targets):
    """[{a rule, the audit's word, "shown": [[place of a case, place of a target]]}]: the rules that disagree with cuDNN, by the cases that show it."""
    if not audit:
        return []
    cases = {name: i for i, name in enumerate(names)}
    places, out = {tuple(pair): i for i, pair in enumerate(targets)}, {}
    for claim, name, (device, build, *_), word in audit.against:
        if name in cases and (build, device) in places:
            one = out.setdefault((claim.id, word), {**_about(claim), "word": word, "shown": []})
            one["shown"].append([cases[name], places[build, device]])
    return list(out.values())


def rules():
    """The rules of cases/claims that a backend can answer; [] where that folder is not there."""
    try:
        reader, _ = claims.load([], _CLAIMS)
    except claims.ClaimsError:
        return []
    return [
        {
            **_about(c),
            "refuse": [text for _, _, text in c.refuse],
            "unless": [text for _, _, text in c.unless],
        }
        for c in reader.claims
        if c.refuse and c.kind != "order"  # nobody refuses by it
    ]
