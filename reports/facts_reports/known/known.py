"""Known failures: one file each in cases/known, the only place where a failure is written down.

The generator (ci/generate_known.py) makes from these files the library's guards, the expectations of the harness, the suite `regress` and
the pages of the site. docs/known.md describes the format for people. A file has a head, then sections:

    title: one sentence                       kind: failure | should-be-refused | offered-not-built | behaviour
    link: owner/project#12                    verdict: nan wrong
    contract: documented; words, their source sent-by: pytorch jax; source     frontend: refuses since 1.28.0; where
    failure: (what fails where; any number)   cases: / controls: / guarded: (groups of the suite)   text: (Markdown, to the end)

A failure holds from each version that was seen failing up to the next version that was seen right; with none, for every newer version.
"""

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Optional

from ..read import predicate
from ..read.text import clean
from ..read.versions import number  # noqa: F401
from ..read.vocabulary import VERDICTS
from .guards import FACTS

KINDS = {  # one and several in a sentence; {} is where "found by" stands
    "failure": ("failure{}", "failures{}"),
    "should-be-refused": ("call{} that cuDNN should refuse", "calls{} that cuDNN should refuse"),
    "offered-not-built": (
        "entry of the engine list{} that does not compile",
        "entries of the engine list{} that do not compile",
    ),
    "behaviour": ("behaviour{}", "behaviours{}"),
}
ABOUT = ("caller", "design", "speed", "support", "withdrawn")  # of kind behaviour
CLAIMS = {  # keys of the head that begin with words of a list, then `;` and the source
    "contract": ("documented", "silent", "excluded", "unreleased"),
    "sent-by": (
        "pytorch transformer-engine jax vllm flashinfer onnxruntime frontend nobody".split()
    ),
    "frontend": ("accepts", "refuses"),
}
HEAD = "title kind about link verdict reported range fixed needs tests expected size".split()
HEAD += [*CLAIMS, "checked"]
REPEATED = ("link", "seen", "right")
BLOCK = (
    "verdict when data shows engine knobs sm suspected seen right suites date link note guard "
    "instead ask"
).split()
GROUPS = ("cases", "controls", "guarded")
DECIDED = ("crash", "build_fail", "exit_crash")  # what a described device can show
NEWEST = 0  # the open end of a range
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3}){1,2}")


class KnownError(ValueError):
    """One line for people, with its place."""


def word(n):
    """91400 as people write it: 9.14.0."""
    return f"{n // 10000}.{n // 100 % 100}.{n % 100}"


def failing_ranges(seen, right):
    """[(first, end)] of the versions where a failure holds, as numbers; end does not belong to the range, NEWEST: none. Open until proven closed."""
    out, start = [], None
    for version, fails in sorted([(v, True) for v in seen] + [(v, False) for v in right]):
        if fails and start is None:
            start = version
        elif not fails and start is not None:
            out.append((start, version))
            start = None
    return out + ([(start, NEWEST)] if start is not None else [])


@dataclass(frozen=True)
class Observation:
    """Versions seen failing or right, and what showed it."""

    versions: tuple
    source: str


@dataclass(frozen=True)
class Rule:
    """One row of the library's guards: an engine's number (None: every engine) in versions and architectures, both ends included, 0: open."""

    engine: Optional[int]
    cudnn_from: int
    cudnn_to: int
    sm_from: int
    sm_to: int


@dataclass(frozen=True)
class Guard:
    """What the library refuses: the input of known_guards.emit."""

    name: str
    file: str
    tree: tuple
    when: str
    why: str
    link: str
    remedy: str
    unasked: bool
    knobs: tuple
    rules: tuple


