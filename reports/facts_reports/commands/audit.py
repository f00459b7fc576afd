"""facts audit: the rules of other projects (claims), held against what cuDNN answered on both sides of each rule."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ..read import claims, reader, store, text
from ..read.vocabulary import is_finding, is_good
from . import asking
from .options import BAD_INPUT, ENVIRONMENT, FINDINGS, INCOMPLETE, NOTHING, OK
from .options import Command, UsageError, folder, options

# The verdict about a rule for one version and device. Several of those before AGREES may apply; the others only alone.
MEANINGS = {
    "too strict": "the rule refuses a case that every offered engine computes right",
    "too loose": "cuDNN refuses a case, or gets it wrong, and no rule of the project refuses it; counted for the first rule that shows it",
    "accepted, numbers not known": "the rule refuses a case that cuDNN accepts; only a GPU can show whether the numbers are right",
    "not answered": "cuDNN could not be asked, or the data could not show an error",
    "agrees": "cuDNN refuses (or gets wrong) what the rule refuses, and accepts the other side",
    "both sides refused": "cuDNN refuses the other side too, for the reason of another rule: there is no edge",
    "not asked": "FACTS itself refuses the case: nobody could compute it, or no graph of this version can express it",
}
STRICT, LOOSE, ACCEPTED, UNKNOWN, AGREES, BLIND, OURS = MEANINGS
DISAGREE = (STRICT, LOOSE, ACCEPTED, UNKNOWN)
AGAINST = ("refused", "unbuilt", "broken")  # replies
UNTESTABLE = "untestable"


# ---- what a backend answered ------------------------------------------------------------------------------------------------------------


def reply_of(verdict, measured, by_cudnn):
    """One row's reply. `by_cudnn`: a refusal with a status of cuDNN's; our own refusals have none."""
    if is_good(verdict):
        return "passed" if measured else "accepted"
    if verdict == "unsupported":
        return "refused" if by_cudnn else "ours"
    if verdict == "build_fail":
        return "unbuilt"
    return "broken" if is_finding(verdict) else "unknown"


def join(a, b):
    """The reply of two rows of one case (engine=all has a row for each configuration); None: no row."""
    if a is None or b is None or a == b:
        return a or b
    # Right numbers beside an engine that does not build: the whole is not known to be right.
    words = ("broken", "unknown", "ours", "refused")
    return next((word for word in words if word in (a, b)), "accepted")


# A finding weighs 5.
_WEIGHT = {"pass": 1, "supported": 1, "unsupported": 2, "mistrusted": 3, "inconclusive": 4}


@dataclass
class Answer:
    """The answer of one target to one case: its worst row since the last attempt that finished, and the reply of all of them."""

    reply: str = None
    verdict: str = ""
    reason: str = ""
    engines: str = ""
    finished: int = 0

    def add(self, row, measured):
        verdict, reason = row["verdict"], row["reason"]
        by_cudnn = reason.get("class") == "unsupported" and "status" in reason
        self.reply = join(self.reply, reply_of(verdict, measured, by_cudnn))
        if self.finished and row["attempt"] > self.finished:
            self.verdict = self.reason = self.engines = ""
            self.finished = 0
        if not row.get("more"):
            self.finished = row["attempt"]
        if not self.verdict or _WEIGHT.get(verdict, 5) > _WEIGHT.get(self.verdict, 5):
            said = text.line(str(reason.get("text") or ""), 8000)[:399]
            self.verdict, self.reason = verdict, "" if is_good(verdict) else said
        self.engines = self.engines or " ".join(
            str(one["index"]) for one in text.offered(row) if "index" in one
        )

    def words(self, measured):
        """Its reason, what it got wrong, or the engines that it offers."""
        if self.verdict == "unsupported" and self.reason:
            return self.reason
        if is_good(self.verdict):
            return f"{'right by ' if measured else 'offered: '}engine{'s' if ' ' in self.engines else ''} {self.engines}"
        return (self.verdict or "no answer") + (f": {self.reason}" if self.reason else "")


class Rows(reader.Sink):
    """The rows of records, for reader.read_file."""

    def __init__(self):
        self.rows = []

    def add_row(self, row):
        self.rows.append(row)


# ---- what a rule is worth ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A case of a rule on one version and device."""

    refused: bool  # by the rule
    others: bool  # another rule of the project refuses it, or what the backend says against it is reported under another rule
    reply: str  # None: no row

    @property
    def word(self):
        if self.reply in AGAINST:
            return AGREES if self.refused else BLIND if self.others else LOOSE
        if self.reply == "accepted":
            return ACCEPTED if self.refused else AGREES
        if self.reply == "passed":
            return STRICT if self.refused else AGREES
        return OURS if self.reply == "ours" else UNKNOWN


