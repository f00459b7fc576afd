"""The same rows for machines: CSV, JSON, JUnit."""

import collections
import contextlib
import csv
import json
from functools import lru_cache

from ..known import knowledge
from ..read import junit, text, words
from ..read.cases import parse
from ..read.files import replaced, write
from ..read.store import wall_ms
from ..read.vocabulary import BY_WORD, KNOWN, OUTCOMES, standing
from . import issues, trusted

COLUMNS = (
    "case pass dtype cudnn build device sm grade backend outcome verdict known supported "
    "engine config reason_class reason_status reason worst workspace_bytes plan_ms exec_us "
    "decide_us attempt run group ratio asked tolerance suite_hash"
).split()
JUNIT_ALL = 20000  # above this many rows only what is not a pass is listed, beside the totals: readers refuse files above 30 MB
_UNTAGGED = tuple(o.word for o in OUTCOMES if o.kind == "good")
_RISKY = "=+-@\t\r"  # a spreadsheet runs what begins so
_NUMBERS = (int, float)  # and not bool
# of rows, which marshal.loads() made
_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
_said = lru_cache(maxsize=256)(parse)  # the answers of several builds to one case stand together


def _cell(value):
    """A spreadsheet must not run what a record says."""
    if type(value) is not str:
        value = str(value) if not isinstance(value, bool) else str(int(value))
    number = value.lstrip("+-").replace(".", "", 1).isdigit()
    return "'" + value if value and value[0] in _RISKY and not number else value


def _asked(run):
    """When the rows of a run were asked, what judged them, and of which suite they are: as in the downloads of the page."""
    keys = {"asked": "started", "tolerance": "tolerance", "suite_hash": "suite"}
    return {name: run.get(key, "") for name, key in keys.items()}


def _cells(row):
    """`row`: as results.json has it."""
    said, reason, expectation = _said(row["case"]), row.get("reason") or {}, row.get("expectation")
    known = standing(row["outcome"], row["verdict"], expectation) == KNOWN
    all_of = {
        **row,
        "pass": said.get("pass"),
        "dtype": said.get("dtype"),
        **{f"reason_{key}": reason.get(key) for key in ("class", "status")},
        "reason": reason.get("text"),
        "known": (expectation or {}).get("link", "yes") if known else "",
        "worst": words.why(row),
    }
    # csv writes None, a number and most texts as we do.
    return [value if _is_plain(value) else _cell(value) for value in map(all_of.get, COLUMNS)]


def _is_plain(value):
    kind = type(value)
    is_safe = kind is str and value[:1] not in _RISKY
    return value is None or is_safe or kind in _NUMBERS and value >= 0


def written_rows(store, folder, about):
    """The rows as store.rows() has them, each written when the next is asked for: to results.csv, and to results.json, which is one object with its rows one a line,
    so that it can be read in pieces and compared."""
    csv_file = replaced(folder / "results.csv", newline="")
    with csv_file as cells, replaced(folder / "results.json") as out:
        table = csv.writer(cells)
        table.writerow(COLUMNS)
        runs = trusted.runs(store)
        keys = ("started", "tolerance", "suite")
        found = ({run[key] for run in runs.values() if run[key]} for key in keys)
        dates, tolerances, suites = map(sorted, found)
        asked = " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else ""
        about = {**about, "asked": asked, "tolerances": tolerances, "suites": suites}
        head = json.dumps(about, ensure_ascii=False, indent=1)
        out.write(head[:-2] + ',\n "rows": [')
        asked = {name: _asked(run) for name, run in runs.items()}
        for i, (outcome, row) in enumerate(store.rows()):
            yield outcome, row
            row = {**row, "outcome": outcome, "ratio": words.worst_ratio(row)}
            row |= asked.get(row.get("run")) or _asked({})
            if found := issues.of_row(row):
                row["known"] = [knowledge.member(one) for one in found]
            table.writerow(_cells(row))
            out.write(f"{',' if i else ''}\n{_encode(row)}")
        out.write("\n]}\n")


