/* All that the reference says about one problem, in memory of one owner. */
#ifndef FREF_TESTING_ANSWERS_H
#define FREF_TESTING_ANSWERS_H

#include "problems.h"

/* X(out, member, count): every answer, in the order of their memory. */
/* clang-format off */
#define ANSWER_LIST(X)                                                                             \
    X(f, o, count_o) X(f, o_sigma, count_o) X(f, o_bound, count_o) X(f, lse, rows)                 \
    X(f, lse_tau, rows) X(f, max, rows) X(f, max_tau, rows) X(f, sum_exp, rows) X(f, o_nu, rows)   \
    X(f, o_neff, rows) X(f, amax_s, three) X(f, amax_o, three)                                     \
    X(g, dq, count_dq) X(g, dq_sigma, count_dq) X(g, dq_bound, count_dq)                           \
    X(g, dk, count_dk) X(g, dk_sigma, count_dk) X(g, dk_bound, count_dk)                           \
    X(g, dv, count_dv) X(g, dv_sigma, count_dv) X(g, dv_bound, count_dv)                           \
    X(g, dbias, count_dbias) X(g, dbias_sigma, count_dbias) X(g, dbias_bound, count_dbias)         \
    X(g, dq_nu, rows) X(g, dq_neff, rows) X(g, dk_nu, lines_k) X(g, dk_neff, lines_k)              \
    X(g, dv_nu, lines_v) X(g, dv_neff, lines_v) X(g, dsink, heads) X(g, dsink_bound, heads)        \
    X(g, amax_dp, three) X(g, amax_dq, three) X(g, amax_dk, three) X(g, amax_dv, three)
/* clang-format on */

typedef struct answers {
    fref_forward_out f;
    fref_backward_out g;
    int64_t rows, count_o, count_dq, count_dk, count_dv, count_dbias, lines_k, lines_v, heads,
        three;
    double *memory;
    size_t bytes;
} answers;

/* Forward and backward (from the data's o and stats). Every array starts as NaN, so that what is
 * not written shows. */
void answers_create(answers *out, const data *d, const fref_rounding *rounding);
void answers_destroy(answers *a);
/* Points the arrays into other memory of as many bytes, which may be a device's. */
void answers_at(answers *a, double *memory);

#endif
