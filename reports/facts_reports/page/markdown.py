"""Markdown for people in a hurry: the overview (about 4 kB) and the body of an issue."""

import re

from ..read import findings, text, words
from ..read.cases import parse
from ..read.versions import version_key
from ..read.vocabulary import BY_WORD, RANK, is_good
from . import issues

SUMMARY_BYTES = 4096
_FINDINGS = 10
_KNOWN = 2


def counts_words(counts, known=None):
    out = []
    for word in sorted(counts, key=RANK.get):
        of_these = (known or {}).get(word, 0)
        said = " (known)" if of_these == counts[word] else f" ({of_these:,} known)"
        out.append(f"{BY_WORD[word].mark} {counts[word]:,} {word}{said * bool(of_these)}")
    return ", ".join(out)


def summary(store, title, known=()):
    """`known`: the answers of issues.Issues about these rows."""
    head, sentence = words.answer(store)
    totals, labels = store.totals(), words.build_labels(store.builds())
    lacks = f" **Incomplete**: {text.count(totals['unreadable'], 'unreadable line')}."
    lacks = "" if store.complete() else lacks
    parts = [
        f"# {text.markdown(title)}\n",
        f"**{head}** {text.markdown(sentence)}\n",
        f"Planned {totals['planned']:,} = answered {totals['answered']:,} + missing {totals['missing']:,}.{lacks}\n",
    ]
    serious = {one["id"]: one["text"] for one in known if one["serious"]}
    if serious:
        said = f"{text.count(len(serious), 'serious failure is', 'serious failures are')} known of these cases (index.html): "
        named = [text.markdown(text.line(one, 240)) for one in serious.values()][:_KNOWN]
        parts.append(said + " ".join(f"{one}." for one in named) + "\n")
    counts = store.counts
    rows = [
        f"| {text.markdown(labels[b])} | {text.markdown(words.shown(store.runs, d))} | {counts_words(c)} |"
        for b, _ in store.builds()
        for d in store.devices()
        if (c := counts("build=? AND device=?", (b, d)))
    ]
    table = "| cuDNN | device | rows |\n|---|---|---|\n"
    room = SUMMARY_BYTES - len("\n".join(parts).encode()) - 600
    parts.append(table + _fitting(rows, room * 3 // 5, "targets"))
    found = findings.of(store)
    if found:
        rows = [
            f"| {BY_WORD[f['outcome']].mark} {f['outcome']}{_standing(f)} | {text.code(f['case'])}{_more(f)} | {text.markdown(f['shown'])} | "
            f"{text.markdown(findings.history_words(f['history']))} |"
            for f in found
        ]
        room = SUMMARY_BYTES - len("\n".join(parts).encode()) - 400
        table = "| finding | case | device | cuDNN |\n|---|---|---|---|\n"
        parts.append(table + _fitting(rows[:_FINDINGS], room, "findings", len(rows)))
        again = words.repro(store, found[0]["row"]).replace("`", "")
        parts.append(f"Repeat one: `{again}`\n" if len(found[0]["case"]) < 250 else "")
    parts.append("FACTS covers fused attention only; a convolution or RNN regression passes it.\n")
    return "\n".join(parts)


def _standing(finding):
    """Which tensors; and of a known one what is known, or its link, bare where a forge makes it one."""
    tensors = ", ".join(text.markdown(t) for t in finding["tensors"][:4])
    tensors = f": {tensors}" if tensors else ""
    if not finding["known"]:
        return tensors
    said, link = next(issues.lines(finding["row"]), "known"), finding["link"]
    bare = re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", link)
    link = link if bare else text.markdown(link) or "no link"
    return f"{tensors}, {text.markdown(text.line(said, 240))}: {link}"


def _more(finding):
    more = len(finding["cases"]) - 1
    return f" and {text.count(more, 'case')} like it" if more else ""


def _fitting(rows, room, noun, total=None):
    kept, used = [], 0
    for row in rows:
        used += len(row.encode()) + 1
        if used > room:
            break
        kept.append(row)
    left = (total or len(rows)) - len(kept)
    more = f"\n{left:,} more {noun}: index.html\n" if left else ""
    return "".join(f"{row}\n" for row in kept) + more


def issue(store, case):
    """An issue body for one case, or None when no record holds it. A case may be given in any order of its tokens."""
    names = store.db.execute("SELECT DISTINCT case_name FROM row ORDER BY case_name")
    name = next((n for (n,) in names if n == case or parse(n) == parse(case)), None)
    if name is None:
        return None
    labels = words.build_labels(store.builds())
    rows = sorted(store.rows("case_name=?", (name,)), key=lambda r: RANK[r[0]])
    worst, row = rows[0]
    says = BY_WORD[worst].says
    out = [
        f"## {worst}: {text.code(name)}\n",
        f"{says[0].upper()}{says[1:]}. {text.markdown(words.why(row))}\n",
        "| device | cuDNN | outcome | evidence | engine | |\n|---|---|---|---|---|---|",
    ]
    place = {b: i for i, (b, _) in enumerate(store.builds())}

    def order(one):
        return one[1]["device"], place[one[1]["build"]], one[1].get("config") or 0

    for outcome, r in sorted(rows, key=order):
        engine = "" if r.get("engine") is None else r["engine"]
        device = text.markdown(words.shown(store.runs, r["device"]))
        target = f"{device} | {text.markdown(labels[r['build']])}"
        said = f"{BY_WORD[outcome].mark} {outcome} | {r.get('grade') or ''} | {text.markdown(str(engine))}"
        out.append(f"| {target} | {said} | {text.markdown(words.why(r, 160))} |")
    if row.get("errors"):
        heads = "| tensor | ratio | gate | worst at | got | want | bound |"
        out += ["", heads, "|---|" + 6 * "---|"]
        for tensor, e in words.errors_of(row):
            said = map(e.get, ("ratio", "gate", "worst_index", "got", "want", "bound"))
            cells = ["" if c is None else text.markdown(str(c)) for c in said]
            out.append(f"| {text.markdown(tensor)} | {' | '.join(cells)} |")
    chain = text.objects(row.get("reason") or {}, "chain")[:10]
    if chain:
        out += ["", "Reason chain:", ""]
    for c in chain:
        keys = ("engine", "status", "text")
        engine, status, said = (text.markdown(str(c.get(key, ""))) for key in keys)
        out.append(f"- engine {engine}: {status} {said}")
    known = [f"- {text.markdown(line.strip())}" for line in issues.lines(row)]
    links = dict.fromkeys(one["link"] for one in issues.of_row(row) if one["such_data"])
    known += [f"- {link}" for link in links if link]  # of our own file
    out += ["", "What is known of it:", "", *known] if known else []
    out += _expected(rows, row)
    repro = words.repro(store, row)
    out += [
        "",
        "Repeat it:",
        "",
        f"    {repro}",
        "",
        "As a C program without FACTS, to attach:",
        "",
    ]
    out += [f"    {repro} --standalone program", "", _environment(store, row)]
    return re.sub("(?i)(t)he worker", r"\1he process that calls cuDNN", "\n".join(out))


_EXPECTED = {
    "crash": "cuDNN answers, and the process lives.",
    "hang": "cuDNN answers.",
    "build_fail": "an engine that cuDNN offers compiles.",
    "exec_fail": "an engine that compiles runs.",
}


def _expected(rows, worst):
    """What should happen, and the versions between which this device's answer changed."""
    kind = BY_WORD[worst["verdict"]].kind
    if kind not in ("failure", "error"):
        return []
    said = _EXPECTED.get(worst["verdict"], "the reference results, within the tolerance.")
    bad = {}  # by version: does any row of it fail?
    for outcome, row in rows:
        if row["device"] == worst["device"] and BY_WORD[outcome].kind != "open":
            version = row.get("cudnn") or ""
            bad[version] = bad.get(version, False) or not is_good(outcome)
    versions = sorted(bad, key=version_key)
    step = [(a, b) for a, b in zip(versions, versions[1:]) if not bad[a] and bad[b]]
    change = f" Last good version: {step[-1][0]}; first bad: {step[-1][1]}." if step else ""
    return ["", f"Expected: {said}{change}"]


def _device(store, row, target):
    if row.get("grade") == "decided" or target.get("described_from"):
        return [
            f"described sm_{row.get('sm')} ({words.shown(store.runs, row['device'])}), no GPU needed"
        ]
    return [target.get("device_name") or row["device"], f"driver {target.get('driver', 'unknown')}"]


def _environment(store, row):
    run = store.runs.get(row.get("run", ""), {})
    target = store.targets.get((row["build"], row["device"]), {})
    said = [
        f"FACTS {run.get('facts', 'unknown')}",
        f"suite {run.get('suite_hash', 'unknown')}",
        f"seed {run.get('seed', 'unknown')}",
        *_device(store, row, target),
        f"build {row['build']}",
    ]
    lines = [text.markdown(", ".join(said)), ""]
    for lib in text.objects(target, "libraries"):
        if lib.get("sha256"):
            name = text.code(str(lib.get("path", "")).rsplit("/", 1)[-1])
            proof = text.markdown(str(lib.get("record", "unknown")))
            lines.append(f"- {name} sha256 {text.code(str(lib['sha256'])[:64])} RECORD: {proof}")
    return "\n".join(lines) + "\n"
