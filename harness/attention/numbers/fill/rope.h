/* Rotary embedding for the reference (docs/numerics.md, section 1). Channels c and c + half of the
 * last rope_dim channels are rotated by the angle of their row: y1 = x1 cos - x2 sin, y2 = x2 cos +
 * x1 sin. An engine computes this in fp32 and casts it to the type of Q before the product. The
 * reference computes it in double and casts it once too. The two casts may differ, by a known step,
 * if a midpoint of the type lies within the error of fp32. facts_rope_at gives the error model the
 * logit error that these steps can cause. */
#ifndef FACTS_ROPE_H
#define FACTS_ROPE_H

#include <fref/fref.h>

#include "problem/case_problem.h"

typedef struct facts_rope {
    const facts_problem *problem;
    const float *rotated[2], *step[2]; /* Q and K, dense; step: the largest error of a correct
                                          engine's element, mostly 0 */
    const bool *uncertain[2];          /* for each row: does it have a step that is not 0? */
    double share; /* the factor from a sum of products of codes to a score, in units of 2^-23 */
    fref_modification inner; /* the modification of the score; NULL: none */
    const void *inner_owner;
} facts_rope;

/* Computes the rotated tensor, dense b,h,s,d, rounded to the tensor's type, with the padded rows.
 * `storage` has Q or K, `angles` is [seq, rope_dim]. `step`, of the same shape: the largest
 * difference of a correct engine's element; NULL: not asked for. */
void facts_rope_rotate(const facts_problem *problem, facts_tensor_id id, const void *storage,
                       const float *angles, float *out, float *step);
/* Prepares facts_rope_at. `rotated` and `step` are those of Q and K. `uncertain` has space for each
 * row of Q and then each row of K. */
void facts_rope_weigh(facts_rope *out, const facts_problem *problem, float *const rotated[2],
                      float *const step[2], bool *uncertain, fref_modification inner,
                      const void *owner);
fref_modified facts_rope_at(const void *owner, double score, const int64_t at[4]);

/* Rotates the gradient of the rotated Q or K back, with its errors: the engine casts before the
 * rotation and once more after it. Dense, in place; sigma, bound and parts may be NULL. parts: the
 * effect, after the rotation, of one step of each cast before it (facts_slack). */
void facts_rope_back(const facts_problem *problem, facts_tensor_id gradient, const float *angles,
                     double *want, double *sigma, double *bound, double *parts);

#endif
