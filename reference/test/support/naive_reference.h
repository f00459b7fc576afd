/* Attention and its error model once more, as plain loops in long double, written from
 * docs/numerics.md and sharing nothing with src/. */
#ifndef FREF_TESTING_NAIVE_REFERENCE_H
#define FREF_TESTING_NAIVE_REFERENCE_H

#include "problems.h"

/* What the degrees of freedom of one row (or key) come from. */
typedef struct naive_line {
    bool live;
    long double single, cast,
        all; /* variance, summed over the channels: of single terms; of the last cast; all */
    long double first, second; /* sums of w and w^2 */
    long double channels;      /* nch */
    long double nu, neff;
} naive_line;

/* An answer with its error model. `size` is the sum of the magnitudes that were added: what a
 * relative error refers to. Dense. */
typedef struct naive_tensor {
    int64_t count;
    long double *value, *size, *sigma, *bound, *lost; /* lost: of dK, dV */
    int64_t line_count;
    naive_line *line;
    long double *weight; /* dK, dV: [line, rows] w of a row, summed over the group */
} naive_tensor;

typedef struct naive_answers {
    naive_tensor o, lse, max, sum_exp; /* bound: the tau; sigma unused */
    naive_tensor dq, dk, dv, dbias, dsink;
    long double amax_s[3], amax_o[3], amax_dp[3], amax_dq[3], amax_dk[3],
        amax_dv[3]; /* value, least, most */
    int64_t dbias_dim[4];
    long double *dbias_magnitude; /* sum |dX| */
} naive_answers;

/* Forward, and from the data's own o and stats backward. */
void naive_create(naive_answers *out, const data *d, const fref_rounding *rounding);
void naive_destroy(naive_answers *answers);

/* Is key j one that row i of batch entry b may read? */
bool naive_keeps(const fref_problem *p, int64_t b, int64_t i, int64_t j);

#endif
