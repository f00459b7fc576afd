"""What is known of a case: one JSON object for each failure of cases/known, and `Knowledge`, which says those that speak of a case.

The build writes the objects into known.jsonl (ci/generate_known.py). harness/core/known reads the same file and answers alike; a test compares.
"""

import functools
import json
import os
import re
from pathlib import Path

from ..read import cases, predicate
from ..read.versions import number
from ..read.vocabulary import is_finding
from .known import KnownError, grouped, load, word

SAYS = {  # the first verdict of a failure, in words
    "crash": "to crash",
    "exit_crash": "to crash when the process ends",
    "hang": "to hang",
    "overrun": "to write outside of its outputs",
    "exec_fail": "to fail when it runs",
    "build_fail": "not to compile",
    "nondeterministic": "to differ from run to run",
    "graph_mismatch": "to differ in a CUDA graph",
    "unwritten": "to leave results unwritten",
    "wrong": "to be wrong",
    "nan": "to be wrong",
}
_SERIOUS = frozenset(("crash", "exit_crash", "hang", "exec_fail", "overrun"))
_OPEN = ("build", "grade", "verdict", "class", "device")
_RESULT = ("backend", "grade")  # keys of a condition that are not the problem's
DATA_WORDS = (  # (key and operator, its values in a condition, the data in words); "": they add nothing
    ("fill=", "neglse|offset_k|needle", "very negative scores"),
    ("fill!=", "stair_up", "scores that do not rise with the key"),
    ("fill=", "offset_v", "values with a mean"),
    ("bias_fill=", "minus_inf", "a bias of -inf everywhere"),
    ("bias_fill=", "rows_masked", "a bias that masks whole rows"),
    ("bias_fill=", "rows_low|finite_min", "a bias that makes whole rows very low"),
    ("bias_fill[~=]", "window:.*", "a bias that masks all but a window"),
    ("mod~", "(window|document).*", "a modification that masks keys"),
    ("poison=", "nan|inf", "NaN or Inf in unused memory of the inputs"),
    ("poison=", "big", "large numbers in unused memory of the inputs"),
    ("padding=", "zero:kv", "sequences without keys"),
    ("padding=", "zero:q", "sequences without queries"),
    ("padding=", "zero:both", "empty sequences"),
    ("padding=", "full", "sequences of full length"),
    ("padding=", "random", "sequences of different lengths"),
    ("padding!=", "full", "sequences shorter than the longest"),
    ("slots!=", "tight", "room between the sequences"),
    ("lens~", r".*-1.*", "a length of -1"),
    ("lens~", r"\*/\*\+1.*", "sequences of one key"),
    ("lens~", r"\*/.*", "sequences without keys"),
    ("lens~", r".*[0*]/.*", "sequences without queries"),
    ("lens[~=]", ".*", "empty sequences"),
    ("case~", ".*", "some lengths"),
    ("layout=|scale=", ".*", ""),
)


def data_words(tree):
    """The data of a condition in words. Raises KeyError for values without words."""
    return " or ".join(_alternatives(tree))


def _alternatives(tree):
    op = tree[0]
    if op == "or":
        return list(dict.fromkeys(word for part in tree[1] for word in _alternatives(part)))
    if op == "and":
        return [" with ".join(filter(None, map(data_words, tree[1])))]
    if op == "not":
        return [""]
    _, key, values, _ = tree
    values, sign = (values, "=") if op == "in" else ([values], op)
    words = (_value_words(key + sign, value) for value in values)
    return list(dict.fromkeys(filter(None, words)))


def _value_words(asked, value):
    for key, pattern, words in DATA_WORDS:
        if re.fullmatch(key, asked) and re.fullmatch(pattern, value):
            return words
    raise KeyError(f"{asked}{value}")


def _conjuncts(text):
    """The parts of a condition between its outermost `&`; the whole, if there is an outermost `|`."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            return [text]
        if letter == "&" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _problem(failure):
    """The condition on the problem in the case language; "": a case cannot tell."""
    shown = failure.fields.get("shows", "")
    if shown == "none" and not failure.guarded:
        return ""  # no graph that FACTS builds shows it
    narrowed = shown.startswith("&")
    whole = "" if narrowed or shown == "none" else shown
    for text in (f"{grouped(failure.when)} {shown}" if narrowed else failure.when, whole):
        try:
            predicate.parse(text)
        except predicate.PredicateError:
            continue
        kept = [c for c in _conjuncts(text) if not re.match(rf"({'|'.join(_RESULT)})\W", c)]
        return " & ".join(kept)
    return ""


def _word(n):
    return word(n) if n else ""


def _fixed(failure, first):
    """The end of the file's failures on these architectures that go on from this version without a gap."""
    seen, suspected = failure.architectures
    own = seen + suspected
    ranges = sorted(
        (begin, end or 10**6)
        for other in failure.entry.failures
        if any(_overlap(a, b) for a in own for b in sum(other.architectures, []))
        for begin, end in other.ranges
    )
    until = first
    for begin, end in ranges:
        if begin <= until or begin <= first:
            until = max(until, end)
    return "" if until >= 10**6 else _word(until)