def judge(trials):
    """{word: the first trial that shows it}. Where no trial disagrees, one word for all: each side must have been answered as the rule says."""
    words = [trial.word for trial in trials]
    said = [word for word in DISAGREE if word in words]
    if not said and trials:
        held = all(
            AGREES in {w for t, w in zip(trials, words) if t.refused is side}
            for side in {t.refused for t in trials}
        )
        said = [AGREES if held else BLIND if BLIND in words else OURS]
    return {word: words.index(word) if word in words else 0 for word in said}


@dataclass
class Found:
    """What was found of a rule on one device, for a run of versions that agree."""

    claim: claims.Claim
    first: tuple  # targets
    last: tuple
    verdict: dict  # {word: name of the case that shows it}
    refuses: bool  # the rule refuses something here

    def says(self, word):
        """Where a rule refuses nothing, an accepted case says little about the rule."""
        return word in self.verdict and (word != AGREES or self.refuses)

    def same(self, other):
        def key(one):
            shown = {word: word != AGREES and name for word, name in one.verdict.items()}
            return one.claim, one.last[0], one.refuses, shown

        return key(self) == key(other)


@dataclass
class Audit:
    """Rules, the cases of their edges, and what targets answered: answers[(build, device, asked name)]."""

    claims: list
    chosen: set
    targets: list  # (device, build, version, sm)
    measured: bool
    answers: dict
    record: str = ""
    unasked: str = ""  # why a rule that could be asked has no row; "": no such version and device
    found: list = field(default_factory=list)
    # [(rule, asked name, target, word)]: every case that shows a disagreement
    against: list = field(default_factory=list)

    def judge(self, asked):
        """`asked`: what claims.collect() returned."""
        places = claims.Places((version, sm) for _, _, version, sm in self.targets)
        self._bit = {target: i for i, target in enumerate(self.targets)}
        self._gaps = {}
        by_claim = {}
        for claim, name in asked:
            by_claim.setdefault(claim, []).append(name)
        for claim, names in by_claim.items():
            refused = claim.refused_any(places)
            for targets in claims.order(self.targets):
                # A device for which the rule refuses nothing in any version asked says nothing about the rule.
                if any(refused >> self._bit[target] & 1 for target in targets):
                    for target in targets:
                        self._judge_target(claim, names, target, places)

    def _judge_target(self, claim, names, target, places):
        trials = [self._trial(claim, name, target, places) for name in names]
        verdict = {word: names[i] for word, i in judge(trials).items()}
        self.against += [
            (claim, claims.asked(name, self.measured), target, trial.word)
            for name, trial in zip(names, trials)
            if trial.word in DISAGREE[:-1]
        ]
        one = Found(claim, target, target, verdict, any(trial.refused for trial in trials))
        if self.found and one.same(self.found[-1]):
            self.found[-1].last = target
        else:
            self.found.append(one)

    def answer(self, name, target):
        at = target[1], target[0], claims.asked(name, self.measured)
        return self.answers.get(at) or Answer()

    def _trial(self, claim, name, target, places):
        bit, answer = self._bit[target], self.answer(name, target)
        refused = bool(claim.refused(name, places) >> bit & 1)
        others = False
        if not refused and answer.reply in AGAINST:
            rules = (one for one in self.claims if one.project is claim.project)
            others = any(one.refused(name, places) >> bit & 1 for one in rules if one is not claim)
            others = others or self._told_elsewhere(claim, name, target, answer.reason)
        return Trial(refused, others, answer.reply)

    def _told_elsewhere(self, claim, name, target, reason):
        """What one target says, with one reason, against a pass of a type that no rule refuses is one gap, however many edges show it."""
        said = claims.get_of(name)
        gap = reason, target, claim.project, said("pass"), said("dtype")
        return self._gaps.setdefault(gap, claim) is not claim

    # ---- the answer ----------------------------------------------------------------------------------------------------------------

    def worst(self, claim):
        """A rule's place in the answer: its worst word, UNTESTABLE when it has no row."""
        found = [one for one in self.found if one.claim is claim]
        return next((w for w in MEANINGS if any(one.says(w) for one in found)), UNTESTABLE)

    def why_untestable(self, claim):
        why = claim.untestable or self.unasked
        return why or f"it refuses for {claim.reach()}; no such version and device was asked"

    def plain(self):
        tables = Tables(self.rows())
        by_id = {claim.id: claim for claim in self.claims}
        for (name, version), found in tables.projects().items():
            said = {AGREES: "agree" if found.count(AGREES) > 1 else AGREES}
            said[UNTESTABLE] = "untestable here"
            shown = [word for word in (*MEANINGS, UNTESTABLE) if word in found]
            counts = [f"{found.count(word)} {said.get(word, word)}" for word in shown]
            yield f"{name} {version}: {text.count(len(found), 'rule')}: {'; '.join(counts)}"
        for word in MEANINGS:
            groups, last = tables.groups(word) if word != AGREES else [], None
            if groups:
                yield f"\n{word}: {MEANINGS[word]}"
            for rule, rows in groups:
                if rule is not last:
                    yield f"  {rule['rule']} ({rule['kind']}) {rule['says']}\n      refuses {rule['refuses']}"
                    if note := by_id[rule["rule"]].note:
                        yield f"      note: {note}"
                yield f"      {_where(rows)}: '{rows[0]['case']}': {rows[0]['backend']}"
                last = rule
        left = [rule for rule in tables.rules.values() if rule["verdict"] == UNTESTABLE]
        if left:
            yield "\nuntestable here"
        yield from (f"  {rule['rule']}: {rule['why']}" for rule in left)
        if self.record:
            yield f"\nrecord: {self.record}"

    def rows(self):
        """For programs: an object for each rule, device, run of versions and word."""
        for claim in (claim for claim in self.claims if claim in self.chosen):
            head = claim.head() | {key: getattr(claim, key) for key in ("kind", "says", "refuses")}
            for one in (one for one in self.found if one.claim is claim):
                for word in filter(one.verdict.get, MEANINGS):
                    name = one.verdict[word]
                    yield {
                        **head,
                        "verdict": word,
                        "device": one.first[0],
                        "first": one.first[1],
                        "last": one.last[1],
                        "refuses_here": one.refuses,
                        "case": claims.asked(name, self.measured),
                        "backend": self.answer(name, one.first).words(self.measured),
                    }
            if self.worst(claim) == UNTESTABLE:
                yield {**head, "verdict": UNTESTABLE, "why": self.why_untestable(claim)}

    def exit(self):
        words = {word for one in self.found for word in one.verdict}
        return FINDINGS if words & {STRICT, LOOSE} else ENVIRONMENT if UNKNOWN in words else OK


