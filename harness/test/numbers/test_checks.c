/* Checks: honest kernels keep them, and each catches the mistake that it is there for, with the
 * judge left aside. What keep reads: test_probe.c. */
#include "case/problem/case_problem.h"
#include "case/problem/valid_checks.h"
#include "checking.h"

/* Shapes that make tails, groups and two batch entries. */
static const char *const cases[] = {
    "pass=fwd check=identities",
    "pass=fwd check=identities mask=causal bias=1hss",
    "pass=fwd check=identities fill=unip",
    "pass=bwd check=identities mask=causal padding=random",
    "pass=bwd check=identities mod=softcap:5",
};

static const facts_kernel honest[] = { { .tile = 128 },
                                       { .tile = 64, .reversed = true, .lazy = 8 },
                                       { .tile = 64, .splits = 3 } };

static void keeps(const char *what, const char *dtype, const facts_kernel *kernel)
{
    char text[300];
    snprintf(text, sizeof text, "%s dtype=%s b=2 h=4/2 s=66/136 d=32 %s", what, dtype,
             strstr(what, "fwd") ? "want=stats+max+sum_exp" : "");
    outcome o = check_case(text, kernel);
    cr_expect(o.held.wrong == 0 && o.held.compared > 50,
              "%s: %s: %s at %d %d %d %d: %.9g, not %.9g within %g (%d of %d)", text, o.held.law,
              facts_tensor_word(o.held.id), (int)o.held.at[0], (int)o.held.at[1], (int)o.held.at[2],
              (int)o.held.at[3], o.held.got, o.held.want, o.held.bound, (int)o.held.wrong,
              (int)o.held.compared);
    cr_expect(o.judged <= 1.0 && o.base <= 1.0, "%s: judged %g and %g", text, o.base, o.judged);
}

Test(checks, honest_kernels_keep_the_identities)
{
    static const char *const dtypes[] = { "bf16", "f16", "f32" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t type = 0; type < 3; type++)
            keeps(cases[i], dtypes[type], &honest[strstr(cases[i], "bwd") ? type % 2 : type]);
}

Test(checks, identities_find_lies)
{
    static const struct {
        facts_liar liar;
        const char *text;
    } found[] = {
        { FACTS_LIAR_O_NO_RESCALE, "pass=fwd fill=spiky" },
        { FACTS_LIAR_B_NO_DELTA, "pass=bwd" },
        { FACTS_LIAR_B_DQ_NOSCALE, "pass=bwd" },
        { FACTS_LIAR_B_DQ_TWICE, "pass=bwd" },
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        char text[300];
        facts_kernel kernel = { .tile = 64, .liar = found[i].liar };
        snprintf(text, sizeof text, "%s dtype=bf16 b=2 h=4/2 s=66/136 d=32 check=identities",
                 found[i].text);
        outcome o = check_case(text, &kernel);
        cr_expect(o.held.wrong > 0, "%s: %s is not found: ratio %g, %s", text,
                  facts_liar_words[found[i].liar], o.held.ratio, o.held.law);
    }
}

Test(checks, what_says_nothing_is_refused_by_name)
{
    static const char *const texts[] = { "pass=fwd check=identities fill=needle",
                                         "pass=bwd check=identities fill=unip",
                                         "pass=fwd check=identities dropout=0.1",
                                         "pass=fwd softmax=sink check=nonfinite",
                                         "pass=fwd layout=thd padding=random check=nonfinite",
                                         "pass=fwd check=keep",
                                         "pass=fwd check=keep dropout=0.1 bias=1hss",
                                         "pass=fwd check=keep dropout=0.1 mod=relpos",
                                         "pass=fwd check=identities stride=broadcast:k.b" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static facts_problem p;
        facts_case c;
        facts_error error = { 0 };
        cr_assert(facts_case_parse(&c, texts[i], &error), "%s: %s", texts[i], error.text);
        cr_expect_eq(facts_problem_resolve(&p, &c, &error), FACTS_BAD_PROBLEM, "%s: %s", texts[i],
                     error.text);
        cr_expect_eq(strncmp(error.text, "check: ", 7), 0, "%s: %s", texts[i], error.text);
    }
}

/* 0 times Inf is NaN: a kernel that multiplies what a mask hides by a P or dS of 0 spreads it to
 * rows that do not read it. That is recorded. */
Test(checks, a_row_shows_what_it_reads_that_is_not_finite)
{
    for (int pass = 0; pass < 2; pass++) {
        char text[200];
        snprintf(text, sizeof text,
                 "pass=%s dtype=bf16 b=2 h=4/2 s=130/200 d=32 mask=causal padding=random "
                 "check=nonfinite",
                 pass ? "bwd" : "fwd");
        outcome o = check_case(text, &honest[0]);
        const facts_spread *key = &o.held.spread[0], *value = &o.held.spread[1];
        cr_expect(o.held.wrong == 0 && o.held.compared > 0 && o.held.ratio == 0.0, "%s", text);
        cr_expect(key->readers > 100 && key->reached == key->readers, "%s: NaN reached %d of %d",
                  text, (int)key->reached, (int)key->readers);
        cr_expect(key->others > 100 && key->strayed == (pass ? key->others : 0),
                  "%s: NaN strayed into %d of %d", text, (int)key->strayed, (int)key->others);
        cr_expect(value->readers == key->readers && value->reached == value->readers,
                  "%s: Inf reached %d of %d", text, (int)value->reached, (int)value->readers);
        cr_expect(value->others == key->others && value->strayed == (pass ? 0 : value->others),
                  "%s: Inf strayed into %d of %d", text, (int)value->strayed, (int)value->others);
    }
}

/* The case's own answers, which are finite, in the place of those that a NaN and an Inf were
 * planted in. */
static facts_held finite_answers(const char *text)
{
    world w = { .p = case_of(text) };
    facts_held held;
    world_fill(&w);
    world_given(&w);
    world_answer(&w, &honest[0]);
    facts_check_hold(&held, &w.view, (facts_view[]){ w.view, w.view });
    world_leave(&w);
    return held;
}

Test(checks, a_row_that_swallows_what_is_not_finite_is_wrong)
{
    for (int pass = 0; pass < 2; pass++) {
        char text[200];
        snprintf(text, sizeof text,
                 "pass=%s dtype=f16 b=2 h=4/2 s=40/56 d=32 mask=causal check=nonfinite",
                 pass ? "bwd" : "fwd");
        facts_held held = finite_answers(text);
        cr_expect_eq(held.wrong, held.spread[0].readers + held.spread[1].readers, "%s", text);
        cr_expect(held.wrong > 100 && isinf(held.ratio) && isnan(held.want), "%s", text);
        strcat(text, " fill=hugelogit"); /* a weight may be 0: of Inf nothing is due */
        held = finite_answers(text);
        cr_expect_eq(held.wrong, held.spread[0].readers, "%s", text);
        strcat(text, " bias=1hss"); /* or -inf may hide the key */
        held = finite_answers(text);
        cr_expect(held.wrong == 0 && held.spread[0].readers > 50, "%s", text);
    }
}
