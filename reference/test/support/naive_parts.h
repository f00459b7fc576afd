/* What the files of the naive evaluation share: one query row, one entry of P and dS. */
#ifndef FREF_TESTING_NAIVE_PARTS_H
#define FREF_TESTING_NAIVE_PARTS_H

#include <math.h>

#include "naive_reference.h"

typedef long double real;

#define E32_LONG 0x1p-23L /* e32 of docs/numerics.md */

static inline real square(real x)
{
    return x * x;
}

static inline real at_least_one(real x)
{
    return x < 1 ? 1 : x;
}

static inline real or_one(double scale)
{
    return scale != 0.0 ? (real)scale : 1;
}

/* Half the smallest subnormal step of what is multiplied by `scale` before its cast. */
static inline real eta_of(fref_type type, real scale)
{
    real eta = type == FREF_F16    ? 0x1p-25L
               : type == FREF_E4M3 ? 0x1p-10L
               : type == FREF_E5M2 ? 0x1p-17L
                                   : 0x1p-126L;
    return fmaxl(eta / scale, 0x1p-126L);
}

static inline real tiny_of(fref_type type)
{
    return type == FREF_F16 || type == FREF_E5M2 ? 0x1p-14L
           : type == FREF_E4M3                   ? 0x1p-6L
                                                 : 0x1p-126L;
}

/* What the last cast may lose. */
static inline real cast_of(fref_type type, real x, real scale)
{
    return (real)unit_roundoff_of(type) * fmaxl(fabsl(x), tiny_of(type) / scale);
}

static inline real saturated(fref_type type, real x, real scale)
{
    real max = (type == FREF_E4M3 ? 448 : type == FREF_E5M2 ? 57344 : INFINITY) / scale;
    return fmaxl(-max, fminl(max, x));
}

/* z of gate T1. */
static inline real z_of(int64_t n)
{
    return sqrtl(2 * logl(2 * (real)n / 1e-8L));
}

/* A modification, a bias or alibi: then a key whose P is 0 in any arithmetic says nothing. */
static inline bool is_scored(const fref_problem *p)
{
    return p->modify || p->bias || p->alibi;
}

/* keep / (1-p): what dropout multiplies P_ij with. */
static inline real kept(const fref_problem *p, int64_t b, int64_t h, int64_t i, int64_t j)
{
    if (!p->keep)
        return 1;
    return p->keep[((b * p->heads_q + h) * p->rows + i) * p->keys + j] ? (real)p->keep_scale : 0;
}

/* What a modification and a bias leave to know of one score. */
typedef struct detail {
    real slope, curvature, slope_extra, extra, pull;
    real kept;
} detail;

/* One query row: its keys and what the formulas of the error model need. */
typedef struct row {
    const data *d;
    const fref_rounding *r;
    int64_t b, h, hk, hv, i;
    int64_t n; /* keys */
    real *s;   /* scores; NAN: masked */
    detail *details;
    real s_mx, qk, nck, max, sum, lse; /* max and sum with the sink */
    real raw_mx, slope_mx, extra_mx;   /* s_mx and these: of the keys within reach */
} row;

/* What a row's error model needs in the backward pass. */
typedef struct back {
    real stats, delta, es, ew, ep, ez, ed, eo, u, u_ds, eta_p, eta_ds, floor, es_raw, ew_raw;
} back;

/* One entry of P and dS. */
typedef struct entry {
    real p, pk, dx, size_x, gp; /* pk: P'; gp: |slope| p */
    real ep, ez;                /* of dP */
    real off, worst_off;        /* what the slope is off by, times dX */
    real ds, cast_ds, size, er2, ebig, lost_ds, lost_p;
} entry;

/* All rows of one query head, [row][key]. */
typedef struct head_entries {
    row *rows;
    back *backs;
    entry *entries;
    bool *live; /* [row] */
} head_entries;

real naive__dot(const fref_tensor *x, int64_t hx, int64_t sx, const fref_tensor *y, int64_t hy,
                int64_t sy, int64_t b, int64_t dim);
void naive__row_start(row *x, const data *d, const fref_rounding *r, int64_t b, int64_t h,
                      int64_t i, real *s, detail *details);

/* Writes the row's O, LSE, Max, Sum_exp. */
void naive__forward_row(const row *x, naive_answers *out, int64_t row_index);

back naive__back_of(const row *x);
entry naive__entry_of(const row *x, const back *y, int64_t j);
/* Writes the row's dQ, and adds to dSink. */
void naive__dq_row(const row *x, const back *y, const entry *e, naive_answers *out,
                   int64_t row_index);
void naive__add_sink(const row *x, const back *y, naive_answers *out);
/* Adds one query head to dK, dV and dBias; `finish` is for the sums over all. */
void naive__add_keys(const head_entries *e, naive_answers *out);
void naive__add_bias(const head_entries *e, naive_answers *out);
void naive__finish_keys(const naive_tensor *t, const fref_problem *p, fref_type out, int64_t dim,
                        real scale, bool coherent, real amax[3]);
void naive__finish_bias(naive_answers *out, const fref_problem *p, const fref_rounding *r);

/* Effective channels of the rows of (b,h) where live[row]; at most 1024 of them, evenly spaced from
 * the first to the last. */
real naive__channels(const fref_tensor *x, int64_t b, int64_t h, int64_t rows, int64_t dim,
                     const bool *live);
/* max |X|, and what it may be said to be: value, least, most. */
void naive__take_amax(real amax[3], real x, real tolerance);
void naive__add_weight(naive_line *line, real w);
void naive__finish_line(naive_line *line, int64_t dim);

#endif
