/* The steps that the forward and the backward graph of attention share, on top of backend.h.
 *
 * Engines match patterns: an extra, missing or reordered operation is "no engine". The order of the calls in graph_forward.c and
 * graph_backward.c is therefore the contract, and each step here emits its operations in one fixed order.
 * Tensors are made in statements of their own, never inside an argument list: their uids must not depend on the compiler.
 */
#ifndef FATTN_CUDNN_GRAPH_H
#define FATTN_CUDNN_GRAPH_H

#include "cudnn/backend/backend.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

enum { FATTN__AXIS_ROW = 2, FATTN__AXIS_COL = 3 };

/* One graph under construction. */
typedef struct fattn__chain {
    fattn__graph *g;
    const fattn_problem *problem; /* resolved */
    bool single;                  /* softmax and bands as one operation each (from 9.20); otherwise expanded */
    int type;                     /* DNN_DATA_ of Q, K, V */
    fattn__desc seq_len_q;        /* int32 [batch,1,1,1]; NULL without padding */
    fattn__desc seq_len_kv;
    fattn__desc cu_seq_len_q, cu_seq_len_kv; /* unified alone: prefix sums in the place of a side's lengths */
    fattn__desc offsets[FATTN_RAGGED_TENSORS]; /* of the ragged tensors that this pass touches, by fattn__role; NULL elsewhere */
} fattn__chain;

/* Chooses the spelling and makes lengths and offsets. Refuses what the chosen spelling or the loaded version cannot say. */
fattn_status fattn__chain_begin(fattn__chain *out, fattn__graph *g, const fattn_problem *problem);

/* graph_backward.c: the way in which a deterministic backward repeats, into g->repeat; refused where none is known. */
fattn_status fattn__chain_repeat(fattn__graph *g, const fattn_problem *problem);

/* ---- tensors */
fattn__desc fattn__chain_tensor(const fattn__chain *c, fattn__role role);   /* of the call, [b,h,s,d] */
fattn__traits fattn__chain_traits(const fattn__chain *c, fattn__role role); /* the offsets of a ragged one */
/* A small block of the call: int32 or int64 [n,1,1,1], NULL when the problem does not use it; fp32 [1,n,1,1]. */
fattn__desc fattn__chain_vector(const fattn__chain *c, fattn__auxiliary which, int bits);
fattn__desc fattn__chain_small(const fattn__chain *c, fattn__auxiliary which);
/* graph_totals.c: a tensor of our workspace that lies as a packed tensor of the call, with room for the declared tokens; NULL where that
 * tensor is not packed or nothing is declared. `heads`: its own, or more: a group of query heads in the place of each. */
fattn__desc fattn__chain_packed_scratch(const fattn__chain *c, fattn__role like, int type, int64_t heads);
/* graph_paged.c: K as [b,h,d,s] and V as [b,h,s,d], gathered from their pages where they are paged, just before their product. */
fattn__desc fattn__chain_keys(const fattn__chain *c);
fattn__desc fattn__chain_values(const fattn__chain *c);
/* A gradient, as one for each element of `input`: of the call, or of our workspace where the problem sums it (fattn__problem_sums).
 */
fattn__desc fattn__chain_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input);
fattn__desc fattn__chain_transposed(const fattn__chain *c, fattn__role role); /* the same memory as [b,h,d,s] */
/* What is read beside a score: a bias, or a tensor of a score_mod. */
fattn__desc fattn__chain_beside(const fattn__chain *c, fattn__slot slot, int32_t dtype, const int64_t dim[4], const int64_t strides[4]);
fattn__desc fattn__chain_score(const fattn__chain *c, int type);              /* virtual [b,hq,sq,skv] */
fattn__desc fattn__chain_row(const fattn__chain *c);                          /* virtual [b,hq,sq,1], fp32 */

