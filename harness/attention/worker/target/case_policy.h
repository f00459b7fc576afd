/* policy= of a case as a policy of the library, pushed on this thread while the case is answered.
 */
#ifndef FACTS_WORKER_POLICY_H
#define FACTS_WORKER_POLICY_H

#include "loaded_target.h"
#include "problem/case_problem.h"
#include "words/fail.h"

#define FACTS_NO_POLICY (-1)

/* Pushes the policy of the case for this worker's device. The CPU has one backend, so nothing is
 * pushed there. *depth is for facts_policy_end, also after a failure. Returns FATTN_OK, or the
 * library's status with one line in `error`. */
fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy,
                                facts_error *error);
void facts_policy_end(int depth);
/* May this backend answer on this worker's device? */
bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend);

#endif
