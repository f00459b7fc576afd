/* The contents of the inputs (docs/numerics.md, section 4). Each fill makes one class of bugs
 * visible. The value of element (b,h,s,d) depends only on the seed and its logical place, not on
 * layouts, strides, thread counts or machines. If stride 0 makes several logical elements share one
 * place, the place has the value of the first of them (index 0 in the broadcast dimensions). */
#ifndef FACTS_FILL_H
#define FACTS_FILL_H

#include "problem/case_problem.h"

/* Writes an input into its storage (element 0 of the storage at `storage`), through the strides; nothing between them is touched.
 * Rows of a padded batch entry hold ordinary values of the fill, or the case's poison. Threads  OpenMP over rows. Returns  false
 * without memory. */
bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage);

/* Fills a whole storage of `elements` with ordinary values or the case's poison. Done first, so
 * that it remains in the gaps. */
void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements);

#endif
