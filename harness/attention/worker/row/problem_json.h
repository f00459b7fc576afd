/* A resolved case as JSON: what a program needs to read the files of `facts repro --dump` without
 * FACTS. */
#ifndef FACTS_PROBLEM_JSON_H
#define FACTS_PROBLEM_JSON_H

#include <jansson.h>

#include "problem/case_problem.h"

/* docs/dump.md lists the members. `text`: the case's name. */
json_t *facts_problem_json(const facts_problem *problem, const char *text);

#endif
