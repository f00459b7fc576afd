"""What records show of the known failures: new observations, as edits to the files in cases/known."""

import difflib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..read import predicate, reader, text
from ..read.vocabulary import is_good
from .expectations import row_get
from .known import DECIDED, number

_NO_ANSWER = ("missing", "inconclusive")
WORDS = ("still fails", "no longer fails", "no answer", "is right, as its file says")


@dataclass
class Seen:
    """What the rows of one version on one device show of one failure."""

    failure: object
    version: str
    device: str
    measured: bool
    suspected: bool
    fails: int = 0
    right: int = 0
    runs: dict = field(default_factory=lambda: {True: set(), False: set()})  # that fail, or not

    @property
    def word(self):
        return "seen" if self.fails else "right"


def _within(places, sm):
    return any((not low or sm >= low) and (not high or sm <= high) for low, high in places)


def _place(failure, row):
    """True: a suspected architecture; False: one where it was seen; None: another one."""
    seen, suspected = failure.architectures
    sm = int(row["sm"] or 0)
    return False if _within(seen, sm) else True if _within(suspected, sm) else None


def _compiled(row, runs):
    return row["grade"] == "measured" or runs.get(row["run"], {}).get("do") == "plan"


def _shows(failure, row, runs):
    """Does this row show the failure (True), show that it is gone (False), or neither (None)?"""
    if row["verdict"] in failure.verdicts:
        return True if row["grade"] == "measured" or set(failure.verdicts) & set(DECIDED) else None
    if failure.fields["verdict"].endswith("?"):
        return None  # it shows only in some runs
    good = is_good(row["verdict"])
    if "crash" in failure.verdicts:  # an answer, yes or no; what is accepted has to compile too
        return False if row["verdict"] == "unsupported" or (good and _compiled(row, runs)) else None
    if "build_fail" in failure.verdicts:
        return False if good and _compiled(row, runs) else None
    return False if good and row["grade"] == "measured" else None


def observe(entries, store, doubts=None):
    """[Seen] of what the rows of a store say of the failures whose own cases they are, asked without guards. A result that is new to several
    failures belongs to none of them by itself: it goes into `doubts`, (case, version, names)."""
    found = {}
    failures = [failure for entry in entries for failure in entry.failures if failure.shows]
    asked = {failure: failure.tree("shows") for failure in failures}
    order = "case_name, device, cudnn, build, config, id"
    for _, row in store.rows("outcome<>'missing'", order=order):
        if row["verdict"] in _NO_ANSWER or not row["cudnn"]:
            continue
        get, version, shown = row_get(row), number(row["cudnn"]), {}
        for failure, tree in asked.items():
            place = _place(failure, row)
            is_guarded = failure.guarded and get("guards") != "off"
            if place is None or is_guarded or not _engine(failure, row, version):
                continue
            answer = _shows(failure, row, store.runs) if predicate.holds(tree, get) else None
            if answer is not None:
                shown[failure] = (answer, place)
        failing = [failure for failure, (answer, _) in shown.items() if answer]
        new = [failure for failure in failing if not holds(failure, row["cudnn"])]
        expected = len(new) < len(failing)
        if not expected and len(new) > 1:
            if doubts is not None:
                doubts.append((row["case"], row["cudnn"], [failure.name for failure in new]))
            continue
        for failure, (answer, place) in shown.items():
            if expected and failure in new:
                continue  # a failure that is known in this version explains it
            measured = row["grade"] == "measured"
            one = Seen(failure, row["cudnn"], row["device"], measured, place)
            one = found.setdefault((failure.name, one.version, one.device), one)
            one.fails += answer
            one.right += not answer
            one.runs[answer].add(row["run"])
    return list(found.values())


def _engine(failure, row, version):
    numbers = [n for n, _, _ in failure.numbers(version, version + 1)]
    unknown = row.get("engine") is None and row["verdict"] in ("crash", "hang")
    return numbers == [None] or unknown or row.get("engine") in numbers


def holds(failure, version):
    """Is the failure expected in this version?"""
    here = number(version)
    return any(first <= here and (not end or here < end) for first, end in failure.ranges)


def news(seen):
    """([what the files do not say yet], [what contradicts them])."""
    fresh, wrong = [], []
    for one in seen:
        if one.suspected:
            continue
        here, other = ("seen", "right") if one.fails else ("right", "seen")
        n = number(one.version)
        if n in one.failure.versions(other):
            wrong.append(one)
        elif n not in one.failure.versions(here) and (one.fails or holds(one.failure, one.version)):
            fresh.append(one)
    return fresh, wrong


def line(word, versions, source):
    return f"{word}: {' '.join(versions)}; {source}"


