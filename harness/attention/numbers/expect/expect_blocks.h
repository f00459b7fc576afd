/* The backward of block-scaled types (docs/numerics.md, section 1).
 *
 * Its products read Q, K and dO in two quantisations. dQ is a product with K's copy along the keys. dK and dV are products with Q's
 * and dO's copies along the rows. D is made of the 16-bit dO and O. The reference knows one quantisation of each tensor, so it gets
 * three times the channels:
 *
 *      q' = [q, 0, q_t]     k' = [k, k_t, 0]     q'.k' = q.k
 *      dO' = [dO, dO_16, dO_t]   v' = [v, 0, 0]   O' = [0, O, 0]     dO'.v' = dO.v, dO'.O' = dO_16.O
 *      dQ' = dS k' = [., dS k_t, .]     dK' = dS^T q' = [., ., dS^T q_t]     dV' = P^T dO' = [., ., P^T dO_t]
 *
 * dS is cast in blocks, and the largest number of a block may saturate: u = 2^-3, as in e5m2. P is cast with one factor, 256, which
 * keeps it below the type's largest number: u is the type's own. */
#ifndef FACTS_EXPECT_BLOCKS_H
#define FACTS_EXPECT_BLOCKS_H

#include "expect_whole.h"

/* As fref_backward, for whole->tensor with the copies. Returns 0; ENOMEM. */
int facts_blocks_backward(const facts_whole *whole, const facts_problem *problem,
                          const fref_rounding *rounding, const fref_backward_out *out);

#endif
