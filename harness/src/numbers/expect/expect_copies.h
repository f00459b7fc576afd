/* Where roundings are not independent: tensors that are copies of themselves along an axis. docs/numerics.md section 3. */
#ifndef FACTS_EXPECT_COPIES_H
#define FACTS_EXPECT_COPIES_H

#include "case/problem/case_problem.h"

/* T2, T3 and TG are about roundings that are independent: not of a discrete fill or of scores that hardly differ, where equal
 * scores share one, nor where a stride of 0 makes rows, heads or batches copies of each other. */
bool facts_expect_dense(const facts_problem *problem);

/* Terms of this answer's sums may be copies of each other, so that their roundings add up with one sign: T1 is its bound alone. */
bool facts_expect_coherent(const facts_problem *problem, facts_tensor_id id);
/* The gradients of which that is so, for fref_rounding.coherent. */
unsigned facts_expect_coherent_gradients(const facts_problem *problem);

/* rms of the last cast to that type as a part of the answer, where all rows share it; 0: rows of answers with a mean differ by more
 * than a step of the type. */
double facts_shared_cast(int32_t dtype);

#endif
