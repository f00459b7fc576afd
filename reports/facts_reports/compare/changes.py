"""What changed between two answers to one case: classes of vocabulary.CHANGES, each with the words that make cases alike."""

import re
from dataclasses import dataclass

from ..known import knowledge
from ..read import cases, text
from ..read.versions import number
from ..read.vocabulary import BY_CHANGE, RANK
from .sides import KINDS, worst


@dataclass(frozen=True)
class Change:
    word: str  # a class
    alike: str  # cases of one class that changed in the same way are looked at together
    ratio: float = 0
    known: str = ""
    engine: str = ""  # with engine=all: which configuration


def _blank(said):
    """The same sentence about other sizes is the same reason. A number that belongs to a word stays: FP16, e4m3, sm_90."""
    return re.sub(r"0x[0-9A-Fa-f]+|(?<![A-Za-z\d])(?<!sm_)\d+", "#", said)


def reason_words(answer):
    """Why it is refused: by a guard of FACTS, or in cuDNN's words."""
    word, status, said, rule = answer.reason
    if word == "policy":
        return f"FACTS's guard {text.line(rule or said, 120)}"
    return text.line(": ".join(w for w in (status, said) if w), 240) or word or "no reason given"


def state_words(answer):
    """One answer in a few words: before and after."""
    if answer.kind == "no":
        return f"refused ({reason_words(answer)})"
    if answer.kind == "yes":
        engine = f" by engine {answer.chosen[1]}" if answer.chosen[1] else ""
        other = f" ({answer.chosen[0]})" if answer.chosen[0] not in ("cudnn", "") else ""
        return answer.outcome + engine + other
    return answer.outcome + (f" ({answer.why})" if answer.why else "")


_CLASSES = {
    ("yes", "no"): "lost",
    ("no", "yes"): "gained",
    ("yes", "fail"): "worse",
    ("no", "fail"): "changed kind",
    ("fail", "yes"): "better",
    ("fail", "no"): "better",
}


def class_of(one, other):
    """The class of two outcomes, or None where both accept, refuse, or fail alike."""
    kinds = KINDS[one], KINDS[other]
    if "open" in kinds:
        return "missing" if "missing" in (one, other) else "inconclusive"
    if kinds[0] == kinds[1]:
        return "changed kind" if kinds[0] == "fail" and one != other else None
    return _CLASSES[kinds]


def _verdict_change(a, b, engine=""):
    word = class_of(a.outcome, b.outcome)
    if not word:
        return None
    alike = f"{a.outcome} -> {b.outcome}"
    if word == "lost" or b.outcome == "unsupported":
        alike = f"{a.outcome} -> {_blank(reason_words(b))}"
    elif a.outcome == "unsupported":
        alike = f"{_blank(reason_words(a))} -> {b.outcome}"
    return Change(word, alike, 0, b.known if word in ("worse", "changed kind") else "", engine)


def _indices(answer):
    return tuple(dict.fromkeys(index for index, *_ in answer.offered))


def _list(indices):
    return " ".join(indices) or "none"


def _engines(a, b):
    """Engines that came, went or moved in mode A's list; or the backend that computed."""
    if a.chosen[0] and b.chosen[0] and a.chosen[0] != b.chosen[0]:
        return f"backend {a.chosen[0]} -> {b.chosen[0]}"
    if a.offered and a.offered is b.offered:
        return ""
    old, new = _indices(a), _indices(b)
    if not old or not new:
        one, other = a.chosen[1], b.chosen[1]
        return f"engine {one} -> {other}" if one and other and one != other else ""
    if old == new:
        return ""
    gone, come = [e for e in old if e not in new], [e for e in new if e not in old]
    said = [f"engine {e} gone{', was first' if e == old[0] and len(old) > 1 else ''}" for e in gone]
    for e in come:
        place = ", first" if e == new[0] else ", last" if e == new[-1] else ""
        said.append(f"engine {e} new{place if len(new) > 1 else ''}")
    if not said:
        said = [f"order {_list(old)} -> {_list(new)}"]
    return "; ".join(said)


def _knob_names(a, b):
    """Knobs that came and went, of the engines that both sides offer."""
    if a.offered is b.offered:
        return ""
    both = set(_indices(a)) & set(_indices(b))
    old, new = (
        {k for index, knobs, _ in x.offered if index in both for k, _ in knobs} for x in (a, b)
    )
    named = ((old - new, "gone"), (new - old, "new")) if old and new else ()
    return "; ".join(f"{', '.join(sorted(names))} {word}" for names, word in named if names)


def _knobs(a, b):
    """How the same engines are configured otherwise."""
    if a.offered is b.offered or [x[:2] for x in a.offered] == [x[:2] for x in b.offered]:
        return ""
    if len(a.offered) != len(b.offered):
        return f"{len(a.offered)} -> {len(b.offered)} configurations"
    changed = {
        k
        for (_, x, _), (_, y, _) in zip(a.offered, b.offered)
        for (k, v), (_, w) in zip(x, y)
        if v != w
    }
    return "values of " + ", ".join(sorted(changed)) if changed else "order of configurations"


def _larger(word, old, new, options):
    """The ratio when it reaches the class's threshold."""
    least = options.get(word, BY_CHANGE[word].least)
    if old is None or new is None or old < 0 or new - old < BY_CHANGE[word].floor:
        return 0
    return (ratio if (ratio := new / old) >= least else 0) if old > 0 else float("inf")


