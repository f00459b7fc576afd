/* The suites as they are kept in cases/. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys.h"
#include "language/case.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"

static facts_cases *load(const char *suite)
{
    facts_error error = { 0 };
    facts_cases *cases;
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/cases", getenv("FACTS_SOURCE"));
    cr_assert_eq(
        facts_cases_expand(&facts_attention_language, &cases, &suite, 1, dir, NULL, &error), 0,
        "%s", error.text);
    return cases;
}

static facts_problem problem;

static facts_resolve_status resolve(const char *name, facts_error *error)
{
    facts_case c;
    return facts_case_parse(&c, name, error) ? facts_problem_resolve(&problem, &c, error)
                                             : FACTS_BAD_PROBLEM;
}

static void is_implemented(const char *suite, size_t least, size_t most)
{
    facts_cases *cases = load(suite);
    size_t count = facts_cases_count(cases), backward = 0;
    cr_expect(count >= least && count <= most, "%s has %zu cases", suite, count);
    for (size_t i = 0; i < count; i++) {
        const facts_planned planned = facts_cases_at(cases, i);
        const char *name = planned.name;
        char again[FACTS_NAME_MAX];
        facts_error error = { 0 };
        facts_case c;
        cr_assert(facts_case_parse(&c, name, &error), "%s: %s", name, error.text);
        cr_expect_str_eq(facts_case_name(&c, again), name);
        cr_expect_eq(facts_problem_resolve(&problem, &c, &error), FACTS_RESOLVED, "%s: %s", name,
                     error.text);
        cr_expect(planned.group[0] != '\0' && planned.why[0] != '\0',
                  "%s: a group says its name and why", name);
        backward += problem.ask.pass == FATTN_BACKWARD;
    }
    cr_expect(backward * 4 > count || strcmp(suite, "peers-fe") == 0, "%s: %zu of %zu backward",
              suite, backward, count);
    facts_cases_destroy(cases);
}

Test(suites, are_implemented_and_as_large_as_they_may_be)
{
    static const struct {
        const char *suite;
        size_t least, most;
    } rows[] = { { "smoke", 150, 320 },     { "numbers", 150, 300 },    { "big", 80, 200 },
                 { "core", 2000, 10000 },   { "nightly", 5000, 30000 }, { "surface", 600, 1000 },
                 { "silent", 80, 200 },     { "peers-te", 1000, 2000 }, { "regress", 50, 1500 },
                 { "peers-fe", 2336, 2336 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_implemented(rows[i].suite, rows[i].least, rows[i].most);
}

Test(suites, numbers_has_every_fill_and_check)
{
    bool filled[FACTS_FILL_OTHER] = { false }, checked[FACTS_CHECKS] = { false };
    facts_cases *cases = load("numbers");
    for (size_t i = 0; i < facts_cases_count(cases); i++) {
        facts_error error = { 0 };
        cr_assert_eq(resolve(facts_cases_at(cases, i).name, &error), FACTS_RESOLVED);
        filled[problem.fill] = checked[problem.check] = true;
    }
    for (int fill = 0; fill < FACTS_FILL_OTHER; fill++)
        cr_expect(filled[fill], "fill %d", fill);
    for (int check = 0; check < FACTS_CHECKS; check++)
        cr_expect(checked[check] || check == FACTS_CHECK_KEEP || check == FACTS_CHECK_IDENTITIES,
                  "check %d", check); /* surface and nightly have keep, big has identities */
    facts_cases_destroy(cases);
}

/* Some case has this tensor's elements reach past 2^31, and one the product of batch, heads, rows
 * and keys. */
Test(suites, big_leaves_32_bits)
{
    facts_cases *cases = load("big");
    bool reaches = false, scores = false, longest = false;
    for (size_t i = 0; i < facts_cases_count(cases); i++) {
        facts_error error = { 0 };
        cr_assert_eq(resolve(facts_cases_at(cases, i).name, &error), FACTS_RESOLVED);
        const fattn_problem *ask = &problem.ask;
        reaches = reaches || problem.tensor[FACTS_TENSOR_K].elements > INT64_C(1) << 32;
        scores = scores || ask->batch * ask->heads_q * ask->seq_q * ask->seq_kv > INT64_C(1) << 32;
        longest = longest || ask->seq_kv == 131072;
    }
    cr_expect(reaches && scores && longest);
    facts_cases_destroy(cases);
}

/* A user finds his model by its name. */
Test(suites, models_are_files_of_a_folder)
{
    facts_cases *one = load("models/llama-3.1-8b");
    cr_expect_geq(facts_cases_count(one), 10);
    facts_cases_destroy(one);
    facts_cases *all = load("models");
    size_t count = facts_cases_count(all);
    for (size_t i = 0; i < count; i++) {
        const facts_planned planned = facts_cases_at(all, i);
        facts_error error = { 0 };
        cr_expect_eq(resolve(planned.name, &error), FACTS_RESOLVED, "%s: %s", planned.group,
                     error.text);
    }
    cr_expect_geq(count, 150);
    facts_cases_destroy(all);
}

Test(suites, reject_is_refused_as_it_says)
{
    facts_cases *cases = load("reject");
    cr_expect_geq(facts_cases_count(cases), 50);
    for (size_t i = 0; i < facts_cases_count(cases); i++) {
        const facts_planned planned = facts_cases_at(cases, i);
        char class[32];
        facts_error error = { 0 };
        facts_resolve_status status = resolve(planned.name, &error);
        snprintf(class, sizeof class, "%.*s", (int)strcspn(planned.expect, " "), planned.expect);
        facts_resolve_status expects =
            strcmp(class, "internal") == 0 ? FACTS_NOT_IMPLEMENTED : FACTS_BAD_PROBLEM;
        cr_expect(expects == FACTS_NOT_IMPLEMENTED || strcmp(class, "bad_problem") == 0, "%s",
                  planned.expect);
        cr_expect_eq(status, expects, "%s: %s", planned.name, error.text);
        cr_expect(strstr(error.text, planned.expect + strlen(class) + 1) != NULL, "%s: %s, not %s",
                  planned.name, error.text, planned.expect);
    }
    facts_cases_destroy(cases);
}

Test(suites, a_hash_tells_plans_apart)
{
    char a[17], b[17], again[17];
    facts_cases *smoke = load("smoke"), *core = load("core"), *same = load("smoke");
    facts_cases_hash(smoke, a);
    facts_cases_hash(core, b);
    facts_cases_hash(same, again);
    cr_expect_str_eq(a, again);
    cr_expect_str_neq(a, b);
    facts_cases_destroy(smoke);
    facts_cases_destroy(core);
    facts_cases_destroy(same);
}
