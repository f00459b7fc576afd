"""The words a row may end with, once: the record's verdicts, and the two that a reader adds.

`supported` is a yes that nobody ran; records of older FACTS call it `pass` beside a grade that is not `measured`. `missing` is a row that the plan names and no record holds; `unexpected` is a pass or a refusal
where the row's own expectation says something else.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    word: str
    mark: str  # differs in shape for each word: colour is never the only sign; of DejaVu Sans, which a bare Debian has
    kind: str  # good, refused, failure, error, open
    says: str  # for people


# Worst first: the order of rows, and of the outcomes in a cell.
OUTCOMES = (
    Outcome("crash", "☠", "error", "the worker died while it had this case"),
    Outcome("hang", "∞", "error", "the worker timed out with this case"),
    Outcome("exit_crash", "⏏", "error", "the worker died after its last case"),
    Outcome("overrun", "»", "failure", "guard bytes outside the output changed"),
    Outcome("wrong", "✗", "failure", "the numbers are outside the tolerance"),
    Outcome("nan", "∅", "failure", "not finite where a number is expected"),
    Outcome("unwritten", "□", "failure", "poison survived: never written"),
    Outcome("nondeterministic", "≠", "failure", "two runs differ bit for bit"),
    Outcome("graph_mismatch", "≢", "failure", "replay differs from the eager run"),
    Outcome("exec_fail", "⊘", "failure", "built, but would not execute"),
    Outcome("build_fail", "△", "failure", "offered by heuristics, would not compile"),
    Outcome("unexpected", "!", "failure", "not what was expected here"),
    Outcome("mistrusted", "≈", "open", "the data could not show an error"),
    Outcome("inconclusive", "?", "open", "the target could not be asked"),
    Outcome("missing", "…", "open", "planned, but the record holds no row"),
    Outcome("unsupported", "–", "refused", "refused with a reason"),
    Outcome("supported", "○", "good", "decided yes; nobody ran it"),
    Outcome("pass", "✓", "good", "ran, and the numbers are right"),
)
BY_WORD = {o.word: o for o in OUTCOMES}
RANK = {o.word: i for i, o in enumerate(OUTCOMES)}
VERDICTS = frozenset(BY_WORD) - {"missing", "unexpected"}
GRADES = ("measured", "decided", "claimed")
FINDING_KINDS = ("failure", "error")


def is_good(verdict):
    return verdict in ("pass", "supported")


def is_finding(word):
    return BY_WORD[word].kind in FINDING_KINDS


def is_met(expectation, verdict):
    """True or False as the row's expectation says; None without one."""
    if isinstance(expectation, dict) and expectation:
        met = expectation.get("met")
        return met if isinstance(met, bool) else expectation.get("verdict") == verdict
    return None


def outcome_of(verdict, grade, supported, expectation=None):
    """A yes for a described device is no pass: nothing was computed. An expectation that was not met is never good news."""
    if is_met(expectation, verdict) is False and verdict in BY_WORD and not is_finding(verdict):
        return "unexpected"
    if supported and verdict == "pass" and grade != "measured":
        return "supported"
    return verdict


NO_FINDING, KNOWN, NEWS = 0, 1, 2


def standing(outcome, verdict, expectation):
    """Is it a finding, and one that somebody expected?"""
    if not is_finding(outcome):
        return NO_FINDING
    return KNOWN if is_met(expectation, verdict) else NEWS


@dataclass(frozen=True)
class Change:
    """A class of difference between two answers to one case."""

    word: str
    mark: str
    exit: int  # what it makes of the exit code unless --fail-on says otherwise: 1 a finding, 3 or 4 not answered, 0 information
    among: str  # whose answers could have changed so: what a predicate is held against
    says: str
    least: float  # the ratio from which it counts; 0: any difference
    floor: float  # and the absolute difference below which it does not (µs, ms, bytes)


# The most serious first. Every pair of answers is the same, or is in one class, or is in several of the classes that two accepted answers can have.
# word | mark | exit | among | says
_CHANGES = """
worse            | ✗ | 1 | answered before        | accepted before, and now fails
changed kind     | ✱ | 1 | answered before        | a refusal that now fails (its numbers, its plan, its worker), or a failure that fails in another way
lost             | – | 1 | accepted before        | accepted before, now refused
begins           | ⚑ | 1 | answered before        | a serious known failure begins in a case that the baseline answers
missing          | … | 4 | planned                | only one side has an answer: never read as the same
inconclusive     | ? | 3 | planned                | one side could not be asked, or its data could not show an error: never read as the same
slower           | ▼ | 0 | accepted by both sides | the kernel takes longer (--slower R; times of one run, not of a benchmark)
time unknown     | ? | 3 | accepted by both sides | with --bench: the times of the two sides could not be compared: never read as the same
engine changed   | ⇄ | 0 | accepted by both sides | other engines are offered, or in another order, or another backend computed
knobs changed    | ⚙ | 0 | accepted by both sides | the same engines, with other knob values
plan slower      | ◷ | 0 | accepted by both sides | the plan takes longer to build (ms)
workspace larger | ▣ | 0 | accepted by both sides | the chosen configuration needs more workspace (bytes)
accepted         | ☐ | 0 | planned                | a finding that the file of --accept accepts
better           | ✓ | 0 | that failed before     | failed before, now right, or refused instead of failing
gained           | + | 0 | refused before         | refused before, now accepted
noted            | ⚐ | 0 | answered before        | something else that is known begins: not serious, suspected, or in a case that the baseline does not answer
ends             | ☑ | 0 | that failed before     | something that is known of the case ends
reason changed   | “ | 0 | refused by both sides  | refused by both, for another reason
new knobs        | ⚙ | 0 | accepted by both sides | the same engines have other knobs: their settings cannot be compared
not asked        | ∅ | 0 | planned                | FACTS itself refused the case for one build: nobody asked cuDNN
"""
_LEAST = {"slower": (1.10, 2), "plan slower": (2.0, 100), "workspace larger": (2.0, 1 << 20)}


def _change(line):
    word, mark, code, among, says = (part.strip() for part in line.split("|"))
    return Change(word, mark, int(code), among, says, *_LEAST.get(word, (0, 0)))


CHANGES = tuple(map(_change, _CHANGES.strip().split("\n")))
JOINED = ("begins", "noted", "ends")  # of what is known; alike: the entry's name
SAME = {
    "reason changed",
    "new knobs",
    *JOINED,
}  # an answer that changed so alone counts as the same
APART = {"new knobs", "not asked"}  # printed in lines of their own, not in groups
BY_CHANGE = {c.word: c for c in CHANGES}
GRAVITY = {c.word: i for i, c in enumerate(CHANGES)}
