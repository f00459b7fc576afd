import os
import subprocess
import tempfile
import unittest
from dataclasses import dataclass, field
from pathlib import Path

import support

from facts_reports.read import cases, predicate
from facts_reports.known.guards import FACTS, KEYS, GuardError, Number, emit

SOURCE = support.HERE.parent.parent


@dataclass
class Rule:
    engine: object = None
    cudnn_from: int = 0
    cudnn_to: int = 0
    sm_from: int = 0
    sm_to: int = 0


@dataclass
class Guard:
    when: str
    name: str = "n"
    file: str = "n.known"
    why: str = "why"
    link: str = "l"
    remedy: str = "r"
    unasked: bool = False
    knobs: list = field(default_factory=list)
    rules: list = field(default_factory=lambda: [Rule()])

    @property
    def tree(self):
        return predicate.parse(self.when, FACTS)


# What the library computes, here read out of fields that no predicate names. An order is 10 * role + format.
STUBS = """
#define AS_FACT(type, name, place) type name(const fattn_problem *p) { return (type)(place < 4 ? p->dk_strides : p->dv_strides)[place % 4]; }
AS_FACT(bool, fattn__fact_mod_gradient_reads, 0) AS_FACT(bool, fattn__fact_mod_reads_place, 0) AS_FACT(bool, fattn__fact_packed_alone, 0) AS_FACT(bool, fattn__fact_offsets_apart, 0)
AS_FACT(bool, fattn__fact_dense_gradient, 0) AS_FACT(bool, fattn__fact_bias_square, 0) AS_FACT(int64_t, fattn__fact_query_tiles, 1) AS_FACT(int64_t, fattn__fact_stride_qkv, 2)
AS_FACT(int64_t, fattn__fact_stride_o, 3) AS_FACT(int64_t, fattn__fact_stride_dq, 4) AS_FACT(bool, fattn__is_unified, 5) AS_FACT(int64_t, fattn__fact_reach_o, 7)
AS_FACT(fattn__role, fattn__problem_misaligned, 6)
bool fattn__problem_ragged(const fattn_problem *p, fattn__role which) { return (p->ragged >> which & 1) != 0; }
bool fattn__fact_order(const fattn_problem *p, fattn__role which, fattn_format format) { return p->dv_strides[3] == 10 * (int)which + (int)format; }
const char *fattn__fact_order_word(const fattn_problem *p, fattn__role which) { (void)p; return which == FATTN__ROLE_Q ? "order of q" : "order of stats"; }
const char *fattn__fact_dtype_word(int32_t dtype) { return dtype == FATTN_F16 ? "f16" : "another type"; }
const char *fattn__fact_pass_word(int32_t pass) { return pass == FATTN_FORWARD ? "fwd" : "bwd"; }
const char *fattn__fact_misaligned_word(const fattn_problem *p) { return p->dv_strides[2] == FATTN__ROLE_K ? "k" : "?"; }
"""

# A condition that holds where a field is 1 and not where it is 0. The opposite is asked too.
FLAGS = """
pass=bwd pass, align=br align, bias!=none has_bias, dbias=1 dbias, mod!=none score_mod, softmax=sink sink
softmax!=vanilla sink, dsink=1 dsink, dsink!=0 dsink, padding!=none padding, lens!=none padding
lens_shape=bcast len_broadcast, dropout_mask!=0 dropout_mask, alibi!=0 alibi, rope!=0 rope
impl=unified dv_strides[1], deterministic!=0 deterministic, training=1 training, capture=1 capture
packed_alone=1 dk_strides[0], dense_gradient=1 dk_strides[0], offsets_apart=1 dk_strides[0]
mod_gradient_reads=1 dk_strides[0], mod_reads_place=1 dk_strides[0], bias_square=1 dk_strides[0]
paged!=0 page_size_v, paged!=0 page_size_k, ragged=1 ragged_bits
"""


def flags():
    """Rows as those of HOLDS."""
    for when, name in (flag.split() for flag in FLAGS.strip().replace("\n", ", ").split(", ")):
        set_ = f".{name} = {'MOD' if name == 'score_mod' else 1}"
        other = when.replace("!=", "=") if "!=" in when else when.replace("=", "!=")
        yield from ((when, set_, "0"), (other, "0", set_))


HOLDS = [
    line.split(" ; ")
    for line in (support.HERE / "guards.test").read_text().splitlines()
    if line and not line.startswith("#")
]

