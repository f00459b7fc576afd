"""What separates the cases that changed from those that did not: conjunctions of at most three comparisons of the case language, or five where that makes them exact.

Sets of cases are integers, a bit for each; a comparison costs an AND, so that pairs and triples can be tried one by one.
"""

import math
import operator
from array import array
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, compress, repeat

from . import cases, predicate

# Their parts say it, or it is no property of the problem.
_WHOLE = "h s d seed engine window h.kv".split()
_VALUES, _LEAVES, _TRIPLES, _BEAM, _MORE, _RULES, _LISTED = 24, 90, 26, 24, 2, 3, 6
_OPPOSITE = {"!=": "=", ">": "<=", ">=": "<"}
_OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = 1.5  # a score that only an exact conjunction has
_AS_DIGITS = b"01".ljust(256)  # of False and True
_DIGITS = bytes(c == 49 for c in range(256))  # of a digit 0 or 1 its value
_MODULI = (128, 64, 16, 8)
_PAIRS = (("s.q", "s.kv"), ("h.q", "h.k"), ("h.k", "h.v"), ("d.qk", "d.v"))
_DULL = ("fill", "poison", "want", "b", "device", "build")  # explain only when nothing else does


@dataclass(frozen=True)
class Rule:
    """`text` holds for `hits` of the changed cases asked about, for `others` of those that did not change, and `also` for some that changed otherwise.
    text "": of every case; None: nothing was found."""

    text: str
    hits: int
    others: int
    bits: int  # the hits
    also: int = 0


@dataclass(frozen=True)
class _Leaf:
    key: str
    text: str
    bits: int
    cost: float


@lru_cache(maxsize=1)
def _followers():
    """Keys whose default is another key's value: the other key is the better name."""
    return frozenset(k["key"] for k in cases.key_table() if "follows" in k)


def bits_of(members, size):
    """The set as an integer; member i is bit size-1-i."""
    digits = bytearray(b"0") * size
    for i in members:
        digits[i] = 49
    return int(bytes(digits), 2) if size else 0


# Python below 3.10
count = int.bit_count if hasattr(int, "bit_count") else lambda bits: bin(bits).count("1")


def first(bits, size):
    """The first member, or None."""
    return size - bits.bit_length() if bits else None


def members(bits, size):
    return [i for i, digit in enumerate(f"{bits:0{size}b}") if digit == "1"] if size else []


@lru_cache(maxsize=2)
def _kept(names, keys, *values):
    return Columns(names, dict(zip(keys, values)))


def columns_of(names, subjects):
    """Columns of them. One pair of versions after the other was asked the same cases."""
    return _kept(tuple(names), tuple(subjects), *map(tuple, subjects.values()))


