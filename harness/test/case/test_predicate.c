#include <criterion/criterion.h>
#include <string.h>

#include "case/suites/predicate.h"

static bool holds(const char *text, const facts_subject *subject)
{
    facts_predicate *p;
    facts_error error = { 0 };
    cr_assert(facts_predicate_parse(&p, text, &error), "%s: %s", text, error.text);
    bool result = facts_predicate_holds(p, subject);
    facts_predicate_destroy(p);
    return result;
}

static facts_case sample_case(void)
{
    facts_case c;
    facts_error error;
    cr_assert(
        facts_case_parse(&c, "pass=bwd s=1/192 h=8/2 d=64/128 window=128:0 fill=neglse scale=0.125",
                         &error),
        "%s", error.text);
    return c;
}

Test(predicate, is_true_of_what_it_says)
{
    facts_case c = sample_case();
    facts_subject s = {
        .c = &c, .cudnn = "9.19.0", .sm = "90", .verdict = "nan", .grade = "measured"
    };
    static const char *const yes[] = { "pass=bwd",
                                       "pass!=fwd",
                                       "s.kv%128=64 & s.q=1",
                                       "d.qk<=64 & d.v>=128",
                                       "h.q=8 & h.k=2 & h.v=2 & h.kv=2",
                                       "h=8/2/2",
                                       "s=1/192",
                                       "window=128:0",
                                       "window.left=128",
                                       "window.right<1",
                                       "mask=none",
                                       "s.q<s.kv",
                                       "cudnn>=9.10.2 & cudnn<9.20",
                                       "cudnn>9.9.9",
                                       "cudnn=9.19",
                                       "cudnn~9.1*",
                                       "sm=90",
                                       "sm=sm_90",
                                       "sm<100",
                                       "verdict in (wrong, nan)",
                                       "layout~bs*",
                                       "fill~neg?se",
                                       "scale=0.1250",
                                       "scale<0.5",
                                       "b=2",
                                       "!(pass=fwd)",
                                       "pass=fwd | fill=neglse",
                                       "pass=fwd & fill=neglse | b=2",
                                       "case~'pass=bwd*fill=neglse*'",
                                       "engine=auto",
                                       "fill!~gau*",
                                       "b in (1, 2, 3)",
                                       "window.left<inf",
                                       "repeat=1" };
    static const char *const no[] = { "pass=fwd",   "cudnn<9.10.2",   "cudnn>=9.20.0",
                                      "sm>90",      "verdict=pass",   "s.kv%128=0",
                                      "s.q>=s.kv",  "pass=bwd & b=1", "pass=bwd & (b=1 | b=3)",
                                      "layout~*2*", "engine=3",       "window.left=inf",
                                      "mask=causal" };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        cr_expect(holds(yes[i], &s), "%s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        cr_expect_not(holds(no[i], &s), "%s", no[i]);
}

Test(predicate, versions_compare_by_their_parts)
{
    facts_subject s = { .cudnn = "9.9.0" };
    cr_expect(holds("cudnn<9.10.2", &s), "9.9 comes before 9.10");
    cr_expect(holds("cudnn=9.9", &s));
    s.cudnn = "9.23.2-jit";
    cr_expect(holds("cudnn>9.23 & cudnn<9.24", &s));
}

Test(predicate, what_is_unknown_compares_as_false)
{
    facts_case c = sample_case();
    facts_subject s = { .c = &c };
    cr_expect_not(holds("cudnn<9.10", &s));
    cr_expect_not(holds("cudnn>=9.10", &s));
    cr_expect_not(holds("verdict!=pass", &s));
    cr_expect_not(holds("sm=90 | backend=cudnn", &s));
    cr_expect(holds("!verdict=pass", &s));
    s.c = NULL;
    cr_expect_not(holds("pass=fwd", &s));
    cr_expect_not(holds("b!=3", &s));
}

Test(predicate, engine_is_the_one_that_ran_or_else_the_one_that_is_asked_for)
{
    facts_case c = sample_case();
    cr_expect(holds("engine=auto", &(facts_subject){ .c = &c }));
    cr_expect(holds("engine=6 & engine<7", &(facts_subject){ .c = &c, .engine = "6" }));
    cr_expect_not(holds("engine=auto", &(facts_subject){ .c = &c, .engine = "6" }));
}

Test(predicate, an_error_names_the_column_and_the_nearest_word)
{
    static const char *const wrong[][2] = {
        { "", "where:1:1: expected a key here" },
        { "pas=fwd", "where:1:1: pas is not a key; did you mean pass?" },
        { "pass=fwd & mask=cusal", "where:1:17: mask=cusal is not a value; allowed: none causal "
                                   "causal_br; did you mean causal?" },
        { "verdict=nam", "where:1:9: nam is not a verdict" },
        { "h>3", "where:1:2: h has no order; its parts have" },
        { "layout<3", "where:1:7: layout has no order" },
        { "pass=fwd pass=bwd", "where:1:10: pass=bwd is left over" },
        { "(pass=fwd", "where:1:10: a ) is missing" },
        { "pass", "where:1:5: expected one of = != < <= > >= ~ in here" },
        { "pass=", "where:1:6: a value is missing" },
        { "b in 1,2", "where:1:6: in takes values in parentheses" },
        { "b in (1,2", "where:1:10: a ) is missing" },
        { "cudnn<nine", "where:1:7: nine is not a version" },
        { "s.kv<x", "where:1:6: x is not a number" },
        { "s.kv%0=1", "where:1:6: % takes a whole number above 0" },
        { "mask%2=1", "where:1:1: mask is not a number" },
        { "case='abc", "where:1:6: a quote is not closed" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        facts_predicate *p;
        facts_error error = { 0 };
        cr_expect_not(facts_predicate_parse(&p, wrong[i][0], &error), "%s is taken", wrong[i][0]);
        cr_expect_null(p);
        cr_expect(strncmp(error.text, wrong[i][1], strlen(wrong[i][1])) == 0, "%s gives %s",
                  wrong[i][0], error.text);
    }
}

Test(predicate, depth_and_length_are_bounded)
{
    char deep[4096];
    memset(deep, '(', 2000);
    strcpy(deep + 2000, "b=1");
    facts_predicate *p;
    facts_error error;
    cr_expect_not(facts_predicate_parse(&p, deep, &error));
    cr_expect(strstr(error.text, "nested too deep") != NULL, "%s", error.text);
    static char longest[20000];
    for (int i = 0; i < 2500; i++)
        strcat(longest + i * 4, "b=1|");
    strcat(longest, "b=1");
    cr_expect_not(facts_predicate_parse(&p, longest, &error));
    longest[8192 - 1] = '\0';
    cr_expect_not(facts_predicate_parse(&p, longest, &error),
                  "more tests than a predicate may hold");
}
