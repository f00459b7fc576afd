/* All that the reference says about one problem, in memory of one owner. */
#ifndef FREF_TESTING_ANSWERS_H
#define FREF_TESTING_ANSWERS_H

#include "problems.h"

/* X(out, member, name, count): every answer, in the order of their memory. */
/* clang-format off */
#define ANSWER_LIST(X)                                                                            \
    X(f, o.value, o, count_o) X(f, o.sigma, o_sigma, count_o) X(f, o.bound, o_bound, count_o)     \
    X(f, lse, lse, rows) X(f, lse_tau, lse_tau, rows) X(f, max, max, rows)                        \
    X(f, max_tau, max_tau, rows) X(f, sum_exp, sum_exp, rows) X(f, o.nu, o_nu, rows)              \
    X(f, o.neff, o_neff, rows) X(f, amax_s, amax_s, three) X(f, o.amax, amax_o, three)            \
    X(g, dq.value, dq, count_dq) X(g, dq.sigma, dq_sigma, count_dq)                               \
    X(g, dq.bound, dq_bound, count_dq) X(g, dk.value, dk, count_dk)                               \
    X(g, dk.sigma, dk_sigma, count_dk) X(g, dk.bound, dk_bound, count_dk)                         \
    X(g, dv.value, dv, count_dv) X(g, dv.sigma, dv_sigma, count_dv)                               \
    X(g, dv.bound, dv_bound, count_dv) X(g, dbias.value, dbias, count_dbias)                      \
    X(g, dbias.sigma, dbias_sigma, count_dbias) X(g, dbias.bound, dbias_bound, count_dbias)       \
    X(g, dq.nu, dq_nu, rows) X(g, dq.neff, dq_neff, rows) X(g, dk.nu, dk_nu, lines_k)             \
    X(g, dk.neff, dk_neff, lines_k) X(g, dv.nu, dv_nu, lines_v)                                   \
    X(g, dv.neff, dv_neff, lines_v) X(g, dsink, dsink, heads)                                     \
    X(g, dsink_bound, dsink_bound, heads) X(g, amax_dp, amax_dp, three)                           \
    X(g, dq.amax, amax_dq, three) X(g, dk.amax, amax_dk, three) X(g, dv.amax, amax_dv, three)
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