/* ---- operations on scores; each makes and returns its virtual output of `type` */
fattn__desc fattn__chain_unary(const fattn__chain *c, int mode, fattn__desc x, int type);
fattn__desc fattn__chain_binary(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b, int type);
/* On rows [b,hq,sq,1]; y NULL: a virtual one is made. Returns y. */
fattn__desc fattn__chain_of_rows(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b, fattn__desc y);
fattn__desc fattn__chain_scaled(const fattn__chain *c, fattn__desc x); /* times the attention scale */

fattn__desc fattn__chain_index(const fattn__chain *c, fattn__desc x, int axis, int math); /* int32: row or column of a score */
fattn__desc fattn__chain_keep(const fattn__chain *c, fattn__desc keep, fattn__desc x);    /* x where keep, otherwise -inf */

/* graph_bias.c: the bias, or the boolean mask in its place, then ALiBi; without them x comes back as it is. */
fattn__desc fattn__chain_bias(const fattn__chain *c, fattn__desc x);
/* The gradients of the bias and of the score_mod's tensors that the problem asks for; d_s: before the score_mod's gradient and the
 * scale. */
void fattn__chain_added_gradients(const fattn__chain *c, fattn__desc d_s);

/* graph_mod.c: the score_mod on the scaled score, and d(loss)/d(scaled score) from d(loss)/d(modified score). Without one x, or
 * d_s, comes back as it is. What cuDNN has no spelling for is refused. */
fattn__desc fattn__chain_mod(const fattn__chain *c, fattn__desc x);
fattn__desc fattn__chain_mod_gradient(const fattn__chain *c, fattn__desc x, fattn__desc d_s);

/* graph_mask.c: masked scores become -inf. Without lengths, or without a bound, x comes back as it is. */
fattn__desc fattn__chain_padding(const fattn__chain *c, fattn__desc x);
fattn__desc fattn__chain_bands(const fattn__chain *c, fattn__desc x);

/* graph_dropout.c: what multiplies P. All NULL: no dropout. */
typedef struct fattn__dropout {
    fattn__desc keep;    /* 1 or 0 for each score: cuDNN's Philox, or the caller's */
    fattn__desc scale;   /* of what is kept */
    fattn__desc inverse; /* of the scale, for D: backward, of a mask that cuDNN draws */
} fattn__dropout;
bool fattn__chain_drops(const fattn__chain *c);
fattn__dropout fattn__chain_dropout(const fattn__chain *c);
/* Forward: P as it multiplies V, of `type`. */
fattn__desc fattn__chain_dropped(const fattn__chain *c, fattn__desc p, int type);
/* Backward: P * (dP - D), where dP is what reaches P through dropout, and D is smaller by the inverse. */
typedef struct fattn__slope {
    fattn__desc d_p, sums, p;
} fattn__slope;
fattn__desc fattn__chain_dropped_slope(const fattn__chain *c, const fattn__slope *in, const fattn__dropout *dropout);

/* graph_backward.c: what multiplied V: P, or what dropout left of it; a score as [b,hq,skv,sq] of `type`; dSink from rowsum(dO * O). */
fattn__desc fattn__chain_dropped_again(const fattn__chain *c, fattn__desc p, const fattn__dropout *dropout);
fattn__desc fattn__chain_transposed_score(const fattn__chain *c, fattn__desc x, int type);
void fattn__chain_sink_gradient(const fattn__chain *c, fattn__desc stats, fattn__desc sums);

/* Virtual scores, fp32: a b^T with the lengths of queries and keys. */
fattn__desc fattn__chain_product(const fattn__chain *c, fattn__desc a, fattn__desc b_transposed);
/* The scaled score on its way to the softmax of a forward: score_mod, bias, lengths, bands. */
fattn__desc fattn__chain_masked(const fattn__chain *c, fattn__desc x);
/* graph_softmax.c: probabilities of `type`; writes Stats, Max and Sum_exp as the problem asks. */
fattn__desc fattn__chain_softmax(const fattn__chain *c, fattn__desc x, int type);

#endif