@dataclass(eq=False)
class Failure:
    """One section `failure:` of a file."""

    entry: "Entry"
    label: str
    line: int
    fields: dict  # key: value, or [values]
    at: dict  # key: line
    families: dict

    def fail(self, key, what):
        raise KnownError(f"{self.entry.path}:{self.at.get(key, self.line)}: {key}: {what}")

    @property
    def verdicts(self):
        return self.fields["verdict"].rstrip("?").split("/")

    @property
    def guarded(self):
        return "guard" in self.fields

    @cached_property
    def observations(self):
        return {
            key: [_observation(self, key, text) for text in self.fields.get(key, [])]
            for key in ("seen", "right")
        }

    def versions(self, key):
        return {number(v) if v != "any" else 0 for o in self.observations[key] for v in o.versions}

    @cached_property
    def ranges(self):
        return failing_ranges(self.versions("seen"), self.versions("right"))

    @property
    def when(self):
        """The problems that are affected."""
        return self.fields["when"]

    @property
    def data(self):
        """The values that show it: of tensors, lengths and offsets; "": any."""
        return self.fields.get("data", "")

    @property
    def condition(self):
        """The problems with these values."""
        return " & ".join(grouped(part) for part in (self.when, self.data) if part)

    @property
    def shows(self):
        """The cases that show it, in the case language; "": none that a suite asks."""
        shown = self.fields.get("shows", self.condition)
        if shown == "none":
            return ""
        return f"{grouped(self.condition)} {shown}" if shown.startswith("&") else shown

    @property
    def link(self):
        return next(iter(self.fields.get("link", [])), self.entry.link)

    @property
    def name(self):
        """What the library calls it."""
        return self.entry.name + (f"/{self.label}" if self.label else "")

    def numbers(self, first, end):
        """[(engine's number or None, first, end)] in these versions."""
        engine = self.fields.get("engine", "any")
        if engine == "any":
            return [(None, first, end)]
        out = []
        for name in engine.split():
            own = [(int(name), first, end)] if name.isdigit() else None
            out += own or self.families[name].within(first, end)
        return sorted(out, key=lambda r: (r[1], r[0]))

    @cached_property
    def architectures(self):
        """([(sm_from, sm_to)] where it was seen, and where it is suspected); (0, 0): everywhere."""
        return tuple(_architectures(self, key) for key in ("sm", "suspected"))

    def expectations(self, before_guards=False):
        """[(predicate, seldom)]: the rows that are known to fail, as harness/core/known reads them; seldom: it it is only suspected.
        `before_guards`: also those of a record that is older than the guard, which refuses them now."""
        out = []
        for places, suspected in zip(self.architectures, (False, True)):
            if not places or not self.shows:
                continue
            parts = [grouped(self.shows)]
            if self.guarded and not before_guards and "guards=" not in self.shows:
                parts.insert(0, "guards=off")
            spans = [r for first, end in self.ranges for r in self.numbers(first, end)]
            parts.append(_either([_engine_range(*r) for r in spans]))
            parts.append(_either([_sm_range(*place) for place in places]))
            if not set(self.verdicts) <= set(DECIDED):
                decided = (f"verdict={v}" for v in self.verdicts if v in DECIDED)
                parts.append(_either(["grade=measured", *decided]))
            out.append((" & ".join(p for p in parts if p), suspected))
        return out

    def guard(self):
        sms, suspected = self.architectures
        every = [span for first, end in self.ranges for span in self.numbers(first, end)]
        spans = [s for s in dict.fromkeys(every) if not any(_within(s, other) for other in every)]
        spans = [(n, first, end - 1 if end else 0) for n, first, end in spans]

        def rules_of(places):
            return tuple(Rule(*span, *sm) for span in spans for sm in places)

        common = {
            "name": self.name,
            "file": f"cases/known/{self.entry.name}.known",
            "tree": self.tree("condition"),
            "when": self.condition,
            "link": self.link,
            "remedy": self.fields["instead"],
            "unasked": self.fields.get("ask") == "never",
            "knobs": self.knobs,
        }
        why, out = self.fields["guard"], []
        if rules := rules_of(sms):
            out.append(Guard(why=why, rules=rules, **common))
        if rules := rules_of(suspected):
            seen = " and ".join(sm_words(place) for place in sms) or "another architecture"
            why += f". Suspected: it was seen on {seen}, which has the same engine"
            out.append(Guard(why=why, rules=rules, **common))
        return out

    @property
    def knobs(self):
        pairs = (pair.partition("=") for pair in self.fields.get("knobs", "").split())
        return tuple((name, int(value)) for name, _, value in pairs)

    def tree(self, key):
        text = self.shows if key == "shows" else self.condition
        try:
            return predicate.parse(text, FACTS if key == "condition" else {})
        except predicate.PredicateError as error:
            self.fail("when" if key == "condition" else key, error)


