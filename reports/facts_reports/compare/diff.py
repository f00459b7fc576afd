"""facts diff and facts gate: what changed between two records, case by case, by class and likely cause.

Every verdict is the record's own; what differs is classified by changes.py, what separates it found by separate.py.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import SimpleNamespace

from ..known import knowledge
from ..read import cases, predicate, separate, text, words
from ..read.cases import parse, value_of
from ..read.versions import version_key
from ..read.vocabulary import APART, BY_CHANGE, CHANGES, GRAVITY, JOINED, SAME
from . import changes, model, numbering, sides, times

ROWS = 10  # of an answer that people read
_NAMED = 3  # ways to change, in a row of several; rows of a class before those of the next
_EVERY = 40  # ways of a class that are looked into one by one
_DECISIONS = ("lost", "gained")
FINDINGS = frozenset(c.word for c in CHANGES if c.exit == 1)


def _news(word, cases, known):
    """A case that the baseline did right is news when it fails now, known or not; a known failure that changes its kind is none."""
    return cases if word == "worse" else cases - known


@dataclass
class Group:
    """Cases that changed alike and what separates them; `where` "" is every case, None: nothing found."""

    word: str
    alike: str
    name: str  # the same without a count: it stays from run to run
    where: str
    hits: int
    total: int
    others: int
    among: int
    known: int
    slot: int
    case: str  # the example
    ratio: float
    engine: str
    members: int
    also: int  # cases of the same class that changed otherwise, for which `where` holds too

    @property
    def news(self):
        return _news(self.word, self.hits, self.known)


@dataclass
class Diff:
    sides: object
    axes: list
    alone: tuple  # targets that only one side has
    options: dict  # thresholds, by class
    fail_on: frozenset  # classes that are findings
    command: str = "diff"
    names: list = field(default_factory=list)
    slots: array = field(default_factory=lambda: array("H"))
    seconds: array = field(default_factory=lambda: array("f"))  # what asking both sides took
    counts: dict = field(default_factory=dict)  # (slot, side): {outcome: cases}
    calls: array = field(default_factory=lambda: array("Q"))  # that a model makes; 0: unknown
    models: dict = field(default_factory=dict)  # slot: model.Model, where cases have calls
    classes: dict = field(default_factory=dict)  # class: {alike: [pair]}
    about: dict = field(default_factory=dict)  # (pair, class): (ratio, known, engine)
    shown: dict = field(default_factory=dict)  # class: changes that show a known failure
    among: dict = field(default_factory=dict)  # phrase: [pair]
    same: int = 0
    fail_both: int = 0
    known_both: int = 0
    unmet: int = 0  # of the second side: expectations that were not met
    guarded: int = 0  # cases that were asked with the library's guards on
    groups: list = field(default_factory=list)
    entries: dict = field(default_factory=dict)  # id: a known failure of these cases
    spoken: set = field(default_factory=set)  # ids of those of the second side
    accept: object = None  # accept.Accepted
    link: str = ""  # of --link
    silent: dict = field(default_factory=dict)  # (slot, side): [cases without an answer, why]
    times: object = None  # times.Record: then `slower` is of times measured in turns
    mappings: dict = field(default_factory=dict)  # of numbering.learn
    # (graph, old number of an engine, new number): cases
    numbers: dict = field(default_factory=dict)

    def total(self, word):
        """Cases (of each pair of targets) of a class."""
        return sum(len(found) for found in self.classes.get(word, {}).values())

    def ways(self, word):
        """{how cases of a class changed: cases}"""
        return {way: len(pairs) for way, pairs in self.classes.get(word, {}).items()}

    def known(self, word):
        return self.shown.get(word, 0)

    def news(self, word):
        return _news(word, self.total(word), self.known(word))

    def compared(self):
        """Answers of which both sides were asked."""
        return len(self.names) - self.total("not asked")

    def record(self, side):
        """What a side was read from: one record may hold both."""
        return self.sides.records[min(side, len(self.sides.records) - 1)]

    def incomplete(self):
        """Files that are not complete and hold a target that is compared; also files of which no row could be read."""
        compared = {target for slot in self.sides.slots for target in slot}
        files = [f for record in self.sides.records for f in record.files if not f.complete]
        return [f for f in files if not f.targets or f.targets & compared]

    def complete(self):
        return not self.incomplete()

    def cases_of(self, group):
        return [self.names[pair] for pair in separate.members(group.members, len(self.names))]

    def code_of(self, change):
        """What a class makes of the exit code. Where a slower case is no finding, an unknown time is no question."""
        if change.word in self.fail_on:
            return 1
        open_ = change.exit > 1 and (change.word != "time unknown" or "slower" in self.fail_on)
        return change.exit if open_ else 0


def timed(diff, slot, case):
    """Both sides of a case that was timed, of the last run that did: [(times.Side, configuration)]; [] where none did."""
    known = diff.times.cases.get(case)
    found = times.pairs(known, target(diff, slot, 0), target(diff, slot, 1)) if known else []
    return list(found[-1][1:]) if found else []


def _times(diff, slot, case, first, second):
    """µs of cuDNN's first choice on both sides; [] where a side has none."""
    if diff.times:
        return [times.microseconds(*one).middle for one in timed(diff, slot, case)]
    both = (first[0], second[0]) if first and second else ()
    return [one.exec_us for one in both if one.exec_us and one.kind == "yes"]


