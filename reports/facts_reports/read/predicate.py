"""Predicates of the case language: `d.qk>128 & pass=bwd & cudnn<9.10.2 & layout~thd*`.

cases/predicates.test says what they mean: C, JavaScript (page/scripts/predicate.js) and this module answer it.

    or    := and ('|' and)*        and := not ('&' not)*        not := '!' not | '(' or ')' | leaf
    leaf  := field ('='|'!='|'<'|'<='|'>'|'>=') value | field ('~'|'!~') glob | field 'in' '(' value (',' value)* ')'
    field := key ['%' N]           value := word | "words" | another numeric key

A comparison with what is not known is false. Versions compare by parts; what is no number and no version has no order.
"""

import fnmatch
import math
import operator
import re
from functools import lru_cache

from . import cases
from .versions import version_key

_TOKEN = re.compile(
    r"""\s*(?:(<=|>=|!=|!~|==|&&|\|\||[()&|!=<>~,%])|"([^"]*)"|'([^']*)'|([^\s()&|!=<>~,%"']+)|(.))"""
)
_SAME = {"==": "=", "&&": "&", "||": "|"}
_DEPTH = 60


class PredicateError(ValueError):
    """One line for people: a column, from 1, and what is wrong there."""

    def __init__(self, column, what):
        super().__init__(f"column {column}: {what}")
        self.column, self.what = column, what


def nearest(word, words):
    return _nearest(word, tuple(words))


@lru_cache(maxsize=256)
def _nearest(word, words):
    return min(words, key=lambda w: (distance(word, w), w))


def distance(a, b):
    """Letters to change, add or take away to turn one word into the other."""
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (ca != cb))
    return row[-1]


def tokens(text):
    out, at = [], 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        place = match.lastindex
        start = match.start(place) + (0 if place in (1, 4, 5) else -1)
        if place == 5:
            raise PredicateError(start + 1, "a quote is not closed")
        word = match.group(place)
        out.append((_SAME.get(word, word) if place == 1 else word, start + 1, place == 1))
        at = match.end()
    return out


class _Parser:
    def __init__(self, text, extra):
        self.tokens, self.at, self.end, self.depth = tokens(text), 0, len(text) + 1, 0
        self.keys = cases.query_keys() + list(extra)
        self.numbers = cases.numbers() | {key for key, is_number in extra.items() if is_number}

    def peek(self):
        if self.at < len(self.tokens) and self.tokens[self.at][2]:
            return self.tokens[self.at][0]
        return None

    def fail(self, what):
        column = self.tokens[self.at][1] if self.at < len(self.tokens) else self.end
        raise PredicateError(column, what)

    def take(self, symbol):
        if self.peek() != symbol:
            self.fail(f"expected '{symbol}'")
        self.at += 1

    def word(self, what):
        if self.at >= len(self.tokens) or self.tokens[self.at][2]:
            self.fail(f"expected {what}")
        self.at += 1
        return self.tokens[self.at - 1][0]

    def either(self):
        return self.joined("|", "or", lambda: self.joined("&", "and", self.negation))

    def joined(self, symbol, name, inner):
        terms = [inner()]
        while self.peek() == symbol:
            self.at += 1
            terms.append(inner())
        return terms[0] if len(terms) == 1 else (name, terms)

    def negation(self):
        if self.peek() not in ("!", "("):
            return self.leaf()
        self.depth += 1
        if self.depth > _DEPTH:
            self.fail(f"more than {_DEPTH} ( and ! inside one another")
        self.at += 1
        if self.tokens[self.at - 1][0] == "!":
            inner = ("not", self.negation())
        else:
            inner = self.either()
            self.take(")")
        self.depth -= 1
        return inner

    def modulus(self, key, start):
        if self.peek() != "%":
            return 0
        if key not in self.numbers:
            self.at = start
            self.fail(f"{key} is not a number")
        self.at += 1
        number = self.word("a whole number above 0 after %")
        if not re.fullmatch(r"[1-9]\d{0,8}", number):
            self.at -= 1
            self.fail("expected a whole number above 0 after %")
        return int(number)

    def leaf(self):
        start = self.at
        key = self.word("a key")
        if key not in self.keys:
            self.at = start
            self.fail(f"no key '{key}'; nearest: {nearest(key, self.keys)}")
        modulus = self.modulus(key, start)
        op = self.peek()
        if op in _ORDERED and key not in self.numbers and key != "cudnn":
            parts = " ".join(p for p in cases.parts() if p.startswith(key + "."))
            said = f"its parts have: {parts}" if parts else "= != ~ in apply"
            self.fail(f"{key} has no order; {said}")
        if op in ("=", "!=", "<", "<=", ">", ">=", "~", "!~"):
            self.at += 1
            value = self.word(f"a value after {key}{op}")
            if key == "cudnn":
                known, what = re.fullmatch(r"\d+(\.\d+)*", value), "version, such as 9.10.2"
            else:
                known, what = value in self.numbers or number(value) is not None, "number"
            if op in _ORDERED and not known:
                self.at -= 1
                self.fail(f"{value} is not a {what}")
            return (op, key, value, modulus)
        if op is None and self.at < len(self.tokens) and self.tokens[self.at][0] == "in":
            self.at += 1
            self.take("(")
            values = [self.word("a value")]
            while self.peek() == ",":
                self.at += 1
                values.append(self.word("a value"))
            self.take(")")
            return ("in", key, values, modulus)
        return self.fail(f"expected = != < <= > >= ~ or in (...) after {key}")


