"""The expectations that the build makes of cases/known: which line explains a row, and which failures have none.

The harness parses and checks the lines (harness/src/case/suites/expectation_lines.c). A line counts for a row when the run asked one of the line's
suites, or no whole suite, as in the run itself.
"""

import re
from dataclasses import dataclass

from ..read import cases, predicate
from ..read.vocabulary import is_finding

_RESULT = frozenset((*cases.SUBJECT, "device"))  # what only a row says


@dataclass(frozen=True)
class Line:
    verdicts: tuple
    suites: tuple  # (): all
    tree: tuple  # the predicate


_HEAD = "# Made from cases/known by ci/generate_known.py. Change the files there.\n"


def write(entries, before_guards=False):
    """The text of known.expect, as harness/src/case/suites/expectation_lines.c reads it. `before_guards`: see known.Failure."""
    lines = [_HEAD.rstrip("\n")]
    for entry in entries:
        for failure in entry.failures:
            for where, suspected in failure.expectations(before_guards):
                verdict = failure.fields["verdict"] + (
                    "?" if suspected and not failure.fields["verdict"].endswith("?") else ""
                )
                note = failure.fields.get("note", "")
                if suspected:
                    note = (
                        note + "; " if note else ""
                    ) + "suspected: seen on another architecture with the same engine"
                lines.append(f"# failure: {failure.name}")
                everywhere = before_guards and failure.guarded  # a guard refuses whatever was asked
                lines.append(
                    f"suites: {'all' if everywhere else failure.fields.get('suites', 'regress')}"
                )
                lines.append(
                    f"{failure.fields['date']} {verdict} {where} {failure.link.replace(' ', '_')}"
                    + (f" # {note}" if note else "")
                )
    return "\n".join(lines) + "\n"


def read(text):
    """All lines of a text, in the order in which they count."""
    out, suites = [], ()
    for said in text.split("\n"):
        if said.startswith("suites:"):
            names = said[len("suites:") :].split("#")[0].split()
            suites = () if names == ["all"] else tuple(names)
        elif said.strip() and not said.lstrip().startswith("#"):
            body = re.split(r"(?:^|(?<=[ \t]))#", said, maxsplit=1)[0].rstrip()
            _, verdict, rest = body.split(None, 2)
            where, _ = rest.rsplit(None, 1)
            out.append(Line(tuple(verdict.rstrip("?").split("/")), suites, predicate.parse(where)))
    return out


def row_get(row):
    """What a predicate asks of a row."""
    said = cases.parse(row["case"])
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
