#include <criterion/criterion.h>
#include <string.h>

#include "case/problem/case_problem.h"
#include "case/suites/expectation_lines.h"

static facts_error error;

static const facts_deviation *lookup(facts_deviations *list, const char *name, const char *cudnn)
{
    facts_case c;
    cr_assert(facts_case_parse(&c, name, &error), "%s", error.text);
    return facts_deviations_lookup(list, &(facts_subject){ .c = &c, .cudnn = cudnn });
}

static facts_deviations *list_of(const char *text)
{
    facts_deviations *list = facts_deviations_create(&facts_attention_language);
    cr_assert(facts_deviations_read(list, text, "x.expect", &error), "%s", error.text);
    return list;
}

Test(expect, the_first_line_that_fits_counts_and_is_marked)
{
    facts_deviations *list = list_of(
        "# a comment\n\n2026-11-21 nan pass=bwd & cudnn<9.26.0  owner/project#12 # dQ only\n"
        "2026-11-22 wrong pass=bwd owner/project#13\n2026-11-23 hang s.q=1 "
        "https://example.org/x\n");
    const facts_deviation *known = lookup(list, "pass=bwd", "9.19.0");
    cr_assert_not_null(known);
    cr_expect_str_eq(known->verdict, "nan");
    cr_expect_str_eq(known->date, "2026-11-21");
    cr_expect_str_eq(known->link, "owner/project#12");
    cr_expect_str_eq(known->note, "dQ only");
    cr_expect_eq(known->line, 3);
    cr_expect_str_eq(lookup(list, "pass=bwd", "9.27.0")->verdict, "wrong");
    cr_expect(facts_deviations_at(list, 0)->used && facts_deviations_at(list, 1)->used);
    cr_expect_not(facts_deviations_at(list, 2)->used, "nobody needed it");
    facts_deviations_destroy(list);
}

Test(expect, a_line_may_expect_any_of_some_verdicts_now_and_then)
{
    facts_deviations *list =
        list_of("2026-11-21 wrong/nan? pass=fwd o/p#1\n2026-11-21 nan pass=bwd o/p#2\n");
    const facts_deviation *either = facts_deviations_at(list, 0),
                          *one = facts_deviations_at(list, 1);
    cr_expect_str_eq(either->verdict, "wrong/nan");
    cr_expect(either->sometimes && !one->sometimes);
    cr_expect(facts_deviation_names(either, "wrong") && facts_deviation_names(either, "nan") &&
              facts_deviation_names(one, "nan"));
    cr_expect_not(facts_deviation_names(either, "pass") ||
                  facts_deviation_names(either, "wrong/nan") ||
                  facts_deviation_names(one, "wrong"));
    facts_deviations_destroy(list);
}

Test(expect, a_folder_that_is_not_there_has_none)
{
    facts_deviations *list = facts_deviations_create(&facts_attention_language);
    cr_expect(facts_deviations_load(list, "/nowhere/at/all", &error));
    cr_expect_eq(facts_deviations_count(list), 0);
    facts_deviations_destroy(list);
}

/* A pass is no news for a line with a question mark, whichever line explains the result. */
Test(expect, a_line_that_fits_is_used_though_another_one_is_returned)
{
    facts_deviations *list =
        list_of("2026-11-21 wrong pass=bwd a/b#1 #\n2026-11-21 crash? pass=bwd a/b#2 #\n");
    facts_case c;
    cr_assert(facts_case_parse(&c, "pass=bwd", &error));
    const facts_deviation *known = facts_deviations_lookup(
        list, &(facts_subject){ .c = &c, .cudnn = "9.19.0", .verdict = "wrong" });
    cr_expect(known == facts_deviations_at(list, 0) && known->used &&
              facts_deviations_at(list, 1)->used);
    facts_deviations_destroy(list);
}

Test(expect, a_line_counts_for_the_suites_that_it_is_about)
{
    facts_deviations *list = list_of("2026-11-21 nan pass=fwd o/p#1\nsuites: regress  nightly # "
                                     "both\n2026-11-21 wrong pass=bwd o/p#2\n"
                                     "suites: all\n2026-11-21 hang s.q=7 o/p#3\n");
    cr_expect_str_eq(facts_deviations_at(list, 0)->suites, "");
    cr_expect_str_eq(facts_deviations_at(list, 1)->suites, "regress nightly");
    cr_expect_str_eq(facts_deviations_at(list, 2)->suites, "");
    cr_expect_not_null(lookup(list, "pass=bwd", "9.20.0"), "a run of no suite: every line counts");
    facts_deviations_choose(list, "smoke");
    cr_expect_null(lookup(list, "pass=bwd", "9.20.0"));
    cr_expect_not_null(lookup(list, "pass=fwd", "9.20.0"));
    facts_deviations_choose(list, "smoke regress");
    cr_expect_not_null(lookup(list, "pass=bwd", "9.20.0"));
    facts_deviations_choose(list, "nightly/paged");
    cr_expect_not_null(lookup(list, "pass=bwd", "9.20.0"), "one of a folder");
    facts_deviations_choose(list, "nightlyish");
    cr_expect_null(lookup(list, "pass=bwd", "9.20.0"));
    facts_deviations_destroy(list);
}

Test(expect, what_is_not_known_yet_may_still_fit)
{
    facts_deviations *list =
        list_of("2026-11-21 nan pass=bwd & (engine=6 | cudnn<9.26.0) & !(config=1) & sm=90 "
                "o/p#1\n2026-11-21 nan s.q=7 & engine=2 o/p#2\n");
    facts_case c;
    cr_assert(facts_case_parse(&c, "pass=bwd", &error));
    cr_expect(facts_deviations_possible(list, 0, &(facts_subject){ 0 }));
    cr_expect(facts_deviations_possible(
        list, 0, &(facts_subject){ .c = &c, .cudnn = "9.27.0", .sm = "90" }));
    cr_expect_not(facts_deviations_possible(list, 0, &(facts_subject){ .c = &c, .sm = "100" }));
    cr_expect_not(facts_deviations_possible(
        list, 0, &(facts_subject){ .c = &c, .sm = "90", .cudnn = "9.27.0", .engine = "2" }));
    cr_expect_not(facts_deviations_possible(list, 1, &(facts_subject){ .c = &c }));
    cr_assert(facts_case_parse(&c, "pass=bwd engine=2", &error));
    cr_expect_not(
        facts_deviations_possible(list, 0, &(facts_subject){ .c = &c, .cudnn = "9.27.0" }),
        "the case pins another engine");
    facts_deviations_destroy(list);
}