def edited(path, additions):
    """The lines of a file with observations added: [(line of the failure, key, text)]. Each goes behind the last observation of its failure."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    sections = ("failure:", "cases:", "controls:", "guarded:", "text:")
    for start, new in sorted(additions, reverse=True):
        at = last = start  # the line behind `failure:`, from 0
        while at < len(lines) and not lines[at].startswith(sections):
            if lines[at].startswith(("seen:", "right:")):
                last = at + 1
                while last < len(lines) and lines[last].startswith("  "):
                    last += 1
            at += 1
        lines.insert(last, new)
    return lines


def records(store, runs):
    """The names of the files that hold these runs."""
    return " and ".join(sorted({store.records[run] for run in runs if run in store.records}))


def proposals(fresh, store):
    """{path: (lines before, lines after)}."""
    wanted = {}
    for one in sorted(fresh, key=lambda s: (s.failure.name, number(s.version))):
        names = records(store, one.runs[one.word == "seen"])
        source = f"{one.device}{'' if one.measured else ' (described)'}, {names}"
        groups = wanted.setdefault(one.failure.entry.path, {})
        groups.setdefault((one.failure.line, one.word, source), []).append(one.version)
    out = {}
    for path, groups in wanted.items():
        additions = [
            (start, line(word, dict.fromkeys(versions), source))
            for (start, word, source), versions in groups.items()
        ]
        out[path] = (Path(path).read_text(encoding="utf-8").split("\n"), edited(path, additions))
    return out


def diff(changes):
    out = []
    for path, (before, after) in sorted(changes.items()):
        shown = f"cases/known/{Path(path).name}"
        out += difflib.unified_diff(before, after, f"a/{shown}", f"b/{shown}", lineterm="")
    return "\n".join(out) + ("\n" if out else "")


def answered(entry, seen, versions):
    """What rows of these versions say of an entry: one of WORDS; "": nothing, and its file expects nothing."""
    own = [s for s in seen if s.failure.entry.name == entry.name and s.version in versions]
    if any(s.fails for s in own):
        return "still fails"
    if any(not s.suspected and holds(s.failure, s.version) for s in own):
        return "no longer fails"
    due = any(f.shows and holds(f, v) for f in entry.failures for v in versions)
    return "no answer" if due else "is right, as its file says" if own else ""


def why_none(entry, rows):
    """Why its rows give no answer."""
    if any(f.fields["verdict"].endswith("?") for f in entry.failures):
        return "it shows only in some runs"
    needs = not any(set(f.verdicts) & set(DECIDED) for f in entry.failures)
    if rows and needs and all(r["grade"] != "measured" for r in rows):
        return "it needs a GPU"
    said = Counter(
        ": ".join(filter(None, (r["verdict"], text.line(r["reason"].get("text") or "", 120))))
        for r in rows
    ).most_common(1)
    return f"{said[0][1]:,} of {text.count(len(rows), 'row')} {said[0][0]}" if said else "no row"


def told(words):
    """How many of these entries ended with which of WORDS."""
    still, gone, unasked, right = map(words.count, WORDS)
    return (
        f"{text.count(still, 'known failure still fails', 'known failures still fail')}, "
        f"{gone:,} no longer {'fails' if gone == 1 else 'fail'}, {unasked:,} got no answer"
        + f", {right:,} {'is' if right == 1 else 'are'} right, as the file says"
        * bool(right)
    )


def told_by_kind(words):
    """The counts of failures, then those of the entries that are none (docs/known.md, kinds). {entry: one of WORDS}"""
    others = [word for entry, word in words.items() if not entry.is_failure]
    said = told([word for entry, word in words.items() if entry.is_failure])
    if others:
        counts = (others.count(word) for word in WORDS)
        said += f"; of {len(others):,} other entries " + ", ".join(
            f"{n:,} {how}"
            for n, how in zip(counts, ("stay", "ended", "got no answer", "are right"))
            if n
        )
    return said


class Live(reader.Sink):
    """The rows of a record that is being written. `settled(entry, answer, rows)` is called when the last row of an entry's own cases has come."""

    def __init__(self, every, cases, settled):
        self.every, self.cases, self.settled = every, cases, settled  # {entry: its cases}
        self.runs, self.kept, self.ended, self.targets = {}, {}, set(), 0

    def note(self, word, value):
        if word == "run":
            self.runs[str(value.get("id"))] = value
            self.targets = len(text.objects(value, "targets"))

    def add_row(self, row):
        case = row["case"]
        self.kept.setdefault(case, []).append(row)
        pair = (case, row["build"], row["device"])
        if row.get("more") or pair in self.ended:
            return
        self.ended.add(pair)
        for entry, own in self.cases.items():
            if case in own and self._left(own) == 0:
                self._settle(entry, [row for case in own for row in self.kept[case]])

    def _left(self, own):
        return len(own) * self.targets - sum(pair[0] in own for pair in self.ended)

    def _settle(self, entry, rows):
        self.rows = lambda *_, **__: enumerate(rows)  # what observe() asks of a store
        seen = observe(self.every, self)
        versions = {row["cudnn"] for row in rows}
        self.settled(entry, answered(entry, seen, versions) or "no answer", rows)
