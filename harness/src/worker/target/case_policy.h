/* policy= as the library's: pushed on this thread while one case is answered. */
#ifndef FACTS_WORKER_POLICY_H
#define FACTS_WORKER_POLICY_H

#include "case/problem/case_problem.h"
#include "case/words/fail.h"
#include "loaded_target.h"

/* Pushes what policy= of the case allows on this worker's device. The cpu has one backend, and nothing is pushed there. Of the
 * errata only the rules that hold for the case are pushed. *depth is for facts_policy_end, also after a failure. Returns  FATTN_OK;
 * FATTN_ENVIRONMENT (guard without its rules), FATTN_NO_MEMORY or the library's reason, with one line in `error`. */
fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy, const facts_case *c,
                                facts_error *error);
void facts_policy_end(int depth);
/* May this backend answer there? */
bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend);

#endif
