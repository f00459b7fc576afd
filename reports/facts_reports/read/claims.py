"""Claims: the support rules that other projects have written down (cases/claims, one project a file; its README describes the lines).

A rule is a predicate of the case language with pairs of cases on both sides of its edge. The case grammar belongs to the harness. So the rules are read
in two steps: patterns() lists the patterns, the harness expands them, and join() takes the names of their cases.
"""

import fnmatch
import os
import re
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from pathlib import Path

from . import cases, predicate
from .text import clean
from .versions import segments, version_key

KINDS = ("decision", "numbers", "caller", "order")
_UNASKED = ("caller", "order")  # no backend answers them
LINES = tuple("project link rule says kind refuse unless edge untestable note".split())
MOST_LETTERS = 16384  # of one line
MOST_PAIRS = 64  # of one rule
_BLANK = " \t\r"
_BAND = {"mask", "window", "align"}  # mask=causal is a window too: the three count as one key
# Every release from 9.0 on that a rule can speak of, and some to come.
VERSIONS = [f"9.{minor}.{patch}" for minor in range(31) for patch in range(3)]
SMS = ("75", "80", "86", "89", "90", "100", "103", "107", "110", "120", "121")


class ClaimsError(ValueError):
    """One line for people, with its place."""


class Places:
    """Versions and devices, [(cudnn, sm)]. A set of them is an integer: bit i is the i-th place."""

    def __init__(self, places):
        self.places = list(places)
        self.all = (1 << len(self.places)) - 1
        self._leaves = {}

    def where(self, tree, get):
        """The places where a predicate holds for a case; `get` answers for the case."""
        op = tree[0]
        if op == "not":
            return self.all & ~self.where(tree[1], get)
        if op in ("and", "or"):
            sets = [self.where(term, get) for term in tree[1]]
            return reduce(and_ if op == "and" else or_, sets)
        if tree[1] not in ("cudnn", "sm"):
            return self.all if predicate.holds(tree, get) else 0
        leaf = repr(tree)
        if leaf not in self._leaves:
            values = [place[tree[1] == "sm"] for place in self.places]
            holding = {one for one in set(values) if predicate.holds(tree, {tree[1]: one}.get)}
            self._leaves[leaf] = sum(1 << i for i, value in enumerate(values) if value in holding)
        return self._leaves[leaf]


EVERYWHERE = Places((version, sm) for version in VERSIONS for sm in SMS)


def get_of(name):
    """What a predicate asks of a case."""
    get = cases.asked_of(name)
    return lambda key: name if key == "case" else get(key)


@dataclass(eq=False)
class Project:
    name: str
    version: str
    link: str = ""


@dataclass(eq=False)
class Edge:
    """Pairs of cases that differ in one key, as one line writes them; without `other` the edge lies between versions or devices."""

    where: str
    line: int
    sides: list  # one or two patterns
    # [(name that the rule refuses, name that it lets through or None)]
    pairs: list = field(default_factory=list)


