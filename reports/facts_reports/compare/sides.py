"""Two sides of a comparison: rows of records into a SQLite file that the system may page out, the row that counts of each question (latest.py), target
beside target.

A side is a list of targets (build, device); a slot pairs one target of each. What is kept of a row is what a comparison looks at.
"""

import marshal
import re
import sqlite3
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from ..read import cases, latest, reader, text, words
from ..read.versions import version_key
from ..read.vocabulary import OUTCOMES, RANK, is_finding, is_good, is_met, outcome_of

_PRAGMAS = "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=FILE; PRAGMA cache_size=-65536;"
_LOOKED_AT = (
    "case cudnn build device sm grade backend verdict supported engine config "
    "workspace_bytes plan_ms exec_us wall_ms reason errors expectation attempt run stage calls"
).split()
_REASON = ("class", "status", "text", "rule")


_KIND = {"good": "yes", "refused": "no", "failure": "fail", "error": "fail", "open": "open"}
KINDS = {o.word: _KIND[o.kind] for o in OUTCOMES}


class SidesError(ValueError):
    """Two records that cannot be compared as they are: one line for people."""


class Answer(NamedTuple):
    """The answer of one target to one case (with engine=all: of one configuration)."""

    verdict: str
    outcome: str
    known: str  # the name of the known failure that this row shows
    named: str  # the name of the known failure that its expectation names, shown or not
    unmet: bool
    grade: str
    sm: object
    chosen: tuple  # backend, engine, knobs of what ran or would run
    offered: tuple  # ((index, ((knob, value), ...), (note, ...)), ...) of mode A, in order
    workspace_bytes: object
    plan_ms: object
    exec_us: object
    wall_ms: object
    reason: tuple  # class, status, text, rule
    why: str  # one line of words
    guarded: bool  # the library's guards were on: cuDNN alone was not asked
    run: str

    @property
    def kind(self):
        """yes, no, fail or open."""
        return KINDS[self.outcome]

    @property
    def ours(self):
        """FACTS itself refused."""
        return self.kind == "no" and is_ours(*self.reason[:3])


def is_ours(word, status, said):
    """Is a refusal's reason (its class, status, text) one of FACTS: a guard, or a table of what a version has? cuDNN's own has a status, or says that it gives no reason."""
    of_cudnn = status or not said or said.startswith("cuDNN offers no engine")
    return word in ("policy", "internal") or not of_cudnn


def note_calls(found, row):
    """Keeps in {case: calls} how often a model makes the row's case, where the row says so."""
    if isinstance(calls := row.get("calls"), int) and calls > 0:
        found[row["case"]] = calls


def knobs_of(value):
    items = value.items() if isinstance(value, dict) else ()
    return tuple(sorted((str(k), str(v)) for k, v in items))


def _number(value):
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300
    return value if known else None


def _offered(engines):
    """Mode A's list, cleaned."""
    return tuple(
        (str(e.get("index")), knobs_of(e.get("knobs")), tuple(map(str, e.get("notes") or ())))
        for e in text.offered({"engines": text.clean_json(engines)})
    )


class Lists:
    """Lists of engines by number: there are few different ones, and each is long."""

    def __init__(self):
        self.at, self._places = [()], {"[]": 0}

    def number(self, engines):
        said = repr(engines)
        if said not in self._places:
            self._places[said] = len(self.at)
            self.at.append(_offered(engines))
        return self._places[said]


def known_of(row):
    """The name of the known failure that a row's expectation names; "" where it names none."""
    said = row.get("expectation")
    return str(said.get("title") or said.get("link") or "") if isinstance(said, dict) else ""