def _accepted(a, b, options):
    """Two accepted answers may differ in several ways."""
    out = []
    engines, names = _engines(a, b), _knob_names(a, b)
    if engines:
        out.append(Change("engine changed", engines))
    if names:
        out.append(Change("new knobs", names))
    elif not engines and (knobs := _knobs(a, b)):
        out.append(Change("knobs changed", knobs))
    for word, old, new in (
        ("slower", a.exec_us, b.exec_us),
        ("plan slower", a.plan_ms, b.plan_ms),
        ("workspace larger", a.workspace_bytes, b.workspace_bytes),
    ):
        ratio = _larger(word, old, new, options)
        if ratio:
            out.append(Change(word, "", ratio))  # noise would make many ways of it
    return out


def _configurations(first, second):
    """With engine=all: the worst change of a configuration (engine, knobs) that both sides have, where the case as a whole hides it."""
    theirs = {b.chosen[1:]: b for b in second}
    found = []
    for a in first:
        b = theirs.get(a.chosen[1:])
        change = b and _verdict_change(
            a, b, "engine " + a.chosen[1] + "".join(f" {k}={v}" for k, v in a.chosen[2])
        )
        if change and change.word in ("worse", "changed kind", "lost"):
            found.append((RANK[b.outcome], change))
    return [min(found, key=lambda f: f[0])[1]] if found else []


def _not_asked(side, answer):
    """FACTS refused a case for one build alone. Which version it is does not matter."""
    return Change("not asked", f"{side}: {reason_words(answer).split('; this is ')[0]}")


def of(first, second, options):
    """[Change] of one case's answers on both sides (lists; with engine=all one for each configuration). Empty: the same."""
    if not first or not second:
        side = "candidate" if not second else "baseline"
        return [Change("missing", f"not in the {side}")]
    # cuDNN's answers, where there are any.
    first, second = ([x for x in side if not x.ours] or side[:1] for side in (first, second))
    a, b = worst(first), worst(second)
    if (a.ours or b.ours) and "open" not in (a.kind, b.kind):
        side, ours = ("baseline", a) if a.ours else ("candidate", b)
        return [] if a.ours and b.ours else [_not_asked(side, ours)]
    change = _verdict_change(a, b)
    if change:
        return [change]
    several = len(first) > 1 or len(second) > 1
    hidden = _configurations(first, second) if several else []
    if a.kind == "no":
        old, new = _blank(reason_words(a)), _blank(reason_words(b))
        is_same = (a.reason[0], old) == (b.reason[0], new)
        return [] if is_same else [Change("reason changed", f"{old} -> {new}")]
    if a.kind == "yes" or several:
        return hidden + _accepted(first[0], second[0], options)
    return hidden


# ---- what is known ----

_GRAVE = frozenset("crash exit_crash hang wrong nan unwritten exec_fail overrun".split())


class Joined:
    """What is known of the cases of one slot, whose sides are two versions of cuDNN."""

    def __init__(self, *sides):
        """Of each side (version, architecture)."""
        self.sides = sides
        self.held = [
            [one for one in knowledge.today().failures if knowledge.holds(one, number(version), sm)]
            for version, sm in sides
        ]
        labels = [{(one["id"], one["label"]) for one in some} for some in self.held]
        self.names = {name for name, _ in labels[0] ^ labels[1]}
        self.moved = [[one for one in some if one["id"] in self.names] for some in self.held]
        self.held, self.moved = (
            list(map(knowledge.Knowledge, both)) for both in (self.held, self.moved)
        )

    def _spoken(self, side, case, answers, lines):
        """{id: the failure}: those that speak of an answer that cuDNN gave."""
        out = {}
        if "guards=" not in case and not any(a.guarded for a in answers):
            case = cases.renamed(case, guards="off")
        for a in answers:
            if a.kind in ("yes", "fail") and a.chosen[0] in ("cudnn", ""):
                engine = int(a.chosen[1]) if a.chosen[1].isdigit() else None
                for one in lines.of(case, *self.sides[side], engine):
                    out.setdefault(one["id"], one)
        return out

    def touching(self, case, second):
        """The ids of the failures that speak of the candidate's answer, whichever data they need."""
        found = self._spoken(1, case, second, self.held[1]).values()
        return [one["id"] for one in found if one["kind"] == "failure"]

    def of(self, case, first, second):
        """([Change] of what begins and ends, {id: failure} of both sides, the ids of the candidate)."""
        # An entry that holds alike on both sides can only begin with another engine.
        engines = [{a.chosen[1] for a in answers} for answers in (first, second)]
        lines = self.moved if engines[0] == engines[1] else self.held
        old, new = (
            self._spoken(side, case, answers, lines[side])
            for side, answers in enumerate((first, second))
        )
        a, b = worst(first), worst(second)
        found = []
        for name, one in new.items():
            is_right = b.grade == "measured" and b.kind == "yes" and one["such_data"]
            if name not in old and not is_right:
                found.append(Change("begins" if _is_grave(one, a) else "noted", name))
        for name, one in old.items():
            fails = b.kind == "open" or b.kind == "fail" and b.outcome in one["verdict"]
            if name not in new and name in self.names and not fails:
                found.append(Change("ends", name))
        return found, {**old, **new}, set(new)


def _is_grave(one, before):
    """Documented, shown on this architecture, and a crash, a hang, a fault or a wrong answer, where the baseline answers."""
    shown = one["sure"] != "suspected" and bool(_GRAVE & set(one["verdict"]))
    promised = one["kind"] == "failure" and one["contract"] == "documented"
    return shown and promised and before.kind == "yes"
