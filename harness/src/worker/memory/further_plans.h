/* The further plans that a run of a case needs. Plans that are made ahead must include all of them. */
#ifndef FACTS_FURTHER_PLANS_H
#define FACTS_FURTHER_PLANS_H

#include "case/problem/case_problem.h"
#include "worker/target/loaded_target.h"

/* The forward that goes before a backward, and the call that says what dropout keeps, into the folder of the request in hand.
 * `backend` computes the problem. What cannot be made is no failure: the run finds a way without it, or says why not. */
void facts_further_plans(const facts_worker *worker, const facts_problem *problem, fattn_backend backend);

#endif
