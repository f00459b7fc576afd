"""The answer of a comparison: what to do, why, what is known to begin and to end, and the counts. It is decided here alone; the terminal, JSON,
Markdown, JUnit, annotations, the page and `facts adopt` print it.
"""

from dataclasses import dataclass

from ..known import knowledge
from ..read import text, words
from ..read.versions import number
from ..read.vocabulary import APART, BY_CHANGE, CHANGES, JOINED
from . import diff as d
from . import model

CANNOT_TELL = "CANNOT TELL"
_DECISIONS = {"gate": ("OK TO MOVE", "DO NOT MOVE"), "diff": ("NO REGRESSION", "REGRESSION")}
_TITLES = 3


@dataclass(frozen=True)
class Answer:
    decision: str  # what to do, in two or three words
    code: int  # 0 as expected, 1 findings, 3 or 4 something was not answered, 5 nothing to compare
    sides: str  # cuDNN 9.20.0 -> 9.27.0
    devices: str
    why: str
    known: str  # what begins and what ends; "": one version alone
    counts: str  # the rest, and how many answers were compared
    model: str  # what it means for the calls of a model; "": no case has its number

    @property
    def first(self):
        return f"{self.decision} ({self.sides}): {self.why}"

    @property
    def titled(self):
        """The first line where its reader sees no command."""
        both = f"{self.sides} on {self.devices}".replace("->", "→")
        return f"FACTS: {self.decision} ({both}): {self.why}"


def of(diff):
    code = _code(diff)
    apart = {"reason changed", *APART, "noted", "ends"}
    counted = [c.word for c in CHANGES if c.word not in apart and diff.total(c.word)]
    why, said = _why(diff, code, counted)
    rest = [sentence(diff, word) for word in counted if word not in (*said, "begins")]
    if code == 1:
        rest += [f"{part[0].upper()}{part[1:]}" for part in partial(diff)]
    if diff.compared():
        rest.insert(0, f"{text.count(diff.compared(), 'answer')} compared, {diff.same:,} same")
        why += ". Numbers were not computed" * _only_decided(diff)
    return Answer(
        CANNOT_TELL if code > 1 else _DECISIONS[diff.command][code],
        code,
        *_sides(diff),
        f"{why}.",
        _known(diff),
        "".join(f"{part}. " for part in rest).strip(),
        "\n".join(_model(diff)),
    )


def _code(diff):
    if not diff.compared():
        return 5
    codes = {diff.code_of(c) for c in CHANGES if diff.news(c.word)}
    found = next((code for code in (1, 3, 4) if code in codes), 0)
    if not found and diff.guarded:
        return 3
    return found or (0 if diff.complete() and not any(diff.alone) else 4)


def _sides(diff):
    """What is compared, in words: the versions, and the devices."""
    slots = diff.sides.slots
    builds = [list(dict.fromkeys(slot[side][0] for slot in slots)) for side in (0, 1)]
    versions = [[build.split("-")[0] for build in side] for side in builds]
    if builds[0] != builds[1] and versions[0] == versions[1]:
        versions = builds  # one version, two packages
    many = [", ".join(side[:3]) + " …" * (len(side) > 3) for side in versions]
    said = "the CPU backend" if builds[0] == [words.NO_BUILD] else f"cuDNN {many[0]}"
    if builds[0] != builds[1]:
        said += f" -> {many[1]}"
        is_older = len(versions[0]) == len(versions[1]) == 1
        said += ", an older version" * (
            is_older and number(versions[1][0]) < number(versions[0][0])
        )
    devices = [
        ", ".join(dict.fromkeys(d.shown(diff, slot[side], side) for slot in slots))
        for side in (0, 1)
    ]
    return said, " -> ".join(dict.fromkeys(devices))


def _model(diff):
    how = "measured in turns" if diff.times else "one run each"
    for slot, one in diff.models.items():
        (old, _), last = diff.sides.slots[slot]
        versions = (build.split("-")[0] for build in (old, last[0]))
        yield one.sentence(d.shown(diff, last, 1), *versions, how)


def _only_decided(diff):
    """Did no side compute numbers of cuDNN?"""
    return all(
        diff.record(side).targets[slot[side]]["grades"] == {"decided"}
        for slot in diff.sides.slots
        for side in (0, 1)
    )


# ---- why ----

# A class of change as a sentence: one case, several cases.
_SENTENCES = {
    "worse": ("accepted case fails now", "accepted cases fail now"),
    "changed kind": ("case fails in a new way", "cases fail in a new way"),
    "lost": ("accepted case is refused now", "accepted cases are refused now"),
    "accepted": ("loss is accepted", "losses are accepted"),
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
    "reason changed": ("refusal has another reason", "refusals have another reason"),
    "new knobs": ("case has new knobs", "cases have new knobs"),
    "not asked": ("case was asked on one side only", "cases were asked on one side only"),
}


