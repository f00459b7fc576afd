"""Writes libfattn's guards as C: a function that asks and a function that explains for each guard, and a table of the rules.

A guard is an object with
    name, file, when, why, link, remedy   texts; `file` is where the guard is written
    tree                                  `when` as predicate.parse(when, FACTS) returns it
    unasked                               True: the library refuses before it asks cuDNN
    knobs                                 [("KERNEL_CFG", 32), ...]
    rules                                 objects with engine (None: any), cudnn_from, cudnn_to (91400; 0: open), sm_from, sm_to

KEYS says which keys of the case language have a meaning in C. FACTS are keys for guards alone: the library computes them.
"""

import math
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from ..read import predicate


class GuardError(ValueError):
    """One line for people: the file, the key, what is wrong and what is allowed."""


@dataclass(frozen=True)
class Number:
    expression: str
    real: bool = False
    infinite: str = ""  # what the word inf is in C
    only: str = ""  # a comparison is false where this does not hold

    def printed(self):
        return ("%g" if self.real else '%" PRId64 "'), self.expression


@dataclass(frozen=True)
class Word:
    expression: str
    words: dict = field(hash=False)
    word: str = ""  # the function's call that gives the word, for sentences
    only: str = ""

    def printed(self):
        return "%s", self.word


@dataclass(frozen=True)
class Tests:
    """A few comparisons, each with its own C; != and !~ are their negations."""

    tests: dict = field(hash=False)
    word: str = ""

    def printed(self):
        return ("%s", self.word) if self.word else None


_DTYPES = ("bf16", "f16", "f32", "e4m3", "e5m2", "mxe4m3", "mxe5m2")


def _dtype(name, only=""):
    words = {word: f"FATTN_{word.upper()}" for word in _DTYPES}
    return Word(f"p->{name}", words, f"fattn__fact_dtype_word(p->{name})", only)


def _switch(expression, off="0", on="1"):
    tests = {f"={off}": f"!{expression}"}
    return Tests(tests | {f"={on}": expression} if on else tests)


def _order(role, words):
    at = f"p, FATTN__ROLE_{role}"
    tests = {
        f"={word}": f"fattn__fact_order({at}, FATTN_FORMAT_{order.upper()})"
        for word, order in words.items()
    }
    return Tests(tests, f"fattn__fact_order_word({at})")


_BAND = "p->has_right && p->window_right == 0 && !p->has_left"
_ROLES = {
    name: f"FATTN__ROLE_{name.upper()}" for name in "q k v o stats do dq dk dv bias dbias".split()
}
_PASSES = {"fwd": "FATTN_FORWARD", "bwd": "FATTN_BACKWARD"}

