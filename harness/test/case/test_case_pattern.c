#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "language/case.h"
#include "language/pattern.h"
#include "problem/case_problem.h"
#include "suites/planned_cases.h"

static facts_error error;

/* The names of an expansion, a blank line between them; NULL when it is refused. */
static char *expand(const char *text, const char *where, size_t limit)
{
    facts_cases *cases;
    if (facts_cases_expand(&facts_attention_language, &cases, &text, 1, NULL,
                           &(facts_choice){ .where = where, .limit = limit }, &error) != 0)
        return NULL;
    char *out = calloc(facts_cases_count(cases) + 1, FACTS_NAME_MAX);
    for (size_t i = 0; i < facts_cases_count(cases); i++)
        strcat(strcat(out, facts_cases_at(cases, i).name + strlen("pass=fwd dtype=bf16 ")), "|");
    facts_cases_destroy(cases);
    return out;
}

Test(pattern, where_keeps_what_satisfies_it_and_a_limit_holds)
{
    char *got = expand("s=1..3/1..3 where s.q<s.kv", "s.q=2", 0);
    cr_expect_str_eq(got, "s=2/3|");
    free(got);
    cr_expect_null(expand("s=1..11", NULL, 10));
    cr_expect(strstr(error.text, "case:1:1: 11 cases, more than 10") != NULL, "%s", error.text);
    got = expand("s=1..10", NULL, 10);
    cr_expect_not_null(got);
    free(got);
}

Test(pattern, draw_takes_members_without_replacement_and_always_the_same)
{
    static const char text[] = "draw 90 seed=5 s=1..10/1..10";
    char *first = expand(text, NULL, 0), *second = expand(text, NULL, 0),
         *other = expand("draw 90 seed=6 s=1..10/1..10", NULL, 0);
    size_t bars = 0;
    for (const char *at = first; *at != '\0'; at++)
        bars += *at == '|';
    cr_expect_eq(bars, 90, "90 different names, got %zu", bars);
    cr_expect_str_eq(first, second);
    cr_expect_str_neq(first, other);
    free(first);
    free(second);
    free(other);
}

Test(pattern, a_draw_is_a_permutation)
{
    for (uint64_t count = 1; count < 400; count += 13) {
        bool seen[400] = { false };
        for (uint64_t i = 0; i < count; i++) {
            uint64_t at = facts_pattern_draw(count, 99, i);
            cr_assert(at < count && !seen[at]);
            seen[at] = true;
        }
    }
    cr_expect_lt(facts_pattern_draw(UINT64_MAX, 1, 0), UINT64_MAX);
}

Test(pattern, a_draw_spreads_over_the_product)
{
    int low = 0;
    for (uint64_t i = 0; i < 1000; i++)
        low += facts_pattern_draw(1000000, 7, i) < 500000;
    cr_expect(low > 430 && low < 570, "%d of 1000 in the lower half", low);
}

static int expand_file(facts_cases **out, const char *text)
{
    static char path[] = "/tmp/facts-test-XXXXXX";
    strcpy(path, "/tmp/facts-test-XXXXXX");
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    const char *texts[] = { path };
    int status = facts_cases_expand(&facts_attention_language, out, texts, 1, NULL, NULL, &error);
    unlink(path);
    return status;
}

Test(suite, groups_carry_why_and_what_is_expected)
{
    facts_cases *cases;
    cr_assert_eq(
        expand_file(&cases,
                    "# a comment\nname: one\nwhy: because of\nwhy: owner/project#12 # a "
                    "note\nwhere s.q<=s.kv\n"
                    "s=1..2/1..2 # trailing\n\nname: two\nexpect: bad_problem h:\nh=8/3\r\n"),
        0, "%s", error.text);
    cr_assert_eq(facts_cases_count(cases), 4);
    const facts_planned first = facts_cases_at(cases, 0), last = facts_cases_at(cases, 3);
    cr_expect_str_eq(first.group, "one");
    cr_expect_str_eq(first.why, "because of owner/project#12");
    cr_expect_str_eq(first.expect, "");
    cr_expect_str_eq(last.group, "two");
    cr_expect_str_eq(last.expect, "bad_problem h:");
    facts_cases_destroy(cases);
}

Test(suite, a_name_that_is_none_is_said_so)
{
    const char *texts[] = { "smokee" };
    char dir[4096];
    snprintf(dir, sizeof dir, "%s/cases", getenv("FACTS_SOURCE"));
    facts_cases *cases;
    cr_expect_eq(facts_cases_expand(&facts_attention_language, &cases, texts, 1, dir, NULL, &error),
                 2);
    cr_expect(strstr(error.text, "did you mean smoke?") != NULL, "%s", error.text);
    texts[0] = "";
    cr_expect_eq(facts_cases_expand(&facts_attention_language, &cases, texts, 1, dir, NULL, &error),
                 2);
}

Test(pattern, with_gives_every_case_what_it_says)
{
    facts_cases *cases = NULL;
    const char *text = "s=64,128 engine=1,2";
    cr_assert_eq(facts_cases_expand(&facts_attention_language, &cases, &text, 1, NULL,
                                    &(facts_choice){ .with = "engine=all  repeat=3" }, &error),
                 0, "%s", error.text);
    cr_expect_eq(facts_cases_count(cases), 2, "what became the same is there once");
    cr_expect_str_eq(facts_cases_at(cases, 1).name,
                     "pass=fwd dtype=bf16 s=128 repeat=3 engine=all");
    facts_cases_destroy(cases);
}