_BEGIN = {  # the first verdict of a known failure as a noun
    **dict.fromkeys(("crash", "exit_crash"), ("crash begins", "crashes begin")),
    "hang": ("hang begins", "hangs begin"),
    "overrun": ("write outside of an output begins", "writes outside of an output begin"),
    "exec_fail": ("fault begins", "faults begin"),
    "unwritten": ("missing result begins", "missing results begin"),
    **dict.fromkeys(("wrong", "nan"), ("wrong result begins", "wrong results begin")),
}


def sentence(diff, word):
    if word in JOINED:
        return _begun(diff, word)
    said = text.count(diff.total(word), *_SENTENCES[word])
    if word == "time unknown":
        ways = sorted(diff.classes[word].items())
        said += f" ({'; '.join(f'{why}: {len(pairs):,}' for why, pairs in ways)})"
    if word == "slower" and not diff.times:
        said += " in one run each (--bench measures them in turns)"
    known = f" ({diff.known(word):,} known)" if diff.known(word) else ""
    return said + known + model.share(diff, word)


def _begun(diff, word):
    """ "2 known crashes begin; 1 known hang begins"."""
    tally = {}
    for one in entries(diff, word):
        noun = _BEGIN.get(one["verdict"][0], ("entry begins", "entries begin"))
        noun = noun if word != "ends" else ("entry ends", "entries end")
        tally[noun] = tally.get(noun, 0) + 1
    said = "; ".join(f"{n:,} known {one if n == 1 else many}" for (one, many), n in tally.items())
    return said + model.share(diff, word)


def entries(diff, *steps):
    """The entries that begin or end, the crashes first; an entry of several steps once."""
    names = dict.fromkeys(name for word in steps for name in diff.classes.get(word, {}))
    return sorted((diff.entries[name] for name in names), key=knowledge.rank)


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
        f"{name} could not be asked" + f" ({text.line(why, 160)})" * bool(why)
        for name, why in out.items()
    ]


def _target_words(diff, slot, side):
    build, device = d.target(diff, slot, side)
    return f"{'cuDNN ' + build if build != 'none' else 'the CPU backend'} on {device}"


def _why(diff, code, counted):
    """One clause, and the classes that it has named."""
    if code == 5 and diff.names:
        return "FACTS itself refuses every case for one of the two sides", []
    if code == 5:
        return "the two sides have no case and target in common", []
    if code == 1:
        said = [word for word in counted if word in diff.fail_on and diff.news(word)]
        return "; ".join(sentence(diff, word) for word in said), said
    said = [word for word in counted if diff.code_of(BY_CHANGE[word]) > 1]
    if code == 3 and not said:
        names = [d.version(diff, 0, side) for side in (0, 1)]
        again = f"facts gate --baseline {names[0]} --candidate {names[1]}"
        cases = text.count(diff.guarded, "case was", "cases were")
        return f"{cases} asked with the library's guards on. Ask again: {again}", []
    if code:
        silent = _silent(diff)[:2]
        shown = [sentence(diff, word) for word in said if not (silent and word == "inconclusive")]
        return _and(silent + shown + partial(diff)), said
    worse = [word for word in counted if word in d.FINDINGS]
    if not worse:
        accepted = sentence(diff, "accepted") if diff.total("accepted") else ""
        return "nothing got worse" + f"; {accepted}" * bool(accepted), ["accepted"]
    known = not any(diff.news(word) for word in worse)
    return ("only known failures changed" if known else "--fail-on leaves out what got worse"), []


# ---- what begins and ends ----


def _known(diff):
    if "build" not in diff.axes:
        return ""
    out = []
    for noun, nouns in (("known failure", "known failures"), ("other entry", "other entries")):
        for verb, *steps in (("begin", "begins", "noted"), ("end", "ends")):
            some = [
                one
                for one in entries(diff, *steps)
                if (one["kind"] == "failure") == (noun == "known failure")
            ]
            if some:
                said = text.count(len(some), f"{noun} {verb}s", f"{nouns} {verb}")
                out.append(said + ("" if out else _titles(some)))
    return ". ".join(out or ["No known failure of these cases begins or ends"]) + "."


def _titles(some):
    titles = [f"{one['title'].rstrip('.')} ({one['id']})" for one in some[:_TITLES]]
    more = [f"and {len(some) - _TITLES:,} more"] * (len(some) > _TITLES)
    return ": " + "; ".join(titles + more)
