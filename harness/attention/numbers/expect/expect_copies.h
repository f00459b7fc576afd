/* Finds tensors that are copies of themselves along an axis, so that rounding errors are not
 * independent (docs/numerics.md, section 3). */
#ifndef FACTS_EXPECT_COPIES_H
#define FACTS_EXPECT_COPIES_H

#include "problem/case_problem.h"

/* Are the rounding errors of this problem independent, as T2, T3 and TG need? Not for a discrete
 * fill, and not for nearly equal scores, because equal scores share one error. Not if a stride of 0
 * makes rows, heads or batch entries equal. */
bool facts_expect_dense(const facts_problem *problem);

/* Can terms of this answer's sums be copies of each other? Their rounding errors then have one
 * sign, and T1 uses the bound alone. */
bool facts_expect_coherent(const facts_problem *problem, facts_tensor_id id);
/* The gradients whose sums may have such terms, for fref_rounding.coherent. */
unsigned facts_expect_coherent_gradients(const facts_problem *problem);

/* The rms of the last cast to that type, relative to the answer, if all rows share it. 0: rows of
 * answers with a mean differ by more than one step of the type. */
double facts_shared_cast(int32_t dtype);

#endif