# ---- tables for the documentation -------------------------------------------------------------------------------------------------------


def _cell(said):
    for mark in "|<*_":
        said = said.replace(mark, "\\" + mark)
    return said.replace("`", " ").replace("\n", " ")


def _versions(row):
    first, last = (row[end].split("-")[0] for end in ("first", "last"))
    return first if row["first"] == row["last"] else f"{first}..{last}"


def _where(rows):
    """ "h100-sxm, sm80-spec 9.8.0..9.28.0; sm89-spec 9.27.0" """
    devices = {}
    for row in rows:
        devices.setdefault(_versions(row), []).append(row["device"])
    return "; ".join(f"{', '.join(names)} {versions}" for versions, names in devices.items())


def _heading(title):
    return ["", f"## {title[0].upper()}{title[1:]}", ""]


def _item(rule, said):
    return f"- **{rule['rule']}** ({rule['kind']}): {said}"


class Tables:
    """`rows`: what --json prints."""

    def __init__(self, rows):
        self.words, self.rules, self.rows = list(MEANINGS), {}, []
        for row in rows:
            rule = self.rules.setdefault(row["rule"], {**row, "verdict": UNTESTABLE, "why": ""})
            if row["verdict"] == UNTESTABLE:
                rule["why"] = row["why"]
            elif row["verdict"] != AGREES or row["refuses_here"]:
                # where a rule refuses nothing, an accepted case says little about the rule
                self.rows.append(row)
                words = [rule["verdict"], row["verdict"]]
                rule["verdict"] = min(words, key=[*self.words, UNTESTABLE].index)

    def groups(self, word):
        """[(rule, its rows that show the word by one case)]; agreements of a rule are one group. An agreement is left out if its rule has a worse word."""
        found = {}
        for row in self.rows:
            is_worst = self.rules[row["rule"]]["verdict"] == word
            if row["verdict"] == word and (is_worst or word in DISAGREE):
                at = row["rule"], "" if word == AGREES else row["case"]
                found.setdefault(at, []).append(row)
        return [(self.rules[rule], rows) for (rule, _), rows in found.items()]

    def projects(self):
        """{(name, version): [the worst word of each rule]}"""
        found = {}
        for rule in self.rules.values():
            found.setdefault((rule["project"], rule["version"]), []).append(rule["verdict"])
        return found

    def counts(self):
        words = [*self.words, UNTESTABLE]
        yield f"| rules of | rules | {' | '.join(self.words)} | untestable here |"
        yield "|---|" + "---:|" * (len(words) + 1)
        for (name, version), verdicts in self.projects().items():
            yield f"| {name} {version} | {len(verdicts)} | {' | '.join(str(verdicts.count(word)) for word in words)} |"
        yield ""
        yield from (f"- *{word}*: {meaning}" for word, meaning in MEANINGS.items())

    def markdown(self):
        yield from self.counts()
        for word in self.words:
            groups, last = self.groups(word), None
            if groups or word == AGREES:
                yield from _heading(word)
            for rule, rows in groups:
                if word == AGREES:
                    yield _item(rule, f"{text.code(rule['refuses'])}, {_where(rows)}")
                    continue
                if rule is not last:
                    yield _item(rule, _cell(rule["says"]))
                yield f"  - {_where(rows)}: {text.code(rows[0]['case'])}: {_cell(rows[0]['backend'])}"
                last = rule
        yield from _heading("Untestable here")
        for rule in self.rules.values():
            if rule["verdict"] == UNTESTABLE:
                yield _item(rule, f"{_cell(rule['says'])}: {_cell(rule['why'])}")


