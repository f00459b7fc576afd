"""Accepted losses: a file of `PREDICATE; REASON; DATE; UNTIL`. After the day UNTIL the loss decides again.

A predicate has the keys of --where, and `known`: the name of an entry of cases/known that begins.
"""

import datetime
from dataclasses import dataclass

from ..read import cases, predicate, text
from ..read.vocabulary import JOINED

_FORM = "want 'PREDICATE; REASON; DATE; UNTIL', with days such as 2026-11-28"
_EXTRA = {"known": False}
_DAYS, _MOST = (
    90,
    20,
)  # of a proposal: how long it holds, cases of a group that no predicate separates


class AcceptError(ValueError):
    """One line for people, with its place."""


@dataclass(frozen=True)
class Line:
    place: int
    tree: tuple
    reason: str
    until: str


class Accepted:
    def __init__(self, path):
        """Raises AcceptError, OSError."""
        self.path, self.lines, self.used = path, [], set()
        with open(path, encoding="utf-8", errors="replace") as file:
            for place, said in enumerate(file, 1):
                if said.strip() and not said.startswith("#"):
                    self.lines.append(self._line(place, said.split(";")))
        today = datetime.date.today().isoformat()
        self.expired = [line for line in self.lines if line.until < today]

    def _line(self, place, parts):
        where, reason, date, until = (part.strip() for part in (*parts, "", "", "")[:4])
        try:
            for day in (date, until):
                datetime.date.fromisoformat(day)
            if len(parts) != 4 or not reason:
                raise ValueError(_FORM)
            return Line(place, predicate.parse(where, _EXTRA), text.line(reason, 200), until)
        except predicate.PredicateError as error:
            raise AcceptError(f"{self.path}:{place}: {error}") from None
        except ValueError:
            raise AcceptError(f"{self.path}:{place}: {_FORM}") from None

    def line_for(self, about, case):
        """The line that accepts a finding; None: none, or it has expired. `about`: what is no key of the case."""
        said = cases.parse(case)

        def get(key):
            return about[key] if key in about else cases.value_of(said, key)

        for line in self.lines:
            if predicate.holds(line.tree, get):
                self.used.add(line.place)
                if line not in self.expired:
                    return line
        return None

    def notes(self):
        """What the file says and the comparison does not bear out."""
        unused = [line for line in self.lines if line.place not in self.used]
        for some, said in (
            (self.expired, "has expired, and its cases decide again"),
            (unused, "accepts no finding of these cases"),
        ):
            for line in some:
                yield f"{self.path}:{line.place} {said}."


def proposed(diff):
    """The lines that would accept every finding, each with its reason to be written."""
    today = datetime.date.today()
    end = f"; ; {today}; {today + datetime.timedelta(_DAYS)}\n"
    for group in diff.groups:
        if group.word in diff.fail_on and group.news:
            yield from (f"{where}{end}" for where in _predicates(diff, group))


def _predicates(diff, group):
    if group.word in JOINED:
        return [f"known={group.alike}"]
    if group.where and not group.others:
        return [group.where]
    return [f'case="{name}"' for name in dict.fromkeys(diff.cases_of(group))][:_MOST]
