"""Predicates of the case language: `d.qk>128 & pass=bwd & cudnn<9.10.2 & layout~thd*`.

The page has the same parser in JavaScript (page/predicate.js); test/predicates.json holds both to one behaviour.

    or   := and ('|' and)*        and := not ('&' not)*        not := '!' not | '(' or ')' | leaf
    leaf := key ('='|'!='|'<'|'<='|'>'|'>=') value | key '~' glob | key 'in' '(' value (',' value)* ')'

A comparison with what is not known is false. Versions compare by parts; other values order only when both are numbers.
"""
import fnmatch
import re

from . import cases
from .versions import version_key

_TOKEN = re.compile(r"\s*(?:(<=|>=|!=|[()&|!=<>~,])|([^\s()&|!=<>~,]+))")

_DEPTH = 60


class PredicateError(ValueError):
    """One line for people."""


def nearest(word, words):
    return min(words, key=lambda w: (_distance(word, w), w))


def _distance(a, b):
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
        word = match.group(1) or match.group(2)
        out.append((word, match.start(1 if match.group(1) else 2) + 1, bool(match.group(1))))
        at = match.end()
    return out


class _Parser:
    def __init__(self, text):
        self.tokens, self.at, self.end, self.depth = tokens(text), 0, len(text) + 1, 0

    def peek(self):
        return self.tokens[self.at][0] if self.at < len(self.tokens) and self.tokens[self.at][2] else None

    def fail(self, what):
        column = self.tokens[self.at][1] if self.at < len(self.tokens) else self.end
        raise PredicateError(f"column {column}: {what}")

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

    def leaf(self):
        start = self.at
        key = self.word("a key")
        if key not in cases.query_keys():
            self.at = start
            self.fail(f"no key '{key}'; nearest: {nearest(key, cases.query_keys())}")
        op = self.peek()
        if op in ("=", "!=", "<", "<=", ">", ">=", "~"):
            self.at += 1
            return (op, key, self.word(f"a value after {key}{op}"))
        if op is None and self.at < len(self.tokens) and self.tokens[self.at][0] == "in":
            self.at += 1
            self.take("(")
            values = [self.word("a value")]
            while self.peek() == ",":
                self.at += 1
                values.append(self.word("a value"))
            self.take(")")
            return ("in", key, values)
        return self.fail(f"expected = != < <= > >= ~ or in (...) after {key}")


def parse(text):
    parser = _Parser(text)
    tree = parser.either()
    if parser.at < len(parser.tokens):
        parser.fail("expected & or | between comparisons")
    return tree


def _number(value):
    return float(value) if re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", value) else None


def _order(key, left, right):
    """-1, 0, 1, or None where the two have no order."""
    if key in ("cudnn", "build"):
        a, b = version_key(left), version_key(right)
    else:
        a, b = _number(left), _number(right)
        if a is None or b is None:
            return None
    return (a > b) - (a < b)


def _equal(key, left, right):
    if key == "cudnn":
        return version_key(left) == version_key(right)
    a, b = _number(left), _number(right)
    return left == right or (a is not None and a == b)


_ORDERED = {"<": lambda o: o < 0, "<=": lambda o: o <= 0, ">": lambda o: o > 0, ">=": lambda o: o >= 0}


def compare(op, key, left, right):
    """One leaf. `left` is a string; None (unknown) makes every comparison false."""
    if left is None:
        return False
    if op == "~":
        return fnmatch.fnmatchcase(left, right.replace("[", "[[]"))
    if op == "in":
        return any(_equal(key, left, value) for value in right)
    if op in ("=", "!="):
        return _equal(key, left, right) == (op == "=")
    order = _order(key, left, right)
    return order is not None and _ORDERED[op](order)


def holds(tree, get):
    """`get(key)` answers with a string or None."""
    op = tree[0]
    if op == "and":
        return all(holds(t, get) for t in tree[1])
    if op == "or":
        return any(holds(t, get) for t in tree[1])
    if op == "not":
        return not holds(tree[1], get)
    return compare(op, tree[1], get(tree[1]), tree[2])