def _overlap(a, b):
    return a[0] <= (b[1] or 10**6) and b[0] <= (a[1] or 10**6)


def line(failure):
    """The object of one failure: docs/known.md has its members."""
    entry, fields = failure.entry, failure.fields
    verdict = failure.verdicts[0]
    frontend, _ = entry.claim("frontend")
    contract = " ".join(entry.claim("contract")[0])
    is_said = entry.kind != "behaviour"
    sometimes = fields["verdict"].endswith("?")
    engines = [r for first, end in failure.ranges for r in failure.numbers(first, end)]
    ends = bool(_SERIOUS & set(failure.verdicts)) and entry.kind != "offered-not-built"
    return {
        "id": entry.name,
        "label": failure.label,
        "title": entry.title,
        "kind": entry.kind,
        "verdict": failure.verdicts,
        "sometimes": sometimes,
        "says": SAYS[verdict] if is_said else "",
        "serious": is_said and (ends or entry.is_failure and contract == "documented"),
        "contract": contract,
        "contract_text": entry.claim("contract")[1],
        "sent_by": entry.claim("sent-by")[0],
        "frontend": " ".join(frontend),
        "when": failure.when,
        "data": failure.data,
        "for": data_words(predicate.parse(failure.data)) if failure.data else "",
        "problem": _problem(failure),
        "tree": predicate.parse(_problem(failure)) if _problem(failure) else None,
        "engine": fields.get("engine", "any"),
        "engines": [
            {"engine": n, "from": _word(a), "to": _word(b)} for n, a, b in engines if n is not None
        ],
        "sm": list(map(list, failure.architectures[0])),
        "suspected": list(map(list, failure.architectures[1])),
        "ranges": [
            {"from": _word(a), "to": _word(b), "fixed": _fixed(failure, a)}
            for a, b in failure.ranges
        ],
        "seen": [_word(v) for v in sorted(failure.versions("seen")) if v],
        "right": [_word(v) for v in sorted(failure.versions("right"))],
        "guarded": failure.guarded,
        "remedy": fields.get("instead", ""),
        "link": failure.link,
        "date": fields["date"],
        "note": fields.get("note", ""),
        "suites": "" if fields.get("suites") == "all" else fields.get("suites", "regress"),
        "expect": [
            {"where": where, "sometimes": suspected or sometimes}
            for where, suspected in failure.expectations()
        ],
        "file": f"cases/known/{entry.name}.known",
        "line": failure.line,
    }


def lines(entries):
    return [line(failure) for entry in entries for failure in entry.failures]


def write(entries):
    """The text of known.jsonl."""
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines(entries))


def read(path):
    """The objects of known.jsonl."""
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@functools.lru_cache(maxsize=None)
def _number(word):
    return number(word or "0")


def within(version, span):
    return not version or _number(span["from"]) <= version < (_number(span["to"]) or 10**6)


def how_sure(one, version, sm):
    """How sure; "": it does not hold on this architecture. Version or architecture 0: not known."""
    if not version or not sm:
        return "open"

    def has(key):
        return any(low <= sm <= (high or 10**6) for low, high in one[key])

    if not has("sm"):
        return "suspected" if has("suspected") else ""
    seen = [_number(v) for v in one["seen"]]
    return "seen" if version in seen else "later" if seen and version > seen[-1] else "between"


def holds(one, version, sm):
    """Does it hold in this version on this architecture? 0: not known."""
    return how_sure(one, version, sm) != "" and any(within(version, r) for r in one["ranges"])


class _Values(dict):
    """What a case says of each key."""

    def __init__(self, case):
        super().__init__(dict.fromkeys(_OPEN), backend="cudnn", case=case)
        self.said = cases.parse(case)

    def __missing__(self, key):
        self[key] = cases.value_of(self.said, key)
        return self[key]


# A page asks about a case of each target in turn.
_values = functools.lru_cache(maxsize=4096)(_Values)


@functools.lru_cache(maxsize=None)
def _condition(text):
    """What a condition says of _Values; of a case alone it is computed once. None: there is none."""
    holds = predicate.deciding(predicate.parse(text)) if text else None
    if not text or re.search(r"\b(cudnn|sm|engine|config)\b", text):
        return holds

    def of_case(values):
        if of_case not in values:
            values[of_case] = holds(values)
        return values[of_case]

    of_case.of_case = True
    return of_case


