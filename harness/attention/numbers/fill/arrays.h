/* The contents of the small arrays of a call: lengths, offsets, page tables, scales, slopes, seeds,
 * scale factors (docs/numerics.md, section 4). */
#ifndef FACTS_ARRAYS_H
#define FACTS_ARRAYS_H

#include "problem/case_problem.h"

/* Writes `facts_array_bytes` bytes of an input. Scale factors of block-scaled types (sf_) are those
 * of the elements that facts_fill_tensor writes. A ragged page table has zeros after its last page.
 */
void facts_array_fill(const facts_problem *problem, facts_array_id id, void *out);
/* The same with other valid contents for a call of this shape: shorter sequences without gaps, a
 * permuted page table, other scales, slopes and factors, another seed and offset. Every number
 * differs if the shape allows it. Returns false: no memory. */
bool facts_array_fill_other(const facts_problem *problem, facts_array_id id, void *out);

#endif