def answer_of(row, lists):
    """A record's row, as it is compared; `offered` is the number of a list."""
    expectation = row.get("expectation")
    outcome = outcome_of(row["verdict"], row["grade"], row["supported"])
    met = is_met(expectation, row["verdict"])
    offered, config = lists.at[row["offered"]], row["config"]
    place = config if isinstance(config, int) and 0 <= config < len(offered) else 0
    knobs = offered[place][1] if offered else ()
    named = text.line(known_of(row), 200) if expectation else ""
    known = (named or "expected") if met and is_finding(outcome) else ""
    engine = "" if row.get("engine") is None else str(row["engine"])
    measures = (_number(row.get(k)) for k in ("workspace_bytes", "plan_ms", "exec_us", "wall_ms"))
    return Answer(
        row["verdict"],
        outcome,
        known,
        named,
        met is False,
        row["grade"] or "",
        row["sm"],
        (row["backend"], engine, knobs),
        row["offered"],
        *measures,
        tuple(str(row["reason"].get(k) or "") for k in _REASON),
        "" if is_good(row["verdict"]) else words.why(row, 300),
        "guards" in cases.defaults()
        and row["build"] != words.NO_BUILD
        and row.get("guards") != "off"
        and " guards=off" not in row["case"],
        row["run"],
    )


def _unpack(data, lists):
    answer = Answer._make(marshal.loads(data))
    return answer._replace(offered=lists.at[answer.offered])


class Slot(NamedTuple):
    """One target of each side, compared case by case."""

    first: tuple  # (build, device)
    second: tuple


@dataclass
class Record:
    """What one side's inputs are and say of themselves."""

    names: list
    files: list = field(default_factory=list)
    runs: dict = field(default_factory=dict)
    # (build, device): what its target line says, and `cudnn`, `sm`, `grades`
    targets: dict = field(default_factory=dict)
    gpus: dict = field(default_factory=dict)
    calls: dict = field(default_factory=dict)  # case: how often a model makes it

    def planned(self, answers, build):
        """Did a run that gave these answers ask this build too? Yes where the record does not say."""
        said = [text.objects(self.runs.get(a.run, {}), "targets") for a in answers]
        return not all(said) or any(t.get("build") == build for one in said for t in one)

    def unreadable(self):
        return sum(f.unreadable for f in self.files)


class _Reading:
    """What reader.read_file fills: the rows of one side."""

    def only(self, item):
        """What of a row is looked at; the rest, which is most of it, is not even cleaned."""
        kept = {name: item[name] for name in _LOOKED_AT if name in item}
        if item.get("verdict") in ("pass", "supported", "unsupported"):
            kept.pop("errors", None)
        if isinstance(reason := kept.get("reason"), dict):
            kept["reason"] = {name: reason[name] for name in _REASON if name in reason}
        engines = item.get("engines")
        kept["offered"] = self.lists.number(engines if isinstance(engines, list) else [])
        return kept

    def __init__(self, seen, number, record, lists):
        self.lists = lists
        self.seen, self.number, self.record, self.lines = seen, number, record, []

    def note(self, word, value):
        run = str(value.get("id") or value.get("run") or "")
        self.seen.note(word, value)
        if word == "run":
            self.record.runs[run] = {**self.record.runs.get(run, {}), **value}
        elif word == "target":
            self.lines.append(value)

    def add_row(self, row):
        row["case"] = text.line(row["case"], 1500)
        self.note_target(row)
        answer = marshal.dumps(tuple(answer_of(row, self.lists)))  # read by this process alone
        self.seen.add(row, self.number, row["offered"], answer)

    def note_target(self, row):
        about = self.record.targets.setdefault(
            (row["build"], row["device"]), {"cudnn": row["cudnn"], "sm": row["sm"], "grades": set()}
        )
        note_calls(self.record.calls, row)
        if row["verdict"] != "inconclusive":
            about["grades"].add(row["grade"] or "unknown")

    def end_of_file(self):
        self.seen.end_of_file()
        self.finish()

    def finish(self):
        for line in self.lines:
            key = (str(line.get("build", "")), str(line.get("device", "")))
            cudnn = str(line.get("cudnn") or key[0].split("-")[0])
            about = {"cudnn": cudnn, "sm": line.get("sm"), "grades": set()}
            self.record.targets.setdefault(key, about)["line"] = line
            planned = str(line.get("planned") or "")
            if planned.startswith("gpu") and planned[3:].isdigit():
                self.record.gpus[key[1]] = planned[3:]
        self.lines = []


