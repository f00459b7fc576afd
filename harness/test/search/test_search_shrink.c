/* Shrinking: a made-up failure (a predicate) must come down to the smallest case that has it, by
 * the same path each time, each question once. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/case_problem.h"
#include "search/shrink.h"
#include "suites/predicate.h"

#define MOST_ASKED 4096

/* A library that fails where a predicate holds, and its answers, which may come late. */
typedef struct world {
    facts_predicate *fails, *known;
    bool (*fails_too)(const facts_case *c); /* beside the predicate */
    facts_symptom symptom;
    bool late; /* an answer is there only after `deliver` */
    char *asked[MOST_ASKED];
    bool delivered[MOST_ASKED];
    size_t count;
    char path[64000];
    int reported; /* steps in the path */
} world;

static world *open_world(const char *fails)
{
    facts_error error = { 0 };
    world *w = calloc(1, sizeof *w);
    w->symptom =
        (facts_symptom){ .verdict = FACTS_VERDICT_WRONG, .engine = -1, .tensors = "dq dk" };
    cr_assert(facts_predicate_parse(&facts_attention_language, &w->fails, fails, &error), "%s",
              error.text);
    return w;
}

static void close_world(world *w)
{
    for (size_t i = 0; i < w->count; i++)
        free(w->asked[i]);
    facts_predicate_destroy(w->fails);
    if (w->known)
        facts_predicate_destroy(w->known);
    free(w);
}

static size_t ask_name(world *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->asked[i], name) == 0)
            return i;
    cr_assert_lt(w->count, MOST_ASKED);
    w->asked[w->count] = strdup(name);
    return w->count++;
}

static bool ask(void *context, const facts_case *c, facts_answer *out)
{
    world *w = context;
    static facts_symptom symptom; /* lives until the next question */
    char name[FACTS_NAME_MAX];
    size_t i = ask_name(w, facts_case_name(c, name));
    if (w->late && !w->delivered[i])
        return false;
    const facts_subject subject = { .c = c };
    bool fails = facts_predicate_holds(w->fails, &subject) && (!w->fails_too || w->fails_too(c));
    symptom = w->symptom;
    symptom.known = w->known && facts_predicate_holds(w->known, &subject);
    *out = (facts_answer){ .verdict = fails ? symptom.verdict : FACTS_VERDICT_PASS,
                           .count = fails,
                           .failing = fails ? &symptom : NULL };
    return true;
}

static void step(void *context, const facts_shrink_step *s)
{
    world *w = context;
    if (s->number <= w->reported)
        return;
    w->reported = s->number;
    char line[FACTS_NAME_MAX + 100], name[FACTS_NAME_MAX];
    snprintf(line, sizeof line, "%d %d %s %s\n", s->number, s->kept, s->what,
             facts_case_name(s->c, name));
    strncat(w->path, line, sizeof w->path - strlen(w->path) - 1);
}

static facts_shrink_result shrink_with(world *w, const char *start, int lookahead, int most_steps)
{
    facts_error error = { 0 };
    facts_shrink_order order = { .symptom = w->symptom,
                                 .lookahead = lookahead,
                                 .most_steps = most_steps,
                                 .context = w,
                                 .ask = ask,
                                 .step = step };
    facts_shrink_result result;
    cr_assert(facts_case_parse(&order.start, start, &error), "%s", error.text);
    for (;;) {
        facts_shrink(&result, &order);
        if (!result.waiting)
            return result;
        size_t open = 0;
        for (size_t i = 0; i < w->count; i++) {
            open += !w->delivered[i];
            w->delivered[i] = true;
        }
        cr_assert_gt(open, 0, "waits for nothing");
        cr_assert_leq(open, (size_t)lookahead);
    }
}

#define LOADED                                                                                     \
    "pass=bwd dtype=f16 b=3 h=8/2 s=300/448 d=192/128 layout=sbhd stride=gap:q.s.8+k.s.16 "        \
    "window=100:7 bias=1hss dbias=1 "                                                              \
    "deterministic=1 fill=needle seed=4"

#define ONE "dtype=bf16 b=1 h=1 s=1 d=1"

