/* What a fuzzer does with what failed: confirmed and shrunk, unless a form stands for it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "search/findings.h"
#include "suites/planned_cases.h"
#include "suites/predicate.h"

/* ---- a made-up library
 * -----------------------------------------------------------------------------------------------------
 */

typedef struct bug {
    const char *where;
    facts_symptom symptom;
    int every; /* fails each so many-th time only; 0: always */
} bug;

typedef struct world {
    const bug *bugs;
    size_t bug_count;
    char *asked[4096];
    bool answered[4096];
    size_t count;
    int times; /* questions so far */
    facts_symptom symptom[8];
} world;

static bool holds(const char *where, const facts_case *c)
{
    facts_error error = { 0 };
    facts_predicate *p = NULL;
    cr_assert(facts_predicate_parse(&facts_attention_language, &p, where, &error), "%s",
              error.text);
    bool yes = facts_predicate_holds(p, &(facts_subject){ .c = c });
    facts_predicate_destroy(p);
    return yes;
}

static facts_answer answer_of(world *w, const facts_case *c)
{
    facts_answer answer = { .verdict = FACTS_VERDICT_PASS, .failing = w->symptom };
    for (size_t i = 0; i < w->bug_count; i++)
        if (holds(w->bugs[i].where, c) && (!w->bugs[i].every || w->times % w->bugs[i].every == 0)) {
            answer.verdict = w->bugs[i].symptom.verdict;
            w->symptom[answer.count++] = w->bugs[i].symptom;
        }
    return answer;
}

/* An answer is there when the question was asked in an earlier round. */
static bool ask(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out)
{
    world *w = context;
    char name[FACTS_NAME_MAX + 16], text[FACTS_NAME_MAX];
    snprintf(name, sizeof name, "%d %s", attempt, facts_case_name(c, text));
    cr_assert_not(alone, "nothing here ends badly");
    size_t i = 0;
    while (i < w->count && strcmp(w->asked[i], name) != 0)
        i++;
    if (i == w->count) {
        cr_assert_lt(w->count, 4096);
        w->asked[w->count++] = strdup(name);
        w->times++;
        return false;
    }
    if (!w->answered[i])
        return false;
    *out = answer_of(w, c);
    return true;
}

/* As drawn, with what the library answers. */
static void add(facts_findings *f, world *of, const char *text)
{
    facts_case c;
    facts_error error;
    cr_assert(facts_case_parse(&c, text, &error));
    of->times = 0;
    facts_answer answer = answer_of(of, &c);
    facts_findings_add(f, &c, &answer, false);
}

static facts_findings *hunt_with(world *of, const char *const *drawn, size_t count,
                                 const facts_findings_limits *limits)
{
    facts_findings *f = facts_findings_new(limits);
    const facts_asker asker = { of, ask };
    for (size_t i = 0; i < count; i++)
        add(f, of, drawn[i]);
    for (int rounds = 0; rounds < 2000; rounds++) {
        facts_findings_advance(f, &asker);
        if (!facts_findings_open(f))
            return f;
        memset(of->answered, true, sizeof of->answered);
    }
    cr_assert_fail("it never ends");
    return f;
}

static world w; /* of each test */

static void close_world(void)
{
    for (size_t i = 0; i < w.count; i++)
        free(w.asked[i]);
    w.count = 0;
}

TestSuite(search_findings, .fini = close_world);

/* In a library with these bugs. */
static facts_findings *search(const bug *bugs, size_t bug_count, const char *const *drawn,
                              size_t count)
{
    close_world();
    w.bugs = bugs;
    w.bug_count = bug_count;
    return hunt_with(&w, drawn, count, &(facts_findings_limits){ .lookahead = 4 });
}

static bool has_form(const facts_findings *f, const char *name)
{
    char text[FACTS_NAME_MAX];
    for (size_t i = 0; i < facts_findings_count(f); i++)
        if (strcmp(facts_case_name(&facts_findings_at(f, i)->best, text), name) == 0)
            return true;
    return false;
}

static const facts_symptom wrong_dq = { .verdict = FACTS_VERDICT_WRONG,
                                        .engine = 6,
                                        .backend = "cudnn",
                                        .tensors = "dq dk",
                                        .gate = "t1" };
static const facts_symptom nan_dv = {
    .verdict = FACTS_VERDICT_NAN, .engine = 7, .backend = "cudnn", .tensors = "dv", .gate = "t0"
};