# ---- the command ------------------------------------------------------------------------------------------------------------------------

COMMAND = Command(
    "audit",
    options(
        """
    cudnn device
    --where EXPR   keep the rules' cases that satisfy a predicate: 'd.qk>128 & pass=bwd'
    output plan jobs overwrite timeout pinned-only
    --json         print one JSON object a line
    --markdown     print Markdown, for a pull request or an issue
    --from RECORD  use existing records instead of a run; may be given several times
    --page DIR     also write the report page there
    """,
        page=folder,
        many=["from"],
    ),
    (
        "facts audit --cudnn 9.20.0,9.27.0 --device h100-sxm,sm100-spec",
        "facts audit --cudnn 9.27.0 --device h100-sxm --markdown",
    ),
)


class AuditError(Exception):
    """(exit code, one line for people)"""


def _read_rules(args):
    """The rules, whole, and those that the words choose. The program expands their patterns."""
    read, chosen = claims.load(args.words, asking.home("cases/claims"))
    if not read.projects:
        said = "no rules in cases/claims/; name a file, or set FACTS_HOME to the project's folder"
        raise AuditError(ENVIRONMENT, said)
    patterns = list(read.patterns())
    try:
        members = asking.expand([said for _, _, said in patterns])
    except ValueError as error:
        index, column, what = error.args
        line, path, _ = patterns[index]
        raise claims.ClaimsError(f"{path}:{line}:{column}: {what}") from None
    read.join(members)
    return read.claims, chosen


