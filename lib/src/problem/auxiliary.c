#include "auxiliary.h"

#include "layout.h"
#include "resolved_problem.h"

const char *fattn__auxiliary_name(fattn__auxiliary which)
{
#define AS_NAME(symbol, field, written) #field,
    static const char *const table[] = { FATTN__AUXILIARY_LIST(AS_NAME) };
#undef AS_NAME
    return table[which];
}

size_t fattn__auxiliary_place(fattn__auxiliary which)
{
#define AS_PLACE(symbol, field, written) offsetof(fattn_tensors, field),
    static const size_t table[] = { FATTN__AUXILIARY_LIST(AS_PLACE) };
#undef AS_PLACE
    return table[which];
}

bool fattn__auxiliary_written(fattn__auxiliary which)
{
#define AS_WRITTEN(symbol, field, written) (written) != 0,
    static const bool table[] = { FATTN__AUXILIARY_LIST(AS_WRITTEN) };
#undef AS_WRITTEN
    return table[which];
}

int64_t fattn__scale_factors(int64_t rows, int64_t columns)
{
    return (rows + 127) / 128 * 128 * ((columns + 3) / 4 * 4);
}

int32_t fattn__dropout_mask_dtype(const fattn_problem *p)
{
    return fattn__dtype_is_fp8(p->dtype) || fattn__dtype_is_mx(p->dtype) ? FATTN_BF16 : p->dtype;
}

static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t blocks(int64_t extent)
{
    return (extent + 31) / 32;
}

/* Offsets of ragged tensors, in the order of FATTN_RAGGED_LIST. */
static int64_t offsets_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    const uint32_t bit = 1u << (which - FATTN__AUXILIARY_Q_OFFSETS);
    const uint32_t backward_alone =
        FATTN_RAGGED_DO | FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV;
    const bool writes_rows = (p->outputs & (FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2 |
                                            FATTN_WANT_MAX | FATTN_WANT_SUM_EXP)) != 0;
    if ((p->ragged & bit) == 0 || (p->pass == FATTN_FORWARD && (bit & backward_alone) != 0))
        return 0;
    if (bit == FATTN_RAGGED_STATS && p->pass == FATTN_FORWARD && !writes_rows)
        return 0;
    return times(p->batch + 1, p->ragged_bits / 8);
}

static int64_t table_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    const bool k =
        which == FATTN__AUXILIARY_PAGE_TABLE_K || which == FATTN__AUXILIARY_TABLE_OFFSETS_K;
    if ((k ? p->page_size_k : p->page_size_v) == 0)
        return 0;
    if (which == FATTN__AUXILIARY_PAGE_TABLE_K || which == FATTN__AUXILIARY_PAGE_TABLE_V)
        return times(times(p->batch, k ? p->table_k : p->table_v), (int64_t)sizeof(int32_t));
    return p->packed_table ? times(p->batch + 1, p->ragged_bits == 64 ? 8 : 4) : 0;
}

#define AS_CASE(symbol, bytes)                                                                     \
    case FATTN__AUXILIARY_##symbol:                                                                \
        return (bytes);

/* Scalars and small vectors of 16 bit problems. X(SYMBOL, bytes) */
/* clang-format off */
#define PLAIN_LIST(X)                                                                         \
    X(ATTN_SCALE, p->scale_in_memory ? 4 : 0)                                                 \
    X(ALIBI_SLOPES, p->alibi ? heads : 0)                                                     \
    X(SINK, p->sink ? heads : 0)                                                              \
    X(DSINK, p->dsink ? heads : 0)                                                            \
    X(SEED, p->dropout != 0.0 ? p->rng_bits / 8 : 0)                                          \
    X(OFFSET, p->dropout != 0.0 ? p->rng_bits / 8 : 0)                                        \
    X(DROPOUT_MASK, p->dropout_mask ? times(scores,                                           \
      fattn__dtype_bytes(fattn__dropout_mask_dtype(p))) : 0)                                  \
    X(DROPOUT_SCALE, p->dropout_mask ? 4 : 0)                                                 \
    X(DROPOUT_SCALE_INVERSE, p->dropout_mask && p->pass == FATTN_BACKWARD ? 4 : 0)            \
    X(RNG_DUMP, (p->outputs & FATTN_WANT_RNG_DUMP) != 0 ? times(scores, 4) : 0)               \
    X(BLOCK_MASK, p->block_mask ? times(times(p->batch, p->heads_q), (p->seq_q + 127) / 128 * \
      (((p->seq_kv + 127) / 128 + 7) / 8)) : 0)                                               \
    X(ROPE_Q, p->rope ? times(times(p->seq_q, p->rope_dim), 4) : 0)                           \
    X(ROPE_K, p->rope ? times(times(p->seq_kv, p->rope_dim), 4) : 0)
/* clang-format on */

/* A row of a list is a case of its own, whatever its bytes. NOLINTBEGIN(bugprone-branch-clone) */
static int64_t plain_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    const int64_t scores = times(times(p->batch, p->heads_q), times(p->seq_q, p->seq_kv)),
                  heads = times(p->heads_q, 4);
    switch (which) {
        PLAIN_LIST(AS_CASE)
    default:
        return 0;
    }
}