# A sentence, a problem, and what is said.
SAYS = [
    ("{s.kv} keys, {b}", ".seq_kv = 77, .batch = 3", "77 keys, 3"),
    ('{scale}: 100% "wrong" \\ ??/', ".attn_scale = -0.125", '-0.125: 100% "wrong" \\ ??/'),
    ("{dtype}, {out}, {pass}", ".dtype = 2, .o_dtype = 1, .pass = 1", "f16, another type, bwd"),
    ("{stats}, {q_order}", "0", "order of stats, order of q"),
    ("{misaligned}_strides", ".dv_strides[2] = FATTN__ROLE_K", "k_strides"),
    (
        "{query_tiles}, {stride_qkv}",
        ".dk_strides[1] = 5, .dk_strides[2] = 1l << 32",
        "5, 4294967296",
    ),
    ("größer als {d.qk}", ".dim_qk = 128", "größer als 128"),
]

ERRORS = [
    (Guard("exec=graph"), "exec: the library cannot ask for this key; nearest: "),
    (Guard("cudnn<9.20"), "cudnn: the library cannot ask for this key"),
    (Guard("dtype~mx*"), "dtype: ~ cannot be compiled; use = != or in (...)"),
    (Guard("dtype=half"), "dtype: 'half' is not a value; allowed: bf16 f16 f32 e4m3"),
    (Guard("s.q~1*"), "s.q: ~ does not compare numbers"),
    (Guard("s.q=1.5"), "s.q: '1.5' is not a whole number"),
    (Guard("s.q=99999999999999999999"), "s.q: '99999999999999999999' is not a whole number"),
    (Guard("s.q=inf"), "s.q: 'inf' is not a whole number"),
    (Guard("scale=auto"), "scale: 'auto' is not a number"),
    (Guard("dropout%2=0"), "dropout: % needs a whole number on its left"),
    (Guard("window.left%2=0"), "window.left: % needs a whole number"),
    (Guard("dropout<scale"), "scale: may stand only on the left of a comparison"),
    (
        Guard("bias=11ss"),
        "bias: bias=11ss cannot be compiled; allowed, also with !: bias=none bias~bool:*",
    ),
    (Guard("want=stats"), "want: want=stats cannot be compiled"),
    (Guard("stats=th1"), "stats: stats=th1 cannot be compiled"),
    (Guard("softmax=off_by_one"), "softmax: softmax=off_by_one cannot be compiled"),
    (
        Guard("ragged=yes"),
        "ragged: ragged=yes cannot be compiled; allowed, also with !: ragged=0 ragged=1",
    ),
    (Guard("b=1", why="{bias}"), "bias: {bias} in `why` has no value"),
    (Guard("b=1", why="{nosuch}"), "nosuch: the library cannot ask for this key"),
    (Guard("b=1", why="two\nlines"), "why: expected one line"),
    (Guard("b=1", why="{b"), "why: a brace is not closed"),
    (Guard("b=1", why="b}"), "why: a brace is not closed"),
    (Guard("b=1", why=""), "why: is missing"),
    (Guard("b=1", name=""), "name: is missing"),
    (Guard("b=1", remedy="a\tb"), "remedy: expected one line"),
    (Guard("b=1", knobs=[("k40", 1)]), "knobs: 'k40=1' is not a knob and its number"),
    (Guard("b=1", unasked=True, rules=[Rule(engine=2)]), "unasked: a guard of one engine"),
    (
        Guard("b=1", unasked=True, knobs=[("TILE_N", 1)]),
        "unasked: a guard of one engine or of knobs",
    ),
    (Guard("b=1", rules=[]), "rules: a guard needs at least one"),
]

MAIN = """
#include <string.h>
#include "policy/rules.h"
#define MOD ((const fattn_score_mod *)(uintptr_t)1)
%s
static int wrong;
void holds(size_t at, fattn_problem p, bool yes)
{
    const fattn_rule *rule = fattn_guard_at(at);
    if (rule->holds(rule->when, &p) != yes)
        wrong++, printf("%%s: should %%s\\n", rule->when, yes ? "hold" : "not hold");
}
void says(size_t at, fattn_problem p, const char *text)
{
    const fattn_rule *rule = fattn_guard_at(at);
    char out[200] = "", narrow[6] = "";
    rule->say(out, sizeof out, rule->why, &p);
    rule->say(narrow, sizeof narrow, rule->why, &p);
    if (strcmp(out, text) != 0 || strncmp(narrow, text, 5) != 0)
        wrong++, printf("%%s: %%s, not %%s\\n", rule->why, out, text);
}
int main(void)
{
%s    return wrong != 0;
}
"""


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("??", '?""?') + '"'


