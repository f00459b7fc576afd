/* Problems too large for the C reference (problem/huge.h): it computes a sample of rows and
 * keys (docs/numerics.md, section 7). */
#ifndef FACTS_EXPECT_BIG_H
#define FACTS_EXPECT_BIG_H

#include <fref/fref.h>

#include "expectation.h"

/* The rows (or keys) of a sample, ascending: the first ones, the last ones, the ends of lengths and
 * masks, edges of tiles near them, and 64 at random, one from each of 64 equal parts. The caller
 * frees it. NULL: no memory. */
int64_t *facts_big_sample(const facts_problem *problem, bool keys, int64_t *count);
/* The rows of this tensor that are not compared: FACTS_EXPECTS_NUMBER for a live row. `expects` is
 * [batch, rows]. False: no memory. */
bool facts_big_expects(const facts_problem *problem, facts_tensor_id id,
                       facts_row_expects *expects);

/* As fref_forward and fref_backward. For a huge problem they compute the sample, in rows of its
 * own, without amax, dsink and dbias. tensor[]: as the reference reads them. Returns 0, ENOMEM. */
int facts_big_forward(const facts_problem *problem, const fref_problem *asked,
                      const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                      const fref_forward_out *out);
int facts_big_backward(const facts_problem *problem, const fref_problem *asked,
                       const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                       const fref_backward_out *out);

#endif
