/* Drawing: what comes out of `draw` is a case, the same one for the same seed, as often as its
 * weights say, and near the edges. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys.h"
#include "night.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"
#include "suites/suite.h"
#include "words/text_file.h"

static facts_suite read_text(const char *text)
{
    facts_error error = { 0 };
    facts_suite suite = { .language = &facts_attention_language };
    cr_assert(facts_suite_read(&suite, text, "test", &error), "%s", error.text);
    return suite;
}

static facts_suite shipped(void)
{
    const char *source = getenv("FACTS_SOURCE");
    char path[1024];
    facts_error error = { 0 };
    snprintf(path, sizeof path, "%s/cases/fuzz.cases", source ? source : ".");
    char *text = facts_file_text(path, &error); /* as long as the suite: the test ends soon */
    cr_assert_not_null(text, "%s", error.text);
    return read_text(text);
}

static facts_case draw(const facts_suite *suite, uint64_t seed, uint64_t index)
{
    facts_case c;
    cr_assert(facts_suite_draw(suite, seed, index, &(facts_draw_choice){ 0 }, &c),
              "nothing for %llu", (unsigned long long)index);
    return c;
}

static bool holds(const char *predicate, const facts_case *c)
{
    facts_error error = { 0 };
    facts_predicate *p = NULL;
    cr_assert(facts_predicate_parse(&facts_attention_language, &p, predicate, &error), "%s",
              error.text);
    bool yes = facts_predicate_holds(p, &(facts_subject){ .c = c });
    facts_predicate_destroy(p);
    return yes;
}

/* Setting what a key has changes nothing. */
static void check_keys(const facts_case *c, const char *name)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        facts_case copy = *c;
        char value[FACTS_CASE_TEXT];
        snprintf(value, sizeof value, "%s", facts_case_get(c, key));
        const bool conflicts =
            (key == FACTS_KEY_PADDING || key == FACTS_KEY_LENS) && strcmp(value, "none") == 0;
        cr_assert(facts_case_set(&copy, key, value, NULL) || conflicts, "%s: %s=%s", name,
                  facts_keys[key].word, value);
        cr_assert_eq(memcmp(&copy, c, sizeof copy), 0, "%s: %s=%s", name, facts_keys[key].word,
                     value);
    }
}

Test(case_draw, every_case_is_canonical_and_computable_and_small_enough)
{
    facts_suite suite = shipped();
    facts_problem *problem = malloc(sizeof *problem);
    for (uint64_t i = 0; i < (night() ? 1500u : 500u / (unsigned)one_of()); i++) {
        char name[FACTS_NAME_MAX], again[FACTS_NAME_MAX];
        facts_error error = { 0 };
        facts_case c = draw(&suite, 3, i), parsed;
        cr_assert(facts_case_parse(&parsed, facts_case_name(&c, name), &error), "%s: %s", name,
                  error.text);
        cr_assert_str_eq(facts_case_name(&parsed, again), name);
        check_keys(&c, name);
        cr_assert_eq(facts_problem_resolve(problem, &c, &error), FACTS_RESOLVED, "%s: %s", name,
                     error.text);
        const fattn_problem *ask = &problem->ask;
        cr_assert_leq((double)ask->batch * (double)ask->heads_q * (double)ask->seq_q *
                          (double)ask->seq_kv * (double)(ask->dim_qk + ask->dim_v) *
                          problem->repeat,
                      60e6, "%s", name);
    }
    free(problem);
    facts_suite_clear(&suite);
}

Test(case_draw, the_same_seed_and_index_give_the_same_case_in_any_order)
{
    facts_suite suite = shipped(), other = shipped();
    size_t differ = 0;
    for (uint64_t i = 0; i < 100; i++) {
        char forth[FACTS_NAME_MAX], back[FACTS_NAME_MAX], elsewhere[FACTS_NAME_MAX];
        facts_case a = draw(&suite, 7, i), b = draw(&other, 7, i), c = draw(&suite, 8, i);
        cr_assert_str_eq(facts_case_name(&a, forth), facts_case_name(&b, back));
        differ += strcmp(forth, facts_case_name(&c, elsewhere)) != 0;
    }
    cr_assert_geq(differ, 95);
    facts_case last = draw(&suite, 7, 99), first = draw(&suite, 7, 0), again = draw(&other, 7, 99);
    char a[FACTS_NAME_MAX], b[FACTS_NAME_MAX];
    (void)first;
    cr_assert_str_eq(facts_case_name(&last, a), facts_case_name(&again, b));
    facts_suite_clear(&suite);
    facts_suite_clear(&other);
}

