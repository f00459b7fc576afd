"""What changed between two versions, as objects for the page: the comparison of `facts diff`, made once here and only shown there."""

from ..compare import answer, diff, diff_files, diff_words, sides
from ..read import separate, text, words
from ..read.versions import version_key
from ..read.vocabulary import APART, CHANGES
from . import numbers

_FEW = 5  # of so few versions each pair is compared; of more, neighbours, and each with the newest
_MEMBERS = 400  # cases of a group that its table can show, on each device
# of a change that is no finding
_MARKS = {"better": "gained", "gained": "gained"} | dict.fromkeys(
    ("worse", "changed kind", "lost", "missing", "inconclusive", "accepted"), "edge"
)
_NOT_SHOWN = APART | {"reason changed"}


def option(command, name):
    """The value of an option in a command line, or None."""
    for at, word in enumerate(command):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and at + 1 < len(command):
            return command[at + 1]
    return None


def gated(store, record):
    """(baseline, candidate, {what diff.of_targets() takes besides}) when every run is one gate's, else None."""
    asked = set()
    for run in store.runs.values():
        command, names = text.texts(run, "command"), ("baseline", "candidate", "slower", "fail-on")
        said = (*(option(command, name) for name in names), "--bench" in command)
        asked.add(said if "gate" in command[:2] else None)
    *named, slower, fail_on, measured = (asked.pop() if len(asked) == 1 else None) or (None,) * 5
    builds = [sides.builds_named(record, word or "") for word in named]
    if any(len(found) != 1 for found in builds):
        return None
    turns = numbers.turns(store) if measured else None
    options = {"slower": _number(slower), "fail_on": _classes(fail_on), "turns": turns}
    return builds[0][0], builds[1][0], options


def _number(said):
    """The value of an option of a record, which may be from elsewhere; None where it is no number."""
    try:
        return float(said or "")
    except ValueError:
        return None


def _classes(said):
    try:
        return diff.classes(said)
    except sides.SidesError:
        return None


def _chain(builds):
    """Of each version one build, oldest first: of the same kind as the build before it where there is one. `builds`: [(build, version)]."""
    out = []
    for version in sorted({v for _, v in builds}, key=version_key):
        mine = [b for b, v in builds if v == version]
        like = [b for b in mine if out and b.split("-")[1:] == out[-1].split("-")[1:]]
        out.append((like or mine)[0])
    return out


def _chains(store):
    """{device: [build]}"""
    asked = {}
    for build, version in store.builds():
        if build != words.NO_BUILD:
            answered = "SELECT DISTINCT device FROM row WHERE build=? AND outcome<>'missing'"
            for (device,) in store.db.execute(answered, (build,)):
                asked.setdefault(device, []).append((build, version))
    return {device: _chain(builds) for device, builds in asked.items()}


def _neighbours(chains):
    """{(build before, build): [device]}, newest first."""
    return _newest_first(
        (pair, device) for device, chain in chains.items() for pair in zip(chain, chain[1:])
    )


def _others(chains):
    """The other pairs of versions that a page offers."""
    return _newest_first(
        ((old, new), device)
        for device, chain in chains.items()
        for i, old in enumerate(chain)
        for new in (chain[i + 2 :] if len(chain) <= _FEW else chain[i + 2 :][-1:])
    )


def _newest_first(pairs):
    """{(build before, build): [device]}"""
    out = {}
    for pair, device in pairs:
        out.setdefault(pair, []).append(device)
    order = sorted(out, key=lambda pair: [version_key(b) for b in reversed(pair)], reverse=True)
    return {pair: out[pair] for pair in order}


def _members(found, group, places):
    """{device: [place of the case]} of a group."""
    out = {}
    for pair in separate.members(group.members, len(found.names)):
        case = places.get(found.names[pair])
        if case is not None:
            out.setdefault(found.sides.slots[found.slots[pair]].second[1], []).append(case)
    return out


