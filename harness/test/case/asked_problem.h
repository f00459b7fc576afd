/* The problem of a case, by its text. */
#ifndef FACTS_TEST_ASKED_PROBLEM_H
#define FACTS_TEST_ASKED_PROBLEM_H

#include <criterion/criterion.h>

#include "problem/case_problem.h"

/* Is it a case? Its problem is in `out` then. */
static inline bool resolves_to(facts_problem *out, const char *text)
{
    facts_case c;
    facts_error error = { 0 };
    return facts_case_parse(&c, text, &error) &&
           facts_problem_resolve(out, &c, &error) == FACTS_RESOLVED;
}

static inline facts_problem problem_asked(const char *text)
{
    facts_problem p;
    facts_case c;
    facts_error error = { 0 };
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s: %s", text, error.text);
    return p;
}

#endif