def _within(span, other):
    """Two kernels may have the same number in some versions: the forward and the backward of Hopper were both 2 until 9.15."""
    (engine, first, end), (whose, begin, until) = span, other
    is_inside = begin <= first and (not until or end and end <= until)
    return span != other and engine == whose and is_inside


@dataclass(eq=False)
class Entry:
    """One file."""

    path: str
    name: str
    fields: dict = field(default_factory=dict)
    at: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)
    groups: list = field(default_factory=list)  # (kind, suffix, line, [lines])
    text: str = ""

    def __getattr__(self, key):
        if key in HEAD:
            return self.fields.get(key, "")
        raise AttributeError(key)

    def claim(self, key):
        """(words, source) of a key of CLAIMS; ([], "") where the file does not say it."""
        words, _, source = self.fields.get(key, "").partition(";")
        return words.split(), source.strip()

    @property
    def is_failure(self):
        """Does it count as a failure of cuDNN?"""
        return self.fields["kind"] == "failure"

    @property
    def is_text(self):
        """Is there nothing to ask and to count?"""
        return self.fields["kind"] == "behaviour" and "verdict" not in self.fields

    @property
    def links(self):
        return self.fields.get("link", [])

    @property
    def link(self):
        """The first address among the links; without one, the place of the report."""
        addresses = (link for link in self.links if "/" in link and " " not in link)
        return next(addresses, f"cases/known/{self.name}.known")


@dataclass(frozen=True)
class Family:
    """A kernel under all its numbers: [(first version, number)]."""

    name: str
    numbers: tuple

    def within(self, first, end):
        out = []
        for place, (since, engine) in enumerate(self.numbers):
            until = self.numbers[place + 1][0] if place + 1 < len(self.numbers) else NEWEST
            low, high = max(first, since), min(end or 10**9, until or 10**9)
            if low < high and engine:
                out.append((engine, low, 0 if high == 10**9 else high))
        return out


# ---- words of predicates --------------------------------------------------------------------------------------------------------


def grouped(text):
    """In brackets where an `or` stands outside of any."""
    depth = 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "|" and depth == 0:
            return f"({text})"
    return text


def _either(parts):
    parts = [p for p in dict.fromkeys(parts) if p]
    return "" if not parts else parts[0] if len(parts) == 1 else "(" + " | ".join(parts) + ")"


def _engine_range(engine, first, end):
    parts = [f"engine={engine}"] if engine is not None else []
    parts += [f"cudnn>={word(first)}"] if first else []
    parts += [f"cudnn<{word(end)}"] if end else []
    return " & ".join(parts)


def _sm_range(low, high):
    if not low and not high:
        return ""
    if low == high:
        return f"sm={low}"
    return " & ".join([f"sm>={low}"] * bool(low) + [f"sm<={high}"] * bool(high))


def sm_words(place):
    low, high = place
    return f"sm_{low}" if low == high else f"sm_{low} to sm_{high}"


def _architectures(failure, key):
    text = failure.fields.get(key, "")
    if text == "any":
        return [(0, 0)]
    out = []
    for part in text.split():
        low, _, high = part.partition("..")
        if not re.fullmatch(r"\d{2,3}(\.\.(\d{2,3})?)?", part):
            failure.fail(key, f"'{part}' is not an architecture, such as 90 or 100..109")
        out.append((int(low), int(high or low) if ".." not in part or high else 0))
    return out