def _slower(diff, slot, case):
    """[Change] of the times of a case that both sides accept."""
    both = target(diff, slot, 0), target(diff, slot, 1)
    least = diff.options.get("slower", times.LEAST)
    found = times.slower(diff.times.cases.get(case), *both, least)
    if found.is_slower is None:
        return [changes.Change("time unknown", found.why)]
    return [changes.Change("slower", "", found.ratio)] if found.is_slower else []


def _add(diff, slot, case, first, second, joined):
    pair = len(diff.names)
    diff.names.append(case)
    diff.slots.append(slot)
    diff.seconds.append(sum(answer.wall_ms or 0 for answer in first + second) / 1000)
    known = _known(diff, joined, case, first, second)
    first = _numbered(diff, slot, case, first, second)
    ends = [sides.worst(answers) if answers else None for answers in (first, second)]
    diff.calls.append(max(diff.record(side).calls.get(case, 0) for side in (0, 1)))
    if diff.calls[-1]:
        touching = joined.touching(case, second) if joined else []
        us = _times(diff, slot, case, first, second)
        diff.models.setdefault(slot, model.Model()).add(diff.calls[-1], ends, touching, us)
    for side, end in enumerate(ends):
        tally = diff.counts.setdefault((slot, side), {})
        word = end.outcome if end else "missing"
        tally[word] = tally.get(word, 0) + 1
        if end and end.kind == "open":
            diff.silent.setdefault((slot, side), [0, end.why])[0] += 1
    diff.guarded += "build" in diff.axes and any(a.guarded for a in first + second)
    found = changes.of(first, second, diff.options)
    if diff.times:
        found = [change for change in found if change.word != "slower"]
        found += _slower(diff, slot, case) if all(end and end.kind == "yes" for end in ends) else []
    for change in map(_accepting(diff, slot, case), found + known):
        diff.classes.setdefault(change.word, {}).setdefault(change.alike, []).append(pair)
        if change.ratio or change.known or change.engine:
            diff.about[pair, change.word] = (change.ratio, change.known, change.engine)
        if change.known:
            diff.shown[change.word] = diff.shown.get(change.word, 0) + 1
    diff.same += not [c for c in found if c.word not in SAME]
    kinds = tuple("open" if not end else "ours" if end.ours else end.kind for end in ends)
    if kinds == ("fail", "fail") and ends[0].outcome == ends[1].outcome:
        diff.fail_both += 1
        diff.known_both += bool(ends[0].known or ends[1].known)
    diff.unmet += any(answer.unmet for answer in second)
    for phrase in _phrases(kinds):
        diff.among.setdefault(phrase, []).append(pair)


def _known(diff, joined, case, first, second):
    """[Change] of what is known of a case."""
    if not (joined and first and second):
        return []
    found, entries, spoken = joined.of(case, first, second)
    diff.spoken |= spoken
    for name, one in entries.items():
        diff.entries.setdefault(name, one)
    return found


def _accepting(diff, slot, case):
    """A finding that --accept names becomes `accepted`."""

    def one(change):
        if not diff.accept or change.word not in diff.fail_on:
            return change
        known = change.alike if change.word in JOINED else None
        about = {**_about(diff.record(1), target(diff, slot, 1)), "known": known, "case": case}
        line = diff.accept.line_for(about, case)
        said = f"{change.word}: {change.alike}; {line.reason}, until {line.until}" if line else ""
        return changes.Change("accepted", said) if line else change

    return one


