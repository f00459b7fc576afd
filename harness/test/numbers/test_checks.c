/* Checks: right answers keep them, and each catches the mistake that it is there for, with the
 * judge left aside. What keep reads: test_probe.c. A kernel's answers: harness/test/self. */
#include "checking.h"
#include "problem/case_problem.h"
#include "problem/resolution.h"

/* A mistake: all elements of a tensor times a factor and plus a number. */
typedef struct mistake {
    facts_tensor_id id;
    double times, plus;
} mistake;

static void bend(const facts_view *v, const mistake *m)
{
    for (facts_walk w = facts_walk_of(v->problem->tensor[m->id].dim); facts_walk_on(&w);)
        facts_view_put(v, m->id, w.at, facts_view_get(v, m->id, w.at) * m->times + m->plus);
}

/* What the check that the case names, of one run, says of the reference's answers. */
static facts_held check_case(const char *text, const mistake *m)
{
    facts_held held;
    world base = { .p = problem_asked(text) }, run = { .p = base.p };
    world_fill(&base);
    world_given(&base);
    world_answer(&base);
    cr_assert_eq(facts_check_runs(&base.p), 1);
    facts_check_ask(&run.p, &base.p);
    world_fill(&run);
    facts_check_write(&run.view, base.p.check, 0);
    run.p.fill = FACTS_FILL_OTHER;
    world_given(&run);
    world_answer(&run);
    if (m) {
        bend(&base.view, m);
        bend(&run.view, m);
    }
    facts_check_hold(&held, &base.view, &run.view);
    world_leave(&run);
    world_leave(&base);
    return held;
}

/* Shapes that make tails, groups and two batch entries. */
#define SHAPE "b=2 h=4/2 s=66/136 d=32 check=identities"
static const char *const cases[] = { "pass=fwd", "pass=fwd mask=causal bias=1hss",
                                     "pass=fwd fill=unip", "pass=bwd mask=causal padding=random",
                                     "pass=bwd mod=softcap:5" };

Test(checks, right_answers_keep_the_identities)
{
    static const char *const dtypes[] = { "bf16", "f16", "f32" };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t type = 0; type < 3; type++) {
            char text[300];
            snprintf(text, sizeof text, "%s dtype=%s " SHAPE, cases[i], dtypes[type]);
            const facts_held held = check_case(text, NULL);
            cr_expect(held.wrong == 0 && held.compared > 50, "%s: %s: %.9g, not %.9g within %g",
                      text, held.law, held.got, held.want, held.bound);
        }
}

Test(checks, identities_find_lies)
{
    static const struct {
        const char *text, *law;
        mistake m;
    } found[] = { { "pass=fwd fill=spiky", "I6", { FACTS_TENSOR_O, 1.03, 0 } },
                  { "pass=bwd", "I1", { FACTS_TENSOR_DV, 1, 0.01 } },
                  { "pass=bwd", "I2", { FACTS_TENSOR_DQ, 1, 0.1 } },
                  { "pass=bwd", "I4", { FACTS_TENSOR_DQ, 2, 0 } },
                  { "pass=bwd", "I5", { FACTS_TENSOR_O, 1.5, 0 } } };
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        char text[300];
        snprintf(text, sizeof text, "%s " SHAPE, found[i].text);
        const facts_held held = check_case(text, &found[i].m);
        cr_expect(held.wrong > 0 && strncmp(held.law, found[i].law, 2) == 0,
                  "%s: %s is not found: ratio %g, %s", text, found[i].law, held.ratio, held.law);
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

#define NONFINITE "dtype=f16 b=2 h=4/2 s=40/56 d=32 mask=causal check=nonfinite"

/* The case's own answers, which are finite, in the place of those that a NaN and an Inf were
 * planted in; or NaN everywhere. */
static facts_held planted(bool backward, const char *more, bool finite)
{
    char text[200];
    snprintf(text, sizeof text, "pass=%s " NONFINITE " %s", backward ? "bwd" : "fwd", more);
    world w = { .p = problem_asked(text) };
    facts_held held;
    world_fill(&w);
    world_given(&w);
    world_answer(&w);
    if (!finite)
        bend(&w.view, &(mistake){ backward ? FACTS_TENSOR_DQ : FACTS_TENSOR_O, NAN, 0 });
    facts_check_hold(&held, &w.view, (facts_view[]){ w.view, w.view, w.view, w.view });
    world_leave(&w);
    return held;
}

Test(checks, a_row_shows_what_it_reads_that_is_not_finite)
{
    for (int backward = 0; backward < 2; backward++) {
        const facts_held held = planted(backward, "", false);
        cr_expect(held.wrong == 0 && held.compared > 200 && held.ratio == 0.0);
    }
}

/* 2 entries of 4 heads: rows 28 to 39 see the middle key under the causal mask, and row 20 is the
 * middle row. */
Test(checks, a_row_that_swallows_what_is_not_finite_is_wrong)
{
    for (int backward = 0; backward < 2; backward++) {
        const int64_t readers = 8 * 12, rows = 8 * (1 + backward);
        facts_held held = planted(backward, "", true);
        cr_expect_eq(held.wrong, 2 * readers + rows);
        cr_expect(isinf(held.ratio) && isnan(held.want));
        held = planted(backward, "fill=hugelogit", true);
        cr_expect_eq(held.wrong, readers + rows, "a weight may be 0: of Inf nothing is due");
        held = planted(backward, "fill=hugelogit bias=1hss", true);
        cr_expect(held.wrong == 0 && held.compared > 200, "or -inf may hide the key");
    }
}
