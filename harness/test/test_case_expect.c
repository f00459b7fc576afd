#include <criterion/criterion.h>
#include <string.h>

#include "case/expect.h"

static facts_error error;

static bool reads(const char *text)
{
    facts_deviations *list = facts_deviations_create();
    bool ok = facts_deviations_read(list, text, "x.expect", &error);
    facts_deviations_destroy(list);
    return ok;
}

Test(expect, the_first_line_that_fits_counts_and_is_marked)
{
    facts_deviations *list = facts_deviations_create();
    cr_assert(facts_deviations_read(list,
                                    "# a comment\n\n2026-11-21 nan pass=bwd & cudnn<9.26.0  owner/project#12 # dQ only\n"
                                    "2026-11-22 wrong pass=bwd owner/project#13\n2026-11-23 hang s.q=1 https://example.org/x\n",
                                    "x.expect", &error),
              "%s", error.text);
    facts_case c;
    cr_assert(facts_case_parse(&c, "pass=bwd", &error));
    const facts_deviation *known = facts_deviations_lookup(list, &(facts_subject){ .c = &c, .cudnn = "9.19.0" });
    cr_assert_not_null(known);
    cr_expect_str_eq(known->verdict, "nan");
    cr_expect_str_eq(known->date, "2026-11-21");
    cr_expect_str_eq(known->link, "owner/project#12");
    cr_expect_str_eq(known->note, "dQ only");
    cr_expect_eq(known->line, 3);
    known = facts_deviations_lookup(list, &(facts_subject){ .c = &c, .cudnn = "9.27.0" });
    cr_expect_str_eq(known->verdict, "wrong");
    cr_expect(facts_deviations_at(list, 0)->used && facts_deviations_at(list, 1)->used);
    cr_expect_not(facts_deviations_at(list, 2)->used, "nobody needed it");
    facts_deviations_destroy(list);
}

Test(expect, a_bad_line_is_named_with_its_place)
{
    static const char *const wrong[][2] = {
        { "yesterday nan pass=bwd o/p#1\n", "x.expect:1:1: yesterday is not a date" },
        { "2026-13-01 nan pass=bwd o/p#1\n", "x.expect:1:1: 2026-13-01 is not a date" },
        { "\n2026-11-21 nam pass=bwd o/p#1\n", "x.expect:2:12: nam is not a verdict; did you mean nan?" },
        { "2026-11-21 nan pass=bwd\n", "x.expect:1:24: the last word must be a link" },
        { "2026-11-21 nan pass=bwd & mas=causal o/p#1\n", "x.expect:1:27: mas is not a key; did you mean mask?" },
        { "2026-11-21 nan o/p#1\n", "x.expect:1:" },
        { "2026-11-21\n", "x.expect:1:" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_not(reads(wrong[i][0]), "%s is taken", wrong[i][0]);
        cr_expect(strncmp(error.text, wrong[i][1], strlen(wrong[i][1])) == 0, "%s", error.text);
    }
}

Test(expect, a_question_mark_says_now_and_then)
{
    facts_deviations *list = facts_deviations_create();
    cr_assert(facts_deviations_read(list, "2026-11-21 nondeterministic? pass=fwd o/p#1\n2026-11-21 nan pass=bwd o/p#2\n", "x.expect", &error),
              "%s", error.text);
    cr_expect_str_eq(facts_deviations_at(list, 0)->verdict, "nondeterministic");
    cr_expect(facts_deviations_at(list, 0)->sometimes);
    cr_expect_not(facts_deviations_at(list, 1)->sometimes);
    facts_deviations_destroy(list);
    cr_expect_not(reads("2026-11-21 ? pass=fwd o/p#1\n"), "a verdict is still needed");
}

Test(expect, a_folder_that_is_not_there_has_none)
{
    facts_deviations *list = facts_deviations_create();
    cr_expect(facts_deviations_load(list, "/nowhere/at/all", &error));
    cr_expect_eq(facts_deviations_count(list), 0);
    facts_deviations_destroy(list);
}
