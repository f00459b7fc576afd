"""The answer in words: what was asked, of whom, what came out. The page, the Markdown and the terminal say the same."""

from . import text
from .vocabulary import KNOWN, NEWS, OUTCOMES, is_finding, is_met

NO_BUILD = "none"  # the CPU backend: a device, but no cuDNN


def build_labels(builds):
    """{build: what people call it}: the version alone where that names one build only."""
    versions = [v for _, v in builds]
    return {
        b: "no cuDNN" if b == NO_BUILD else v if versions.count(v) == 1 else b for b, v in builds
    }


def device_labels(store, device):
    """The same for what one device was asked: another device's build of the same version is no other choice here."""
    asked = {
        b for (b,) in store.db.execute("SELECT DISTINCT build FROM row WHERE device=?", (device,))
    }
    return build_labels([b for b in store.builds() if b[0] in asked])


def several(items, most=6):
    items = list(items)
    if len(items) > most:
        return f"{items[0]} … {items[-1]}"
    return (
        items[0]
        if len(items) == 1
        else ", ".join(items[:-1]) + " and " + items[-1]
        if items
        else "none"
    )


_SUITES = ("smoke", "core", "nightly", "exhaustive", "regress", "reject")


def suites_of(run):
    """The suites that a run asked; in the first records only its command line names them."""
    named = run.get("suites")
    said = [
        run.get("suite"),
        *(named.split() if isinstance(named, str) else named if isinstance(named, list) else []),
    ]
    command = run.get("command") if isinstance(run.get("command"), list) else []
    return list(
        dict.fromkeys(
            [w for w in said if isinstance(w, str) and w] + [w for w in command if w in _SUITES]
        )
    )


def suites(store):
    """The same of every run."""
    return list(dict.fromkeys(word for run in store.runs.values() for word in suites_of(run)))


def answer(store):
    """(headline, sentence). The headline is the answer; the sentence its scope."""
    totals = store.totals()
    counts = {**store.counts(), "missing": totals["missing"]}
    news, known = store.pairs(NEWS), store.pairs(KNOWN)
    asked_builds = [b for b in store.builds() if b[0] != NO_BUILD]
    labels = build_labels(asked_builds)
    ran = store.one(
        "SELECT EXISTS(SELECT 1 FROM row WHERE grade='measured' AND build<>?)", (NO_BUILD,)
    )
    accepted = text.count(sum(known.values()), "known failure") if known else ""
    if news:
        kinds = [f"{n:,} {word}" for word, n in news.items()]
        cases = store.one("SELECT count(DISTINCT case_name) FROM row WHERE finding=?", (NEWS,))
        head = (
            f"{text.count(sum(news.values()), 'finding')} in {text.count(cases, 'case')}: {several(kinds, 20)}"
            + (f"; also {accepted}." if known else ".")
        )
    elif known:
        head = f"No new findings: {accepted}."
    elif totals["rows"] == 0:
        head = "No rows."
    elif totals["missing"] or counts.get("inconclusive") or counts.get("mistrusted"):
        head = "No findings, but some cases have no answer."
    elif asked_builds and not ran:
        head = "No findings. Decisions only: nothing ran on a GPU."
    else:
        head = "No findings."
    asked = f" of {several(suites(store))}" if suites(store) else ""
    said = [
        f"{counts[w]:,} {w}"
        for w in reversed([o.word for o in OUTCOMES])
        if counts.get(w) and not is_finding(w)
    ]
    sentence = (
        f"{text.count(totals['cases'], 'case')}{asked}, {text.count(len(labels), 'cuDNN build') + f' ({several(labels.values())})' if labels else 'no cuDNN'}, "
        f"{text.count(len(store.devices()), 'device')} ({several(store.devices())}): {text.count(totals['rows'], 'row')}"
        f"{'; ' + several(said, 20) if said else ''}."
    )
    return head, sentence


def repro(store, row, verb="repro"):
    """The command that repeats a row: a GPU is asked for by its number, where it ran."""
    cudnn = (
        ""
        if row["build"] == NO_BUILD
        else " --cudnn " + text.shell(build_labels(store.builds()).get(row["build"], row["build"]))
    )
    return f"facts {verb} {text.shell(row['case'])}{cudnn} --device {text.shell(store.gpus.get(row['device'], row['device']))}"


def _worst_error(row):
    """(ratio, tensor, numbers) or None."""
    found = None
    for tensor, e in row["errors"].items() if isinstance(row.get("errors"), dict) else ():
        ratio = ratio_of(e.get("ratio")) if isinstance(e, dict) else None
        if ratio is not None and (found is None or ratio > found[0]):
            found = (ratio, tensor, e)
    return found


def worst_ratio(row):
    """The largest error of a row's tensors, as a part of its bound: five digits, "inf", or None."""
    ratios = (
        [ratio_of(e.get("ratio")) for e in row["errors"].values() if isinstance(e, dict)]
        if row.get("errors")
        else []
    )
    worst = max((r for r in ratios if r is not None), default=None)
    return "inf" if worst == float("inf") else worst if worst is None else float(f"{worst:.5g}")


def why(row, limit=200):
    """One line: the worst number, or the reason; before it the expected verdict, if it is another."""
    expectation = row.get("expectation")
    if is_met(expectation, row["verdict"]) is False:
        expected = " ".join(
            str(expectation[k]) for k in ("verdict", "link", "reason") if expectation.get(k)
        )
        what = _what(row)
        return text.line(
            f"{row['verdict']}, expected {expected}" + (f"; {what}" if what else ""), limit
        )
    what = _what(row)
    return text.line(what, limit) if what else ""


def _what(row):
    worst = _worst_error(row)
    if worst and worst[0] > 1:
        _, tensor, e = worst
        place = (
            ",".join(str(i) for i in e["worst_index"][:4])
            if isinstance(e.get("worst_index"), list)
            else ""
        )
        return f"{tensor}[{place}]: got {_number(e.get('got'))}, want {_number(e.get('want'))}, ratio {_number(e.get('ratio'))} ({e.get('gate')})"
    reason = row.get("reason")
    if not reason:
        return ""
    return ": ".join(str(reason[k]) for k in ("status", "text") if reason.get(k))


def _number(value):
    return f"{value:.5g}" if isinstance(value, (int, float)) else value


def ratio_of(value):
    if value in ("inf", "nan"):
        return float("inf")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
