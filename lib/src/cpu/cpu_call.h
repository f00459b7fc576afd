/* A call in the form that the loops use: the memory of each tensor, dropout, and the factors of the
 * products. Made once for each call. */
#ifndef FATTN_CPU_CALL_H
#define FATTN_CPU_CALL_H

#include "cpu/kernels/cpu_kernels.h"
#include "cpu_dropout.h"
#include "cpu_factors.h"
#include "cpu_view.h"

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