def _tag(outcome, row):
    expectation, kind = row.get("expectation"), BY_WORD[outcome].kind
    if standing(outcome, row["verdict"], expectation) == KNOWN:
        said = next(iter(issues.lines(row)), "") or json.dumps(expectation, ensure_ascii=False)
        return "skipped", f"xfail: {outcome}; {said}"
    why = words.why(row)
    if kind in ("failure", "error") or outcome in ("mistrusted", "inconclusive"):
        return ("failure" if kind == "failure" else "error"), f"{outcome}: {why}"
    if kind in ("refused", "open"):
        said = f"{outcome}: {why}" if kind == "open" else why or "refused without a reason"
        return "skipped", said
    return "", ""


def write_junit(store, path, title):
    labels = words.build_labels(store.builds())
    everything = store.one("SELECT count(*) FROM row") <= JUNIT_ALL
    with replaced(path) as out:
        out.write(f"{junit.HEAD}<testsuites name={junit.quoteattr(title)}>\n")
        for build, version in store.builds():
            for device in store.devices():
                _suite(store, out, build, version, device, labels, everything)
        out.write("</testsuites>\n")


def _suite(store, out, build, version, device, labels, everything):
    here, args = "build=? AND device=?", (build, device)
    total, taken = store.db.execute(
        f"SELECT count(*), total(wall_ms) / 1000 FROM row WHERE {here}", args
    ).fetchone()
    if not total:
        return
    tally = {"failure": 0, "error": 0, "skipped": 0}
    body, listed = [], "" if everything else f" AND outcome NOT IN {_UNTAGGED}"
    for outcome, row in store.rows(here + listed, args):
        tag, message = _tag(outcome, row)
        if tag:
            tally[tag] += 1
        body.append(_testcase(store, row, version, tag, message, outcome, labels))
    # Readers add up what is listed; what is only counted is in the properties. A name has no count: it stays from run to run.
    counts = {"tests": len(body), "failures": tally["failure"], "errors": tally["error"]}
    properties = {"rows": total, "passing rows not listed": total - len(body)}
    properties |= {f"rows.{word}": n for word, n in store.counts(here, args).items()}
    counts["skipped"] = tally["skipped"]
    name = f"{labels[build]} on {device}"
    out.write(junit.suite(name, taken, counts, properties, "".join(body)))


def _testcase(store, row, version, tag, message, outcome, labels):
    sm, config = row.get("sm"), row.get("config")
    device = f"sm{sm}" if sm is not None else "cpu" if row["device"] == "cpu" else "sm"
    classname = f"facts.{parse(row['case']).get('pass', 'fwd')}.{device}.cudnn{version}"
    name = f"{row['case']} @ {labels[row['build']]} {row['device']}"
    if config is not None and "engine=all" in row["case"]:
        name += f" config {config}"
    seconds = wall_ms(row) / 1000
    known = list(issues.lines(row))
    if not tag:
        return junit.case(classname, name, seconds, tag, details="\n".join(known))
    lines = [message, *known, words.repro(store, row), f"grade: {row.get('grade') or 'unknown'}"]
    chain = text.objects(row.get("reason") or {}, "chain")[:10]
    lines += [f"  {c.get('status', '')}: {c.get('text', '')}" for c in chain]
    return junit.case(classname, name, seconds, tag, message[:500], outcome, "\n".join(lines))


def write_site(store, folder, title, compared=None, home="", audit=None):
    """`compared`: the diff.Diff that the page is about; else the page finds out from the record. `audit`: an audit.Audit of these rows. Returns the site.Page."""
    from . import markdown, site  # the one part that needs Jinja2

    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "title": title,
        "answer": words.answer(store),
        "complete": store.complete(),
        "totals": store.totals(),
        "runs": store.runs,
        "targets": list(store.targets.values()),
    }
    with contextlib.closing(written_rows(store, folder, about)) as rows:
        page = site.make(store, title, compared, home, audit, rows)
        # those that the page did not ask for: all, where there are too many for a page
        collections.deque(rows, 0)
    write(folder / "index.html", page.html)
    write(folder / "summary.md", markdown.summary(store, title, page.known))
    write_junit(store, folder / "junit.xml", title)
    return page