_BEFORE = {"yes": "accepted before", "no": "refused before", "fail": "that failed before"}
_BOTH = {("yes", "yes"): "accepted by both sides", ("no", "no"): "refused by both sides"}


def _phrases(kinds):
    """Whose answers could have changed how (vocabulary.CHANGES, `among`)."""
    a, b = kinds
    out = ["planned", _BOTH.get(kinds)]
    if b != "open":
        out += ["answered before" if a != "open" else None, _BEFORE.get(a)]
    return filter(None, out)


def _about(record, target):
    """What a predicate asks of a target."""
    about = record.targets[target]
    sm = None if about["sm"] is None else str(about["sm"])
    return {"device": target[1], "build": target[0], "sm": sm, "cudnn": about["cudnn"]}


def _subjects(diff):
    """What differs from pair of targets to pair of targets, as a predicate asks it of both sides alike."""
    both = [
        [_about(diff.record(side), at) for side, at in enumerate(slot)] for slot in diff.sides.slots
    ]
    return {
        key: [both[s][0][key] for s in diff.slots]
        for key in ("device", "build", "sm", "cudnn")
        if all(a[key] == b[key] is not None for a, b in both)
    }


def _grouped(diff, columns):
    """[Group] of every class, worst first; within a class the largest group first."""
    out, size = [], columns.size
    universe = {phrase: separate.bits_of(pairs, size) for phrase, pairs in diff.among.items()}
    for word in sorted(set(diff.classes) - APART, key=GRAVITY.get):
        if word in JOINED:
            out += _entries_of(diff, word)
            continue
        around = universe.get(BY_CHANGE[word].among, universe["planned"])
        ways = sorted(diff.classes[word].items(), key=lambda item: (-len(item[1]), item[0]))
        bits = [(alike, separate.bits_of(pairs, columns.size)) for alike, pairs in ways]
        everything = 0
        for _, one in bits:
            everything |= one
        around |= everything
        whole = separate.rules(columns, everything, around) if len(ways) > 1 else []
        is_one = len(whole) == 1 and whole[0].text is not None
        if is_one and not _apart(columns, word, bits, around, everything):
            bits = [(_ways(ways), everything)]
        for alike, one in bits[:_EVERY]:
            name = "; ".join(way for way, _ in ways[:_NAMED]) if len(bits) < len(ways) else alike
            found = whole if one == everything else []
            for rule in found or separate.rules(columns, one, around, everything):
                out.append(_group(diff, word, (alike, name), rule, one, around, everything))
        if len(bits) > _EVERY:
            rest = sum(one for _, one in bits[_EVERY:])  # no two share a case
            said = (f"{len(bits) - _EVERY:,} other ways", "other ways")
            rule = separate.Rule(None, separate.count(rest), 0, rest)
            out.append(_group(diff, word, said, rule, rest, around, everything))
    return _ordered(out, diff.fail_on)


def _entries_of(diff, word):
    """A group for each entry, the crashes first; its file says where it holds."""
    ways = diff.classes[word].items()
    for name, pairs in sorted(ways, key=lambda way: knowledge.rank(diff.entries[way[0]])):
        bits = separate.bits_of(pairs, len(diff.names))
        size = len(set(pairs))
        rule = separate.Rule(None, size, 0, bits)
        yield _group(diff, word, (name, name), rule, bits, bits, bits)


def _apart(columns, word, bits, around, everything):
    """A few reasons of a decision, each with a predicate of its own, are as many causes: one row for all would name none of them."""
    if word not in _DECISIONS or len(bits) > _NAMED:
        return False
    rules = [separate.rules(columns, one, around, everything) for _, one in bits]
    return all(len(found) == 1 and found[0].text for found in rules)


def _ordered(groups, fail_on):
    """The most serious class first. Of a class without findings, the fourth row and all later rows come last, so that they hide no other class."""
    seen = Counter()

    def is_late(group):
        seen[group.word] += 1
        serious = group.word in fail_on or BY_CHANGE[group.word].exit
        return seen[group.word] > _NAMED and not serious

    return sorted(groups, key=is_late)


