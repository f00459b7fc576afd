/* The grammar knows no key: cases, patterns, predicates and suites over a language of three keys. */
#include <criterion/criterion.h>
#include <string.h>

#include "suites/planned_cases.h"
#include "suites/suite.h"

enum { COLOUR, SIZE, COUNT, KEYS };

static const facts_key_row keys[KEYS] = {
    [COLOUR] = { .word = "colour",
                 .allowed = "red green",
                 .otherwise = "red",
                 .help = "of the box" },
    [SIZE] = { .word = "size",
               .allowed = "N N/N",
               .otherwise = "1",
               .help = "width and height",
               .form = FACTS_FORM_RATIO,
               .parts = "1 or more, or WIDTH/HEIGHT" },
    [COUNT] = { .word = "count", .allowed = "M", .otherwise = "2", .help = "boxes" },
};
static const facts_key_part parts[] = { { "size.w", SIZE, 0 }, { "size.h", SIZE, 1 } };

/* Ten boxes at most. */
static bool resolves(const facts_case *c, double *work)
{
    *work = atof(facts_case_get(c, COUNT));
    return *work <= 10;
}

static const facts_language boxes = { .keys = keys,
                                      .count = KEYS,
                                      .always = 1,
                                      .parts = parts,
                                      .part_count = 2,
                                      .backends = "hand",
                                      .resolves = resolves };

Test(language, a_case_has_a_name_and_values)
{
    facts_case c;
    facts_error error;
    char name[FACTS_NAME_MAX];
    cr_assert(facts_case_read(&boxes, &c, "size=3/3 count=2", &error), "%s", error.text);
    cr_expect_str_eq(facts_case_name(&c, name), "colour=red size=3");
    cr_expect_str_eq(facts_case_get(&c, COUNT), "2");
    cr_expect(facts_case_set(&c, COLOUR, "green", &error));
    cr_expect_str_eq(facts_case_name(&c, name), "colour=green size=3");
}

Test(language, errors_name_this_language)
{
    static const struct {
        const char *text, *error;
    } rows[] = { { "color=red", "color is not a key; did you mean colour?" },
                 { "mask=causal", "mask is not a key; `facts keys` lists them" },
                 { "colour=gren",
                   "colour=gren is not a value; allowed: red green; did you mean green?" },
                 { "size=x", "size=x is not a value; allowed: 1 or more, or WIDTH/HEIGHT" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        facts_case c;
        facts_error error;
        cr_expect(!facts_case_read(&boxes, &c, rows[i].text, &error), "%s", rows[i].text);
        cr_expect(strstr(error.text, rows[i].error) != NULL, "%s: %s", rows[i].text, error.text);
    }
}

Test(language, predicates_know_its_parts)
{
    static const struct {
        const char *text;
        bool holds;
    } rows[] = { { "size.h>3 & colour=red", true },
                 { "size.w=size.h", false },
                 { "count%2=0", true },
                 { "case~'*size=2*'", true },
                 { "backend=hand", false } };
    facts_case c;
    facts_error error;
    cr_assert(facts_case_read(&boxes, &c, "size=2/5", &error));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        facts_predicate *p;
        cr_assert(facts_predicate_parse(&boxes, &p, rows[i].text, &error), "%s", error.text);
        cr_expect_eq(facts_predicate_holds(p, &(facts_subject){ .c = &c }), rows[i].holds, "%s",
                     rows[i].text);
        facts_predicate_destroy(p);
    }
    facts_predicate *p;
    cr_expect(!facts_predicate_parse(&boxes, &p, "size>3", &error));
    cr_expect(strstr(error.text, "its parts have: size.w size.h") != NULL, "%s", error.text);
    cr_expect(!facts_predicate_parse(&boxes, &p, "s.q>3", &error));
}

Test(language, suites_expand_and_draw)
{
    static const char *const texts[] = { "colour=red,green size=1..3/2 count=4" };
    facts_cases *cases;
    facts_error error;
    cr_assert_eq(facts_cases_expand(&boxes, &cases, texts, 1, NULL,
                                    &(facts_choice){ .where = "size.w!=2" }, &error),
                 0, "%s", error.text);
    cr_assert_eq(facts_cases_count(cases), 4);
    cr_expect_str_eq(facts_cases_at(cases, 3).name, "colour=green size=3/2 count=4");
    facts_cases_destroy(cases);

    facts_suite suite = { .language = &boxes };
    cr_assert(
        facts_suite_read(&suite, "draw 20 seed=1\ncolour=red,green\ncount=9,11", "boxes", &error),
        "%s", error.text);
    for (uint64_t i = 0; i < 20; i++) {
        facts_case c;
        cr_assert(facts_suite_draw(&suite, 7, i, &(facts_draw_choice){ 0 }, &c));
        cr_expect_str_neq(facts_case_get(&c, COUNT), "11",
                          "a case that does not resolve was drawn");
    }
    facts_suite_clear(&suite);
}
