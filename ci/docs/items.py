"""What was promised against what was asked: items of a list, each with the predicate of its case family and the test programs that hold the rest.

    item A1 The question is the call
    where o!=auto | do!=auto
    tests lib_test_fattn_problem lib_test_graph

An item without a case in the records, or with fewer versions than the list demands (`need decided=5 run=3`), is a finding, not a blank.
"""

import re
from dataclasses import dataclass, field

from facts_reports import cases, predicate, text
from facts_reports.versions import version_key
from facts_reports.vocabulary import KNOWN, RANK


class ItemsError(ValueError):
    """One line for people, with its place."""


@dataclass
class Item:
    word: str
    title: str
    where: str = ""
    tests: tuple = ()
    need: dict = field(default_factory=dict)


def read(path):
    """The items of a list, in its order. Raises ItemsError, OSError."""
    items, need = [], {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        word, _, rest = line.partition(" ")
        try:
            _take(items, need, word, rest.strip())
        except (ValueError, IndexError) as error:
            raise ItemsError(f"{path}:{number}: {error}") from None
    return items


def _take(items, need, word, rest):
    if word == "item":
        name, _, title = rest.partition(" ")
        items.append(Item(name, title.strip(), need=dict(need)))
    elif word == "need":
        target = items[-1].need if items else need
        for part in rest.split():
            if not re.fullmatch(r"(decided|run)=\d{1,3}", part):
                raise ValueError(f"need: '{part}'; want decided=N, run=N")
            key, count = part.split("=")
            target[key] = int(count)
    elif word == "where":
        predicate.parse(rest)
        items[-1].where = rest
    elif word == "tests":
        items[-1].tests = tuple(rest.split())
    else:
        raise ValueError(f"'{word}' is no word of this list; want item, where, tests, need")


def _answers(store):
    """{case: [(version, grade, outcome, is known)]}, without what was never answered."""
    found = {}
    for case, version, outcome, standing, grade in store.db.execute(
        "SELECT case_name, cudnn, outcome, finding, grade FROM row WHERE outcome NOT IN ('missing','inconclusive','not_run')"
    ):
        found.setdefault(case, []).append((version, grade, outcome, standing == KNOWN))
    return found


def _row(item, answers, asked):
    tree = predicate.parse(item.where) if item.where else None
    member = [case for case, get in asked.items() if tree and predicate.holds(tree, get)]
    decided, run, counts, known = set(), set(), {}, {}
    for case in member:
        for version, grade, outcome, is_known in answers[case]:
            (run if grade == "measured" else decided).add(version)
            if grade == "measured":
                counts[outcome] = counts.get(outcome, 0) + 1
                known[outcome] = known.get(outcome, 0) + is_known
    told = ", ".join(
        f"{counts[o]:,} {o}"
        + (" (known)" if known[o] == counts[o] else f" ({known[o]:,} known)" if known[o] else "")
        for o in sorted(counts, key=RANK.get)
    )
    return member, decided | run, run, told


def _span(versions):
    return ", ".join(sorted((v for v in versions if v), key=version_key)) or "none"


def table(store, items):
    """(Markdown, number of items that lack what they need)."""
    answers = _answers(store)
    asked = {case: cases.asked_of(case) for case in answers}
    lines, lacking = (
        [
            "| item | | family | cases | decided | run | on a GPU | tests |",
            "|---|---|---|---|---|---|---|---|",
        ],
        0,
    )
    for item in items:
        member, decided, run, told = _row(item, answers, asked)
        short = []
        if item.where and not member:
            short.append("no case")
        for name, versions in (("decided", decided), ("run", run)):
            wanted = item.need.get(name, 0) if item.where else 0
            if len({v for v in versions if v}) < wanted:
                short.append(f"{name} on {len(versions)} of {wanted} versions")
        lacking += bool(short)
        lines.append(
            f"| {text.markdown(item.word)} | {text.markdown(item.title)}{' **' + '; '.join(short) + '**' if short else ''} | {text.code(item.where) if item.where else ''} "
            f"| {len(member):,} | {text.markdown(_span(decided))} | {text.markdown(_span(run))} | {text.markdown(told)} | {text.markdown(', '.join(item.tests))} |"
        )
    return "\n".join(lines) + "\n", lacking