Test(case_draw, values_come_as_often_as_their_weights_say)
{
    facts_suite suite = read_text("list n=10@3,20..21\ndraw 1000 seed=3\npass=fwd,bwd@3\n"
                                  "dtype=f16 where pass=bwd\ndtype=f32 where pass=fwd\n"
                                  "fill=needle,default@9 b={n}\n");
    const int draws = 4000 / one_of();
    int bwd = 0, needle = 0, ten = 0;
    for (uint64_t i = 0; i < (uint64_t)draws; i++) {
        facts_case c = draw(&suite, 1, i);
        bwd += holds("pass=bwd", &c);
        needle += holds("fill=needle", &c);
        ten += holds("b=10", &c);
        cr_assert(holds("(pass=bwd & dtype=f16) | (pass=fwd & dtype=f32)", &c));
        cr_assert(holds("b in (10, 20, 21)", &c));
    }
    cr_assert(abs(bwd - draws * 3 / 4) < 150, "%d", bwd);
    cr_assert(abs(needle - draws / 10) < 100, "%d", needle);
    cr_assert(abs(ten - draws * 3 / 4) < 150, "%d", ten);
    facts_suite_clear(&suite);
}

Test(case_draw, each_round_over_the_lines_draws_other_cases)
{
    facts_suite suite = read_text("draw 2 seed=1 s=1..100\ndraw 3\npass=bwd s=1..100000\nname: x\n"
                                  "s=7\n");
    char first[10][FACTS_NAME_MAX];
    for (uint64_t i = 0; i < 10; i++) {
        facts_case c = draw(&suite, 1, i);
        cr_assert_eq(holds("pass=bwd", &c), i % 5 >= 2);
        facts_case_name(&c, first[i]);
        for (uint64_t k = 0; k < i; k++)
            cr_assert_str_neq(first[k], first[i]);
    }
    facts_suite_clear(&suite);
}

Test(case_draw, the_shipped_draws_reach_edges_and_features)
{
    char wanted[] =
        "s.kv%64=0;s.kv%64=1;s.kv%64=63;s.kv%128=0;s.kv%128=1;s.kv%128=63;s.kv%128=64;"
        "s.kv%128=65;s.kv%128=127;s.q%128=127;s.q=1;s.kv=1;s.q=s.kv;s.q<s.kv & s.q>1;s.q>s.kv;"
        "h.q=h.kv;h.q>h.kv & h.kv>1;h.q>1 & h.kv=1;d.qk=d.v;d.qk>d.v;d.qk<d.v;d.qk>128;d.qk%8!=0;"
        "lens~'*+0*' | lens~'0*';stride~*broadcast*;stride~*gap*;"
        "window.left<inf & window.right<inf;align=br;bias=1hss & dbias=1;mod~softcap:*;"
        "exec=graph_update;engine=all;policy=math;fill=neglse & pass=bwd & s.kv%128=64;"
        "poison=nan & padding!=none;deterministic=1;mask=causal_br & s.q>s.kv;dtype~mx*;"
        "knob~unfuse_fma:*;stats_dtype in (bf16, f16);rescale=0;h.k!=h.v";
    const char *list[64];
    int hits[64] = { 0 };
    size_t count = 0;
    for (char *one = strtok(wanted, ";"); one != NULL; one = strtok(NULL, ";"))
        list[count++] = one;
    size_t missing = 3 * count;
    facts_suite suite = shipped();
    for (uint64_t i = 0; i < 3000 && missing > 0; i++) {
        facts_case c = draw(&suite, 1, i);
        for (size_t k = 0; k < count; k++)
            if (hits[k] < 3 && holds(list[k], &c)) {
                hits[k]++;
                missing--;
            }
    }
    for (size_t k = 0; k < count; k++)
        cr_expect_geq(hits[k], 3, "3000 draws and only %d with %s", hits[k], list[k]);
    facts_suite_clear(&suite);
}