class Columns:
    """Values of every key that varies, over pairs of (case, {subject key: value})."""

    def __init__(self, names, subjects):
        """`names` of cases; `subjects` {key: a value for each name}."""
        self.size, self._all = len(names), (1 << len(names)) - 1
        self.columns, self._leaves, self._each, self._found, self._pick = {}, {}, {}, {}, {}
        keys = self._keys(
            {token.partition("=")[0] for name in dict.fromkeys(names) for token in name.split()}
        )
        different = {}
        which = [different.setdefault(name, len(different)) for name in names]
        column = cases.Columns(tuple(different))
        for key in keys:
            place = {}
            codes = [place.setdefault(value, len(place)) for value in column(key)]
            self._add(key, place, array("I", [codes[i] for i in which]))
        for key, values in subjects.items():
            place = {}
            self._add(key, place, array("I", [place.setdefault(v, len(place)) for v in values]))
        self.numbers = {
            key: [None if v is None else predicate.number(v) for v in values]
            for key, (values, _) in self.columns.items()
            if key in cases.numbers()
        }

    @staticmethod
    def _keys(said):
        """Keys that some name says, and those that follow them."""
        known = [k for k in cases.key_table() if k["key"] not in _WHOLE]
        out = [
            k["key"]
            for k in known
            if k["key"] in said
            or k.get("follows") in said
            or any(w[0] in said for w in k.get("when", ()))
        ]
        return out + [
            part for part, (key, _) in cases.parts().items() if key in said and part not in _WHOLE
        ]

    def _add(self, key, place, codes):
        if len(place) > 1:
            self.columns[key] = (list(place), codes)
        if len(place) > 256:
            self._pick[key] = operator.itemgetter(*codes)

    def bits(self, key, op, value, modulus=0):
        """The pairs for which a comparison is true."""
        values, codes = self.columns[key]
        if op in _OPPOSITE and None not in (
            values if op == "!=" else self.numbers.get(key, [None])
        ):
            return self._all ^ self.bits(key, _OPPOSITE[op], value, modulus)
        if (key, op, value, modulus) not in self._found:
            truth = self._truth(key, op, value, modulus)
            if len(values) <= 256:
                digits = bytes(codes.tolist()).translate(truth.ljust(256, b"0"))
            else:
                digits = bytes(self._pick[key](truth))
            self._found[key, op, value, modulus] = int(digits, 2)
        return self._found[key, op, value, modulus]

    def _truth(self, key, op, value, modulus):
        """Is a comparison true: a digit 0 or 1 for each distinct value, as predicate.compare says."""
        numbers = self.numbers.get(key)
        right = predicate.number(value) if isinstance(value, str) else None
        if numbers and right is not None and op in _OPERATORS and None not in numbers:
            if modulus:
                numbers = (math.fmod(n, modulus) if n < math.inf else n for n in numbers)
            return bytes(map(_OPERATORS[op], numbers, repeat(right))).translate(_AS_DIGITS)
        return bytes(
            49 if v is not None and predicate.compare(op, key, v, value, modulus) else 48
            for v in self.columns[key][0]
        )

    def among(self, key, inside):
        """Distinct values of the key in a set, most frequent first."""
        values, codes = self.columns[key]
        if len(values) <= 256:
            if key not in self._each:
                digits = bytes(codes.tolist())
                ones = (
                    digits.translate(bytes(49 if c == n else 48 for c in range(256)))
                    for n in range(len(values))
                )
                self._each[key] = [int(one, 2) for one in ones]
            tally = {c: n for c, bits in enumerate(self._each[key]) if (n := count(bits & inside))}
        else:
            tally = Counter(compress(codes, f"{inside:0{self.size}b}".encode().translate(_DIGITS)))
        order = sorted(tally, key=lambda c: (-tally[c], c))
        return [values[c] for c in order if values[c] is not None]

    def leaf(self, key, op, value, cost, modulus=0):
        if op == "in":
            shown = f"({', '.join(map(_quoted, value))})"
        else:
            shown = value if op in "~!~" or value in cases.numbers() else _quoted(value)
        said = f"{key}{f'%{modulus}' if modulus else ''}{' in ' if op == 'in' else op}{shown}"
        if said not in self._leaves:
            bits = self.bits(key, op, tuple(value) if op == "in" else value, modulus)
            cost += 0.6 if key in _DULL else 0.3 if key in _followers() else 0
            self._leaves[said] = _Leaf(key, said, bits, cost)
        return self._leaves[said]

    def across(self, left, op, right):
        said = f"{left}{op}{right}"
        if said not in self._leaves:
            one, other, holds = self.numbers[left], self.numbers[right], _OPERATORS[op]
            digits = bytes(
                49 if holds(one[a], other[b]) else 48
                for a, b in zip(self.columns[left][1], self.columns[right][1])
            )
            self._leaves[said] = _Leaf(left, said, int(digits, 2), 1.3)
        return self._leaves[said]


def _quoted(value):
    return value if predicate.tokens(value)[:1] == [(value, 1, False)] else f'"{value}"'