def _ways(ways):
    """Several ways to change that one comparison separates."""
    said = "; ".join(f"{len(pairs):,} {alike}" for alike, pairs in ways[:_NAMED])
    return said + (f"; {text.count(len(ways) - _NAMED, 'more way')}" if len(ways) > _NAMED else "")


def _group(diff, word, said, rule, whole, around, everything):
    size = len(diff.names)
    members = separate.members(rule.bits, size)
    told = [diff.about.get((pair, word), (0, "", "")) for pair in members]
    news = [i for i, (_, known, _) in enumerate(told) if not known] or range(len(members))
    # the largest ratio, else the simplest case
    shown = max(news, key=lambda i: (told[i][0], -len(diff.names[members[i]]), -i))
    pair = members[shown]
    total, among = separate.count(whole), separate.count(around & ~everything)
    counts = (rule.text, rule.hits, total, rule.others, among, sum(bool(k) for _, k, _ in told))
    shown = (diff.slots[pair], diff.names[pair], told[shown][0], told[shown][2])
    return Group(word, *said, *counts, *shown, rule.bits, rule.also)


def _target_terms(tree):
    """Comparisons of a predicate that speak of a target alone and must hold."""
    terms = tree[1] if tree[0] == "and" else [tree]
    return [t for t in terms if t[1] in ("build", "device", "cudnn", "sm")]  # of an and, a list


def _keep_targets(record, terms):
    record.targets = {
        target: about
        for target, about in record.targets.items()
        if all(predicate.holds(term, _about(record, target).get) for term in terms)
    }


def _kept(tree, target, case, answers, record):
    """Does a row of one side satisfy the predicate?"""
    said, about = parse(case), _about(record, target)
    for a in answers:
        row = {
            **about,
            "backend": a.chosen[0],
            "grade": a.grade,
            "verdict": a.verdict,
            "class": a.reason[0] or None,
            "case": case,
            "engine": a.chosen[1] or value_of(said, "engine"),
        }
        if predicate.holds(tree, lambda key: row[key] if key in row else value_of(said, key)):
            return True
    return False


def _numbered(diff, slot, case, first, second):
    """The baseline's answers with the engines' new numbers where cuDNN renumbered them."""
    mapping = diff.mappings.get(numbering.space(slot, case))
    if not mapping:
        return first
    if second:
        graph = "backward" if case.startswith("pass=bwd") else "forward"
        if " impl=unified" in case:
            graph = "unified " + graph
        for old in {index for a in first for index, *_ in a.offered} & set(mapping):
            key = graph, old, mapping[old]
            diff.numbers[key] = diff.numbers.get(key, 0) + 1
    return numbering.translate(first, mapping)


def renumbered(diff, slot, case, answers):
    """The baseline's answers to one case with the candidate's numbers of engines."""
    return numbering.translate(answers, diff.mappings.get(numbering.space(slot, case), {}))


def classes(said):
    """--fail-on worse,lost: which classes are findings; any: every one that could be worse."""
    if said is None:
        return None
    if said == "any":
        return BY_CHANGE.keys() - {"better", "gained", *SAME, *APART}
    found = set()
    for word in said.split(","):
        name = word.strip().replace("-", " ").replace("_", " ")
        if name not in BY_CHANGE:
            every = ", ".join(w.replace(" ", "-") for w in BY_CHANGE)
            near = predicate.nearest(name, BY_CHANGE)
            raise sides.SidesError(
                f"--fail-on: no class '{text.line(word, 40)}'; nearest: {near}; all: {every}, any"
            )
        found.add(name)
    return frozenset(found)


def _of(both, axes, alone, slower=None, fail_on=None, command="diff", turns=None, accept=None):
    """A Diff that is not filled yet. `turns`: a times.Record whose times were measured in turns: then `slower` is a finding."""
    findings = FINDINGS | {"slower"} if turns else FINDINGS
    fail_on, options = (
        findings if fail_on is None else fail_on,
        {"slower": slower} if slower else {},
    )
    return Diff(both, axes, alone, options, fail_on, command, times=turns, accept=accept)


