/* What is done to every entry of P and dS where no score is modified and nothing is dropped: eight at a time.
 *
 * Only additions, multiplications, comparisons and choices of doubles, fused where it says so, and sums in eight lanes that are
 * added in one order at the end: the same bits on every instruction set. The general forms stand in ref_forward.c, backward_rows.c and
 * backward_keys.c.
 */
#ifndef FREF_LANES_H
#define FREF_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* A probability below this may be flushed to zero by fp32 arithmetic. */
#define FREF__P_FLUSHED 0x1.125fbee250664p-126 /* 2^-125.9 */

/* exp(x[n]), within 1 unit in the last place of a normal result; 0 and infinity where it leaves the doubles; a NaN stays. */
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

/* Forward: weight of the variance; what may be flushed (p < limit, p > 0). Returns whether there is any. */
typedef struct fref__forward_terms {
    double variance_p, variance_floor, limit;
} fref__forward_terms;
bool fref__weigh_forward(double *variance, double *flushed, const double *p, int64_t n, const fref__forward_terms *terms);

/* Backward: P = exp(scale s - stats), and dS = P (ds - delta) where ds holds dP. P may take the place of s. */
typedef struct fref__entry_row {
    double scale, stats, delta;
} fref__entry_row;
void fref__entries(double *p, double *ds, const double *s, int64_t n, const fref__entry_row *row);

/* What the errors of a row's entries have in common, and where their weights go. */
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
void fref__weigh(fref__entry_weights *out, const double *p, const double *ds, int64_t n, const fref__entry_terms *terms);

#endif
