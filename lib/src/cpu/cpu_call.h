/* A call in the form that the loops use: the memory of each tensor, dropout, and the factors of the
 * products. Made once for each call. */
#ifndef FATTN_CPU_CALL_H
#define FATTN_CPU_CALL_H

#include "cpu/kernels/cpu_kernels.h"
#include "cpu_attention.h"
#include "cpu_scores.h"
#include "cpu_view.h"

/* The factors of products, and the extra steps of 8-bit types: P and dS are scaled and cast before
 * the second products, outputs are scaled before their casts, and the largest magnitudes are
 * recorded.
 *
 * e4m3, e5m2: P' = exp(s - running maximum), after dropout, times scale_s. If that does not fit the
 * type, it is divided by a power of two, which is undone later. dS times attn_scale and scale_dp.
 * Block-scaled types: P' times 16 in the forward and 256 in the backward; dS in blocks of 32 along
 * the summed dimension, each with the smallest power of two that makes it fit. */
/* The largest magnitudes of a backward: X(SYMBOL, field of fattn_tensors) */
#define FATTN__AMAX_LIST(X) X(DP, amax_dp) X(DQ, amax_dq) X(DK, amax_dk) X(DV, amax_dv)
#define FATTN__AS_AMAX_(symbol, field) FATTN__AMAX_##symbol,
enum { FATTN__AMAX_LIST(FATTN__AS_AMAX_) FATTN__AMAX_COUNT };
#undef FATTN__AS_AMAX_

typedef struct fattn__factors {
    float score, o, dot, dp, dq, dk,
        dv; /* of the products Q K^T; P' V; dO O; dO V^T; dS K; dS^T Q; P'^T dO */
    int32_t narrow, narrow_ds; /* the types that P and dS are cast to; 0: no cast */
    bool eight_bit;            /* outputs are scaled, and largest magnitudes are recorded */
    bool block_scaled;         /* dS has its own scale factors */
    float p_scale, ds_scale;   /* applied before the casts */
    float scale_o, scale_dq, scale_dk, scale_dv;
    float attn_scale;
} fattn__factors;

fattn__factors fattn__factors_of(const fattn_problem *p, const fattn_tensors *t,
                                 const fattn__dropping *dropping);

/* Scales and casts a tile of P' for the second product. */
void fattn__narrow_p(const fattn__factors *f, const fattn__scores *at, float *p);
/* Scales and casts a tile of dS for a product that sums over rows or keys. *amax, unless NULL, is
 * updated with its largest magnitude. */
void fattn__narrow_ds(const fattn__factors *f, const fattn__scores *at, float *ds, bool over_rows,
                      float *amax);
/* Updates *amax with the largest magnitude of x[rows][step], `dim` elements of each row; then
 * multiplies x by `scale`. */
void fattn__scale_output(float *x, int64_t rows, int64_t step, int64_t dim, float scale,
                         float *amax);

typedef struct fattn__call {
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__kernels *kernels;
    fattn__view q, k, v, o, stats, d_o, dq, dk, dv;
    /* Block-scaled types, backward: the second quantisations, and dO in 16 bits, in the layouts of
     * the first. */
    fattn__view q_t, k_t, do_t, do_16;
    fattn__dropping dropping;
    fattn__factors factors;
    int64_t dense_o[4]; /* strides of a planted fault */
} fattn__call;

/* The tile's keys of K (of V), as its query head sees them. */
void fattn__call_load_keys(const fattn__call *c, bool of_v, float *dst, const fattn__scores *at);
void fattn__call_of(fattn__call *out, const fattn_problem *p, const fattn_tensors *t);

#endif
