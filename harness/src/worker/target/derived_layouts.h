/* The layouts that the library derives for a caller who gives none, against the rule of fattn.h worked out here in another way. */
#ifndef FACTS_LAYOUTS_H
#define FACTS_LAYOUTS_H

#include "case/problem/case_problem.h"
#include "case/words/fail.h"

/* Of a problem with broadcast inputs: does fattn_match_layout put O behind Q, and the gradients behind their inputs, as it
 * promises? False: the first that is not right, in `why`. */
bool facts_layouts_hold(const facts_problem *problem, facts_error *error);

#endif
