"""cuDNN sometimes gives its engines other numbers. An engine with the same knobs and notes under another number is the same engine; one of
its two offers may hold a configuration more.

A number space is one pair of targets, one pass, and the composite or the unified graph: cuDNN numbers their engines apart.
"""


def space(slot, case):
    return slot, case.startswith("pass=bwd"), " impl=unified" in case


def _engines(offered):
    """{number: its configurations} in the order of the offer."""
    out = {}
    for index, *about in offered:
        out.setdefault(index, []).append(about)
    return out


def _alike(one, other):
    return all(about in other for about in one) or all(about in one for about in other)


class _Space:
    def __init__(self):
        self.old, self.new, self.pairs, self.conflict = set(), set(), {}, False

    def add(self, first, second):
        old, new = _engines(first), _engines(second)
        self.old.update(old)
        self.new.update(new)
        if (
            len(old) != len(new)
            or sorted(old) == sorted(new)
            or not all(map(_alike, old.values(), new.values()))
        ):
            return  # other engines, or the same numbers in another order
        for one, other in zip(old, new):
            self.conflict |= self.pairs.setdefault(one, other) != other

    def mapping(self):
        """{old number: new number}, or {} where a number of one side also names an engine of the other."""
        moved = {one: other for one, other in self.pairs.items() if one != other}
        unique = len(set(self.pairs.values())) == len(self.pairs)
        return (
            moved
            if unique
            and not self.conflict
            and not self.new & set(moved)
            and not self.old & set(moved.values())
            else {}
        )


def learn(offers):
    """{space: {old number: new number}} from (slot, case, first side's offer, second side's)."""
    spaces = {}
    for slot, case, first, second in offers:
        if first and second:
            spaces.setdefault(space(slot, case), _Space()).add(first, second)
    return {key: mapping for key, one in spaces.items() if (mapping := one.mapping())}


def translate(answers, mapping):
    """The baseline's answers with the candidate's numbers."""

    def new(number):
        return mapping.get(number, number)

    return [
        a._replace(
            chosen=(a.chosen[0], new(a.chosen[1]), *a.chosen[2:]),
            offered=tuple((new(index), *about) for index, *about in a.offered),
        )
        for a in answers
    ]
