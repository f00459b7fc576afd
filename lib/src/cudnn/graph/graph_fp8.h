/* graph_fp8.h: the steps that the graphs of 8-bit types share, on top of cudnn_graph.h. With e4m3
 * and e5m2, every product is descaled by numbers in device memory, and values are scaled before
 * their casts. With block-scaled types, inputs are multiplied by their scale factors before a
 * product. */
#ifndef FATTN_CUDNN_GRAPH_FP8_H
#define FATTN_CUDNN_GRAPH_FP8_H

#include "cudnn_graph.h"

/* A graph of 8-bit types while it is built. */
typedef struct fattn__fp8 {
    fattn__chain chain;
    fattn__dropout dropout;                      /* backward: one mask, used in two products */
    fattn__desc numbers[FATTN__AUXILIARY_COUNT]; /* fp32 [1,1,1,1] of the call; one tensor each,
                                                    also if it is used twice */
} fattn__fp8;

/* As fattn__chain_begin. Also refuses gradients of broadcast inputs and of a bias: these graphs
 * cannot compute them. */
fattn_status fattn__fp8_begin(fattn__fp8 *out, fattn__graph *g, const fattn_problem *problem);

/* ---- scalars of the call */
fattn__desc fattn__fp8_times(fattn__fp8 *f, fattn__desc score, fattn__auxiliary number,
                             int type); /* a score, of `type` */
void fattn__fp8_amax(fattn__fp8 *f, fattn__desc x,
                     fattn__auxiliary amax); /* largest magnitude of x */

/* ---- products */
typedef struct fattn__fp8_product {
    fattn__matmul matmul;                  /* without c */
    fattn__auxiliary descale_a, descale_b; /* e4m3 and e5m2 */
    fattn__auxiliary scale;                /* e4m3 and e5m2: scale of an 8-bit output */
    fattn__auxiliary amax;
    fattn__role out;
} fattn__fp8_product;
/* The same for block-scaled operands: no descale and no scale; amax is that of the output as it is
 * written. */
void fattn__mx_multiply(fattn__fp8 *f, const fattn__fp8_product *op);

/* ---- the backward */
/* The value that is subtracted from dP, computed from the row sums. The gradient of a sink is
 * computed from it too. */
fattn__desc fattn__fp8_softmax_sums(fattn__fp8 *f, fattn__desc sums, fattn__desc stats);
/* P = exp(masked score - Stats), fp32. In these graphs the masks come before the subtraction. */
fattn__desc fattn__fp8_probabilities(fattn__fp8 *f, fattn__desc score, fattn__desc stats);
/* d(loss)/d(scaled product) = scale * P * (dP - D), fp32. `scaled` is the input of the score_mod.
 */
fattn__desc fattn__fp8_score_gradient(fattn__fp8 *f, fattn__desc d_p, fattn__desc sums,
                                      fattn__desc p, fattn__desc scaled);

/* ---- block-scaled operands (graph_mx.c) */
typedef struct fattn__mx_operand {
    fattn__slot data;
    fattn__auxiliary factors;
    fattn__role role; /* the tensor that has its extents */
    bool second;      /* the second quantisation, in the layout of the role's tensor */
    bool along_rows;  /* blocks of 32 rows or keys, not of 32 channels */
    bool transposed;  /* as [b,h,d,s] */
} fattn__mx_operand;
fattn__desc
fattn__mx_factors(const fattn__chain *c,
                  const fattn__mx_operand *operand); /* the scale factors as cuDNN reads them */
fattn__desc fattn__mx_dequantized(const fattn__chain *c,
                                  const fattn__mx_operand *operand); /* virtual, fp32 */

#endif