@dataclass(eq=False)
class Claim:
    id: str
    project: Project
    where: str
    line: int
    says: str = ""
    note: str = ""
    untestable: str = ""
    kind: str = ""
    refuses: str = ""  # its predicates as they are written
    refuse: list = field(default_factory=list)  # [(line, column, text)]; trees after join()
    unless: list = field(default_factory=list)
    edges: list = field(default_factory=list)
    _refused: dict = field(default_factory=dict)

    def fail(self, what):
        raise ClaimsError(f"{self.where}:{self.line}:1: {what}")

    @property
    def pairs(self):
        return [pair for edge in self.edges for pair in edge.pairs]

    def refused(self, name, places):
        """The places where the rule refuses a case."""
        key = (name, places)
        if key not in self._refused:
            get = get_of(name)
            some, none = (
                reduce(or_, (places.where(tree, get) for tree in trees), 0)
                for trees in (self.refuse, self.unless)
            )
            self._refused[key] = some & ~none
        return self._refused[key]

    def refused_any(self, places):
        """The places where the rule refuses any of its own cases."""
        return reduce(or_, (self.refused(name, places) for name, _ in self.pairs), 0)

    def reach(self):
        """Where the rule refuses any of its cases: "cudnn 9.10.0..9.10.1, sm 90"."""
        found = self.refused_any(EVERYWHERE)
        here = [EVERYWHERE.places[i] for i in range(len(EVERYWHERE.places)) if found >> i & 1]
        flags = [version in {v for v, _ in here} for version in VERSIONS]
        words = []
        for first, last in segments(flags):
            end = "" if last + 1 == len(VERSIONS) else VERSIONS[last]
            said = VERSIONS[first] if end == VERSIONS[first] else f"{VERSIONS[first]}..{end}"
            words += [said] * flags[first]
        return f"cudnn {', '.join(words)}, sm {', '.join(sm for sm in SMS if sm in {s for _, s in here})}"

    def head(self):
        return {"rule": self.id, "project": self.project.name, "version": self.project.version}

    def caller(self):
        """What the programs read of a rule: an object of claims.jsonl. Its `refuse` is one predicate."""
        some, none = (
            " | ".join(f"({text})" for *_, text in part) for part in (self.refuse, self.unless)
        )
        said = {"kind": self.kind, "says": self.says, "note": self.note}
        return {**self.head(), **said, "refuse": f"({some}) & !({none})" if none else some}

    def check(self):
        """What a rule must have."""
        testable = not self.untestable
        edge = "edge: COMMON | REFUSED | LET THROUGH, or untestable: why"
        caller = "untestable: why; no backend answers a rule of this kind"
        for lacks, what in (
            (not self.says, "says: what the project says, and in which file"),
            (not self.kind, "kind: decision, numbers, caller or order"),
            (testable and not self.refuse, "refuse: a predicate, or untestable: why"),
            (testable and not self.edges, edge),
            (testable and self.kind in _UNASKED, caller),
        ):
            if lacks:
                self.fail(f"the rule {self.id} lacks {what}")
        if self.untestable and (self.edges or (self.refuse and self.kind not in _UNASKED)):
            self.fail(f"the rule {self.id} is untestable and has a predicate or an edge")


