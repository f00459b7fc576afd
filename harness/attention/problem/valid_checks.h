/* Which checks (check=) apply to which problem. numbers/check/check.h describes them. Pure. */
#ifndef FACTS_CASE_CHECK_H
#define FACTS_CASE_CHECK_H

#include "case_problem.h"

extern const char *const facts_check_words[FACTS_CHECKS];

/* Returns why the check does not apply to this problem; NULL if it applies. */
const char *facts_check_refuses(const facts_problem *problem);

#endif
