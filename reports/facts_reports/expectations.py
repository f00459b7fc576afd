"""The expectations that the build makes of cases/known, held against records: which are needed, which no longer, which failures have none.

The files are parsed and checked by `facts` (harness/src/case/language/expectation_lines.c) before this is started; here they are only read. A line counts for a row when the
row's case is in one of the line's suites (or in none at all); `engine=` of the case does not matter for that, since runs ask suites with engine=all.
"""
import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from . import cases, predicate, reader, text
from .store import load
from .versions import version_key
from .vocabulary import is_finding

OK, FINDINGS, BAD_INPUT, INCOMPLETE = 0, 1, 2, 4
# What asking alone can show; compiling adds build_fail; everything else takes a launch.
_BY_ASKING = frozenset(("pass", "unsupported", "crash", "hang", "exit_crash"))
_RESULT = frozenset((*cases.SUBJECT, "device"))   # what only a row says


@dataclass
class Line:
    """One line of a file, and what the records say of it."""
    place: str           # file:line:column of the predicate
    file: str
    number: int
    verdict: str
    sometimes: bool
    until: str
    suites: tuple
    where: str
    tree: tuple
    link: str
    source: str          # ID/LABEL of the known failure, "" without
    candidates: dict     # suite: the cases there that it could be about
    fits: int = 0        # rows that it explains
    met: int = 0         # of these, with its verdict
    passed: int = 0      # of these, tried and with another
    asked: int = 0       # results that it could be about, of suites whose such results are all in the records
    late: set = field(default_factory=set)      # versions in the records from its `until` on
    taken_by: set = field(default_factory=set)  # lines that explain rows it fits


def expects(line, verdict):
    """Is it the verdict of a line, or one of them (wrong/nan)?"""
    return verdict in line.verdict.split("/")


def read(folder):
    """All lines, in the order in which they count."""
    out = []
    for path in sorted(Path(folder).glob("*.expect")):
        suites, source = (), ""
        for number, said in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            if said.startswith("suites:"):
                names = said[len("suites:"):].split("#")[0].split()
                suites = () if names == ["all"] else tuple(names)
            elif said.startswith("# failure: "):
                source = said[len("# failure: "):]
            elif said.strip() and not said.lstrip().startswith("#"):
                out.append(_line(path, number, said, suites, source))
    return out


def _line(path, number, said, suites, source):
    body = re.split(r"(?:^|(?<=[ \t]))#", said, maxsplit=1)[0].rstrip()
    _, verdict, rest = body.split(None, 2)
    until = ""
    while match := re.match(r"(expires|until)=(\S+)\s+", rest):
        until = match[2] if match[1] == "until" else until
        rest = rest[match.end():]
    where, link = rest.rsplit(None, 1)
    column = body.index(rest) + 1
    return Line(f"{path}:{number}:{column}", str(path), number, verdict.rstrip("?"), verdict.endswith("?"), until, suites, where.strip(),
                predicate.parse(where), link, source, {})


def tell(lines, told):
    """Gives each line the cases that `facts` says it could be about: {"suites": {name: [case]}, "lines": [{suite: [place]}]}."""
    names = {suite: [cases.bare(c) for c in members] for suite, members in told["suites"].items()}
    for line, about in zip(lines, told["lines"]):
        line.candidates = {suite: [names[suite][i] for i in places] for suite, places in about.items()}
    return {suite: set(members) for suite, members in names.items()}


def possible(tree, get, is_open):
    """Could it hold once the rest is known? Keys of which `is_open(key)` is true may turn out to be anything. As facts_predicate_possible."""
    return _truth(tree, get, is_open) > 0


def _truth(tree, get, is_open):
    op = tree[0]
    if op == "and":
        return min(_truth(t, get, is_open) for t in tree[1])
    if op == "or":
        return max(_truth(t, get, is_open) for t in tree[1])
    if op == "not":
        return 2 - _truth(tree[1], get, is_open)
    _, key, value, _ = tree
    other = isinstance(value, str) and key in cases.numbers() and value in cases.numbers()
    if is_open(key) or (other and is_open(value)):
        return 1
    return 2 * predicate.holds(tree, get)


