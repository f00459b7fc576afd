/* The work on every entry of P and dS, eight at a time, for scores without modification and without
 * dropout.
 *
 * It uses only additions, multiplications, comparisons and selections of doubles, fused where the
 * code says so. Sums have eight lanes, which are added in a fixed order at the end. So every
 * instruction set gives the same bits. The general forms are in ref_forward.c, backward_rows.c and
 * backward_keys.c. */
#ifndef FREF_LANES_H
#define FREF_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* A probability below this may be flushed to zero by fp32 arithmetic. */
#define FREF__P_FLUSHED 0x1.125fbee250664p-126 /* 2^-125.9 */

/* exp(x[n]), within 1 unit in the last place of a normal result; 0 and infinity outside the range
 * of doubles; a NaN stays NaN. */
void fref__exp(double *out, const double *x, int64_t n);

/* x *= scale. The largest (a NaN if there is one) and the largest magnitude. */
typedef struct fref__extremes {
    double max, magnitude;
} fref__extremes;
fref__extremes fref__scale(double *x, int64_t n, double scale);

/* x becomes e = exp(x - max). Sums of e, e^2 and e |x|. */
typedef struct fref__exp_sums {
    double sum, squares, pull;
} fref__exp_sums;
fref__exp_sums fref__exponentiate(double *x, int64_t n, double max);

void fref__multiply(double *x, int64_t n, double by);

/* Forward: the weight of the variance, and the terms that may be flushed (p < limit, p > 0).
 * Returns whether there are any. */
typedef struct fref__forward_terms {
    double variance_p, variance_floor, limit;
} fref__forward_terms;
bool fref__weigh_forward(double *variance, double *flushed, const double *p, int64_t n,
                         const fref__forward_terms *terms);

/* Backward: P = exp(scale s - stats), and dS = P (ds - delta), where ds contains dP. P may
 * overwrite s. */
typedef struct fref__entry_row {
    double scale, stats, delta;
} fref__entry_row;
void fref__entries(double *p, double *ds, const double *s, int64_t n, const fref__entry_row *row);

/* The common part of the errors of a row's entries, and the destination of their weights. */
typedef struct fref__entry_terms {
    double relative, of_p, floor;    /* bound of dS: relative |dS| + of_p P + floor */
    double var_ds, var_p, var_floor; /* its variance: var_ds dS^2 + var_p P^2 + var_floor */
    double limit;                    /* |dS| below it may be flushed */
    double v_relative, v_floor;      /* of P in dV */
    double v_var, v_var_floor, v_limit;
} fref__entry_terms;
typedef struct fref__entry_weights {
    double *size, *bound, *variance, *lost; /* of dS */
    double *v_bound, *v_variance, *v_lost;  /* of P; NULL: not wanted */
    bool any_lost, any_v_lost;
} fref__entry_weights;
void fref__weigh(fref__entry_weights *out, const double *p, const double *ds, int64_t n,
                 const fref__entry_terms *terms);

#endif
