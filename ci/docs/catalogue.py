"""The catalogue of failures (cases/known) against records: the entries that they reproduce, the entries that they do not, and the entries that they cannot
test.

docs/known.md describes the files. This script reads the head of an entry: kind, verdict, reported, range, fixed, needs, tests, title and links.

A target reproduces an entry under three conditions. An affected case ended with the entry's verdict, inside the range that records showed (otherwise the
reported range). The difference is shown: a control passed on the same target and no control failed in that way, or the same case is right in another version
on the same device. Of the versions before and after the range, at least one did not end in that way. A refusal counts only if cuDNN made it.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from facts_reports.known import known
from facts_reports.read import cases, predicate, text
from facts_reports.read.versions import version_key
from facts_reports.read.vocabulary import VERDICTS, is_finding

_UNASKED = ("missing", "inconclusive")
_GOOD = ("pass", "supported")
# how a sentence of our own library begins
_OURS = re.compile(r"[a-z_]+(, [a-z_]+)*: |spelling single needs |what becomes of a score ")
BROKEN = {word for word in VERDICTS if is_finding(word)} - {"build_fail"}


@dataclass
class Entry:
    name: str
    kind: str
    about: str
    verdicts: tuple
    reported: str = ""  # without it the failure was found here, and links are related reports
    seen: str = ""  # the range where records showed it, if it is another one
    needs: str = ""
    links: tuple = ()
    affected: set = field(default_factory=set)  # case names without engine=
    controls: set = field(default_factory=set)

    @property
    def range(self):
        return self.seen or self.reported or "any"


def _entry(file, listed):
    """The entry of one file with these cases."""
    entry = Entry(file.name, file.kind, file.about, tuple(file.verdict.split()))
    entry.reported, entry.seen, entry.needs = file.reported, file.range, file.needs
    entry.links = tuple(file.links)
    sections = {suffix or word.removeprefix("cases"): word for word, suffix, *_ in file.groups}
    for case, group in listed:
        word = sections[group.partition("/")[2]]
        if word != "guarded":  # those show the library and not cuDNN
            (entry.controls if word == "controls" else entry.affected).add(cases.bare(case))
    entry.controls -= entry.affected
    return entry


def read(folder, cases_of):
    """Every entry of a folder that has cases; `cases_of` gives the [(case, group)] of a file. Raises known.KnownError, OSError."""
    files = [file for file in known.load(folder) if file.groups and not file.is_text]
    if not files:
        raise known.KnownError(f"{folder}: holds no case")
    files.sort(key=lambda file: file.name)
    return [_entry(file, cases_of(file.path)) for file in files]


# ---- what the records say -------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    case: str
    word: str  # the verdict; a yes that nobody ran is `supported`
    reason: str  # class of a refusal
    target: tuple  # build, device
    row: dict

    @property
    def version(self):
        return self.row["cudnn"]

    @property
    def measured(self):
        return self.row.get("grade") == "measured"


def answers(store):
    """{bare case: [Answer]}; an expectation changes nothing here, what happened does."""
    found = {}
    for _, row in store.rows("outcome NOT IN ('missing','inconclusive')", order="rowid"):
        word = row["verdict"]
        if word in _UNASKED or (row.get("backend") or "cudnn") != "cudnn":
            continue
        reason = (row.get("reason") or {}).get("class", "")
        one = Answer(cases.bare(row["case"]), word, reason, (row["build"], row["device"]), row)
        found.setdefault(one.case, []).append(one)
    return found


_said = lru_cache(maxsize=None)(cases.parse)


def _inside(tree, answer):
    if tree is None:
        return True
    said, keys = _said(answer.case), "cudnn sm build device case grade verdict engine".split()
    subject = {key: answer.row.get(key) for key in keys} | {"class": answer.reason}

    def get(key):
        value = subject[key] if key in subject else cases.value_of(said, key)
        return None if value is None else str(value)

    return predicate.holds(tree, get)


def _refused_by_cudnn(answer):
    """Not by what our library knows of a version, before cuDNN is asked. Records of before have no status."""
    reason = answer.row.get("reason") or {}
    is_ours = not reason.get("status") and _OURS.match(reason.get("text", ""))
    return answer.reason == "unsupported" and not is_ours


def _ended_so(entry, answer):
    is_ours = answer.word == "unsupported" and not _refused_by_cudnn(answer)
    return answer.word in entry.verdicts and not is_ours


def _shows(answer):
    """Can this answer be a failure at all? Numbers need a run; a crash of the planner and a plan that cannot be built do not."""
    return answer.measured or answer.word in ("crash", "hang", "build_fail")


class Judged:
    """One entry against the records."""

    def __init__(self, entry, found):
        self.entry = entry
        tree = None if entry.range == "any" else predicate.parse(entry.range)
        self.all = [a for case in entry.affected for a in found.get(case, [])]
        self.inside = [a for a in self.all if _inside(tree, a)]
        self.controls = {}
        for case in entry.controls:
            for a in found.get(case, []):
                self.controls.setdefault(a.target, {}).setdefault(case, []).append(a)
        self.right = {}  # case, device: builds where every answer is good
        for a in self.all:
            good = self.right.setdefault((a.case, a.target[1], a.measured), {})
            good[a.target[0]] = good.get(a.target[0], True) and a.word in _GOOD
        inside = {id(a) for a in self.inside}
        self.beyond = {}  # case, device, measured: did each answer outside the range end so?
        for a in self.all:
            if id(a) not in inside:
                beyond = self.beyond.setdefault((a.case, a.target[1], a.measured), [])
                beyond.append((version_key(a.version), _ended_so(entry, a)))
        ended = (a for a in self.inside if _ended_so(entry, a))
        shown = (a for a in ended if _shows(a) or a.word == "unsupported")
        alone = (a for a in shown if self._bounded(a) and not self._spoilt(a))
        self.hits = [a for a in alone if self._controlled(a) or self._healed(a)]

    def _bounded(self, hit):
        """What ends so in every version before the range, or behind it, does not show the range."""
        beyond = self.beyond.get((hit.case, hit.target[1], hit.measured), [])
        here = version_key(hit.version)
        before = [so for version, so in beyond if version < here]
        behind = [so for version, so in beyond if version > here]
        return not any(side and all(side) for side in (before, behind))

    def _near(self, hit):
        """The controls asked on the same target: of the same pass, where there are such."""
        here = self.controls.get(hit.target, {})
        same = {case: some for case, some in here.items() if case.split()[0] == hit.case.split()[0]}
        asked = (
            [a for a in some if a.word != "unsupported" or _refused_by_cudnn(a)]
            for some in (same or here).values()
        )  # our own no is no answer of cuDNN's
        return [some for some in asked if some]

    def _spoilt(self, hit):
        """A control that broke there too: then this is another failure, which does not need what the entry says."""
        bad = set(self.entry.verdicts) | (BROKEN if hit.measured and hit.word in BROKEN else set())
        near = [a for some in self._near(hit) for a in some]
        return any(a.word in bad and a.measured >= hit.measured for a in near)

    def _controlled(self, hit):
        near = self._near(hit)
        return any(all(a.word in _GOOD and a.measured >= hit.measured for a in one) for one in near)

    def _healed(self, hit):
        builds = self.right.get((hit.case, hit.target[1], hit.measured), {})
        return any(good for build, good in builds.items() if build != hit.target[0])

    @property
    def asked(self):
        """Answers that could have shown it."""
        return [a for a in self.inside if _shows(a) or "unsupported" in self.entry.verdicts]

    @property
    def state(self):
        if self.entry.about == "speed":
            return "speed"
        if self.entry.about == "design" and self.asked:
            return "confirmed" if all(a.word == "pass" for a in self.asked) else "not reproduced"
        if self.hits:
            return "reproduced"
        if self.entry.about == "caller":
            return "caller"
        return "not reproduced" if self.asked else "untested"

    @property
    def broken_on_gpu(self):
        return any(a.measured and a.word in BROKEN for a in self.hits)


# ---- the page -------------------------------------------------------------------------------------------------------------------

STATES = {
    "reproduced": "reproduced",
    "confirmed": "intended behaviour",
    "not reproduced": "asked and not reproduced",
    "caller": "failures of other code",
    "speed": "about speed",
    "untested": "not testable with these records",
}


def _span(answers_):
    """9.8.0 to 9.12.0: the first and the last version of these answers."""
    versions = sorted({a.version for a in answers_}, key=version_key)
    return " to ".join(dict.fromkeys((versions[0], versions[-1]))) if versions else "none"


def _answer(judged):
    """What the records say of an entry: how its cases ended, in which versions, on which devices."""
    entry, shown = judged.entry, judged.hits or judged.asked
    if not shown:
        return entry.needs or f"no record of {entry.range} can show it"
    ended = ", ".join(sorted({a.word for a in shown}))
    devices = ", ".join(sorted({a.target[1] for a in shown}))
    return f"{ended}; {_span(shown)} on {devices}"


def _lines(judged, state):
    """The entries of one state, a line each."""
    for one in judged:
        entry = one.entry
        if one.state == state:
            reported = f" Reported for {text.code(entry.reported)}." if entry.reported else ""
            link = text.markdown(", ".join(entry.links)) or f"[page](known/{entry.name}.md)"
            said = f"Answers: {text.markdown(_answer(one))}. {link}."
            yield f"- {text.code(entry.name)}: {' '.join(entry.verdicts)}.{reported} {said}"


def _count(judged, state):
    return sum(j.state == state for j in judged)


def _sum(judged, what):
    counted = [(word, _count(judged, state)) for state, word in STATES.items()]
    broken = "of them wrong numbers, NaN, memory faults, crashes or hangs on a GPU"
    counted.insert(1, (broken, sum(j.broken_on_gpu for j in judged)))
    return [
        f"**{_count(judged, 'reproduced')} of {len(judged)} {what} reproduced**:",
        "",
        "| | entries |",
        "|---|--:|",
        *(f"| {word} | {n} |" for word, n in counted if n or word == "reproduced"),
    ]


def table(store, entries):
    """(Markdown, how many reports reproduced, how many of them broke on a GPU)."""
    found = answers(store)
    judged = [Judged(entry, found) for entry in entries]
    reports = [j for j in judged if j.entry.reported]
    ours = [j for j in judged if not j.entry.reported]
    every = [a for some in found.values() for a in some]
    gpus, described = (
        ", ".join(sorted({a.target[1] for a in every if a.measured is measured})) or "none"
        for measured in (True, False)
    )
    lines = [
        "# Public failure reports, and what became of them",
        "",
        f"Printed from records by `ci/docs/page.py catalogue`: cuDNN {_span(every)}; run on {gpus}; decided for {described}.",
        "",
        "An entry is a file of `cases/known/`. It is reproduced if an affected case ended as reported, inside the reported range. A control on the same target must have passed, or the "
        "same case must be right in another version there. A failure in every version before or behind the range does not count. A refusal counts if cuDNN made it. "
        "`facts known show ID` and `facts list regress/ID` show an entry.",
        "",
        *_sum(reports, "reports"),
    ]
    for kind, (_, several) in known.KINDS.items():
        if some := [j for j in ours if j.entry.kind == kind]:
            lines += ["", *_sum(some, several.format(" found by FACTS"))]
    for head, some in (("Reports", reports), ("Found by FACTS", ours)):
        for state, word in STATES.items():
            if _count(some, state):
                lines += ["", f"## {head}: {word}", "", *_lines(some, state)]
    broken = sum(j.broken_on_gpu for j in reports)
    return text.wrapped("\n".join(lines)) + "\n", _count(reports, "reproduced"), broken
