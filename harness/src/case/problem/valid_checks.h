/* Which checks (check=) mean something for which problem. What they do is in numbers/check/check.h. Pure. */
#ifndef FACTS_CASE_CHECK_H
#define FACTS_CASE_CHECK_H

#include "case_problem.h"

extern const char *const facts_check_words[FACTS_CHECKS];

/* Why this problem's check says nothing about it; NULL when it does. */
const char *facts_check_refuses(const facts_problem *problem);

#endif