/* Scales and largest magnitudes of e4m3 and e5m2. X(SYMBOL, bytes) */
/* clang-format off */
#define FP8_LIST(X)                                                                            \
    X(DESCALE_Q, 4) X(DESCALE_K, 4) X(DESCALE_V, 4) X(DESCALE_S, 4) X(SCALE_S, 4)              \
    X(SCALE_O, !backward && narrow_o ? 4 : 0)                                                  \
    X(AMAX_S, backward ? 0 : 4) X(SCALE_DQ, narrow_gradient ? 4 : 0)                           \
    X(SCALE_DK, narrow_gradient ? 4 : 0)                                                       \
    X(SCALE_DV, narrow_gradient ? 4 : 0) X(DESCALE_O, backward ? 4 : 0)                        \
    X(DESCALE_DO, backward ? 4 : 0)                                                            \
    X(DESCALE_DP, backward ? 4 : 0) X(SCALE_DP, backward ? 4 : 0) X(AMAX_DP, backward ? 4 : 0)
/* clang-format on */

static int64_t fp8_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    const bool backward = p->pass == FATTN_BACKWARD, narrow_o = fattn__dtype_is_fp8(p->o_dtype);
    const bool narrow_gradient = backward && fattn__dtype_is_fp8(p->grad_dtype);
    if (which == FATTN__AUXILIARY_AMAX_O ||
        (which >= FATTN__AUXILIARY_AMAX_DQ && which <= FATTN__AUXILIARY_AMAX_DV))
        return (which == FATTN__AUXILIARY_AMAX_O) != backward &&
                       (fattn__dtype_is_fp8(p->dtype) || fattn__dtype_is_mx(p->dtype))
                   ? 4
                   : 0;
    if (!fattn__dtype_is_fp8(p->dtype))
        return 0;
    switch (which) {
        FP8_LIST(AS_CASE)
    default:
        return 0;
    }
}

/* Arrays with the layout of a tensor of the call, in another type. */
static int64_t copy_bytes(const fattn_problem *p, fattn__role role, int32_t dtype)
{
    const fattn__shape shape = fattn__problem_shape(p, role);
    int64_t elements;
    return fattn__layout_span(shape.dim, shape.strides, &elements)
               ? times(elements, fattn__dtype_bytes(dtype))
               : INT64_MAX;
}

/* Scale factors and second quantisations of the block-scaled types; the second half is the
 * backward's alone. X(SYMBOL, bytes) */
/* clang-format off */
#define MX_LIST(X)                                                                  \
    X(SF_Q, times(q, fattn__scale_factors(p->seq_q, blocks(p->dim_qk))))            \
    X(SF_K, times(k, fattn__scale_factors(p->seq_kv, blocks(p->dim_qk))))           \
    X(SF_V, times(v, backward ? fattn__scale_factors(p->seq_kv, blocks(p->dim_v)) : \
      fattn__scale_factors(p->dim_v, blocks(p->seq_kv))))                           \
    X(SF_DO, times(q, fattn__scale_factors(p->seq_q, blocks(p->dim_v))))            \
    X(SF_Q_T, times(q, fattn__scale_factors(p->dim_qk, blocks(p->seq_q))))          \
    X(SF_K_T, times(k, fattn__scale_factors(p->dim_qk, blocks(p->seq_kv))))         \
    X(SF_DO_T, times(q, fattn__scale_factors(p->dim_v, blocks(p->seq_q))))          \
    X(Q_T, copy_bytes(p, FATTN__ROLE_Q, p->dtype))                                  \
    X(K_T, copy_bytes(p, FATTN__ROLE_K, p->dtype))                                  \
    X(DO_T, copy_bytes(p, FATTN__ROLE_DO, p->do_dtype))                             \
    X(DO_16, copy_bytes(p, FATTN__ROLE_DO, p->o_dtype))
/* clang-format on */

static int64_t mx_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    const bool backward = p->pass == FATTN_BACKWARD;
    const int64_t q = times(p->batch, p->heads_q), k = times(p->batch, p->heads_k),
                  v = times(p->batch, p->heads_v);
    if (!fattn__dtype_is_mx(p->dtype) || (!backward && which >= FATTN__AUXILIARY_SF_DO))
        return 0;
    switch (which) {
        MX_LIST(AS_CASE)
    default:
        return 0;
    }
}
/* NOLINTEND(bugprone-branch-clone) */
#undef AS_CASE

int64_t fattn__auxiliary_bytes(const fattn_problem *p, fattn__auxiliary which)
{
    if (which <= FATTN__AUXILIARY_DV_OFFSETS)
        return offsets_bytes(p, which);
    if (which <= FATTN__AUXILIARY_TABLE_OFFSETS_V)
        return table_bytes(p, which);
    if (which <= FATTN__AUXILIARY_ROPE_K)
        return plain_bytes(p, which);
    if (which <= FATTN__AUXILIARY_AMAX_DV)
        return fp8_bytes(p, which);
    return mx_bytes(p, which);
}