def row_get(row):
    """What a predicate asks of a row."""
    said = cases.parse(row["case"])
    about = {"class": (row.get("reason") or {}).get("class"), "case": row["case"]}
    about |= {k: row.get(k) for k in ("cudnn", "sm", "build", "backend", "grade", "verdict", "engine", "config", "device")}

    def get(key):
        value = about.get(key)
        if value is None and key in _RESULT and key != "engine":
            return None
        return str(value) if value is not None else cases.value_of(said, key)
    return get


@dataclass(frozen=True)
class Target:
    build: str
    cudnn: str
    device: str
    sm: str
    grade: str
    tells: str   # run, plan, decide: what its rows can show

    def known(self):
        return {k: v for k, v in (("build", self.build), ("cudnn", self.cudnn), ("device", self.device), ("sm", self.sm), ("grade", self.grade)) if v}

    def can_tell(self, verdict):
        return verdict in _BY_ASKING or self.tells == "run" or (self.tells == "plan" and verdict == "build_fail")


def _target(row, runs):
    grade = row["grade"] or ("measured" if row["verdict"] not in _BY_ASKING else "decided")
    planned = runs.get(row["run"], {}).get("do") == "plan"
    return Target(row["build"], row["cudnn"], row["device"], str(row["sm"] or ""), grade, "run" if grade == "measured" else "plan" if planned else "decide")


def _tried(row):
    """Whether something ran; a refusal says nothing of numbers."""
    return row["grade"] == "measured" and row["verdict"] not in ("inconclusive", "not_run", "unsupported")


class Held:
    """The rows of a store, each with the line that it falls under."""

    def __init__(self, store, lines, suites):
        self.lines, self.suites = lines, suites
        self.at, self.rows, self.unexplained = {}, [], []
        for _, row in store.rows("outcome<>'missing'", order="case_name, device, cudnn, build, config, id"):
            target = _target(row, store.runs)
            if row["verdict"] not in ("inconclusive", "not_run"):
                self.at.setdefault(target, set()).add(cases.bare(row["case"]))
            self._hold(row)
        self._cover()

    def about(self, name):
        """The suites that a case is in."""
        return {s for s, members in self.suites.items() if name in members}

    def _hold(self, row):
        get, within = row_get(row), self.about(cases.bare(row["case"]))
        refusal = isinstance(row.get("expectation"), dict) and "reason" in row["expectation"]   # a reject case: judged by its group
        fitting = [] if refusal else [line for line in self.lines if self._fits(line, row, get, within)]
        chosen = next((line for line in fitting if expects(line, row["verdict"])), fitting[0] if fitting else None)
        for line in fitting:
            if line is not chosen:
                line.taken_by.add(chosen.place)
        if chosen:
            chosen.fits += 1
            chosen.met += expects(chosen, row["verdict"])
            chosen.passed += not expects(chosen, row["verdict"]) and _tried(row) and not (chosen.sometimes and row["verdict"] == "pass")
        self.rows.append((row, get, chosen and chosen.place))
        if is_finding(row["verdict"]) and chosen is None and not refusal:
            self.unexplained.append((row, get))

    @staticmethod
    def _fits(line, row, get, within):
        counts = not line.suites or not within or within & set(line.suites)
        return counts and not (line.until and version_key(row["cudnn"]) >= version_key(line.until)) and predicate.holds(line.tree, get)

    def _cover(self):
        """Of each line: how many results it could be about, in the suites that are whole here as far as it is concerned."""
        for line in self.lines:
            targets = []
            for target in self.at:
                known = target.known()
                if not possible(line.tree, known.get, lambda key, known=known: key not in known):
                    continue
                if line.until and version_key(target.cudnn) >= version_key(line.until):
                    line.late.add(target.cudnn)
                elif any(target.can_tell(v) for v in line.verdict.split("/")):
                    targets.append((known, self.at[target]))
            counts = [self._count(line, members, targets) for members in line.candidates.values() if members]
            line.asked = 0 if None in counts else sum(counts)

    @staticmethod
    def _count(line, members, targets):
        """How many results of a suite the line could be about; None when one of them is not here."""
        asked = 0
        for known, here in targets:
            for name in members:
                if _could(line.tree, name, known):
                    if name not in here:
                        return None
                    asked += 1
        return asked