def compare(inputs, baseline=None, candidate=None, where=None, measured=False, **how):
    """A Diff. `inputs`: two records, or any number that together hold both builds. `measured`: their times were measured in turns, and `slower` is a finding.
    `how`: what _of() takes. Raises reader.InputError, sides.SidesError, predicate.PredicateError."""
    tree = predicate.parse(where) if where else None
    both = sides.Sides()
    pool = bool(baseline and candidate) or len(inputs) != 2
    if pool and not (baseline and candidate):
        raise sides.SidesError(
            f"{len(inputs)} record{'s' if len(inputs) != 1 else ''}: give two, or say --baseline V --candidate V"
        )
    first = both.read(inputs if pool else inputs[:1])
    second = first if pool else both.read(inputs[1:])
    for record in both.records:
        if tree:
            _keep_targets(record, _target_terms(tree))
        if not record.targets:
            raise sides.SidesError(
                f"{', '.join(text.line(n, 200) for n in record.names)}: no answer in it"
                + (" that --where keeps" if tree else "")
            )
    axes, pairs, *alone = sides.match(first, second, baseline, candidate)
    if pool and not axes:
        raise sides.SidesError(f"--baseline and --candidate are both {pairs[0][0][0]}")
    both.pair([((0, *a), (len(both.records) - 1, *b)) for a, b in pairs])
    turns = times.load(inputs)[0] if measured else None

    def is_kept(slot, case, one, other):
        a, b = both.slots[slot]
        if pool and not _asked(first, (a, b), one, other):
            return False
        return not tree or _kept(tree, a, case, one, first) or _kept(tree, b, case, other, second)

    return filled(_of(both, axes, tuple(alone), turns=turns, **how), is_kept)


def _asked(record, targets, one, other):
    """Of one record: were both targets asked this case? A run that planned one of them only makes no case missing."""
    return (one and other) or record.planned(one or other, targets[bool(one)][0])


def of_targets(both, pairs, **how):
    """The gate of targets of one record, [(target, target)]; `how`: what _of() takes."""
    mine = both.apart([((0, *a), (0, *b)) for a, b in pairs])
    diff = _of(mine, sides.axes_of(pairs), ((), ()), command="gate", **how)
    return filled(
        diff, lambda slot, case, one, other: _asked(mine.records[0], pairs[slot], one, other)
    )


def of_slot(diff, slot):
    """One pair of targets of a comparison: its counts, without groups."""
    mine = {pair for pair, one in enumerate(diff.slots) if one == slot}
    classes = {
        word: {alike: [pair for pair in pairs if pair in mine] for alike, pairs in ways.items()}
        for word, ways in diff.classes.items()
    }
    members = {
        word: [pair for pairs in ways.values() for pair in pairs] for word, ways in classes.items()
    }
    changed = {pair for word, pairs in members.items() if word not in SAME for pair in pairs}
    both = SimpleNamespace(records=diff.sides.records, slots=[diff.sides.slots[slot]])
    out = Diff(both, diff.axes, ((), ()), diff.options, diff.fail_on, diff.command)
    out.names, out.entries = [diff.names[pair] for pair in sorted(mine)], diff.entries
    out.calls = diff.calls  # its classes keep the numbers of their pairs
    out.guarded = diff.guarded and len(mine)
    out.classes, out.same = classes, len(mine) - len(changed)
    known = {(pair, word) for (pair, word), (_, known, _) in diff.about.items() if known}
    out.shown = {
        word: sum((pair, word) in known for pair in pairs) for word, pairs in members.items()
    }
    out.counts = {(0, side): counts for (at, side), counts in diff.counts.items() if at == slot}
    out.silent = {(0, side): found for (at, side), found in diff.silent.items() if at == slot}
    return out


def _joined(diff, slot):
    """What is known of a slot's cases; None where both sides have one version of cuDNN."""
    about = [diff.record(i).targets[target(diff, slot, i)] for i in (0, 1)]
    both = [(one["cudnn"], int(one["sm"] or 0)) for one in about]
    is_step = all(version and sm for version, sm in both) and both[0][0] != both[1][0]
    return changes.Joined(*both) if is_step else None


def filled(diff, is_kept=lambda slot, case, one, other: True):
    diff.mappings = numbering.learn(diff.sides.offers()) if diff.axes == ["build"] else {}
    joined = [_joined(diff, slot) for slot in range(len(diff.sides.slots))]
    for slot, case, one, other in diff.sides.pairs():
        library_s = cases.is_library_s(case, diff.sides.slots[slot].second[0])
        if is_kept(slot, case, one, other) and not (library_s and diff.command == "gate"):
            _add(diff, slot, case, one, other, joined[slot])
    ends = diff.classes.get("ends", {})
    for name in diff.spoken & ends.keys():  # it goes on in another case
        del ends[name]
    if diff.classes:
        diff.groups = _grouped(diff, separate.columns_of(diff.names, _subjects(diff)))
    return diff