def _ask(args, rules, chosen):
    """(record, exit code): asks the cases of the rules that concern these versions and devices; described devices decide, GPUs run."""
    words = ["--cudnn", args.cudnn or "default", "--device", asking.described("audit", args.device)]
    targets = asking.rows("devices", *words, *args.given("pinned-only"))
    kinds = {kind for _, kind, *_ in targets}
    if "cpu" in kinds:
        raise UsageError("--device cpu: rules are about cuDNN; name a GPU or a described device")
    if len(kinds) > 1:
        raise UsageError(
            "--device: give GPUs, which run, or described devices, which decide, not both"
        )
    measured = kinds == {"gpu"}
    places = [
        (device, build, version, one)
        for device, _, sm, build, version in targets
        for one in (claims.SMS if sm == "0" else (sm,))
    ]
    found = _collect(args, rules, chosen, places, measured)
    names = {claims.asked(name, measured) for _, name in found}
    if not names:
        return "", OK
    words += args.given("output", "jobs", "overwrite", "timeout", "pinned-only")
    words += [] if measured else args.given("plan")
    status, record = asking.asked("run" if measured else "decide", sorted(names), *words)
    return record, status if status in (ENVIRONMENT, INCOMPLETE) else OK


def _collect(args, rules, chosen, targets, measured, known=None):
    places = claims.Places((version, sm) for _, _, version, sm in targets)
    found = claims.collect(rules, chosen, places, measured, args.where or "", known)
    if not found and (args.where or known is not None):
        what = "satisfies --where" if args.where else "is in the record"
        raise AuditError(NOTHING, f"no case of these rules {what}")
    return found


def _read(paths, given):
    """(rows, could every line be read?)"""
    rows, whole = [], True
    for path in paths:
        found = Rows()
        report = reader.read_file(Path(path), found)
        if not report.runs and not report.rows:
            raise AuditError(BAD_INPUT, f"{path}: is not a record (no line could be read)")
        if not found.rows and given:
            raise AuditError(NOTHING, f"{path}: no row of a case")
        reader.warn([report], "facts audit")
        whole = whole and not report.unreadable
        rows += found.rows
    return rows, whole


def _grade(rows):
    grades = {row["grade"] == "measured" for row in rows}
    if len(grades) > 1:
        said = "some records have measured rows and some decided ones; audit them separately"
        raise AuditError(BAD_INPUT, said)
    return grades == {True}


def _print(audit, args):
    if args.json:
        for row in audit.rows():
            print(json.dumps(row, separators=(",", ":"), ensure_ascii=False))
    elif args.markdown:
        print(text.wrapped("\n".join(Tables(audit.rows()).markdown())))
    else:
        print("\n".join(audit.plain()))


def _write_page(records, audit, args):
    from ..page import exports  # the one part that needs Jinja2

    title = "audit: rules of other projects beside cuDNN's answers"
    exports.write_site(store.load(records), Path(args.page), title, audit=audit)
    print(f"page: {Path(args.page) / 'index.html'}", file=sys.stderr)


def _audit(args):
    given = getattr(args, "from")
    if given and (args.cudnn or args.device or args.output or args.plan):
        raise UsageError("--from reads records; leave out --cudnn, --device and -o")
    rules, chosen = _read_rules(args)
    record, status = ("", OK) if given else _ask(args, rules, chosen)
    records = given or ([record] if record else [])
    rows, whole = _read(records, given)
    measured, targets, answers = _grade(rows), {}, {}
    for row in rows:
        at = row["build"], row["device"], row["case"]
        answers.setdefault(at, Answer()).add(row, measured)
        targets[row["device"], row["build"]] = (row["cudnn"], str(row["sm"] or 0))
    targets = [(*at, *place) for at, place in targets.items()]
    known = {row["case"] for row in rows} if given else None
    asked = _collect(args, rules, chosen, targets, measured, known)
    audit = Audit(rules, chosen, targets, measured, answers, " ".join(records))
    if given:
        audit.unasked = (
            "the record has no boundary case on a version and device where the rule refuses"
        )
    audit.judge(asked)
    _print(audit, args)
    if args.page:
        _write_page(records, audit, args)
    return status or (audit.exit() if whole else INCOMPLETE)


def run(args):
    try:
        return _audit(args)
    except AuditError as error:
        return COMMAND.fail(error.args[1], error.args[0])
    except claims.ClaimsError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