Test(search_findings, each_way_to_fail_is_shrunk_once)
{
    const bug bugs[] = { { "pass=bwd & s.kv%64=1", wrong_dq, 0 },
                         { "mod~softcap:* & d.qk>64", nan_dv, 0 } };
    static const char *const drawn[] = { "pass=bwd s=65 d=64 fill=spiky",
                                         "pass=bwd s=100/129 h=4/2 mask=causal",
                                         "pass=fwd mod=softcap:5 s=100",
                                         "pass=bwd s=20/193 b=3 layout=bhsd",
                                         "pass=bwd s=70/65 mod=softcap:30 d=96" };
    facts_findings *f = search(bugs, 2, drawn, 5);
    cr_expect(has_form(f, "pass=bwd dtype=bf16 b=1 h=1 s=1 d=1"));
    cr_expect_leq(facts_findings_count(f), 3, "a backward of the softcap may be another cause");
    for (size_t i = 0; i < facts_findings_count(f); i++) {
        cr_expect_eq(facts_findings_at(f, i)->failed, 2);
        cr_expect_eq(facts_findings_at(f, i)->asked, 2);
    }
    facts_findings_free(f);
}

Test(search_findings, after_four_forms_that_are_alike_no_more_are_made)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq,
                           100 } }; /* what does not fail again is not shrunk */
    static const char *const drawn[] = { "pass=bwd s=9 fill=spiky",  "pass=bwd s=8 fill=needle",
                                         "pass=bwd s=7 fill=spiky",  "pass=bwd s=6 fill=needle",
                                         "pass=bwd s=5 fill=neglse", "pass=bwd s=5 mask=causal" };
    facts_findings *f = search(bugs, 1, drawn, 6);
    cr_expect_eq(facts_findings_count(f), 5);
    cr_expect_not(has_form(f, "pass=bwd dtype=bf16 s=5 fill=neglse"));
    cr_expect(has_form(f, "pass=bwd dtype=bf16 s=5 mask=causal"));
    facts_findings_free(f);
}

Test(search_findings, cases_with_few_features_are_shrunk_first)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq, 0 } };
    static const char *const drawn[] = {
        "pass=bwd s=65 layout=bhsd mask=causal poison=nan repeat=2", "pass=bwd s=20 fill=spiky"
    };
    w.bugs = bugs;
    w.bug_count = 1;
    facts_findings *f = facts_findings_new(&(facts_findings_limits){ .lookahead = 1 });
    for (size_t i = 0; i < 2; i++)
        add(f, &w, drawn[i]);
    facts_findings_advance(f, &(facts_asker){ &w, ask });
    cr_assert_eq(w.count, 1);
    cr_expect_str_eq(w.asked[0], "2 pass=bwd dtype=bf16 s=20 fill=spiky");
    facts_findings_free(f);
}

Test(search_findings, what_is_known_without_some_features_is_no_finding)
{
    facts_symptom known = wrong_dq;
    known.known = true;
    const bug bugs[] = { { "pass=bwd & fill=spiky & mask=none", known, 0 },
                         { "pass=bwd & fill=spiky & mask=causal", wrong_dq, 0 } };
    static const char *const drawn[] = { "pass=bwd s=65 fill=spiky mask=causal b=3",
                                         "pass=bwd s=70 fill=spiky mask=causal h=4/2" };
    facts_findings *f = search(bugs, 2, drawn, 2);
    cr_assert_eq(facts_findings_count(f), 1);
    cr_expect_eq(facts_findings_news(f), 0);
    const facts_form *form = facts_findings_at(f, 0);
    cr_expect(form->explained);
    char name[FACTS_NAME_MAX];
    cr_expect_str_eq(facts_case_name(&form->best, name),
                     "pass=bwd dtype=bf16 b=1 h=1 s=1 d=1 mask=causal fill=spiky");
    cr_expect_str_eq(facts_case_name(&form->known, name),
                     "pass=bwd dtype=bf16 b=1 h=1 s=1 d=1 fill=spiky");
    facts_findings_free(f);
}

