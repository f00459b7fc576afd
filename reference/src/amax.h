/* The largest magnitude of a tensor before its cast to 8 bits, and what a right kernel may say it is.
 *
 *   max(|X| - t) <= amax <= max(|X| + t)      t = min(B, z sigma), gate T1's tolerance without the rounding of X's own cast,
 *                                             z = sqrt(2 ln(2N/alpha)), N elements, alpha = 1e-8;
 *                                             infinite where roundings may have one sign
 */
#ifndef FREF_AMAX_H
#define FREF_AMAX_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include <fref/fref.h>

typedef struct fref__amax {
    double value, least, most;
} fref__amax;

static inline double fref__z_of(int64_t elements)
{
    return sqrt(2.0 * log(2.0 * (double)(elements > 1 ? elements : 1) / 1e-8));
}

/* Infinity times a deviation of 0 is a NaN; fmin(bound, NaN) is then the bound. */
static inline double fref__z_of_gradient(const fref_rounding *rounding, fref_gradient gradient,
                                         int64_t elements)
{
    return rounding->coherent & (unsigned)gradient ? (double)INFINITY : fref__z_of(elements);
}

/* A NaN stays. */
static inline double fref__larger_or_nan(double a, double b)
{
    return b > a || isnan(b) ? b : a;
}

static inline void fref__amax_take(fref__amax *a, double size, double tolerance)
{
    a->value = fref__larger_or_nan(a->value, size);
    a->least = fref__larger_or_nan(a->least, size - tolerance);
    a->most = fref__larger_or_nan(a->most, size + tolerance);
}

static inline void fref__amax_join(fref__amax *a, const fref__amax *b)
{
    a->value = fref__larger_or_nan(a->value, b->value);
    a->least = fref__larger_or_nan(a->least, b->least);
    a->most = fref__larger_or_nan(a->most, b->most);
}

/* Writes the largest of the threads' values to out[3]; NULL: not wanted. `stride`: fref__amax from
 * thread to thread. */
static inline void fref__amax_write(double *out, const fref__amax *of_threads, int64_t stride,
                                    int threads)
{
    fref__amax all = { 0 };
    for (int t = 0; t < threads; t++)
        fref__amax_join(&all, &of_threads[t * stride]);
    if (!out)
        return;
    out[0] = all.value;
    out[1] = all.least;
    out[2] = all.most;
}

#endif