def _marks(found, places):
    """{device: {class, and mark: [place of a case]}}: what the map marks. lost: what decides against the candidate."""
    out = {}
    for word, ways in found.classes.items():
        for pair in (pair for pairs in ways.values() for pair in pairs):
            known = found.about.get((pair, word), (0, "", ""))[1]
            is_news = word in found.fail_on and (word == "worse" or not known)
            mark = "lost" if is_news else _MARKS.get(word)
            if mark and found.names[pair] in places:
                device = out.setdefault(found.sides.slots[found.slots[pair]].second[1], {})
                for key in (word, f"{mark} mark"):
                    device.setdefault(key, set()).add(places[found.names[pair]])
    return {d: {key: sorted(some) for key, some in marks.items()} for d, marks in out.items()}


def _group(found, group, places):
    about, members = diff_files.about(found, group), _members(found, group, places)
    kept = "class fails where words cases known example repro bisect ratio"
    return {
        **{name: about[name] for name in kept.split()},
        "on": diff_words.on(found, group),
        "change": diff_words.detail(group),
        "exactness": diff_words.exactness(found, group),
        "before": about["baseline"]["answer"],
        "after": about["candidate"]["answer"],
        "members": {device: cases[:_MEMBERS] for device, cases in members.items()},
        "counts": {device: len(cases) for device, cases in members.items()},
    }


def as_object(found, places):
    """A comparison for the page."""
    slots, said = found.sides.slots, answer.of(found)
    return {
        "a": slots[0].first[0],
        "b": slots[0].second[0],
        "devices": [s.second[1] for s in slots],
        "compared": found.compared(),
        "same": found.same,
        "headline": said.first,
        "headlines": {
            s.second[1]: answer.of(diff.of_slot(found, place)).first
            for place, s in enumerate(slots)
        },
        "decision": said.decision,
        "sides": said.sides,
        "clause": said.why,
        "code": said.code,
        "marks": _marks(found, places),
        "sentences": {
            c.word: answer.sentence(found, c.word) for c in CHANGES if found.total(c.word)
        },
        "totals": {c.word: found.total(c.word) for c in CHANGES if found.total(c.word)},
        "notes": [
            *diff_words.notes(found),
            *diff_words.not_asked(found),
            *diff_words.engines_words(found),
        ],
        "known": said.known,
        "groups": [_group(found, g, places) for g in found.groups if g.word not in _NOT_SHOWN],
    }


class Steps:
    """Comparisons of versions in one store: of the gate, or between neighbours (`steps`) and of other pairs (`others`)."""

    @classmethod
    def none(cls):
        """Nothing is compared."""
        found = cls.__new__(cls)
        found.steps, found.others, found.gate = [], [], None
        return found

    def __init__(self, store, places, compared=None):
        self.steps, self.others, self.gate = [], [], None
        if not compared and len(store.builds()) < 2:
            return
        both = sides.Stored(store)
        found = compared or self._gate(both, store)
        if found and found.axes == ["build"]:
            self.gate = as_object(found, places)
            self.steps = [self.gate]
            return
        chains = _chains(store)
        self.steps = self._compared(both, _neighbours(chains), places)
        self.others = self._compared(both, _others(chains), places)

    @staticmethod
    def _gate(both, store):
        """The comparison that a gate's record was made for, or None."""
        record = both.records[0]
        old, new, options = gated(store, record) or ("", "", {})
        ours, theirs = ({d for b, d in record.targets if b == build} for build in (old, new))
        pairs = [((old, d), (new, d)) for d in store.devices() if d in ours & theirs]
        return diff.of_targets(both, pairs, **options) if pairs else None

    @staticmethod
    def _compared(both, wanted, places):
        found = (
            diff.of_targets(both, [((old, d), (new, d)) for d in devices])
            for (old, new), devices in wanted.items()
        )
        return [as_object(one, places) for one in found if one.names]
