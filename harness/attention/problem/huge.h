/* Problems too large for the reference on a CPU: FACTS compares a sample of rows and keys
 * (docs/numerics.md, section 7). Pure. */
#ifndef FACTS_CASE_HUGE_H
#define FACTS_CASE_HUGE_H

#include "case_problem.h"

/* From this number of operations on a sample is compared. It takes the reference half a minute on
 * two cores. */
#define FACTS_HUGE ((double)(UINT64_C(1) << 40))

/* Keys that a row reads, roughly. */
double facts_keys_of_row(const facts_problem *problem);
/* Rows times keys that they read, roughly. */
double facts_pairs(const facts_problem *problem);
bool facts_is_huge(const facts_problem *problem);

#endif
