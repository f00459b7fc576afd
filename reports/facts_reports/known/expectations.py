"""The results that are known to fail: which line explains a row, and which failures have none.

The harness judges its own rows alike (harness/core/known). A line counts for a row when the run asked one of the line's suites, or no whole suite.
"""

from dataclasses import dataclass

from ..read import cases, predicate
from ..read.vocabulary import is_finding

_RESULT = frozenset((*cases.SUBJECT, "device"))  # what only a row says


@dataclass(frozen=True)
class Line:
    verdicts: tuple
    suites: tuple  # (): all
    tree: tuple  # the predicate


def lines_of(entries, before_guards=False):
    """All lines, in the order in which they count. `before_guards`: see known.Failure."""
    out = []
    for failure in (failure for entry in entries for failure in entry.failures):
        suites = failure.fields.get("suites", "regress")
        everywhere = suites == "all" or (before_guards and failure.guarded)
        for where, _ in failure.expectations(before_guards):
            tree = predicate.parse(where)
            out.append(
                Line(tuple(failure.verdicts), () if everywhere else tuple(suites.split()), tree)
            )
    return out


def row_get(row):
    """What a predicate asks of a row."""
    said = cases.parse(cases.as_asked(row))
    about = {"class": (row.get("reason") or {}).get("class"), "case": row["case"]}
    about |= {
        k: row.get(k) for k in "cudnn sm build backend grade verdict engine config device".split()
    }

    def get(key):
        value = about.get(key)
        if value is None and key in _RESULT and key != "engine":
            return None
        return str(value) if value is not None else cases.value_of(said, key)

    return get


def _is_about(line, run):
    """Did the run ask one of the line's suites, or one in a folder that the line names? Single cases and files: yes."""
    return (
        not line.suites
        or not run
        or any(
            asked == named or asked.startswith(named + "/")
            for asked in run
            for named in line.suites
        )
    )


def unexplained(store, lines):
    """(all rows, those that are failures and that no line explains: a line that expects another verdict explains nothing)."""
    rows, failed = [], []
    for _, row in store.rows(
        "outcome<>'missing'", order="case_name, device, cudnn, build, config, id"
    ):
        rows.append(row)
        if not is_finding(row["verdict"]) or (
            isinstance(row.get("expectation"), dict) and "reason" in row["expectation"]
        ):  # a reject case: its group judges it
            continue
        get, run = row_get(row), suites_of(store, row)
        if not any(
            row["verdict"] in line.verdicts
            and _is_about(line, run)
            and predicate.holds(line.tree, get)
            for line in lines
        ):
            failed.append(row)
    return rows, failed


def suites_of(store, row):
    """The whole suites that the row's run asked."""
    return str(store.runs.get(row["run"], {}).get("suites", "")).split()