class Reader:
    """Reads files of rules, one after the other."""

    def __init__(self):
        self.projects, self.claims = [], []

    def read_file(self, path):
        try:
            text = Path(path).read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise ClaimsError(f"{path}:1:1: cannot be read: {error.strerror or error}") from None
        self.read(text, str(path))

    def read(self, text, where):
        self.where, self.project, self.claim = where, None, None
        for number, raw in enumerate(text.split("\n"), 1):
            self.line, self.raw = number, raw
            if len(raw) > MOST_LETTERS:
                self.fail(0, "the line is too long")
            if clean(raw, MOST_LETTERS) != raw:
                self.fail(0, "a control character, or a mark that turns the direction of a text")
            comment = re.search(r"(?:^|(?<=[ \t\r]))#", raw)
            line = (raw[: comment.start()] if comment else raw).rstrip(_BLANK)
            if line.strip(_BLANK):
                self._line(line)
        if self.project is None:
            raise ClaimsError(f"{where}:1:1: no rule is in this file")

    def fail(self, at, what):
        raise ClaimsError(f"{self.where}:{self.line}:{at + 1}: {what}")

    def _line(self, line):
        start = len(line) - len(line.lstrip(_BLANK))
        word, _, rest = line[start:].partition(":")
        if word not in LINES:
            allowed = " ".join(f"{one}:" for one in LINES) + _hint(word, LINES)
            self.fail(0, f"{_quoted(word)} begins no line of claims; allowed: {allowed}")
        said = rest.strip(_BLANK)
        if not said:
            self.fail(len(line), "a value is missing after the colon")
        at = len(line) - len(rest.lstrip(_BLANK))
        if word in ("link", "rule") and self.project is None:
            self.fail(0, "belongs to a project; project: NAME VERSION opens one")
        if word not in ("project", "link", "rule") and self.claim is None:
            self.fail(0, "belongs to a rule; rule: NAME opens one")
        getattr(self, f"_{word}", self._append)(word, said, at)

    def _project(self, _, said, at):
        name, _, version = said.partition(" ")
        if not version.strip(_BLANK):
            self.fail(at, "project: takes a name and a version")
        self.project, self.claim = Project(name, version.strip(_BLANK)), None
        self.projects.append(self.project)

    def _link(self, _, said, __):
        self.project.link = f"{self.project.link} {said}".strip()

    def _rule(self, _, said, at):
        if re.search(r"[ \t\r]", said):
            self.fail(at, "a rule's name has no blanks")
        if len(said) > 60:
            self.fail(at, "rule: takes a name of at most 60 letters")
        for other in self.claims:
            if other.id == said:
                self.fail(at, f"{said} is there already: {other.where}:{other.line}")
        self.claim = Claim(said, self.project, self.where, self.line)
        self.claims.append(self.claim)

    def _append(self, word, said, _):
        """A text of a rule may take several lines."""
        before = getattr(self.claim, word)
        setattr(self.claim, word, f"{before} {said}" if before else said)

    def _kind(self, _, said, at):
        if said not in KINDS:
            allowed = " ".join(KINDS) + _hint(said, KINDS)
            self.fail(at, f"{_quoted(said)} is not a kind; allowed: {allowed}")
        self.claim.kind = said

    def _refuse(self, word, said, at):
        getattr(self.claim, word).append((self.line, at, said))
        between = "; or " if word == "refuse" else "; unless "
        self.claim.refuses += (between if self.claim.refuses else "") + said

    _unless = _refuse

    def _edge(self, _, said, at):
        common, *sides = said.split("|")
        if sides and (len(sides) != 2 or not all(side.strip(_BLANK) for side in sides)):
            self.fail(at, "edge: takes COMMON | REFUSED | LET THROUGH, or COMMON alone")
        # Columns stay those of the line: what is not part of a pattern is blank.
        whole = " " * at + common
        patterns = [whole]
        if sides:
            patterns = [f"{whole} {sides[0]}", f"{whole} {' ' * len(sides[0])} {sides[1]}"]
        self.claim.edges.append(Edge(self.where, self.line, patterns))

    # ---- what the harness is asked -----------------------------------------------------------------------------------------------

    def patterns(self):
        """What the harness expands, in the order of the rules: (line, path, the text at its column)."""
        for claim in self.claims:
            for edge in claim.edges:
                for side in edge.sides:
                    yield edge.line, edge.where, side

    def join(self, members):
        """`members`: for each of patterns() the names of its cases. Then every rule is whole, and has both sides of its edges."""
        members = iter(members)
        for claim in self.claims:
            for key in ("refuse", "unless"):
                setattr(claim, key, [self._tree(claim, *one) for one in getattr(claim, key)])
        for claim in self.claims:
            claim.check()
            for edge in claim.edges:
                self._pairs(claim, edge, [next(members) for _ in edge.sides])
            for edge in claim.edges:
                for pair in edge.pairs:
                    _check_edge(claim, edge, *pair)

    @staticmethod
    def _tree(claim, line, at, text):
        try:
            return predicate.parse(text)
        except predicate.PredicateError as error:
            raise ClaimsError(f"{claim.where}:{line}:{at + error.column}: {error.what}") from None

    @staticmethod
    def _pairs(claim, edge, sides):
        def fail(what):
            raise ClaimsError(f"{edge.where}:{edge.line}:1: {what}")

        if len({len(side) for side in sides}) > 1:
            fail("both sides of an edge need the same number of cases")
        if len(claim.pairs) + len(sides[0]) > MOST_PAIRS:
            fail(f"a rule has at most {MOST_PAIRS} pairs of cases")
        if len(sides) == 1:
            edge.pairs = [(name, None) for name in sides[0]]
            return
        edge.pairs = list(zip(*sides))
        for pair in edge.pairs:
            one, two = map(cases.parse, pair)
            keys = [key for key in cases.defaults() if one.get(key) != two.get(key)]
            if len(set(keys) - _BAND) + bool(set(keys) & _BAND) != 1:
                fail(
                    f"the two sides of an edge differ in exactly one key (mask, window and align are one); these differ in {' '.join(keys) or 'none'}"
                )