KEYS = {
    "pass": Word("p->pass", _PASSES, "fattn__fact_pass_word(p->pass)"),
    "dtype": _dtype("dtype"),
    "out": _dtype("o_dtype"),
    "grad": _dtype("grad_dtype"),
    "do_dtype": _dtype("do_dtype"),
    "bias_dtype": _dtype("bias_dtype", only="p->has_bias"),
    "stats_dtype": _dtype("stats_dtype"),
    "b": Number("p->batch"),
    "h.q": Number("p->heads_q"),
    "h.k": Number("p->heads_k"),
    "h.kv": Number("p->heads_k"),
    "h.v": Number("p->heads_v"),
    "s.q": Number("p->seq_q"),
    "s.kv": Number("p->seq_kv"),
    "d.qk": Number("p->dim_qk"),
    "d.v": Number("p->dim_v"),
    "window.left": Number("(p->has_left ? p->window_left : INT64_MAX)", infinite="INT64_MAX"),
    "window.right": Number("(p->has_right ? p->window_right : INT64_MAX)", infinite="INT64_MAX"),
    "align": Tests({"=tl": "p->align == FATTN_TOP_LEFT", "=br": "p->align == FATTN_BOTTOM_RIGHT"}),
    "scale": Number("p->attn_scale", real=True, only="!p->scale_in_memory"),
    "dropout": Number("p->dropout", real=True),
    "mask": Tests(
        {
            "=none": f"!({_BAND})",
            "=causal": f"{_BAND} && p->align == FATTN_TOP_LEFT",
            "=causal_br": f"{_BAND} && p->align == FATTN_BOTTOM_RIGHT",
        }
    ),
    "bias": Tests(
        {
            "=none": "!p->has_bias",
            "~bool:*": "p->has_bias && p->bias_dtype == FATTN_BOOL",
            "~?1*": "p->has_bias && p->bias_dim[1] == 1",
            "=b11s": "p->has_bias && p->bias_dim[0] > 1 && p->bias_dim[1] == 1 && p->bias_dim[2] == 1",
        }
    ),
    "alibi": _switch("p->alibi", on=""),
    "dbias": _switch("p->dbias"),
    "dsink": _switch("p->dsink"),
    "dropout_mask": _switch("p->dropout_mask"),
    "mod": Tests({"=none": "p->score_mod == NULL"}),
    "softmax": _switch("p->sink", off="vanilla", on="sink"),
    "stats": _order("STATS", {"bhs1": "bhsd"}),
    "want": Tests(
        {
            "~*stats*": "(p->outputs & (FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2)) != 0",
            "~*stats2*": "(p->outputs & FATTN_WANT_STATS_LOG2) != 0",
            "~*max*": "(p->outputs & FATTN_WANT_MAX) != 0",
            "~*sum_exp*": "(p->outputs & FATTN_WANT_SUM_EXP) != 0",
            "~*rng_dump*": "(p->outputs & FATTN_WANT_RNG_DUMP) != 0",
            "=none": "p->outputs == 0",
        }
    ),
    "padding": _switch("p->padding", off="none", on=""),
    "lens": _switch("p->padding", off="none", on=""),
    "lens_shape": Tests({"=bcast": "p->len_broadcast"}),
    "offsets": Tests({"=i64": "p->ragged_bits == 64"}),
    "impl": Tests({"=unified": "fattn__is_unified(p)"}),
    "rope": _switch("p->rope", on=""),
    "paged": Tests(
        {
            "=0": "p->page_size_k == 0 && p->page_size_v == 0",
            "~k:*": "p->page_size_k != 0 && p->page_size_v == 0",
            "~v:*": "p->page_size_k == 0 && p->page_size_v != 0",
        }
    ),
    "deterministic": _switch("p->deterministic", on=""),
}
# Keys that only guards may use.
_OF_GUARDS = {
    "misaligned": Word(
        "fattn__problem_misaligned(p)",
        {"none": "FATTN__ROLE_COUNT", **_ROLES},
        "fattn__fact_misaligned_word(p)",
    ),
    "training": _switch("p->training"),
    "capture": _switch("p->capture"),
    "ragged": Tests({"=0": "p->ragged_bits == 0", "=1": "p->ragged_bits != 0"}),
    "stats_packed": _switch("fattn__problem_ragged(p, FATTN__ROLE_STATS)"),
    "packed_alone": _switch("fattn__fact_packed_alone(p)"),
    "dense_gradient": _switch("fattn__fact_dense_gradient(p)"),
    "offsets_apart": _switch("fattn__fact_offsets_apart(p)"),
    "mod_gradient_reads": _switch("fattn__fact_mod_gradient_reads(p)"),
    "mod_reads_place": _switch("fattn__fact_mod_reads_place(p)"),
    "bias_square": _switch("fattn__fact_bias_square(p)"),
    "q_order": _order("Q", {word: word for word in ("bshd", "sbhd", "bhsd")}),
    "query_tiles": Number("fattn__fact_query_tiles(p)"),
    "stride_qkv": Number("fattn__fact_stride_qkv(p)"),
    "stride_o": Number("fattn__fact_stride_o(p)"),
    "stride_dq": Number("fattn__fact_stride_dq(p)"),
    "reach_o": Number("fattn__fact_reach_o(p)"),
}

KEYS |= _OF_GUARDS
# {key: it is a number}. For predicate.parse.
FACTS = {key: isinstance(kind, Number) for key, kind in _OF_GUARDS.items()}

# ---- predicates ----

