/* Numbers that products are multiplied with, and what 8-bit types add: P and dS are scaled and cast before the second products, outputs scaled
 * before their casts, and the largest magnitudes are kept.
 *
 * e4m3, e5m2: P' = exp(s - running maximum), with what dropout makes of it, times scale_s; where that would not fit the type, times a power of two
 * less, which is undone. dS times attn_scale and scale_dp. Block-scaled types: P' times 16 forward and 256 backward; dS in blocks of 32 along the
 * summed dimension, each with the least power of two that makes it fit. */
#ifndef FATTN_CPU_FACTORS_H
#define FATTN_CPU_FACTORS_H

#include "cpu_attention.h"
#include "cpu_dropout.h"
#include "cpu_scores.h"

/* The largest magnitudes of a backward: X(SYMBOL, field of fattn_tensors) */
#define FATTN__AMAX_LIST(X) X(DP, amax_dp) X(DQ, amax_dq) X(DK, amax_dk) X(DV, amax_dv)
#define FATTN__AS_AMAX_(symbol, field) FATTN__AMAX_##symbol,
enum { FATTN__AMAX_LIST(FATTN__AS_AMAX_) FATTN__AMAX_COUNT };
#undef FATTN__AS_AMAX_

typedef struct fattn__factors {
    float score, o, dot, dp, dq, dk, dv; /* of Q K^T; P' V; dO O; dO V^T; dS K; dS^T Q; P'^T dO */
    int32_t narrow, narrow_ds;           /* the types that P and dS are cast to; 0: they are not */
    bool block_scaled;                   /* dS has factors of its own */
    float p_scale, ds_scale;             /* before their casts */
    float scale_o, scale_dq, scale_dk, scale_dv;
    float attn_scale;
} fattn__factors;

fattn__factors fattn__factors_of(const fattn_problem *p, const fattn_tensors *t, const fattn__dropping *dropping);

/* A tile of P' becomes what the second product sees. */
void fattn__narrow_p(const fattn__factors *f, const fattn__scores *at, float *p);
/* A tile of dS, summed over rows or keys afterwards, becomes what the product sees. *amax, unless NULL, grows to its largest magnitude. */
void fattn__narrow_ds(const fattn__factors *f, const fattn__scores *at, float *ds, bool over_rows, float *amax);
/* *amax grows to the largest magnitude of x[rows][step], `dim` of each row; then x is multiplied with `scale`. */
void fattn__scale_output(float *x, int64_t rows, int64_t step, int64_t dim, float scale, float *amax);

#endif
