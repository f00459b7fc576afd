/* policy= as the library's: pushed on this thread while one case is answered. */
#ifndef FACTS_WORKER_POLICY_H
#define FACTS_WORKER_POLICY_H

#include "../case/problem.h"
#include "target.h"

/* What a case's policy= allows on this worker's device; the cpu has one backend, whatever is said. *depth is for facts_policy_end, also after
 * a failure.
 * Returns  FATTN_OK; FATTN_ENVIRONMENT (guard without its rules) or why they were not taken, in *error. */
fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy, char error[400]);
void facts_policy_end(int depth);
/* May this backend answer there? */
bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend);

#endif
