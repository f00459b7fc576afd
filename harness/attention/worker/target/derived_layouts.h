/* Checks the layouts that the library derives for a caller who gives none. The rule of fattn.h is
 * computed here in another way. */
#ifndef FACTS_LAYOUTS_H
#define FACTS_LAYOUTS_H

#include "problem/case_problem.h"
#include "words/fail.h"

/* For a problem with broadcast inputs: does fattn_match_layout give O the layout of Q, and the
 * gradients those of their inputs, as it promises? False: `why` has the first wrong one. */
bool facts_layouts_hold(const facts_problem *problem, facts_error *error);

#endif
