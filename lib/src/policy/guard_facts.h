/* Facts about a resolved problem that no single field has. The generated guards use them
 * (reports/facts_reports/known/guards.py). */
#ifndef FATTN_GUARD_FACTS_H
#define FATTN_GUARD_FACTS_H

#include "problem/resolved_problem.h"

/* The score_mod reads an index or a tensor: its result depends on the position of the score. */
bool fattn__fact_mod_reads_place(const fattn_problem *p);
/* The gradient of the score_mod reads more than the gradient that it receives: the score, an index
 * or a tensor. Backward only. */
bool fattn__fact_mod_gradient_reads(const fattn_problem *p);
/* This pass writes a ragged tensor whose input is not ragged. */
bool fattn__fact_packed_alone(const fattn_problem *p);
/* This pass writes a dK or dV that is dense, and K or V is ragged. */
bool fattn__fact_dense_gradient(const fattn_problem *p);
/* dK or dV is ragged, and its tokens have another size than those of K or V. The offsets of the two
 * then differ. */
bool fattn__fact_offsets_apart(const fattn_problem *p);
/* The bias has an element for each query and key. */
bool fattn__fact_bias_square(const fattn_problem *p);
/* Tiles of 128 queries, over all heads and batch entries. */
int64_t fattn__fact_query_tiles(const fattn_problem *p);

/* The largest stride, in elements, that a kernel uses for an address. An axis of extent 1 and the
 * batch axis of a ragged tensor do not count. */
int64_t fattn__fact_stride_qkv(const fattn_problem *p);
int64_t fattn__fact_stride_o(const fattn_problem *p); /* of O and dO */
int64_t fattn__fact_stride_dq(const fattn_problem *p);
/* The offset of the last element from the first, in elements: the larger one of O and dO. A ragged
 * tensor's batch axis does not count. */
int64_t fattn__fact_reach_o(const fattn_problem *p);

/* The strides of the tensor decrease in this order of the axes. Gaps do not count. If an extent is
 * 1, more than one order can be true. */
bool fattn__fact_order(const fattn_problem *p, fattn__role which, fattn_format format);

/* Words for the sentences of guards. */
const char *fattn__fact_order_word(const fattn_problem *p,
                                   fattn__role which); /* "bshd"; "unset" where no order holds */
const char *fattn__fact_dtype_word(int32_t dtype);     /* "bf16" */
const char *fattn__fact_pass_word(int32_t pass);       /* "fwd" */
const char *
fattn__fact_misaligned_word(const fattn_problem *p); /* "q"; "none" where every stride is aligned */

#endif
