/* Shared by the parts of the backward pass: backward_rows.c computes dQ, backward_keys.c dK and dV,
 * backward_bias.c dBias. */
#ifndef FREF_REF_BACKWARD_H
#define FREF_REF_BACKWARD_H

#include <math.h>

#include "amax.h"
#include "freedom.h"
#include "lanes.h"
#include "score.h"

/* The values of one row that every gradient uses. */
typedef struct fref__row_facts {
    double delta;          /* D_i = sum_c dO O */
    double es, ew;         /* a score's error, rms and worst */
    double es_raw, ew_raw; /* of the score before its modification, at the place of the slope */
    double ep, ez;         /* an error of dO . v, rms and worst */
    double edelta;         /* an error of D_i, the same for all keys */
    double eo;             /* the same, if the O that the engine read is not available */
    double norm_q, norm_d_o;
    bool dead; /* no key: masked, or every score -INFINITY */
} fref__row_facts;

enum { FREF__AMAX_DP, FREF__AMAX_DQ, FREF__AMAX_DK, FREF__AMAX_DV, FREF__AMAX_COUNT };

typedef struct fref__backward {
    const fref__shape *shape;
    const fref_rounding *rounding;
    const fref__inputs *inputs;
    const fref_backward_out *out;
    fref__precision in;               /* of the inputs' type */
    fref__precision of_p, of_ds;      /* of the casts of P and dS */
    fref__precision to_q, to_k, to_v; /* of dQ, dK, dV */
    double gamma_p, gamma_ds;         /* scale times descale: in dV; in dQ and dK */
    fref__amax *amax;                 /* [thread, FREF__AMAX_COUNT] */
    double most_ds;                   /* of dS: the error of its cast, over attn_scale */
    double z_dp, z_dq, z_dk, z_dv;    /* amax.h */
    fref__row_facts *facts;           /* [unit, span, rows] of the slab */
    bool judged;          /* a sigma or bound of dK or dV is wanted, or degrees of freedom */
    bool measured;        /* a sigma, bound, nu or amax of anything is wanted: the facts of rows */
    bool freedom;         /* degrees of freedom or effective numbers are wanted */
    bool scored;          /* a modification, a bias or alibi */
    bool plain;           /* not scored, and nothing is dropped or clipped: lanes.h */
    double *bias_sums[4]; /* dBias so far: value, magnitude, variance, bound; [dbias_dim]; NULL: not
                             wanted */
} fref__backward;

/* Sums over keys (dQ) or rows (dK, dV) before they are scaled; the code that fills them explains
 * each. */
typedef struct fref__sums {
    double *value, *magnitude, *variance, *bound, *flushed;
} fref__sums;

static inline double fref__at_least_1(double x)
{
    return x > 1.0 ? x : 1.0;
}

/* The loss of dS to subnormal numbers, before the scale: the cast comes after it. */
static inline double fref__floor_of_ds(const fref__backward *x)
{
    double scale = fabs(x->shape->problem->scale);
    return x->of_ds.eta / (scale > 0.0 && scale < 1.0 ? scale : 1.0);
}

/* Fills the facts of the slab's rows and writes dQ. Returns 0 or ENOMEM. */
int fref__backward_rows(const fref__backward *x, const fref__slab *slab);
/* Writes dK and dV, from the facts. Returns 0 or ENOMEM. */
int fref__backward_keys(const fref__backward *x, const fref__slab *slab);

/* Adds the slab's part to dBias, from the facts; the last call of all writes it out. Returns 0 or
 * ENOMEM. */
int fref__backward_bias(const fref__backward *x, const fref__slab *slab);
void fref__backward_bias_write(const fref__backward *x);

/* Writes dSink. Returns 0 or ENOMEM. */
int fref__backward_sink(const fref__shape *shape, const fref__inputs *inputs,
                        const fref_backward_out *out);

/* The common part of the errors of a row's entries, for a plain problem. */
fref__entry_terms fref__entry_terms_of(const fref__backward *x, const fref__row_facts *facts);

#endif
