/* The small arrays of a call, beside the tensors of fattn__role and the lengths: offsets, page
 * tables, scalars in memory, scale factors. Each is one block of memory. The problem decides
 * whether an array is needed and how large it is (auxiliary.c). */
#ifndef FATTN_AUXILIARY_H
#define FATTN_AUXILIARY_H

#include <stddef.h>

#include "fattn/fattn.h"

/* X(SYMBOL, field of fattn_tensors, written). A call is checked in this order. */
/* clang-format off */
#define FATTN__AUXILIARY_LIST(X)                                                                   \
    X(Q_OFFSETS, q_offsets, 0) X(K_OFFSETS, k_offsets, 0) X(V_OFFSETS, v_offsets, 0)               \
    X(O_OFFSETS, o_offsets, 0)                                                                     \
    X(STATS_OFFSETS, stats_offsets, 0) X(DO_OFFSETS, do_offsets, 0) X(DQ_OFFSETS, dq_offsets, 0)   \
    X(DK_OFFSETS, dk_offsets, 0)                                                                   \
    X(DV_OFFSETS, dv_offsets, 0) X(PAGE_TABLE_K, page_table_k, 0) X(PAGE_TABLE_V, page_table_v, 0) \
    X(TABLE_OFFSETS_K, table_offsets_k, 0) X(TABLE_OFFSETS_V, table_offsets_v, 0)                  \
    X(ATTN_SCALE, attn_scale, 0)                                                                   \
    X(ALIBI_SLOPES, alibi_slopes, 0) X(SINK, sink, 0) X(DSINK, dsink, 1) X(SEED, seed, 0)          \
    X(OFFSET, offset, 0)                                                                           \
    X(DROPOUT_MASK, dropout_mask, 0) X(DROPOUT_SCALE, dropout_scale, 0)                            \
    X(DROPOUT_SCALE_INVERSE, dropout_scale_inverse, 0)                                             \
    X(RNG_DUMP, rng_dump, 1) X(BLOCK_MASK, block_mask, 0) X(ROPE_Q, rope_q, 0)                     \
    X(ROPE_K, rope_k, 0)                                                                           \
    X(DESCALE_Q, descale_q, 0) X(DESCALE_K, descale_k, 0) X(DESCALE_V, descale_v, 0)               \
    X(DESCALE_S, descale_s, 0)                                                                     \
    X(SCALE_S, scale_s, 0) X(SCALE_O, scale_o, 0) X(DESCALE_O, descale_o, 0)                       \
    X(DESCALE_DO, descale_do, 0)                                                                   \
    X(DESCALE_DP, descale_dp, 0) X(SCALE_DP, scale_dp, 0) X(SCALE_DQ, scale_dq, 0)                 \
    X(SCALE_DK, scale_dk, 0)                                                                       \
    X(SCALE_DV, scale_dv, 0) X(AMAX_S, amax_s, 1) X(AMAX_O, amax_o, 1) X(AMAX_DP, amax_dp, 1)      \
    X(AMAX_DQ, amax_dq, 1)                                                                         \
    X(AMAX_DK, amax_dk, 1) X(AMAX_DV, amax_dv, 1) X(SF_Q, sf_q, 0) X(SF_K, sf_k, 0)                \
    X(SF_V, sf_v, 0) X(SF_DO, sf_do, 0)                                                            \
    X(SF_Q_T, sf_q_t, 0) X(SF_K_T, sf_k_t, 0) X(SF_DO_T, sf_do_t, 0) X(Q_T, q_t, 0)                \
    X(K_T, k_t, 0) X(DO_T, do_t, 0)                                                                \
    X(DO_16, do_16, 0)
/* clang-format on */

#define FATTN__AS_AUXILIARY_(symbol, field, written) FATTN__AUXILIARY_##symbol,
typedef enum fattn__auxiliary {
    FATTN__AUXILIARY_LIST(FATTN__AS_AUXILIARY_) FATTN__AUXILIARY_COUNT
} fattn__auxiliary;
#undef FATTN__AS_AUXILIARY_

const char *
fattn__auxiliary_name(fattn__auxiliary which); /* "q_offsets", the word of fattn_tensors' field */
size_t fattn__auxiliary_place(fattn__auxiliary which); /* offset in fattn_tensors */
bool fattn__auxiliary_written(fattn__auxiliary which);
/* Bytes of the array that this pass of the problem reads or writes. 0: it does not use the array.
 * INT64_MAX: too many to count. A ragged page table counts with the largest number of pages that it
 * can have. */
int64_t fattn__auxiliary_bytes(const fattn_problem *resolved, fattn__auxiliary which);

/* The type of dropout_mask: the type of Q, but bf16 for 8-bit types (cuDNN's planner ends the
 * process over an 8-bit mask). */
int32_t fattn__dropout_mask_dtype(const fattn_problem *resolved);

/* The elements of a scale factor tensor in the order F8_128x4: `rows` x `columns` blocks, padded to
 * 128 x 4. */
int64_t fattn__scale_factors(int64_t rows, int64_t columns);

#endif
