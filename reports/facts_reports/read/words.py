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


def shown(runs, device):
    """A device for people: "sm100-spec (B200)" where `runs` ({id: run object}) name its product."""
    for run in runs.values():
        for target in text.objects(run, "targets"):
            if target.get("device") == device and target.get("product"):
                return f"{device} ({text.line(str(target['product']), 60)})"
    return device


def shown_devices(store):
    return [shown(store.runs, device) for device in store.devices()]


def several(items, most=6):
    items = list(items)
    if len(items) > most:
        return f"{items[0]} … {items[-1]}"
    return ", ".join(items[:-1]) + (" and " if items[1:] else "") + items[-1] if items else "none"


_SUITES = ("smoke", "core", "nightly", "exhaustive", "regress", "reject")


def suites_of(run):
    """The suites that a run asked; in the first records only its command line names them."""
    named = run.get("suites")
    said = [run.get("suite"), *(named.split() if isinstance(named, str) else named or [])]
    said = [w for w in said if isinstance(w, str) and w]
    return list(dict.fromkeys(said + [w for w in text.texts(run, "command") if w in _SUITES]))


def suites(store):
    """The same of every run."""
    return list(dict.fromkeys(word for run in store.runs.values() for word in suites_of(run)))


def answer(store):
    """(headline, sentence). The headline is the answer; the sentence its scope."""
    totals = store.totals()
    counts = {**store.counts(), "missing": totals["missing"]}
    of_cudnn = {**store.counts(*CUDNN_S), "missing": totals["missing"]}
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
        f"{of_cudnn[w]:,} {w}"
        for w in reversed([o.word for o in OUTCOMES])
        if of_cudnn.get(w) and not is_finding(w)
    ]
    sentence = (
        f"{text.count(totals['cases'], 'case')}{asked}, {text.count(len(labels), 'cuDNN build') + f' ({several(labels.values())})' if labels else 'no cuDNN'}, "
        f"{text.count(len(store.devices()), 'device')} ({several(shown_devices(store))}): {text.count(totals['rows'], 'row')}"
        f"{'; ' + several(said, 20) if said else ''}{'; ' + apart if (apart := others(store)) else ''}."
    )
    return head, sentence


def repro(store, row, verb="repro"):
    """The command that repeats a row: a GPU is asked for by its number, where it ran."""
    build = build_labels(store.builds()).get(row["build"], row["build"])
    cudnn = "" if row["build"] == NO_BUILD else " --cudnn " + text.shell(build)
    return f"facts {verb} {text.shell(row['case'])}{cudnn} --device {text.shell(store.gpus.get(row['device'], row['device']))}"


def errors_of(row):
    """[(tensor, numbers)]"""
    errors = row.get("errors")
    return [(t, e) for t, e in errors.items() if isinstance(e, dict)] if errors else []


# The rows that are cuDNN's: the CPU backend has no build, and a case with policy= asks for the library's answer.
CUDNN_S = ("build<>? AND case_name NOT LIKE '% policy=%'", (NO_BUILD,))


def others(store):
    """The rows that are not cuDNN's, in words; "" where there are none."""
    counts = store.counts(f"NOT ({CUDNN_S[0]})", CUDNN_S[1])
    said = [f"{n:,} {word}" for word, n in reversed(counts.items())]
    return f"FACTS's own backends: {several(said, 20)}" if said else ""


def _ratios(row):
    """[(ratio, tensor, numbers)]"""
    found = [(ratio_of(e.get("ratio")), tensor, e) for tensor, e in errors_of(row)]
    return [one for one in found if one[0] is not None]


def worst_ratio(row):
    """The largest error of a row's tensors, as a part of its bound: five digits, "inf", or None."""
    worst = max((ratio for ratio, _, _ in _ratios(row)), default=None)
    return "inf" if worst == float("inf") else worst if worst is None else float(f"{worst:.5g}")


def why(row, limit=200):
    """One line: the worst number, or the reason; before it the expected verdict, if it is another."""
    expectation, what = row.get("expectation"), _what(row)
    if is_met(expectation, row["verdict"]) is False:
        keys = ("verdict", "link", "reason")
        expected = " ".join(str(expectation[k]) for k in keys if expectation.get(k))
        what = f"{row['verdict']}, expected {expected}" + (f"; {what}" if what else "")
    return text.line(what, limit) if what else ""


def _what(row):
    worst = max(_ratios(row), key=lambda one: one[0], default=None)
    if worst and worst[0] > 1:
        _, tensor, e = worst
        place = ",".join(text.texts(e, "worst_index")[:4])
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