@lru_cache(maxsize=8192)
def _is_plain(value):
    """A value that the language can say back."""
    return (
        isinstance(value, str)
        and value != ""
        and '"' not in value
        and len(value) <= 120
        and value.isprintable()
    )


def _rounder(values):
    """Of numbers, the one that is a multiple of the largest power of two."""

    def power(v):
        n = int(float(v)) if float(v) == int(float(v)) else 1
        return n & -n

    return max(values, key=power)


def _number_leaves(columns, key, inside, yes):
    values = sorted((v for v in inside if v != "inf"), key=float)
    least, most = min(yes, key=float), max(yes, key=float)
    place = {v: i for i, v in enumerate(values)}
    cuts = {round(k * len(values) / _VALUES) for k in range(1, _VALUES)}
    if len(values) <= _VALUES:
        cuts = set(range(1, len(values)))
    cuts |= {place.get(least, 0), place[most] + 1 if most in place else 0}
    for cut in sorted(c for c in cuts if 0 < c < len(values)):
        below, above = values[cut - 1], values[cut]
        edge = _rounder((below, above))
        yield columns.leaf(key, "<=" if edge == below else "<", edge, 1.1)
        yield columns.leaf(key, ">" if edge == below else ">=", edge, 1.1)
    if key[:2] in ("s.", "d."):
        for n in _MODULI:
            residues = {int(v) % n for v in yes if v.isdigit()}
            if len(residues) == 1 and len(values) > 1:
                yield columns.leaf(key, "=", str(residues.pop()), 1.5, n)
            if residues and 0 not in residues:
                yield columns.leaf(key, ">", "0", 1.5, n)


def _word_leaves(columns, key, inside, yes):
    heads = {v.split(":")[0] for v in yes if ":" in v}
    heads |= {"thd", "t"} if key == "layout" else set()
    for head in sorted(heads):
        glob = f"{head}*"
        some = 1 < sum(v.startswith(head) for v in inside) < len(inside)
        if some and _is_plain(head) and not set(head) & set("*?"):
            yield columns.leaf(key, "~", glob, 1.2)


def _leaves_of(columns, key, changed, universe):
    inside, yes = columns.among(key, universe), columns.among(key, changed)
    if len(inside) < 2 or not yes or not all(map(_is_plain, inside)):
        return
    numeric = key in cases.numbers() and all(predicate.number(v) is not None for v in inside)
    for value in dict.fromkeys(yes[:_VALUES] + inside[:_VALUES]):
        yield columns.leaf(key, "=", value, 1)
    if 2 <= len(yes) <= _LISTED and len(yes) < len(inside):
        order = sorted(yes, key=(lambda v: (float(v), v)) if numeric else None)
        yield columns.leaf(key, "in", order, 1 + len(yes) / 3)
    yield from (_number_leaves if numeric else _word_leaves)(columns, key, inside, yes)


def _leaves(columns, changed, universe):
    found = []
    for key in columns.columns:
        found += _leaves_of(columns, key, changed, universe)
    for left, right in _PAIRS:
        if all(None not in columns.numbers.get(key, [None]) for key in (left, right)):
            found += [columns.across(left, op, right) for op in "=<>"]
    best = {}  # of comparisons that mean the same here the simplest
    for leaf in found:
        bits = leaf.bits & universe
        if bits and bits != universe:
            held = best.setdefault(bits, leaf)  # the hash of such an integer takes long
            if (leaf.cost, leaf.text) < (held.cost, held.text):
                best[bits] = leaf
    total, rest = count(changed), count(universe & ~changed) or 1

    def use(leaf):
        others = count(leaf.bits & universe & ~changed)
        return count(leaf.bits & changed) / total - others / rest - leaf.cost / 100

    return sorted(best.values(), key=use, reverse=True)[:_LEAVES]