def _observation(failure, key, text):
    versions, sep, source = text.partition(";")
    if not sep or not source.strip():
        example = f"write '{key}: 9.14.0 9.19.0; RECORD or report'"
        failure.fail(key, f"what showed it is missing; {example}")
    for v in versions.split():
        if not (_VERSION.fullmatch(v) or v == "any"):
            failure.fail(key, f"'{v}' is not a version, such as 9.14.0")
    if not versions.split():
        failure.fail(key, "no version")
    return Observation(tuple(versions.split()), source.strip())


# ---- reading --------------------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, path, families):
        self.entry = Entry(str(path), Path(path).stem)
        self.families = families
        self.fields, self.at, self.keys, self.last = self.entry.fields, self.entry.at, HEAD, None
        self.group = None

    def fail(self, line, what):
        raise KnownError(f"{self.entry.path}:{line}: {what}")

    def read(self, text):
        lines = text.split("\n")
        for place, line in enumerate(lines, 1):
            key, _, value = line.partition(":")
            if line == "text:":
                self.entry.text = "\n".join(lines[place:]).strip("\n")
                return
            if key == "failure" and ":" in line:
                self._open_failure(place, value.strip())
            elif key in GROUPS and ":" in line:
                self.group = (key, value.strip(), place, [])
                self.entry.groups.append(self.group)
            elif self.group is not None:
                self.group[3].append(line)
            else:
                self._pair(place, line, key, value.strip())

    def _open_failure(self, place, label):
        if label and not re.fullmatch(r"[a-z0-9][a-z0-9-]*", label):
            self.fail(place, f"failure: '{label}' is not a label of small letters, digits and -")
        failure = Failure(self.entry, label, place, {}, {}, self.families)
        self.entry.failures.append(failure)
        self.fields, self.at, self.keys = failure.fields, failure.at, BLOCK
        self.last = self.group = None

    def _pair(self, place, line, key, value):
        if not line.strip() or line.startswith("#"):
            return
        if line.startswith("  ") and self.last:
            value = f" {line.strip()}"
            if self.last in REPEATED:
                self.fields[self.last][-1] += value
            else:
                self.fields[self.last] += value
            return
        if ":" not in line or key not in self.keys:
            near = predicate.nearest(key, self.keys)
            self.fail(place, f"'{key}' is not a key here; did you mean {near}?")
        if key in self.fields and key not in REPEATED:
            self.fail(place, f"{key} is given twice")
        self.last = key
        self.at.setdefault(key, place)
        if key in REPEATED:
            self.fields.setdefault(key, []).append(value)
        else:
            self.fields[key] = value


def _check_head(entry):
    fields, verdicts = entry.fields, {*VERDICTS, "slow"}

    def fail(line, what):
        raise KnownError(f"{entry.path}:{line}: {what}")

    for key in ("title", "kind"):
        if not fields.get(key):
            fail(1, f"{key} is missing")
    if fields["kind"] not in KINDS:
        fail(entry.at["kind"], f"kind: '{fields['kind']}' is none of {' '.join(KINDS)}")
    if fields.get("about") and (fields["kind"] != "behaviour" or fields["about"] not in ABOUT):
        said = f"about: want one of {' '.join(ABOUT)}, with the kind behaviour"
        fail(entry.at["about"], said)
    _check_claims(entry, fail)
    words = fields.get("verdict", "").split()
    if not entry.is_text and (not words or not set(words) <= verdicts):
        said = f"verdict: want words of: {' '.join(sorted(verdicts))}"
        fail(entry.at.get("verdict", 1), said)
    for key in ("reported", "range"):
        if fields.get(key, "any") != "any":
            try:
                predicate.parse(fields[key])
            except predicate.PredicateError as error:
                fail(entry.at[key], f"{key}: {error}")
    if not entry.is_text and not any(kind == "cases" for kind, *_ in entry.groups):
        fail(1, "no section 'cases:'; a failure without a case cannot be checked")
    labels = [f.label for f in entry.failures]
    if len(set(labels)) != len(labels):
        fail(entry.failures[-1].line, "two failures have the same label")