def _check_edge(claim, edge, name, other):
    """Somewhere the rule refuses the one side and not the other, and nowhere the other way round. Without another side: some places refuse, some do not."""
    refused = claim.refused(name, EVERYWHERE)
    if other:
        let = claim.refused(other, EVERYWHERE)
    else:
        let = EVERYWHERE.all if refused == EVERYWHERE.all else 0
    if let & ~refused:
        what = "is refused on the side that the rule should let through"
    elif refused & ~let:
        return
    elif not refused:
        what = "is never refused by the rule"
    else:
        what = "on both sides" if other else "by every version for every device"
        what = f"is refused {what}"
    raise ClaimsError(f"{edge.where}:{edge.line}:1: {claim.id} has no edge here: {name} {what}")


def _quoted(word):
    word = re.sub(r"[^ -~]", "?", word)
    return word if len(word) <= 60 else word[:57] + "..."


def _hint(word, words):
    near = predicate.nearest(word, words)
    distance = predicate.distance(word, near)
    if distance < min(len(word) // 3 + 2, max(len(word), len(near))):
        return f"; did you mean {near}?"
    return ""


# ---- which rules, which cases ----------------------------------------------------------------------------------------------------------


def _bare(name):
    return name.replace("-", "").lower()


def load(words, folder):
    """(rules, those that the words choose): files, or the files of `folder`; other words are projects, or names of rules with * and ?."""
    reader = Reader()
    files = [word for word in words if os.path.isfile(word)]
    for path in files or sorted(Path(folder).glob("*.claims")):
        reader.read_file(path)
    names = [word for word in words if not os.path.isfile(word)]
    chosen = set() if names else set(reader.claims)
    for word in names:
        found = [c for c in reader.claims if _bare(c.project.name) == _bare(word)]
        found += [c for c in reader.claims if fnmatch.fnmatchcase(c.id, word.replace("[", "[[]"))]
        if not found:
            near = predicate.nearest(word, [c.id for c in reader.claims])
            raise ClaimsError(
                f"facts audit: {word[:80]} is neither a file nor a project nor a rule (pytorch, fe/H04, 'te/*'); did you mean {near}?"
            )
        chosen.update(found)
    return reader, chosen


def asked(name, measured):
    """A case as it is asked: the backend as it is and, where it runs, every engine offered."""
    every = {"engine": "all"} if measured and "engine" not in cases.parse(name) else {}
    return cases.renamed(name, guards="off", **every)


def collect(claims, chosen, places, measured, where="", known=None):
    """[(rule, name)], in the order of the rules: both sides of each edge of the chosen rules that refuse something at these places. `where`: a predicate
    on the refused side; `known`: the names of the only cases that have an answer."""
    tree = predicate.parse(where) if where else None
    out = []
    for claim in claims:
        if claim not in chosen or not claim.refused_any(places):
            continue
        for pair in claim.pairs:
            pair = [name for name in pair if name]
            is_known = known is None or all(asked(name, measured) in known for name in pair)
            if is_known and (tree is None or predicate.holds(tree, get_of(pair[0]))):
                out += [(claim, name) for name in pair]
    return out


def order(targets):
    """[[target]]: by device, in the order of their first appearance, then by version. A target is (device, build, version, sm)."""
    devices = {}
    for target in targets:
        devices.setdefault(target[0], []).append(target)
    return [sorted(found, key=lambda t: version_key(t[2])) for found in devices.values()]