def _score(hits, others, total, cost):
    """`hits` of `total` cases that changed, and `others`."""
    return (2 if hits == total and not others else 0) + (hits - 2 * others) / total - 0.02 * cost


def _best(columns, changed, universe):
    """The conjunction that covers most of `changed` and least else: (leaves, bits), or None. More than three comparisons only where they make it exact."""
    leaves = _leaves(columns, changed, universe)
    best, found, beam, total = 0.0, None, [], count(changed)
    sets = [(leaf.bits & universe, leaf.bits & universe & changed) for leaf in leaves]

    def offer(chosen, bits, hits):
        nonlocal best, found
        score = _score(hits, count(bits) - hits, total, sum(leaf.cost for leaf in chosen))
        if score > best:
            best, found = score, (chosen, bits)

    for leaf, (bits, mine) in zip(leaves, sets):
        offer((leaf,), bits, count(mine))
    for terms, pool in ((2, len(leaves)), (3, min(len(leaves), _TRIPLES))):
        if best >= _EXACT:
            break
        for head in combinations(range(pool), terms - 1):
            bits, mine = sets[head[0]]
            for i in head[1:]:
                bits, mine = bits & sets[i][0], mine & sets[i][1]
            for last in range(head[-1] + 1, pool):
                hits = count(mine & sets[last][1])
                # another one cannot have a better score
                if hits and (hits == total or hits / total > best):
                    inside = bits & sets[last][0]
                    if hits < total and (3 * hits - 2 * count(inside)) / total <= best:
                        continue
                    chosen = tuple(leaves[i] for i in (*head, last))
                    offer(chosen, inside, hits)
                    if terms == 3 and hits == total:
                        beam.append((count(inside), chosen, inside))
    covering = [leaf for leaf in leaves if leaf.bits & changed == changed] if beam else []
    for _ in range(_MORE):
        if best >= _EXACT:
            break
        beam = [
            (count(b := bits & leaf.bits), (*chosen, leaf), b)
            for _, chosen, bits in sorted(beam, key=lambda b: b[0])[:_BEAM]
            for leaf in covering
            if leaf not in chosen
        ]
        for _, chosen, bits in beam:
            if bits == changed:
                offer(chosen, bits, total)
    return found


def _said(columns, chosen):
    order = list(columns.columns)
    return " & ".join(leaf.text for leaf in sorted(chosen, key=lambda leaf: order.index(leaf.key)))


def _one(columns, changed, universe, otherwise=0):
    """The one rule that says exactly `changed` among what did not change `otherwise`; or None."""
    asked = universe & ~otherwise
    if changed == asked:
        return Rule("", count(changed), 0, changed) if not otherwise else None
    found = _best(columns, changed, asked)
    if not found or found[1] != changed:
        return None
    holds = universe
    for leaf in found[0]:
        holds &= leaf.bits
    also = count(holds & otherwise)
    return Rule(_said(columns, found[0]), count(changed), 0, changed, also)


def rules(columns, changed, universe, otherwise=0):
    """[Rule]: rules that separate `changed` from the rest of `universe`. One exact rule, if there is one: first against all others, then without those that
    changed `otherwise`. Otherwise a greedy cover: each rule is about the cases that the rules before it left. Uncovered cases come last, with text None."""
    rest = otherwise & ~changed
    one = _one(columns, changed, universe) or (rest and _one(columns, changed, universe, rest))
    if one:
        return [one]
    out, left = [], changed
    while left and len(out) < _RULES:
        found = _best(columns, left, universe & ~(changed & ~left))
        if not found or count(found[1] & left) < max(2, count(left) // 4):
            break
        chosen, bits = found
        hits, others = bits & left, count(bits & universe & ~(changed | otherwise))
        also = count(bits & universe & otherwise & ~changed)
        out.append(Rule(_said(columns, chosen), count(hits), others, hits, also))
        left &= ~bits
    return out + ([Rule(None, count(left), 0, left)] if left else [])
