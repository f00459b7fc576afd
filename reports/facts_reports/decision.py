"""The first line of a comparison: the decision, one clause why, the counts."""

from . import text
from .diff import FINDINGS
from .vocabulary import APART, BY_CHANGE, CHANGES

_WORDS = {"gate": ("OK TO MOVE", "DO NOT MOVE"), "diff": ("NO REGRESSION", "REGRESSION")}
CANNOT_TELL = "CANNOT TELL"

# A class of change as a sentence: one case, several cases.
_SENTENCES = {
    "worse": ("accepted case fails now", "accepted cases fail now"),
    "changed kind": ("case fails in a new way", "cases fail in a new way"),
    "lost": ("accepted case is refused now", "accepted cases are refused now"),
    "missing": ("case has an answer on one side only", "cases have an answer on one side only"),
    "inconclusive": ("case could not be asked", "cases could not be asked"),
    "time unknown": ("case could not be compared by time", "cases could not be compared by time"),
    "slower": ("case is slower", "cases are slower"),
    "engine changed": ("case has other engines", "cases have other engines"),
    "knobs changed": ("case has other knob values", "cases have other knob values"),
    "plan slower": ("plan takes longer to build", "plans take longer to build"),
    "workspace larger": ("case needs more workspace", "cases need more workspace"),
    "better": ("case no longer fails", "cases no longer fail"),
    "gained": ("refused case is accepted now", "refused cases are accepted now"),
    "reason changed": (
        "case is refused for another reason",
        "cases are refused for another reason",
    ),
    "new knobs": ("case has new knobs", "cases have new knobs"),
    "not asked": ("case was asked on one side only", "cases were asked on one side only"),
}


def decision(diff):
    """What to do, in two or three words."""
    code = diff.exit_code()
    return CANNOT_TELL if code > 1 else _WORDS[diff.command][code]


def sentence(diff, word):
    said = text.count(diff.total(word), *_SENTENCES[word])
    if word == "time unknown":
        said += (
            " ("
            + "; ".join(
                f"{why}: {len(pairs):,}" for why, pairs in sorted(diff.classes[word].items())
            )
            + ")"
        )
    return said + (f" ({diff.known(word):,} known)" if diff.known(word) else "")


def _and(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def partial(diff):
    """Why a comparison is not whole."""
    out = [f"only one side has {b} on {d}" for side in diff.alone for b, d in side[:2]]
    return out + ["a record is incomplete"] * (not diff.complete())


def _silent(diff):
    """Targets that gave no answer at all, each with the first reason."""
    out = {}
    for (slot, side), (count, why) in diff.silent.items():
        if count == sum(diff.counts[slot, side].values()):
            out.setdefault(_target_words(diff, slot, side), why)
    return [
        f"{name} could not be asked" + (f" ({text.line(why, 160)})" if why else "")
        for name, why in out.items()
    ]


def _target_words(diff, slot, side):
    build, device = (diff.sides.slots[slot].first, diff.sides.slots[slot].second)[side]
    return f"{'cuDNN ' + build if build != 'none' else 'the CPU backend'} on {device}"


def _why(diff, counted):
    """One clause, and the classes that it has named."""
    code = diff.exit_code()
    if code == 5:
        return (
            "FACTS itself refuses every case for one of the two sides"
            if diff.names
            else "the two sides have no case and target in common"
        ), []
    if code == 1:
        said = [word for word in counted if word in diff.fail_on and diff.news(word)]
        return _and([sentence(diff, word) for word in said]), said
    if code:
        said = [word for word in counted if diff.code_of(BY_CHANGE[word]) > 1]
        silent = _silent(diff)[:2]
        shown = [sentence(diff, word) for word in said if not (silent and word == "inconclusive")]
        return _and(silent + shown + partial(diff)), said
    worse = [word for word in counted if word in FINDINGS]
    if not worse:
        return "nothing got worse", []
    known = not any(diff.news(word) for word in worse)
    return ("only known failures changed" if known else "--fail-on leaves out what got worse"), []


def headline(diff):
    """One line: the decision, why, what else changed, how many answers were compared."""
    counted = [
        c.word
        for c in CHANGES
        if c.word not in APART and c.word != "reason changed" and diff.total(c.word)
    ]
    why, said = _why(diff, counted)
    rest = [sentence(diff, word) for word in counted if word not in said]
    rest += (
        [f"{part[0].upper()}{part[1:]}" for part in partial(diff)] if diff.exit_code() == 1 else []
    )
    if diff.compared():
        rest.append(f"{text.count(diff.compared(), 'answer')} compared, {diff.same:,} same")
    return f"{decision(diff)}: " + ". ".join([why, *rest]) + "."
