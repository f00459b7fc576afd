/* Rotary embedding for the reference. docs/numerics.md section 1.
 *
 * Channels c and c + half of the last rope_dim ones are turned by the angle of their row: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin. An engine computes
 * that in fp32 and casts it to the type of Q before the product; the reference computes it in double and casts it once too. Where the two casts fall
 * on different sides they are one step apart: that is a logit error, which facts_rope_at tells the model.
 */
#ifndef FACTS_ROPE_H
#define FACTS_ROPE_H

#include <fref/fref.h>

#include "../case/problem.h"

typedef struct facts_rope {
    const facts_problem *problem;
    const double *rows, *keys; /* norms of the rotated rows of Q [batch, heads_q, seq_q] and K [batch, heads_k, seq_kv] */
    double share;              /* of the product of the norms: what a cast that falls otherwise may add to a score, in units of 2^-23 */
    fref_modification inner;   /* what the score becomes then; NULL: itself */
    const void *inner_owner;
} facts_rope;

/* The rotated tensor, dense b,h,s,d, rounded to the tensor's type; padded rows too. `storage` holds Q or K, `angles` [seq, rope_dim]. */
void facts_rope_rotate(const facts_problem *problem, facts_tensor_id id, const void *storage, const float *angles, float *out);
/* Prepares facts_rope_at: `rotated` are Q and K, `size` has room for a number of each of their rows. */
void facts_rope_weigh(facts_rope *out, const facts_problem *problem, float *const rotated[2], double *size, fref_modification inner, const void *owner);
fref_modified facts_rope_at(const void *owner, double score, const int64_t at[4]);

/* Gradients of the rotated Q or K turned back, with their errors: the engine casts before it turns, and once more after it. Dense, in place; sigma,
 * bound and parts may be NULL. parts: one step of each cast before the turn, as much as it is worth behind it (facts_slack). */
void facts_rope_back(const facts_problem *problem, facts_tensor_id gradient, const float *angles, double *want, double *sigma, double *bound, double *parts);

#endif
