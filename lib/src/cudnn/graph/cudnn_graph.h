/* The steps that the forward and the backward graph of attention share, on top of backend.h.
 *
 * Engines match patterns: with an extra, missing or reordered operation, cuDNN finds no engine.
 * Therefore each step here emits its operations in one fixed order, and the order of the calls in
 * graph_forward.c and graph_backward.c must not change. Tensors are made in statements of their
 * own, never inside an argument list: their uids must not depend on the compiler. */
#ifndef FATTN_CUDNN_GRAPH_H
#define FATTN_CUDNN_GRAPH_H

#include "cudnn/backend/backend.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

enum { FATTN__AXIS_ROW = 2, FATTN__AXIS_COL = 3 };

/* A graph while it is built. */
typedef struct fattn__chain {
    fattn__graph *g;
    const fattn_problem *problem; /* resolved */
    bool single; /* softmax and bands as one operation each (from 9.20); otherwise expanded */
    int type;    /* DNN_DATA_ of Q, K, V */
    fattn__desc seq_len_q; /* int32 [batch,1,1,1]; NULL without padding */
    fattn__desc seq_len_kv;
    fattn__desc cu_seq_len_q, cu_seq_len_kv;   /* unified only: prefix sums instead of lengths */
    fattn__desc offsets[FATTN_RAGGED_TENSORS]; /* of the ragged tensors of this pass, by
                                                  fattn__role; NULL for others */
} fattn__chain;

/* Chooses between single and expanded operations, and makes the lengths and offsets. Refuses what
 * the chosen form or the loaded version cannot express. */
fattn_status fattn__chain_begin(fattn__chain *out, fattn__graph *g, const fattn_problem *problem);

/* graph_backward.c: sets g->repeat, the way to make a deterministic backward repeat. Refuses if
 * none is known. */
fattn_status fattn__chain_repeat(fattn__graph *g, const fattn_problem *problem);

/* ---- tensors */
fattn__desc fattn__chain_tensor(const fattn__chain *c,
                                fattn__role role); /* a tensor of the call, [b,h,s,d] */
fattn__traits fattn__chain_traits(const fattn__chain *c,
                                  fattn__role role); /* with the offsets of a ragged tensor */
/* A small array of the call: int32 or int64 [n,1,1,1], NULL if the problem does not use it; fp32
 * [1,n,1,1]. */
fattn__desc fattn__chain_vector(const fattn__chain *c, fattn__auxiliary which, int bits);
fattn__desc fattn__chain_small(const fattn__chain *c, fattn__auxiliary which);
/* A tensor in the library's workspace with the layout of a ragged tensor of the
 * call and space for the declared tokens. NULL if that tensor is not ragged, or if no total is
 * declared. `heads`: the tensor's heads, or more (a group of query heads for each). */
fattn__desc fattn__chain_packed_scratch(const fattn__chain *c, fattn__role like, int type,
                                        int64_t heads);
/* K as [b,h,d,s] and V as [b,h,s,d]. Paged tensors are gathered from their pages
 * just before their product. */
fattn__desc fattn__chain_keys(const fattn__chain *c);
fattn__desc fattn__chain_values(const fattn__chain *c);
/* A gradient with an element for each element of `input`: of the call, or of the library's
 * workspace if the problem sums it (fattn__problem_sums). */
fattn__desc fattn__chain_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input);
fattn__desc fattn__chain_transposed(const fattn__chain *c,
                                    fattn__role role); /* the same memory as [b,h,d,s] */
/* A tensor that is read together with a score: a bias, or a tensor of a score_mod. */
fattn__desc fattn__chain_score(const fattn__chain *c, int type); /* virtual [b,hq,sq,skv] */
fattn__desc fattn__chain_row(const fattn__chain *c);             /* virtual [b,hq,sq,1], fp32 */

/* ---- operations on scores; each makes and returns its virtual output of `type` */
fattn__desc fattn__chain_unary(const fattn__chain *c, int mode, fattn__desc x, int type);
fattn__desc fattn__chain_binary(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                int type);
/* The same on rows [b,hq,sq,1]. If y is NULL, a virtual tensor is made. Returns y. */
fattn__desc fattn__chain_of_rows(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                 fattn__desc y);
fattn__desc fattn__chain_row_sums(const fattn__chain *c, fattn__desc d_o,
                                  fattn__desc o); /* rowsum(dO * O) */
