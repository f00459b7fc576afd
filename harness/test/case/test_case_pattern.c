#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "case/language/case.h"
#include "case/language/pattern.h"
#include "case/problem/case_problem.h"
#include "case/suites/planned_cases.h"

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

static void expands_to(const char *text, const char *expects)
{
    char *got = expand(text, NULL, 0);
    cr_assert_not_null(got, "%s: %s", text, error.text);
    cr_expect_str_eq(got, expects, "%s gives %s", text, got);
    free(got);
}

Test(pattern, commas_make_a_product_and_the_last_key_turns_fastest)
{
    expands_to("b=1,3 s=64,128", "b=1 s=64|b=1 s=128|b=3 s=64|b=3 s=128|");
}

Test(pattern, ranges_step_and_multiply_also_inside_a_value)
{
    expands_to("s=64..256:64", "s=64|s=128|s=192|s=256|");
    expands_to("s=1..10:4", "s=1|s=5|s=9|");
    expands_to("s=1..3", "s=1|s=2|s=3|");
    expands_to("d=16..100*2", "d=16|d=32|d=64|");
    expands_to("s=1/64..192:64", "s=1/64|s=1/128|s=1/192|");
    expands_to("s=1..2/3..4", "s=1/3|s=1/4|s=2/3|s=2/4|");
    expands_to("window=1..2:0,8..16:8:5,3:1..2",
               "window=1:0|window=2:0|window=8:5|window=16:5|window=3:1|window=3:2|");
    expands_to("seed=9223372036854775806..9223372036854775807",
               "seed=9223372036854775806|seed=9223372036854775807|");
}

Test(pattern, a_name_that_comes_twice_is_kept_once_in_first_place)
{
    expands_to("s=64,32,64/64", "s=64|s=32|");
}

Test(pattern, where_keeps_what_satisfies_it)
{
    expands_to("s=1..3/1..3 where s.q<s.kv", "s=1/2|s=1/3|s=2/3|");
    char *got = expand("s=1..3/1..3 where s.q<s.kv", "s.q=2", 0);
    cr_expect_str_eq(got, "s=2/3|");
    free(got);
}

Test(pattern, too_many_is_known_before_anything_is_expanded)
{
    cr_expect_null(expand("s=1..1000000/1..1000000 d=1..512 seed=1..9000000000000000000", NULL, 0));
    cr_expect(strstr(error.text, "at least 18446744073709551615 cases, more than 1000000") != NULL,
              "%s", error.text);
    cr_expect_null(expand("s=1..11", NULL, 10));
    cr_expect(strstr(error.text, "case:1:1: 11 cases, more than 10") != NULL, "%s", error.text);
    char *got = expand("s=1..10", NULL, 10);
    cr_expect_not_null(got);
    free(got);
}

Test(pattern, an_error_names_its_column)
{
    static const char *const wrong[][2] = {
        { "b=1,x", "case:1:5: b=x" },
        { "s=5..3", "case:1:4: a range runs upwards" },
        { "s=1..4:0", "case:1:4: a step must be above 0" },
        { "s=0..8*2", "case:1:4: a step" },
        { "s=1..8*1", "case:1:4: a step" },
        { "s=..8", "case:1:3: a range is" },
        { "s=1..88..888", "case:1:8: a range is" },
        { "s=1..", "case:1:4: a range is" },
        { "mask=none,causal_br align=tl,br", "case:1:21:" },
        { "b=1 where x=2", "case:1:11: where: x is not a key" },
        { "draw 3 b=1", "case:1:1: draw 3 of 1 members" },
        { "draw x b=1", "case:1:6: draw takes how many" },
        { "b=1,,2", "case:1:5: b= has no value" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_null(expand(wrong[i][0], NULL, 0), "%s is taken", wrong[i][0]);
        cr_expect(strncmp(error.text, wrong[i][1], strlen(wrong[i][1])) == 0, "%s gives %s",
                  wrong[i][0], error.text);
    }
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

Test(pattern, a_draw_that_finds_too_few_is_an_error)
{
    cr_expect_null(expand("draw 30 s=1..100 where s.kv>90", NULL, 0));
    cr_expect(strstr(error.text, "only 10 of 100 members") != NULL, "%s", error.text);
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

Test(suite, an_error_names_file_line_and_column)
{
    static const char *const wrong[][2] = {
        { "name: a\nwhy: b\npass=fwd mask=causl\n", ":3:15: mask=causl" },
        { "why: b\n", ":1:1: must follow the line name:" },
        { "name: a b\n", ":1:1: a name has" },
        { "name: a\nname: a\n", ":2:1: a group with this name" },
        { "name: a\nwhere q<3\n", ":2:8: where: q has no order" },
        { "name: a\nnonsense\n", ":2:1: nonsense is not key=value" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        facts_cases *cases;
        cr_expect_eq(expand_file(&cases, wrong[i][0]), 2);
        cr_expect_null(cases);
        cr_expect(strstr(error.text, wrong[i][1]) != NULL, "%s", error.text);
    }
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
    static const char *const wrong[][2] = {
        { "engine", "--with:1:1: engine is not key=value" },
        { "repeat=2 engin=all", "--with:1:10: engin is not a key; did you mean engine?" },
        { "engine=every", "engine=every is not a value" },
        { "repeat=2 repeat=3", "--with:1:10: repeat= is there twice" },
        { "=", "--with:1:1:  is not a key" }
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(facts_cases_expand(&facts_attention_language, &cases, &text, 1, NULL,
                                        &(facts_choice){ .with = wrong[i][0] }, &error),
                     2, "%s", wrong[i][0]);
        cr_expect(strstr(error.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0], error.text);
    }
}