class Sides:
    """Open with read(), then choose slots, then pairs()."""

    def __init__(self):
        self.db = sqlite3.connect("")  # a file of SQLite's own, gone at the end
        self.db.executescript(_PRAGMAS)
        self.seen = latest.Seen(self.db, "record INT, offered INT, answer BLOB")
        self.records, self.slots, self.lists = [], [], Lists()

    def read(self, inputs):
        """One record, of a file, a folder or several. Raises reader.InputError."""
        record = Record([str(i) for i in inputs])
        reading = _Reading(self.seen, len(self.records), record, self.lists)
        for path in reader.find(inputs):
            record.files.append(reader.read_file(path, reading))
            reading.end_of_file()
        self.records.append(record)
        return record

    def pair(self, slots):
        """`slots`: [((record, build, device), (record, build, device))]. No other pairs can be made afterwards."""
        self.db.execute(
            "CREATE TABLE row(slot INT, side INT, case_name TEXT, config INT, asked INT, offered INT, answer BLOB)"
        )
        for number, sides in enumerate(slots):
            for side, (record, build, device) in enumerate(sides):
                self.db.execute(
                    "INSERT INTO row SELECT ?, ?, case_name, config, asked, offered, answer FROM "
                    + latest.that_count("record=? AND build=? AND device=?"),
                    (number, side, record, build, device),
                )
            self.slots.append(Slot(*(tuple(side[1:]) for side in sides)))
        self.db.execute("CREATE INDEX row_order ON row(slot, case_name, side, config)")
        self.db.execute("DELETE FROM seen")
        for of, names in (("side=0", "build"), ("side=1", "build"), ("1", "device")):
            if wrong := self.seen.two_things(f"row WHERE {of}", names=(names,)):
                raise SidesError(f"{wrong}: these answers cannot be compared")

    def _rows(self, column, where="", *values):
        """(slot, case, [first side's values], [second side's]) in order; an absent side is an empty list."""
        rows = self.db.execute(
            f"SELECT slot, case_name, side, {column} FROM row {where} ORDER BY slot, case_name, side, config",
            values,
        )
        for (slot, case), group in groupby(rows, key=lambda r: r[:2]):
            sides = ([], [])
            for _, _, side, value in group:
                sides[side].append(value)
            yield slot, case, *sides

    def pairs(self, where="", *values):
        """(slot, case, [first side's answers], [second side's])."""
        for slot, case, *sides in self._rows("answer", where, *values):
            yield slot, case, *([_unpack(data, self.lists) for data in side] for side in sides)

    def offers(self):
        """(slot, case, first side's list of engines, second side's) of every case that both were asked; of several configurations the first."""
        for slot, case, first, second in self._rows("offered"):
            if first and second:
                yield slot, case, self.lists.at[first[0]], self.lists.at[second[0]]

    def answers(self, slot, case):
        """Both sides' answers to one case."""
        found = list(self.pairs("WHERE slot=? AND case_name=?", slot, case))
        return tuple(found[0][2:]) if found else ([], [])


class _Clean(_Reading):
    """Takes the rows of a store.Store, which are clean and all count. `held`: {(build, device): {case: {configuration: packed answer}}}."""

    def __init__(self, record):
        super().__init__(None, 0, record, Lists())
        self.held, self.offered = {}, {}

    def add_row(self, row):
        self.note_target(row)
        said = marshal.dumps(row["engines"], 2)
        if said not in self.offered:
            self.offered[said] = self.lists.number(row["engines"])
        row["offered"] = self.offered[said]
        held = self.held.setdefault((row["build"], row["device"]), {}).setdefault(row["case"], {})
        held[latest.config(row)] = marshal.dumps(tuple(answer_of(row, self.lists)))


class Stored:
    """The rows of a store.Store as one record, without what is missing: its targets can be paired again and again. Answers as Sides does."""

    def __init__(self, store):
        self.slots = []
        names = [f.name for f in store.files]
        self.records = [Record(names, store.files, store.runs, {}, store.gpus)]
        reading = _Clean(self.records[0])
        for outcome, row in store.rows(order="id"):
            if outcome != "missing":
                reading.add_row(row)
        reading.lines = list(store.target_lines)
        reading.finish()
        self._held, self.lists = reading.held, reading.lists

    def apart(self, slots):
        """The same record with the pairs `slots`, as Sides.pair() has them."""
        other = copy(self)
        other.slots = [Slot(*(tuple(side[1:]) for side in sides)) for sides in slots]
        return other

    def _at(self, target, case):
        held = self._held.get(target, {}).get(case, {})
        return [_unpack(held[config], self.lists) for config in sorted(held)]

    def pairs(self):
        for number, slot in enumerate(self.slots):
            cases_of = (self._held.get(target, ()) for target in slot)
            for case in sorted(set().union(*cases_of)):
                yield number, case, *(self._at(target, case) for target in slot)

    def offers(self):
        for slot, case, first, second in self.pairs():
            if first and second:
                yield slot, case, first[0].offered, second[0].offered

    def answers(self, slot, case):
        return tuple(self._at(target, case) for target in self.slots[slot])