class Knowledge:
    """Which failures speak of a case. What many questions share is computed once."""

    def __init__(self, found):
        self.failures, asked = found, [one for one in found if one["problem"]]
        self._found = [(one, _condition(one["problem"]), _condition(one["data"])) for one in asked]
        self._alone = {problem for _, problem, _ in self._found if hasattr(problem, "of_case")}
        self._here = {}

    def _at(self, version, sm):
        """[(problem, data, engines, the answers for other and for such data)] of a version on an architecture."""
        if (version, sm) not in self._here:
            self._here[version, sm] = here = []
            for one, *conditions in self._found:
                sure = how_sure(one, version, sm)
                span = next((r for r in reversed(one["ranges"]) if within(version, r)), None)
                engines = {str(e["engine"]) for e in one["engines"] if within(version, e)}
                if sure and span is not None and (engines or not one["engines"]):
                    said = {**one, "sure": sure, "fixed": span["fixed"]}
                    answers = [{**said, "such_data": such} for such in (False, True)]
                    here.append((*conditions, engines, answers))
        return self._here[version, sm]

    def of(self, case, cudnn, sm, engine=None, config=None):
        """Their objects with `such_data`, `sure` and `fixed`. Those whose data the case has come first, then the serious ones. `engine`: the one that
        is offered first; None: the case's, or not known."""
        values = _values(case)
        left = [
            one
            for one in self._at(_number(cudnn), sm)
            if one[0] not in self._alone
            or (values[one[0]] if one[0] in values else one[0](values)) is not False
        ]
        if not left:
            return left
        if engine is None and values.said.get("engine", "").isdigit():
            engine = int(values.said["engine"])
        about = {"cudnn": cudnn, "sm": sm or None, "engine": engine, "config": config}
        values |= {key: None if one in (None, "") else str(one) for key, one in about.items()}
        out = [
            answers[not data or data(values) is True]
            for problem, data, engines, answers in left
            if (not engines or engine is None or values["engine"] in engines)
            and problem(values) is not False
        ]
        return sorted(out, key=lambda one: (not one["such_data"], not one["serious"]))

    def of_row(self, row):
        """The failures that speak of a row of a record. What cuDNN refuses cannot fail. Of a row that failed, those that name its verdict, if any do."""
        verdict, reason = row["verdict"], row.get("reason") or {}
        refused = verdict == "unsupported" and reason.get("class") != "policy"
        by_others = row["device"] == "cpu" or (row.get("backend") or "cudnn") != "cudnn"
        if refused or by_others or verdict == "missing":
            return []
        where = (row["cudnn"], row.get("sm") or 0, row.get("engine"), row.get("config"))
        found = self.of(cases.as_asked(row), *where)
        named = is_finding(verdict) and [one for one in found if verdict in one["verdict"]]
        return named or found


@functools.lru_cache(maxsize=1)
def today():
    """The Knowledge of cases/known; of nothing where the folder is not there. The file of the build has it too, and is read in less time."""
    program = os.environ.get("FACTS_PROGRAM")
    built = program and Path(program).parent.parent / "known/known.jsonl"
    try:
        if built and built.is_file():
            return Knowledge(read(built))
        return Knowledge(lines(load(Path(__file__).resolve().parents[3] / "cases/known")))
    except (OSError, KnownError, predicate.PredicateError):
        return Knowledge([])


def rank(one):
    """Its place in a list: the serious ones first, and among these crashes and hangs."""
    order = list(SAYS)
    return not one["serious"], min(order.index(verdict) for verdict in one["verdict"])


def known_words(one):
    """ "known to be wrong in some runs for very negative scores"."""
    said = ["suspected" if one["sure"] == "suspected" else "known", one["says"]]
    said += ["in some runs" * one["sometimes"], f"for {one['for']}" if one["data"] else ""]
    return " ".join(filter(None, said))


def sentence(one):
    """ "known to be wrong for very negative scores: TITLE; fixed in 9.26.0 (ID)"."""
    fixed = f"; fixed in {one['fixed']}" if one["fixed"] else ""
    return f"{known_words(one)}: {one['title'].rstrip('.')}{fixed} ({one['id']})"


_MEMBER = "id label title kind data contract remedy verdict such_data sure fixed".split()


def member(one):
    """The object in `known` of a row (docs/known.md)."""
    return {key: one[key] for key in _MEMBER if one[key] != ""}


SURE = {
    "seen": "seen with this version on this architecture",
    "between": "between two versions that were seen",
    "later": "nobody saw a later version right",
    "suspected": "not asked on this architecture, which has the same engine",
    "open": "the version or the architecture is not known",
}


def about(one):
    """How sure it is, the contract, who sends such calls."""
    senders = [word for word in one["sent_by"] if word != "nobody"]
    parts = [SURE[one["sure"]], f"contract: {one['contract']}", one["kind"]]
    return "; ".join(parts + [f"sent by {' '.join(senders)}"] * bool(senders))
