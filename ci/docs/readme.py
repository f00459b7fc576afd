"""README's example table: features by version range."""
from facts_reports import features, text, words
from facts_reports.cases import asked_of
from facts_reports.markdown import counts_words
from facts_reports.predicate import holds, parse as parse_predicate
from facts_reports.versions import range_words, segments
from facts_reports.vocabulary import KNOWN


def _cell_history(cells, labels):
    """[(words, counts of cases, of these known)] over builds. Neighbours join when every case ended alike, never when only totals agree."""
    signatures = [tuple(sorted(c.items())) for c in cells]
    out = []
    for a, z in segments(signatures):
        counts, known = {}, {}
        for outcome, standing in cells[a].values():
            counts[outcome] = counts.get(outcome, 0) + 1
            known[outcome] = known.get(outcome, 0) + (standing == KNOWN)
        out.append((range_words(labels, a, z), counts, known))
    return out


def feature_table(store):
    """Features down, devices across, ranges of versions in the cells."""
    builds, devices = store.builds(), store.devices()
    names = {device: words.device_labels(store, device) for device in devices}
    by_target = {}
    for case, build, device, *how in store.db.execute("SELECT case_name, build, device, outcome, finding FROM row ORDER BY rank DESC, finding"):
        by_target.setdefault((device, build), {})[case] = tuple(how)   # the worst of its configurations comes last
    cases = {case for rows in by_target.values() for case in rows}
    found, _ = features.of(sorted(cases))
    lines = ["| | " + " | ".join(text.markdown(d) for d in devices) + " |", "|---" * (len(devices) + 1) + "|"]
    for feature in found:
        tree = parse_predicate(feature.where)
        member = {c for c in cases if holds(tree, asked_of(c))}
        row = []
        for device in devices:
            asked = [b for b, _ in builds if (device, b) in by_target]
            cells = [{c: o for c, o in by_target[(device, b)].items() if c in member} for b in asked]
            told = _cell_history(cells, [names[device][b] for b in asked])
            row.append("<br>".join(f"{when}: {counts_words(counts, known) or 'no case'}" for when, counts, known in told))
        lines.append(f"| {feature.axis.lower()}: {text.markdown(feature.label)} | " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


_README = ("pass: forward", "pass: backward", "mask: causal, top-left", "mask: causal, bottom-right", "mask: window, top-left", "head dim: up to 64", "head dim: 65 to 128",
           "head dim: 129 to 256", "heads: grouped queries", "padding: random lengths", "padding: empty sequences", "strides: broadcast, stride 0")


def table(store, inputs):
    """The example table of the project's README: at most sixteen lines, with the day of the newest run and the command that printed it."""
    day = max((str(r.get("started", "")) for r in store.runs.values()), default="")[:10]
    command = "ci/docs/page.py readme " + " ".join(text.shell(i) for i in inputs)
    lines = feature_table(store).splitlines()
    rows = [line for wanted in _README for line in lines[2:] if line.startswith(f"| {wanted} |")]
    about = f"Cases by feature, worst first, {text.markdown(day) or 'not dated'}; printed by {text.code(command)}"
    return "\n".join([about, "", *lines[:2], *rows]) + "\n"