def worst(answers):
    """The answer that a case ends with: with engine=all the worst of its configurations."""
    return answers[0] if len(answers) == 1 else min(answers, key=lambda a: RANK[a.outcome])


# ---- which target is compared with which ----


def _names(items):
    return ", ".join(text.line(str(i), 60) for i in sorted(items)[:8]) + (
        " …" if len(items) > 8 else ""
    )


def builds_named(record, word):
    """Builds of a record that a user's word means: a name, a version, or the beginning of one (then its newest)."""
    builds = {b: about["cudnn"] for (b, _), about in record.targets.items() if b != words.NO_BUILD}
    if word in builds:
        return [word]
    if not re.fullmatch(r"\d+(\.\d+){0,3}", word):
        return []
    wanted, parts = version_key(word), word.count(".") + 1

    def begins(version):
        found = version_key(version)
        return found == wanted if parts > 2 else (*found, 0, 0)[:parts] == (*wanted, 0, 0)[:parts]

    same = [b for b, v in builds.items() if begins(v)]
    newest = max((version_key(builds[b]) for b in same), default=None)
    return sorted(b for b in same if version_key(builds[b]) == newest)


def chosen_build(record, word, option):
    found = builds_named(record, word)
    if len(found) == 1:
        return found[0]
    here = {b for b, _ in record.targets if b != words.NO_BUILD}
    if found:
        what = f"is {len(found)} builds here ({_names(found)}): give the name of one"
    else:
        what = f"is no build of {_names(record.names)}; there are: {_names(here) or 'none'}"
    raise SidesError(f"{option} {text.line(word, 60)} {what}")


def axes_of(pairs):
    """What differs between the targets of pairs."""
    return [
        name
        for place, name in enumerate(("build", "device"))
        if any(a[place] != b[place] for a, b in pairs)
    ]


def match(first, second, baseline=None, candidate=None):
    """(axes that differ, [(target of first, target of second)], targets only in first, only in second). Raises SidesError when it is not clear."""
    ours, theirs = set(first.targets), set(second.targets)
    if baseline:
        build = chosen_build(first, baseline, "--baseline")
        ours = {t for t in ours if t[0] == build}
    if candidate:
        build = chosen_build(second, candidate, "--candidate")
        theirs = {t for t in theirs if t[0] == build}
    for side, record in ((ours, first), (theirs, second)):
        if not side:
            raise SidesError(f"{_names(record.names)}: holds no answer")
    if len(ours) == 1 and len(theirs) == 1:
        pairs = [(*ours, *theirs)]
    elif not baseline and not candidate and ours & theirs:
        pairs = [(t, t) for t in sorted(ours & theirs)]
    else:
        pairs = _pair_by(ours, theirs)
    axes = axes_of(pairs)
    return axes, pairs, sorted(ours - {a for a, _ in pairs}), sorted(theirs - {b for _, b in pairs})


def _pair_by(ours, theirs):
    """By device where each side has one build, by build where each has one device."""
    for place, other in ((0, 1), (1, 0)):
        if len({t[place] for t in ours}) == 1 and len({t[place] for t in theirs}) == 1:
            named = {t[other]: t for t in theirs}
            pairs = [(t, named[t[other]]) for t in sorted(ours) if t[other] in named]
            if pairs:
                return pairs
    builds, devices = ({t[i] for t in ours | theirs} for i in (0, 1))
    raise SidesError(
        f"which target is compared with which? builds: {_names(builds)}; devices: {_names(devices)}; add --baseline V --candidate V"
        + ("" if len(devices) < 2 else ", or --where 'device=NAME'")
    )