def parse(text, extra=None):
    """The tree of a predicate. `extra`: keys beside those of the case language, {key: it is a number}; guards have some (known_guards.FACTS)."""
    return _parsed(text, tuple((extra or {}).items()), "pass" in cases.defaults())


@lru_cache(maxsize=65536)
def _parsed(text, extra, _language):
    parser = _Parser(text, dict(extra))
    tree = parser.either()
    if parser.at < len(parser.tokens):
        parser.fail("expected & or | between comparisons")
    return tree


def of_attention(text):
    """The tree of a predicate of ours; None: the cases have the keys of another operation."""
    return parse(text) if "pass" in cases.defaults() else None


_ORDERED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@lru_cache(maxsize=65536)
def number(value):
    """What a value is as a number, or None."""
    if value == "inf":
        return math.inf
    value = value.removeprefix("sm_")
    return float(value) if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", value) else None


def _order(key, left, right, modulus):
    """-1, 0, 1, or None where the two have no order."""
    if key == "cudnn":
        a, b = version_key(left), version_key(right)
        return (a > b) - (a < b)
    a, b = number(left), number(right)
    if modulus and a is not None:
        a = math.fmod(a, modulus) if math.isfinite(a) else None
    return None if a is None or b is None else (a > b) - (a < b)


def _equal(key, left, right, modulus):
    if key != "cudnn" and key not in cases.numbers():
        return left == right
    order = _order(key, left, right, modulus)
    return left == right and not modulus if order is None else order == 0


def compare(op, key, left, right, modulus=0):
    """One leaf. `left` is a string; None (unknown) makes every comparison false."""
    if left is None:
        return False
    if op in ("~", "!~"):
        return fnmatch.fnmatchcase(left, right.replace("[", "[[]")) == (op == "~")
    if op == "in":
        return any(_equal(key, left, value, modulus) for value in right)
    if op in ("=", "!="):
        return _equal(key, left, right, modulus) == (op == "=")
    order = _order(key, left, right, modulus)
    return order is not None and _ORDERED[op](order, 0)


def _other(key, value):
    """Another key on the right: s.q<=s.kv."""
    return key in cases.numbers() and isinstance(value, str) and value in cases.numbers()


def holding(tree, column):
    """holds() of many cases at once: `column(key)` answers with the list of their values. Equal values are compared once."""
    op = tree[0]
    if op in ("and", "or"):
        return list(map(all if op == "and" else any, zip(*(holding(t, column) for t in tree[1]))))
    if op == "not":
        return [not one for one in holding(tree[1], column)]
    _, key, value, modulus = tree
    left, seen = column(key), {}
    if not _other(key, value):
        for one in set(left):
            seen[one] = compare(op, key, one, value, modulus)
        return [seen[one] for one in left]
    pairs = list(zip(left, column(value)))
    for pair in set(pairs):
        seen[pair] = pair[1] is not None and compare(op, key, *pair, modulus)
    return [seen[pair] for pair in pairs]


def holds(tree, get):
    """`get(key)` answers with a string or None."""
    op = tree[0]
    if op == "and":
        return all(holds(t, get) for t in tree[1])
    if op == "or":
        return any(holds(t, get) for t in tree[1])
    if op == "not":
        return not holds(tree[1], get)
    _, key, value, modulus = tree
    right = get(value) if _other(key, value) else value
    return right is not None and compare(op, key, get(key), right, modulus)


def deciding(tree):
    """Like holds(), as a function of {key: value}, and None where what is not known decides. Equal values are compared once."""
    op = tree[0]
    if op in ("and", "or"):
        parts, decides = [deciding(t) for t in tree[1]], op == "or"

        def joined(values):
            known = True
            for part in parts:
                seen = part(values)
                if seen is decides:
                    return decides
                known = known and seen is not None
            return not decides if known else None

        return joined
    if op == "not":
        inner = deciding(tree[1])
        return lambda values: None if (seen := inner(values)) is None else not seen
    _, key, value, modulus = tree
    is_key, seen = _other(key, value), {}

    def leaf(values):
        left, right = values[key], values[value] if is_key else None
        if left is None or (is_key and right is None):
            return None
        if (left, right) not in seen:
            seen[left, right] = compare(op, key, left, right if is_key else value, modulus)
        return seen[left, right]

    return leaf