class KnownGuards(unittest.TestCase):
    def program(self, guards, calls):
        """What a program of the guards and these calls prints."""
        flags = "-std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
        flags += f" -fsanitize=undefined -I{SOURCE}/lib/include -I{SOURCE}/lib/src"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "guards.c"
            lines = "".join(f"    {call};\n" for call in calls)
            path.write_text(emit(guards) + MAIN % (STUBS, lines), encoding="utf-8")
            program = path.with_suffix("")
            command = [os.environ.get("FACTS_CC", "cc"), *flags.split(), path, "-o", program]
            made = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr[:4000])
            done = subprocess.run([program], capture_output=True, text=True)
            return done.stdout + done.stderr

    def test_conditions_hold_where_they_say(self):
        rows = [*HOLDS, *flags()]
        guards = [Guard(when) for when, _, _ in rows]
        calls = [
            f"holds({i}, (fattn_problem){{ {fields} }}, {answer})"
            for i, row in enumerate(rows)
            for fields, answer in ((row[1], "true"), (row[2], "false"))
        ]
        self.assertEqual(self.program(guards, calls), "")

    def test_a_wrong_answer_is_seen(self):
        call = "holds(0, (fattn_problem){ .batch = 2 }, true)"
        self.assertEqual(self.program([Guard("b=1")], [call]), "b=1: should hold\n")

    def test_sentences_have_the_values_of_the_problem(self):
        guards = [Guard("b=1", why=why) for why, _, _ in SAYS]
        calls = [
            f"says({i}, (fattn_problem){{ {fields} }}, {quoted(text)})"
            for i, (_, fields, text) in enumerate(SAYS)
        ]
        self.assertEqual(self.program(guards, calls), "")

    def test_a_guard_has_a_row_for_each_rule_and_one_condition(self):
        knobs = [("KERNEL_CFG", 32), ("TILE_N", 3)]
        rules = [Rule(2, 91400, 92000, 90, 100), Rule(7, cudnn_from=92100)]
        guard = Guard("b=1", name="a", knobs=knobs, rules=rules)
        checks = [
            "wrong += fattn_guard_count() != 3 || fattn_guard_at(3) != NULL",
            "const fattn_rule *a = fattn_guard_at(0), *b = fattn_guard_at(1), *c = fattn_guard_at(2)",
            'wrong += strcmp(a->name, "a") != 0 || strcmp(b->name, "a") != 0 || strcmp(a->when, "b=1") != 0 || strcmp(a->link, "l") != 0 || strcmp(a->remedy, "r") != 0',
            "wrong += a->holds != b->holds || a->say != NULL || a->knobs != b->knobs || a->knob_count != 2 || a->knobs[0].type != 24 || a->knobs[1].value != 3",
            "wrong += a->engine != 2 || a->cudnn_from != 91400 || a->cudnn_to != 92000 || a->sm_from != 90 || a->sm_to != 100",
            "wrong += b->engine != 7 || b->cudnn_from != 92100 || b->cudnn_to != 0 || b->sm_from != 0 || b->sm_to != 0 || b->unasked != 0",
            "wrong += c->engine != FATTN_ANY || c->pass != FATTN_ANY || c->unasked != 1 || c->knob_count != 0 || c->link != NULL || c->struct_size != sizeof *c",
            "wrong += c->action != FATTN_DENY || c->backend != FATTN_BACKEND_CUDNN",
            'if (wrong) printf("%d\\n", wrong)',
        ]
        self.assertEqual(self.program([guard, Guard("b=2", unasked=True, link="")], checks), "")

    def test_what_cannot_be_compiled_is_refused_in_one_line(self):
        for guard, message in ERRORS:
            with self.subTest(message), self.assertRaises(GuardError) as caught:
                emit([guard])
            self.assertTrue(
                str(caught.exception).startswith(f"n.known: {message}"), caught.exception
            )
            self.assertNotIn("\n", str(caught.exception))

    def test_a_table_without_guards_is_refused(self):
        with self.assertRaisesRegex(GuardError, "there are no guards"):
            emit([])

    def test_text_is_stable_and_names_its_file(self):
        guards = [Guard("b=1", name="one", file="cases/known/one.known"), Guard("b=2", name="two")]
        text = emit(guards)
        self.assertEqual(text, emit(guards))
        first = "/* one: cases/known/one.known */\nstatic bool holds_0(const char *when, const fattn_problem *p)\n"
        self.assertIn(first, text)

    def test_facts_are_no_keys_of_cases(self):
        self.assertFalse(set(FACTS) & set(cases.query_keys()))
        self.assertLessEqual(set(FACTS), set(KEYS))
        self.assertLessEqual(set(KEYS) - set(FACTS), set(cases.query_keys()))
        for key, kind in KEYS.items():
            number = key in cases.numbers() - {"paged", "rope"} or FACTS.get(key, False)
            self.assertEqual(isinstance(kind, Number), number, key)
        found = predicate.parse("query_tiles%2>1 & misaligned!=none", FACTS)
        due = [(">", "query_tiles", "1", 2), ("!=", "misaligned", "none", 0)]
        self.assertEqual(found, ("and", due))
        for text, keys, said in (
            ("misaligned!=none", (), "no key 'misaligned'"),
            ("misaligned<k", (FACTS,), "misaligned has no order"),
            ("query_tile>1", (FACTS,), "no key 'query_tile'; nearest: query_tiles"),
        ):
            with self.assertRaisesRegex(predicate.PredicateError, said):
                predicate.parse(text, *keys)