def _could(tree, name, known):
    said = cases.parse(name)
    given = said.get("engine", "auto") != "auto"
    return possible(tree, lambda key: known[key] if key in known else cases.value_of(said, key),
                    lambda key: key in _RESULT and key not in known and not (key == "engine" and given))


def complaint(line):
    """What is wrong with a line; '' when nothing is, None when these records cannot tell."""
    if line.late:
        return f"until {line.until}, and these records have {max(line.late, key=version_key)}: look again"
    if line.passed:
        return f"expected {line.verdict}, and {line.passed} of {text.count(line.fits, 'result')} say otherwise"
    if line.met:
        return ""
    if line.taken_by and not line.fits:
        return f"fits only what {min(line.taken_by)} takes first"
    if line.asked == 0 or (line.sometimes and line.fits):
        return None
    return f"no result needs this any more: of {line.asked:,} that it could be about none is {line.verdict}"


def sentence(line, why):
    """One line for people, with the file of the failure."""
    name, _, label = line.source.partition("/")
    return f"{line.place}: {why}" + (f"; see cases/known/{name}.known" + (f", failure {label}" if label else "") if name else "")


def check(store, lines, suites, out=sys.stdout, err=sys.stderr):
    """Prints what is wrong with the lines; exit code."""
    held = Held(store, lines, suites)
    said = [(line, complaint(line)) for line in lines]
    wrong = [(line, why) for line, why in said if why]
    for line, why in wrong:
        print(sentence(line, why), file=err)
    needed, silent = sum(why == "" for _, why in said), sum(why is None for _, why in said)
    print(f"of {text.count(len(lines), 'expectation')} these records need {needed}, contradict {len(wrong)}, cannot tell of {silent}", file=out)
    if held.unexplained:
        distinct = {(row["case"], row["build"], row["device"]) for row, _ in held.unexplained}
        print(f"{text.count(len(distinct), 'failure')} without an expectation; facts expect update proposes some", file=out)
    if wrong:
        return FINDINGS
    return OK if store.complete() else INCOMPLETE


def main(argv):
    """facts_reports expect check|update --suites FILE --folder DIR --known DIR IN..."""
    parser = argparse.ArgumentParser(prog="facts expect")
    parser.add_argument("task", choices=("check", "update"))
    parser.add_argument("inputs", nargs="+", metavar="IN")
    parser.add_argument("--suites", required=True, help="JSON: the names of the cases of each suite")
    parser.add_argument("--folder", required=True, help="the expectations that the build made")
    parser.add_argument("--known", required=True, help="cases/known")
    parser.add_argument("--overwrite", action="store_true", help="update: also write the file")
    args = parser.parse_args(argv)
    try:
        store = load(args.inputs)
    except reader.InputError as error:
        print(f"facts expect: {error}", file=sys.stderr)
        return BAD_INPUT
    reader.warn(store.files, "facts expect")
    if not store.one("SELECT EXISTS(SELECT 1 FROM row)"):
        print("facts expect: no row in " + ", ".join(args.inputs), file=sys.stderr)
        return BAD_INPUT
    lines = read(args.folder)
    suites = tell(lines, json.loads(Path(args.suites).read_text(encoding="utf-8")))
    if args.task == "check":
        return check(store, lines, suites)
    from . import propose
    return propose.update(store, lines, suites, args.known, args.overwrite)