/* guards=off asks for what is known to end the process; spelling is another way to ask the same.
 * Nearly every q= is written as layout=. A case that needs its GPU alone would stop the others. */
static bool left_out(facts_key key)
{
    return facts_keys[key].alone || key == FACTS_KEY_GUARDS || key == FACTS_KEY_SPELLING ||
           key == FACTS_KEY_Q;
}

Test(case_draw, every_key_is_drawn)
{
    bool seen[FACTS_KEY_COUNT] = { false }, missing = true;
    facts_suite suite = shipped();
    for (uint64_t i = 0; i < 3000u / (unsigned)one_of() && missing; i++) {
        facts_case c = draw(&suite, 2, i);
        missing = false;
        for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
            seen[key] |= c.at[key] != 0;
            missing |= !seen[key] && !left_out(key);
        }
    }
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        if (!left_out(key) && one_of() == 1)
            cr_expect(seen[key], "%s= is never drawn: give it a line in cases/fuzz.cases",
                      facts_keys[key].word);
    facts_suite_clear(&suite);
}

Test(case_draw, where_keeps_and_with_sets)
{
    facts_suite suite = shipped();
    facts_error error = { 0 };
    facts_predicate *where = NULL;
    cr_assert(
        facts_predicate_parse(&facts_attention_language, &where, "pass=bwd & d.qk>128", &error));
    const facts_draw_choice choice = { .where = where, .with = "engine=all repeat=2" };
    size_t found = 0;
    cr_assert(facts_draw_check(&facts_attention_language, &choice, &error));
    const unsigned draws = 200u / (unsigned)one_of();
    for (uint64_t i = 0; i < draws; i++) {
        facts_case c;
        if (!facts_suite_draw(&suite, 1, i, &choice, &c))
            continue;
        found++;
        cr_assert(holds("pass=bwd & d.qk>128 & engine=all & repeat=2", &c));
    }
    cr_assert_geq(found, draws * 3 / 4);
    cr_assert_not(facts_draw_check(&facts_attention_language,
                                   &(facts_draw_choice){ .with = "engine=every" }, &error));
    cr_assert_not(facts_draw_check(&facts_attention_language,
                                   &(facts_draw_choice){ .with = "engine" }, &error));
    facts_predicate_destroy(where);
    facts_suite_clear(&suite);
}

Test(case_draw, what_contradicts_is_taken_back)
{
    /* A forward has no dBias; 2 divides 4 only, and 4 is drawn sooner or later. */
    facts_suite suite = read_text("draw 9\npass=fwd bias=1hss dbias=1 h=3..5/2\n"
                                  "window=1..1000:0 where window.left<=s.kv & h=4/2\n");
    for (uint64_t i = 0; i < 50; i++) {
        facts_case c = draw(&suite, 1, i);
        cr_assert(holds("dbias=0 & (h=4/2 | h=8) & window.left<=512", &c));
    }
    facts_suite_clear(&suite);
}

Test(case_draw, a_limit_of_work_may_leave_nothing)
{
    facts_suite suite = read_text("draw 1 work=1\nb=2\n");
    facts_case c;
    cr_assert_not(facts_suite_draw(&suite, 1, 1, &(facts_draw_choice){ 0 }, &c));
    facts_suite_clear(&suite);
}

Test(case_draw, a_suite_has_the_same_lists_and_draws)
{
    facts_error error = { 0 };
    facts_cases *cases = NULL;
    char path[] = "/tmp/facts-draw-XXXXXX";
    int handle = mkstemp(path);
    FILE *out = fdopen(handle, "w");
    cr_assert_not_null(out);
    fputs("list n=1..3,7\ns={n} mask=default,causal\ndraw 20 seed=2\npass=bwd s=1..100000\n", out);
    fclose(out);
    cr_assert_eq(facts_cases_expand(&facts_attention_language, &cases,
                                    (const char *const[]){ path }, 1, NULL, NULL, &error),
                 0, "%s", error.text);
    cr_expect_eq(facts_cases_count(cases), 28);
    cr_expect_str_eq(facts_cases_at(cases, 7).name, "pass=fwd dtype=bf16 s=7 mask=causal");
    facts_cases_destroy(cases);
    remove(path);
}
