/* The number of independent values in a row of errors: gates T2, T3 and TG of docs/numerics.md average over rows.
 *
 *   neff = (sum w)^2 / sum w^2       terms with a rounding each, by their weights w in the variance
 *   nch  = max(1, tr(C)^2 / tr(C^2)) channels of X that one such rounding moves independently: C = X^T X of X with channels of
 *   rms 1
 *   nu   = max(1/2, 1 / (fP^2 (1/neff + 1/nch) + fC^2 + fO^2 / dim))
 *
 * fP, fO, fC are parts of the row's variance, summed over its channels. fP comes from roundings of single terms, fO from the
 * last cast, and fC from errors that move the whole row at once. */
#ifndef FREF_FREEDOM_H
#define FREF_FREEDOM_H

#include "ref_shape.h"

#define FREF__FREEDOM_ROWS                                                                         \
    1024 /* the largest number of rows of X, evenly spaced, that measure how its channels are      \
            related */

/* Sums of w and w^2. */
typedef struct fref__weight_sums {
    double first, second;
} fref__weight_sums;

static inline void fref__add_weight(fref__weight_sums *to, double w)
{
    to->first += w;
    to->second += w * w;
}

/* 1 where the weights are too small for their squares (sum below 2^-400). */
double fref__effective_number(const fref__weight_sums *sums);

/* The number of doubles of scratch for fref__effective_channels. */
int64_t fref__effective_channels_scratch(int64_t ld);
/* X: channels c .. c+15 of a row are at x + c / 16 * panel + row * ld. */
typedef struct fref__matrix {
    const double *x;
    int64_t panel, ld, dim;
} fref__matrix;
/* For the rows in `live`. A row with a NaN or an infinity counts as zeros. */
double fref__effective_channels(const fref__matrix *x, fref__range live, double *scratch);

/* A row's variance, summed over its channels. */
typedef struct fref__row_variance {
    double single, cast, whole; /* fP, fO, fC times their sum */
} fref__row_variance;

double fref__degrees_of_freedom(const fref__row_variance *variance, double neff, double nch,
                                int64_t dim);

#endif