Test(search_shrink, comes_down_to_what_the_failure_needs)
{
    static const char *const rows[][3] = {
        { "d.qk>64 & s.kv%128=64 & pass=bwd", LOADED, "pass=bwd dtype=bf16 b=1 h=1 s=1/64 d=65" },
        { "dbias=1", LOADED, "pass=bwd " ONE " bias=11ss dbias=1" },
        { "dtype=f16 & fill=needle", LOADED, "pass=fwd dtype=f16 b=1 h=1 s=1 d=1 fill=needle" },
        { "h.q>h.kv", LOADED, "pass=fwd dtype=bf16 b=1 h=2/1 s=1 d=1" },
        { "s.kv%128=64 & s.kv>128", LOADED, "pass=fwd dtype=bf16 b=1 h=1 s=1/192 d=1" },
        { "s.q>=300 | s.kv>=448", LOADED, "pass=fwd dtype=bf16 b=1 h=1 s=300/1 d=1" },
        { "b>1 & s.q>1", LOADED, "pass=fwd dtype=bf16 h=1 s=2/1 d=1" },
        { "pass=bwd", "pass=bwd dtype=bf16", "pass=bwd " ONE },
        { "stride~*k.s.*", LOADED, "pass=fwd " ONE " stride=gap:k.s.1" },
        { "window.left<inf", LOADED, "pass=fwd " ONE " window=1:inf" },
        { "window.left>=5 & window.left<inf & window.right>=3", LOADED,
          "pass=fwd " ONE " window=5:inf" },
        { "mod~softcap:*", "pass=fwd mod=softcap:37 want=stats+max",
          "pass=fwd " ONE " mod=softcap:1" },
        { "want~*max*", "pass=fwd want=stats+max+sum_exp", "pass=fwd " ONE " want=max" },
        { "repeat>=7", "pass=fwd repeat=50", "pass=fwd " ONE " repeat=7" },
        { "mask!=none", "pass=fwd mask=causal_br", "pass=fwd " ONE " mask=causal" },
        { "v=sbhd", "pass=fwd v=sbhd q=bhsd", "pass=fwd " ONE " v=sbhd" },
        /* Engines without numbers are let go first. */
        { "s.kv>3 & pass=bwd", "pass=bwd s=100 engine=all fill=spiky",
          "pass=bwd dtype=bf16 b=1 h=1 s=1/4 d=1" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[FACTS_NAME_MAX];
        world *w = open_world(rows[i][0]);
        facts_shrink_result r = shrink_with(w, rows[i][1], 1, 0);
        cr_expect_str_eq(facts_case_name(&r.best, name), rows[i][2], "of %s: %s\n%s", rows[i][0],
                         name, w->path);
        close_world(w);
    }
}

/* Some batch entry has queries and no key. */
static bool has_empty_entry(const facts_case *c)
{
    facts_problem *problem = malloc(sizeof *problem);
    facts_error ignored;
    bool yes = false;
    if (facts_problem_resolve(problem, c, &ignored) == FACTS_RESOLVED && problem->has_lengths)
        for (int64_t i = 0; i < problem->ask.batch; i++)
            yes |= problem->len_kv[i] == 0 && problem->len_q[i] > 0;
    free(problem);
    return yes;
}

Test(search_shrink, one_batch_entry_stays_with_its_lengths)
{
    static const char *const starts[] = { "pass=fwd b=5 s=200 padding=zero:kv want=stats",
                                          "pass=bwd b=4 h=4/2 s=64/100 lens=64+3+60+1/100+99+0+7" };
    for (size_t i = 0; i < 2; i++) {
        char name[FACTS_NAME_MAX];
        world *w = open_world("b>=1");
        w->fails_too = has_empty_entry;
        facts_shrink_result r = shrink_with(w, starts[i], 1, 0);
        cr_expect_str_eq(facts_case_name(&r.best, name),
                         "pass=fwd dtype=bf16 b=1 h=1 s=1 d=1 lens=1/0", "%s\n%s", name, w->path);
        close_world(w);
    }
}

Test(search_shrink, lengths_shrink_with_the_batch_they_need)
{
    char name[FACTS_NAME_MAX];
    world *w = open_world("b>=2");
    w->fails_too = has_empty_entry;
    facts_shrink_result r = shrink_with(w, "pass=fwd b=5 s=40 lens=40+3+40+9+8/40+7+0+0+3", 1, 0);
    cr_expect_not_null(strstr(facts_case_name(&r.best, name), "h=1 s=1 d=1 lens=1+"), "%s\n%s",
                       name, w->path);
    cr_expect_null(strstr(name, " b="), "two entries, the default: %s", name);
    close_world(w);
}

Test(search_shrink, the_path_is_the_same_however_late_the_answers_come)
{
    static const char *const fails[] = { "d.qk>64 & s.kv%128=64 & pass=bwd",
                                         "window.left>=5 & window.left<inf & b>1",
                                         "h.q>h.kv & stride~*k.s*" };
    for (size_t i = 0; i < sizeof fails / sizeof *fails; i++) {
        world *first = open_world(fails[i]);
        facts_shrink_result a = shrink_with(first, LOADED, 1, 0);
        cr_assert_gt(a.steps, 10);
        for (int lookahead = 1; lookahead <= 8; lookahead += 7) {
            char left[FACTS_NAME_MAX], right[FACTS_NAME_MAX];
            world *second = open_world(fails[i]);
            second->late = true;
            facts_shrink_result b = shrink_with(second, LOADED, lookahead, 0);
            cr_expect_str_eq(facts_case_name(&a.best, left), facts_case_name(&b.best, right));
            cr_expect_str_eq(first->path, second->path);
            cr_expect_eq(a.steps, b.steps);
            close_world(second);
        }
        close_world(first);
    }
}

Test(search_shrink, nothing_is_asked_twice)
{
    world *w = open_world("d.qk>64 & s.kv%128=64");
    facts_shrink_result r = shrink_with(w, LOADED, 1, 0);
    cr_expect_eq((size_t)r.steps, w->count, "%d steps, %zu cases", r.steps, w->count);
    cr_expect_leq(r.steps, 200);
    close_world(w);
}

Test(search_shrink, another_tensor_engine_or_a_known_failure_is_not_the_same)
{
    char name[FACTS_NAME_MAX];
    facts_error error;
    world *w = open_world("s.kv>=8");
    cr_assert(facts_predicate_parse(&facts_attention_language, &w->known, "s.kv<64",
                                    &error)); /* smaller ones are a known failure */
    facts_shrink_result r = shrink_with(w, "pass=fwd s=512", 1, 0);
    cr_expect_str_eq(facts_case_name(&r.best, name), "pass=fwd dtype=bf16 b=1 h=1 s=1/64 d=1");
    close_world(w);

    const facts_symptom wanted = {
        .verdict = FACTS_VERDICT_WRONG, .engine = 6, .backend = "cudnn", .tensors = "dq"
    };
    facts_symptom other = wanted;
    cr_expect(facts_symptom_same(&wanted, &other));
    snprintf(other.tensors, sizeof other.tensors, "dk dq");
    cr_expect(facts_symptom_same(&wanted, &other), "it is among them");
    snprintf(other.tensors, sizeof other.tensors, "dk ddq");
    cr_expect_not(facts_symptom_same(&wanted, &other));
    other = wanted;
    other.engine = 7;
    cr_expect_not(facts_symptom_same(&wanted, &other));
    other = wanted;
    other.verdict = FACTS_VERDICT_NAN;
    cr_expect_not(facts_symptom_same(&wanted, &other));
}

Test(search_shrink, the_engine_that_fails_is_kept)
{
    char name[FACTS_NAME_MAX];
    world *w =
        open_world("s.kv>3 & (engine=6 | engine=all)"); /* the heuristics would choose another */
    w->symptom.engine = 6;
    facts_shrink_result r = shrink_with(w, "pass=bwd s=100 engine=all fill=spiky", 1, 0);
    cr_expect_str_eq(facts_case_name(&r.best, name),
                     "pass=fwd dtype=bf16 b=1 h=1 s=1/4 d=1 engine=6");
    close_world(w);
    w = open_world("s.kv>3");
    w->symptom.engine = 6;
    r = shrink_with(w, "pass=bwd s=100 engine=all fill=spiky", 1, 0);
    cr_expect_str_eq(facts_case_name(&r.best, name), "pass=fwd dtype=bf16 b=1 h=1 s=1/4 d=1");
    close_world(w);
}

Test(search_shrink, steps_are_a_budget)
{
    world *w = open_world("pass=bwd");
    facts_shrink_result r = shrink_with(w, LOADED, 1, 5);
    cr_expect(r.out_of_steps);
    cr_expect_eq(r.steps, 5);
    cr_expect_leq(w->count, 5);
    close_world(w);
}