_C = {"=": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
# How tightly an expression holds together: what may stand beside && or || without parentheses.
_ONE, _COMPARED, _AND, _OR = range(4)


def _measured(text):
    """A piece of C and how tightly it holds together."""
    bare = text
    while (inner := re.sub(r"\([^()]*\)", "", bare)) != bare:
        bare = inner
    marks = (("&&", _AND), ("||", _OR), (" ", _COMPARED))
    return text, next((level for mark, level in marks if mark in bare), _ONE)


def _negated(expression):
    text, level = expression
    if level == _ONE:
        return (text[1:], _ONE) if text.startswith("!") else (f"!{text}", _ONE)
    if level == _COMPARED and len(re.findall(" [!=]= ", text)) == 1:
        other = " == " if " != " in text else " != "
        return re.sub(" [!=]= ", other, text), _COMPARED
    return f"!({text})", _ONE


def _joined(symbol, terms):
    level = {"&&": _AND, "||": _OR}[symbol]
    texts = dict.fromkeys(
        text if inner in (_ONE, _COMPARED, level) else f"({text})" for text, inner in terms
    )
    return terms[0] if len(texts) == 1 else (f" {symbol} ".join(texts), level)


def _only(condition, expression):
    return _joined("&&", [_measured(condition), expression]) if condition else expression


class _Compiler:
    def __init__(self, guard):
        self.guard = guard

    def fail(self, key, what):
        raise GuardError(f"{self.guard.file}: {key}: {what}")

    def key(self, key):
        if key not in KEYS:
            near = predicate.nearest(key, KEYS)
            self.fail(key, f"the library cannot ask for this key; nearest: {near}")
        return KEYS[key]

    def number(self, key, kind, value):
        """A value on the right, in C."""
        if kind.infinite and value == "inf":
            return kind.infinite
        other = KEYS.get(value)
        if isinstance(other, Number):
            if other.only:
                self.fail(value, "may stand only on the left of a comparison")
            return other.expression
        number = predicate.number(value)
        known = number is not None and math.isfinite(number)
        if not known or not kind.real and (number != int(number) or abs(number) >= 2**63):
            self.fail(key, f"'{value}' is not {'a number' if kind.real else 'a whole number'}")
        if kind.real:
            return repr(number)
        return str(int(number)) if abs(number) < 2**31 else f"INT64_C({int(number)})"

    def compare(self, op, key, kind, value, modulus):
        if op not in _C:
            self.fail(key, f"{op} does not compare numbers; use = != < <= > >= or in (...)")
        if modulus and (kind.real or kind.infinite):
            self.fail(key, "% needs a whole number on its left")
        left = f"{kind.expression} % {modulus}" if modulus else kind.expression
        return _only(kind.only, (f"{left} {_C[op]} {self.number(key, kind, value)}", _COMPARED))

    def word(self, op, key, kind, value):
        if op not in ("=", "!="):
            self.fail(key, f"{op} cannot be compiled; use = != or in (...)")
        if value not in kind.words:
            self.fail(key, f"'{value}' is not a value; allowed: {' '.join(kind.words)}")
        return _only(kind.only, (f"{kind.expression} {_C[op]} {kind.words[value]}", _COMPARED))

    def test(self, op, key, kind, value):
        compiled = kind.tests.get(op.removeprefix("!") + value)
        if compiled is None:
            allowed = " ".join(key + test for test in kind.tests)
            said = f"{key}{op}{value} cannot be compiled; allowed, also with !: {allowed}"
            self.fail(key, said)
        return _negated(_measured(compiled)) if op.startswith("!") else _measured(compiled)

    def leaf(self, op, key, value, modulus):
        kind = self.key(key)
        if op == "in":
            return _joined("||", [self.leaf("=", key, one, modulus) for one in value])
        if isinstance(kind, Number):
            return self.compare(op, key, kind, value, modulus)
        if isinstance(kind, Word):
            return self.word(op, key, kind, value)
        return self.test(op, key, kind, value)

    def tree(self, tree):
        if tree[0] in ("and", "or"):
            return _joined("&&" if tree[0] == "and" else "||", [self.tree(one) for one in tree[1]])
        if tree[0] == "not":
            return _negated(self.tree(tree[1]))
        return self.leaf(*tree)

    def sentence(self):
        """The format and the arguments of `why`."""
        text, arguments = [], []
        for place, part in enumerate(re.split(r"\{([^{}]*)\}", self.guard.why)):
            if place % 2 == 0:
                if set(part) & set("{}"):
                    mark = "{key} stands for the value of a key"
                    self.fail("why", f"a brace is not closed, or not opened; {mark}")
                text.append(_quoted(part.replace("%", "%%"))[1:-1])
                continue
            printed = self.key(part).printed()
            if printed is None:
                self.fail(part, f"{{{part}}} in `why` has no value that can be printed")
            text.append(printed[0])
            arguments.append(printed[1])
        return '"' + "".join(text) + '"', arguments


# ---- C ----


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?") + '"'


def _check_texts(guard):
    for name in ("name", "when", "why", "link", "remedy"):
        text = getattr(guard, name)
        if not text and name in ("name", "when", "why"):
            raise GuardError(f"{guard.file}: {name}: is missing")
        if not (text or "").isprintable():
            raise GuardError(f"{guard.file}: {name}: expected one line without control characters")


def _wrapped(line):
    """Lines that end after && or ||."""
    glued = re.sub(r"(?<!&&)(?<!\|\|) ", "\0", line)
    how = {"break_long_words": False, "break_on_hyphens": False}
    return textwrap.fill(glued, 130, subsequent_indent=" " * 11, **how).replace("\0", " ")


def _functions(place, guard):
    compiler = _Compiler(guard)
    lines = [
        f"/* {guard.name}: {guard.file} */",
        f"static bool holds_{place}(const char *when, const fattn_problem *p)",
        "{",
        "    (void)when;",
        _wrapped(f"    return {compiler.tree(guard.tree)[0]};"),
        "}",
        "",
    ]
    form, arguments = compiler.sentence()
    if arguments:
        lines += [
            f"static void say_{place}(char *out, size_t capacity, const char *why, const fattn_problem *p)",
            "{",
            "    (void)why;",
            f"    snprintf(out, capacity, {form},",
            "             " + ", ".join(arguments) + ");",
            "}",
            "",
        ]
    knobs = []
    for name, value in guard.knobs:
        if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or not isinstance(value, int):
            said = f"'{name}={value}' is not a knob and its number, such as KERNEL_CFG=32"
            compiler.fail("knobs", said)
        knobs.append(f"{{ .type = DNN_KNOB_TYPE_{name}, .value = {value} }}")
    if knobs:
        lines += [f"static const fattn_knob knobs_{place}[] = {{ {', '.join(knobs)} }};", ""]
    return lines, bool(arguments)


def _without_condition(place, lines):
    """The functions of a guard whose condition is that of one before it."""
    head = f"static bool holds_{place}(const char *when, const fattn_problem *p)"
    return lines[:1] + lines[lines.index("}", lines.index(head)) + 2 :]


def _row(place, guard, rule, says, first):
    texts = {name: getattr(guard, name) for name in ("name", "why", "link", "remedy", "when")}
    fields = {name: _quoted(said) for name, said in texts.items() if said}
    fields["holds"] = f"holds_{first}"
    if says:
        fields["say"] = f"say_{place}"
    if guard.knobs:
        fields |= {"knobs": f"knobs_{place}", "knob_count": len(guard.knobs)}
    fields["engine"] = "FATTN_ANY" if rule.engine is None else rule.engine
    fields |= {"action": "FATTN_DENY", "backend": "FATTN_BACKEND_CUDNN", "pass": "FATTN_ANY"}
    for name in ("cudnn_from", "cudnn_to", "sm_from", "sm_to"):
        if getattr(rule, name):
            fields[name] = getattr(rule, name)
    if guard.unasked:
        fields["unasked"] = 1
    lines = [f"      .{name} = {value}," for name, value in fields.items()]
    return ["    { .struct_size = sizeof(fattn_rule),", *lines, "    },"]


def emit(guards):
    """The C text. GuardError: a guard that cannot be compiled."""
    functions, rows = [], []
    known = {}  # rows of one name share their condition: a suspected architecture has its own sentence alone
    for place, guard in enumerate(guards):
        _check_texts(guard)
        if not guard.rules:
            raise GuardError(f"{guard.file}: rules: a guard needs at least one")
        lines, says = _functions(place, guard)
        first = known.setdefault((guard.file, guard.when), place)
        functions += lines if first == place else _without_condition(place, lines)
        for rule in guard.rules:
            if guard.unasked and (rule.engine is not None or guard.knobs):
                raise GuardError(
                    f"{guard.file}: unasked: a guard of one engine or of knobs cannot refuse before cuDNN is asked"
                )
            rows += _row(place, guard, rule, says, first)
    if not rows:
        raise GuardError("there are no guards; the library's table must have a row")
    template = Path(__file__).with_name("guards.c.in").read_text(encoding="utf-8")
    return template.replace("@FUNCTIONS@", "\n".join(functions)).replace("@ROWS@", "\n".join(rows))
