/* Attention and its sigmas and bounds once more, as plain loops in long double, written from
 * docs/numerics.md and sharing nothing with src/. Degrees of freedom and intervals of amax are held
 * against the oracle on a GPU alone. */
#ifndef FREF_TESTING_NAIVE_REFERENCE_H
#define FREF_TESTING_NAIVE_REFERENCE_H

#include "problems.h"

/* An answer with its error model. `size` is the sum of the magnitudes that were added: what a
 * relative error refers to. Dense. */
typedef struct naive_tensor {
    int64_t count;
    long double *value, *size, *sigma, *bound, *lost; /* lost: of dK, dV */
    bool *live;                                       /* of dK, dV: has its key a row? */
} naive_tensor;

typedef struct naive_answers {
    naive_tensor o, lse, max, sum_exp; /* bound: the tau; sigma unused */
    naive_tensor dq, dk, dv, dbias, dsink;
    int64_t dbias_dim[4];
    long double *dbias_magnitude; /* sum |dX| */
} naive_answers;

/* Forward, and from the data's own o and stats backward. */
void naive_create(naive_answers *out, const data *d, const fref_rounding *rounding);
void naive_destroy(naive_answers *answers);

/* Is key j one that row i of batch entry b may read? */
bool naive_keeps(const fref_problem *p, int64_t b, int64_t i, int64_t j);

#endif