def _check_claims(entry, fail):
    for key, allowed in CLAIMS.items():
        if key not in entry.fields:
            continue
        words, source = entry.claim(key)
        is_dated = words[1:2] == ["since"] and _VERSION.fullmatch(" ".join(words[2:]))
        if key == "frontend" and is_dated:
            words = words[:1]
        few = key != "sent-by" and len(words) > 1
        if not words or few or not set(words) <= set(allowed) or not source:
            said = f"{key}: want '{allowed[0]}; SOURCE'; words: {' '.join(allowed)}"
            fail(entry.at[key], said)


def _check_failure(failure, families):
    fail = failure.fail
    for key in ("verdict", "when", "seen", "date"):
        if not failure.fields.get(key):
            fail(key, "is missing")
    if not failure.fields.get("sm") and not failure.fields.get("suspected"):
        where = "the architectures where it was seen, or suspected: those where it was not asked"
        fail("sm", f"is missing: {where}")
    if not set(failure.verdicts) <= set(VERDICTS):
        fail("verdict", f"'{failure.fields['verdict']}' is not a verdict")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", failure.fields["date"]):
        fail("date", "want a date such as 2026-11-22")
    for name in failure.fields.get("engine", "any").split():
        if name != "any" and not name.isdigit() and name not in families:
            families_ = "no family of cases/known/engines.families"
            near = predicate.nearest(name, families)
            fail("engine", f"'{name}' is no number and {families_}; did you mean {near}?")
    both = failure.versions("seen") & failure.versions("right")
    if both:
        fail("right", f"{word(min(both))} was seen failing and is also listed as right")
    if failure.guarded != ("instead" in failure.fields):
        both = "the sentence of the refusal, and what the user can do"
        fail("guard", f"guard and instead belong together: {both}")
    if not failure.guarded and ("ask" in failure.fields or "knobs" in failure.fields):
        fail("guard", "ask and knobs belong to a guard")
    if failure.fields.get("ask", "never") != "never":
        fail("ask", "want never")
    knobs = failure.fields.get("knobs", "").split()
    if not all(re.fullmatch(r"[A-Z_0-9]+=\d+", pair) for pair in knobs):
        fail("knobs", "want KNOB=NUMBER, such as TILE_N=2")
    failure.tree("condition")
    if failure.shows:
        failure.tree("shows")
    for one, _ in failure.expectations():
        predicate.parse(one)


def _text(path):
    """What a file says. Raises KnownError for what a page or a terminal may not be given."""
    data = Path(path).read_bytes()
    try:
        said = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise KnownError(f"{path}:{data.count(10, 0, error.start) + 1}: not UTF-8") from None
    for place, line in enumerate(said.split("\n"), 1):
        if "\r" in line or clean(line, len(line)) != line:
            what = "a control character, or a mark that turns the direction of a text"
            raise KnownError(f"{path}:{place}: {what}")
    return said


def read_families(path):
    """{name: Family}: lines `NAME: number, number from VERSION, none from VERSION`."""
    out = {}
    for place, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(":")
        numbers = []
        for part in rest.split(","):
            match = re.fullmatch(rf"\s*(\d+|none)(?: from ({_VERSION.pattern}))?\s*", part)
            if not match or bool(match[2]) != bool(numbers):
                raise KnownError(f"{path}:{place}: want 'NAME: 1, 7 from 9.15.0'")
            since, engine = number(match[2]) if match[2] else 0, match[1].replace("none", "0")
            numbers.append((since, int(engine)))
        out[name.strip()] = Family(name.strip(), tuple(numbers))
    return out


def read_file(path, families):
    """One entry, checked. Raises KnownError, OSError."""
    reader = _Reader(path, families)
    reader.read(_text(path))
    _check_head(reader.entry)
    for failure in reader.entry.failures:
        _check_failure(failure, families)
    return reader.entry


def load(folder):
    """Every entry of cases/known, by name. Raises KnownError, OSError."""
    families = read_families(Path(folder) / "engines.families")
    return [read_file(path, families) for path in sorted(Path(folder).glob("*.known"))]