fattn__desc fattn__chain_turned_back(const fattn__chain *c,
                                     fattn__desc k_transposed); /* virtual [b,h,s,d] */
fattn__desc fattn__chain_scale(const fattn__chain *c);          /* the attention scale */
fattn__desc fattn__chain_scaled(const fattn__chain *c,
                                fattn__desc x); /* times the attention scale */

fattn__desc fattn__chain_index(const fattn__chain *c, fattn__desc x, int axis,
                               int math); /* int32: row or column of a score */
fattn__desc fattn__chain_keep(const fattn__chain *c, fattn__desc keep,
                              fattn__desc x); /* x where keep, otherwise -inf */

/* The bias or the boolean mask, then ALiBi. Returns x if the problem has neither. */
fattn__desc fattn__chain_bias(const fattn__chain *c, fattn__desc x);
/* The gradients of the bias and of the score_mod's tensors that the problem asks for. d_s is the
 * gradient before the score_mod's gradient and the scale. */
void fattn__chain_added_gradients(const fattn__chain *c, fattn__desc d_s);

/* The score_mod on the scaled score, and d(loss)/d(scaled score) from
 * d(loss)/d(modified score). Without a score_mod, returns x or d_s. Refuses operations that cuDNN
 * does not have. */
fattn__desc fattn__chain_mod(const fattn__chain *c, fattn__desc x);
fattn__desc fattn__chain_mod_gradient(const fattn__chain *c, fattn__desc x, fattn__desc d_s);

/* Masked scores become -inf. Without lengths, or without bounds, returns x. */
fattn__desc fattn__chain_padding(const fattn__chain *c, fattn__desc x);
fattn__desc fattn__chain_bands(const fattn__chain *c, fattn__desc x);

/* The factors of P. All NULL: no dropout. */
typedef struct fattn__dropout {
    fattn__desc keep;    /* 1 or 0 for each score: cuDNN's Philox, or the caller's */
    fattn__desc scale;   /* factor of a kept score */
    fattn__desc inverse; /* 1 / scale, applied to D: backward with a mask that cuDNN generates */
} fattn__dropout;
bool fattn__chain_drops(const fattn__chain *c);
fattn__dropout fattn__chain_dropout(const fattn__chain *c);
/* Forward: P after dropout, of `type`. It is the left operand of the product with V. */
fattn__desc fattn__chain_dropped(const fattn__chain *c, fattn__desc p, int type);
/* Backward: P * (dP - D). dP is the gradient after dropout, and D is multiplied by the inverse of
 * the scale. */
typedef struct fattn__slope {
    fattn__desc d_p, sums, p;
} fattn__slope;
fattn__desc fattn__chain_dropped_slope(const fattn__chain *c, const fattn__slope *in,
                                       const fattn__dropout *dropout);

/* graph_backward.c: P after dropout, which multiplied V in the forward; a score as [b,hq,skv,sq] of
 * `type`; dSink from rowsum(dO * O). */
fattn__desc fattn__chain_dropped_again(const fattn__chain *c, fattn__desc p,
                                       const fattn__dropout *dropout);
fattn__desc fattn__chain_transposed_score(const fattn__chain *c, fattn__desc x, int type);
void fattn__chain_sink_gradient(const fattn__chain *c, fattn__desc stats, fattn__desc sums);

/* Virtual scores in fp32: a b^T, with the lengths of queries and keys. */
fattn__desc fattn__chain_product(const fattn__chain *c, fattn__desc a, fattn__desc b_transposed);
/* The steps of a forward between the scaled score and the softmax: score_mod, bias, lengths, bands.
 */
fattn__desc fattn__chain_masked(const fattn__chain *c, fattn__desc x);
/* Probabilities of `type`; writes Stats, Max and Sum_exp as the problem asks. */
fattn__desc fattn__chain_softmax(const fattn__chain *c, fattn__desc x, int type);

#endif