Test(search_findings, a_known_failure_at_other_sizes_explains_nothing)
{
    facts_symptom known = wrong_dq;
    known.known = true;
    const bug bugs[] = { { "pass=bwd & mod~softcap:* & s.q=1", known, 0 },
                         { "pass=bwd & mod~softcap:* & s.q>1", wrong_dq, 0 } };
    static const char *const drawn[] = { "pass=bwd s=65 mod=softcap:5 b=3" };
    facts_findings *f = search(bugs, 2, drawn, 1);
    cr_assert_eq(facts_findings_count(f), 1);
    cr_expect_eq(facts_findings_news(f), 1);
    facts_findings_free(f);
}

Test(search_findings, what_a_form_explains_is_not_shrunk_again)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq, 0 } };
    static const char *const drawn[] = { "pass=bwd s=65 fill=spiky",
                                         "pass=bwd s=300 h=4/2 mask=causal" };
    facts_findings *f = search(bugs, 1, drawn, 1);
    size_t alone = w.count;
    facts_findings_free(f);
    f = search(bugs, 1, drawn, 2);
    cr_expect_eq(w.count, alone);
    cr_expect_eq(facts_findings_count(f), 1);
    facts_findings_free(f);
}

Test(search_findings, another_type_is_shrunk_once_and_counted_from_then_on)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq, 0 } };
    static const char *const drawn[] = { "pass=bwd s=65 fill=spiky",
                                         "pass=bwd dtype=e4m3 s=300 h=4/2 mask=causal",
                                         "pass=bwd dtype=e5m2 s=200 b=3 mask=causal" };
    size_t asked[4] = { 0 };
    for (size_t n = 1; n <= 3; n++) {
        facts_findings *f = search(bugs, 1, drawn, n);
        asked[n] = w.count;
        cr_expect_eq(facts_findings_count(f), n > 1 ? 2 : 1);
        facts_findings_free(f);
    }
    cr_expect_gt(asked[2], asked[1], "e4m3 may be another cause");
    cr_expect_eq(asked[3], asked[2]);
}

Test(search_findings, what_does_not_fail_again_is_said_with_its_rate_and_not_shrunk)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq, 100 } };
    static const char *const drawn[] = { "pass=bwd s=65 fill=spiky" };
    facts_findings *f = search(bugs, 1, drawn, 1);
    cr_assert_eq(facts_findings_count(f), 1);
    const facts_form *form = facts_findings_at(f, 0);
    cr_expect_eq(form->failed, 1);
    cr_expect_eq(form->asked, 5);
    cr_expect_eq(w.count, 5, "attempts 2 to 5, and the first for its evidence: %zu", w.count);
    facts_findings_free(f);
}

Test(search_findings, known_failures_are_left_out_unless_wanted_and_what_the_data_could_not_tell)
{
    facts_symptom known = wrong_dq;
    known.known = true;
    const facts_symptom unsure = { .verdict = FACTS_VERDICT_MISTRUSTED, .engine = 6 };
    facts_findings *f = facts_findings_new(&(facts_findings_limits){ 0 });
    facts_case c;
    facts_error error;
    cr_assert(facts_case_parse(&c, "pass=bwd", &error));
    const facts_answer answer = { .verdict = FACTS_VERDICT_WRONG, .count = 1, .failing = &known },
                       no_answer = { .verdict = FACTS_VERDICT_MISTRUSTED,
                                     .count = 1,
                                     .failing = &unsure };
    facts_findings_add(f, &c, &answer, false);
    facts_findings_add(f, &c, &no_answer, true);
    cr_expect_eq(facts_findings_open(f), 0);
    facts_findings_add(f, &c, &answer, true);
    cr_expect_eq(facts_findings_open(f), 1);
    facts_findings_free(f);
}

Test(search_findings, what_is_open_when_time_is_up_is_told_as_it_is)
{
    const bug bugs[] = { { "pass=bwd", wrong_dq, 0 } };
    w.bugs = bugs;
    w.bug_count = 1;
    facts_findings *f = facts_findings_new(&(facts_findings_limits){ .lookahead = 1 });
    const facts_asker asker = { &w, ask };
    add(f, &w, "pass=bwd dtype=f16 s=300 fill=spiky");
    for (int i = 0; i < 6; i++) {
        facts_findings_advance(f, &asker);
        memset(w.answered, true, sizeof w.answered);
    }
    cr_assert_eq(facts_findings_open(f), 1);
    facts_findings_close(f, &asker);
    cr_expect_eq(facts_findings_open(f), 0);
    cr_assert_eq(facts_findings_count(f), 1);
    cr_expect(facts_findings_at(f, 0)->unfinished);
    facts_findings_free(f);
}
