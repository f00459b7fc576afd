/* The forward that a case runs before its backward, with the same target. Pure. */
#ifndef FACTS_OWN_FORWARD_H
#define FACTS_OWN_FORWARD_H

#include "problem/case_problem.h"
#include "worker/target/loaded_target.h"

/* Does this case run a forward before its backward? */
bool facts_has_own_forward(const facts_problem *problem);
/* Does the case need the forward only for its O and Stats? If the target has no forward, those of
 * the reference replace them. */
bool facts_may_do_without_forward(const facts_problem *problem);
/* The problem of that forward. */
fattn_problem facts_own_forward(const fattn_problem *backward);

#endif