# ---- commands that repeat what is shown ----


def shown(diff, target, side):
    """The device of a target, for people."""
    return words.shown(diff.record(side).runs, target[1])


def target(diff, slot, side):
    return diff.sides.slots[slot][side]


def version(diff, slot, side):
    """The build as --cudnn wants it: the version alone where one build has it, the folder of a build that is not installed."""
    build = target(diff, slot, side)[0]
    about = diff.record(side).targets[target(diff, slot, side)]
    line = about.get("line", {})
    if line.get("origin") == "folder":
        found = text.objects(line, "libraries")
        libraries = [str(lib.get("path")) for lib in found if lib.get("in_build")]
        return str(PurePosixPath(libraries[0]).parent) if libraries else build
    targets = [target for record in diff.sides.records for target in record.targets.items()]
    others = {build for (build, _), one in targets if one["cudnn"] == about["cudnn"]}
    return about["cudnn"] if len(others) == 1 and about["cudnn"] else build


def _runs(diff, slot, side):
    """The runs that asked a target."""
    at = target(diff, slot, side)
    return [
        run
        for run in diff.record(side).runs.values()
        if any((t.get("build"), t.get("device")) == at for t in text.objects(run, "targets"))
    ]


def _device(diff, slot, side):
    """The device as --device wants it: a GPU's number, a description's file where the run named one."""
    device = target(diff, slot, side)[1]
    for run in _runs(diff, slot, side):
        command = text.texts(run, "command")
        named = [word for at, word in enumerate(command) if at and command[at - 1] == "--device"]
        files = [word for said in named for word in said.split(",") if word.endswith(".json")]
        if len(files) == 1 and device not in named[0].split(","):
            return files[0]
    return diff.record(side).gpus.get(device, device)


def _plan(diff, slot, answers):
    """Were plans compiled for a described device? Then a command that repeats it needs --plan."""
    asked = [run.get("do") for side in (0, 1) for run in _runs(diff, slot, side)]
    planned = "plan" in asked or "build_fail" in {a.outcome for a in answers}
    return " --plan" * (planned and not any(a.grade == "measured" for a in answers))


def ask(diff, slot, case, word=""):
    """The command that asks both sides again."""
    builds = list(dict.fromkeys(version(diff, slot, side) for side in (0, 1)))
    devices = list(dict.fromkeys(_device(diff, slot, side) for side in (0, 1)))
    builds = [b for b in builds if b != words.NO_BUILD]
    first, second = diff.sides.answers(slot, case)
    measured = any(a.grade == "measured" for a in first + second)
    asked = "repro" if measured and first and second else "decide"
    asked = "bench" if word in ("slower", "time unknown") else asked
    more = _plan(diff, slot, first + second)
    if asked == "decide" and word in ("lost", "reason changed", "gained"):
        more += " --explain"
    cudnn = f" --cudnn {text.shell(','.join(builds))}" if builds else ""
    return f"facts {asked} {text.shell(case)}{cudnn} --device {text.shell(','.join(devices))}{more}"


def repro(diff, group):
    """The command that shows the change again."""
    return ask(diff, group.slot, group.case, group.word)


_BY = {"engine changed": " --by engines", "reason changed": " --by reason"}


def bisect(diff, group):
    """The command that finds the version with which it changed; "" where a search over versions cannot find it."""
    # a range goes up, also for a step down
    old, new = sorted((version(diff, group.slot, side) for side in (0, 1)), key=version_key)
    found = "worse", "changed kind", "lost", "gained", "better", "engine changed", "reason changed"
    if diff.axes != ["build"] or not old or not new or "/" in old + new or group.word not in found:
        return ""
    plan = _plan(diff, group.slot, sum(diff.sides.answers(group.slot, group.case), []))
    return f"facts bisect {text.shell(group.case)} --cudnn {text.shell(f'{old}..{new}')} --device {text.shell(_device(diff, group.slot, 1))}{plan}{_BY.get(group.word, '')}"
