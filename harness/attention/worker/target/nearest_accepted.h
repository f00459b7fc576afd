/* The cases that a target accepts near one that it refused. */
#ifndef FACTS_WORKER_NEAREST_H
#define FACTS_WORKER_NEAREST_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "problem/case_problem.h"

/* Adds nearest[], nearest first: `change` ("head dims 128/128"), and `case`, the case with that
 * change, if the language can express it; and nearest_asked, the number of problems that were asked
 * (fattn_explain). Adds reason.meaning, a sentence about the keys that decide. Adds nothing if the
 * target could not be asked. */
void facts_row_nearest(json_t *row, fattn_context *context, const facts_case *c,
                       const fattn_problem *refused);

/* The decision on the forward that a backward needs, and its case; NULL: no case has it. The caller
 * destroys it. */
fattn_decision *facts_decide_forward(char name[FACTS_NAME_MAX], fattn_context *context,
                                     const facts_case *backward);

#endif
