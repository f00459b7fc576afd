/* From scaled logits to the softmax's input: x = modify(s) + bias + alibi, and the error of x in a correct kernel.
 *
 * A kernel rounds to fp32 after each step. The modification multiplies the error of s by its slope. In addition x has the error
 * extra, in units of e32, rms; at worst twice that:
 *   |slope| |s| + rounded + (eps_mod / e32) approximated    with a modification (s is rounded before it is modified)
 *   |x|                                                     with a bias (their sum is rounded)
 *   |slope (j - i)| + |x|                                   with alibi (a product and a sum are rounded)
 * Without any of these, extra is 0 and the slope 1. */
#ifndef FREF_SCORE_H
#define FREF_SCORE_H

#include "slab.h"

#define E32 0x1p-23
#define THIRD (1.0 / 3.0) /* of u^2: the variance of a rounding by at most u */
/* A key whose x lies this far below the maximum has P = 0 in any arithmetic: its magnitude says
 * nothing of the others' errors. */
#define FREF__OUT_OF_REACH 200.0

/* What is known of each key of a row beside x; index 0 is the first key. A NULL array is not
 * wanted. */
typedef struct fref__score_arrays {
    double *slope, *curvature,
        *slope_extra; /* slope_extra: error of the slope's own evaluation, units of e32 */
    double *extra;
    double *pull; /* |slope s| */
} fref__score_arrays;

/* What a row's errors depend on, over the keys within reach. */
typedef struct fref__score_row {
    double max;                  /* of x, over all keys, and of the sink */
    double largest_x, largest_s; /* magnitudes */
    double slope, extra;         /* the largest |slope|; the largest extra */
    bool dead;                   /* no key: all of x is -INFINITY */
} fref__score_row;

bool fref__is_scored(const fref_problem *p); /* has a modification, a bias or alibi */

/* The sink of row i of head h; -INFINITY: none, or a row at or past len_q. */
double fref__sink_of(const fref_problem *p, int64_t b, int64_t h, int64_t i);

/* Which keys of a row dropout keeps, [keys]; NULL: all. */
const uint8_t *fref__keep_of(const fref_problem *p, int64_t b, int64_t h, int64_t i);

/* What key j's probability is multiplied with. */
/* Of the cast of P, which is multiplied by `scale` before. Dropout's factor may come after it. */
static inline fref__precision fref__precision_of_p(const fref_problem *p, fref_type type,
                                                   double scale)
{
    fref__precision of = fref__precision_scaled(type, scale);
    of.eta *= p->keep && p->keep_scale > 1.0 ? p->keep_scale : 1.0;
    return of;
}

static inline double fref__kept(const uint8_t *keep, double keep_scale, int64_t j)
{
    return !keep ? 1.0 : keep[j] ? keep_scale : 0.0;
}

/* Row i (in the problem) and listed keys from `first` on. */
typedef struct fref__row_place {
    int64_t b, h, i;
    const fref__list *keys;
    int64_t first;
} fref__row_place;

/* `s` holds `n` scaled logits; they become x. `bias` is scratch for n doubles (not read without a
 * bias). */
void fref__score(double *s, const fref__score_arrays *out, double *bias, const fref_problem *p,
                 double eps_mod, const fref__row_place *at, int64_t n);

/* Over `x` and `arrays` (slope, extra and pull) of n keys, and the sink. */
fref__score_row fref__score_measure(const double *x, const fref__score_arrays *arrays, int64_t n,
                                    double sink);
/* The same where nothing is done to a score; n logits are scaled on the way. */
fref__score_row fref__score_plain(double *s, int64_t n, double scale, double sink);

#endif
