/* The further plans that a run of a case needs. Plans that are made ahead must include all of them.
 */
#ifndef FACTS_FURTHER_PLANS_H
#define FACTS_FURTHER_PLANS_H

#include "problem/case_problem.h"
#include "worker/target/loaded_target.h"

/* Makes the plans of the forward that runs before a backward, and of the call that dumps the kept
 * scores, in the folder of the current request. `backend` computes the problem. A plan that cannot
 * be made is no failure: the run finds a way without it, or reports the reason. */
void facts_further_plans(const facts_worker *worker, const facts_problem *problem,
                         fattn_backend backend);

#endif
