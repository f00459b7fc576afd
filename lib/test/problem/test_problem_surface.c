/* What a problem of 0.3 adds: packed and paged sequences, lengths, masks, sinks, dropout; what of
 * it is refused, what it is by default, and which small blocks a call brings for it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "problem/auxiliary.h"
#include "problem/feature_set.h"
#include "problem/resolved_problem.h"

#define SMALL_BATCH 3
#include "resolving.h"

/* ---- refusals
 * ----------------------------------------------------------------------------------------------------------------
 */

Test(refusal, of_packed_sequences_names_the_field)
{
    BAD(p.ragged_bits = 32, "ragged_bits: ragged tensors need lengths; set padding");
    BAD((p.padding = 1, p.ragged_bits = 32, p.ragged = 0x200), "ragged: 0x200 has unknown bits");
    BAD((p.padding = 1, p.ragged = FATTN_RAGGED_Q),
        "ragged, ragged_tokens, total_q, total_kv: nothing is ragged");
    BAD((p.padding = 1, p.ragged_tokens = 1),
        "ragged, ragged_tokens, total_q, total_kv: nothing is ragged");
    BAD((p.padding = 1, p.total_kv = 9),
        "ragged, ragged_tokens, total_q, total_kv: nothing is ragged");
    BAD((p.padding = 1, p.ragged_bits = 32, p.total_q = -1),
        "total_q, total_kv: want 0 (not declared) or more");
    BAD((p.padding = 1, p.ragged_bits = 64, SET(k_strides, 1, 64, 0, 1)),
        "k_strides[2]: 0 is not allowed; tokens of a packed tensor");
    BAD((p.padding = 1, p.ragged_bits = 64, SET(o_strides, 1, 64, (int64_t)1 << 60, 1)),
        "o_strides: the last element must lie below 2^62");
    BAD((p.padding = 1, p.ragged_bits = 64, SET(o_strides, 1, 31, 256, 1)),
        "o_strides: elements of an output overlap");
}

Test(refusal, of_lengths_names_the_field)
{
    BAD((p.padding = 1, p.cumulative = 4), "cumulative: 0x4 is not allowed");
    BAD(p.cumulative = FATTN_CUMULATIVE_Q,
        "cumulative: 0x1 is not allowed; want FATTN_CUMULATIVE_ bits, with padding");
    BAD((p.padding = 1, p.cumulative = FATTN_CUMULATIVE_Q, p.len_broadcast = 1),
        "cumulative: one length for every entry");
    BAD((p.padding = 1, p.len_rank = 2), "len_rank: 2 is not allowed; want 0, 1 or 4");
}

Test(refusal, of_pages_names_the_field)
{
    BAD((p.padding = 1, p.page_size_k = 16),
        "page_size_k, pages_k: 16, 0 are not allowed; want 1 to 2^31 - 1 of both");
    BAD((p.padding = 1, p.pages_v = 9), "page_size_v, pages_v: 0, 9 are not allowed");
    BAD((p.padding = 1, p.page_size_v = -16, p.pages_v = 9),
        "page_size_v, pages_v: -16, 9 are not allowed");
    BAD((p.padding = 1, p.page_size_k = 16, p.pages_k = (int64_t)1 << 31),
        "page_size_k, pages_k: 16, 2147483648 are not allowed");
    BAD((p.padding = 1, p.page_size_k = INT32_MAX, p.pages_k = INT32_MAX),
        "pages_k, heads_k, page_size_k, dim: their product");
    BAD((p.padding = 1, p.page_size_k = 16, p.pages_k = 9, p.table_k = 7),
        "table_k: 7 pages do not fit seq_kv; want 8");
    BAD((p.page_size_k = 16, p.pages_k = 9), "page_size: pages need lengths; set padding");
    BAD((p.padding = 1, p.pass = FATTN_BACKWARD, p.page_size_k = 16, p.pages_k = 9),
        "page_size: a backward has no paged keys");
    BAD((p.padding = 1, p.packed_table = 1), "packed_table: there are no pages");
    BAD((p.padding = 1, p.ragged_bits = 32, p.ragged = FATTN_RAGGED_K, p.page_size_k = 16,
         p.pages_k = 9),
        "ragged: paged K and V have no offsets, and no other tensor is ragged");
}

Test(refusal, of_what_joins_the_softmax_names_the_field)
{
    BAD(p.dropout = 1.0, "dropout: 1 is not allowed; want 0 to below 1");
    BAD(p.dropout = -0.1, "dropout: -0.1 is not allowed");
    BAD(p.dropout = (double)NAN, "dropout: ");
    BAD((p.dropout = 0.1, p.dropout_mask = 1),
        "dropout: dropout_mask says what is dropped; want 0");
    BAD((p.dropout = 0.1, p.rng_bits = 16), "rng_bits: 16 is not allowed; want 0, 32 or 64");
    BAD(p.outputs = FATTN_WANT_RNG_DUMP, "outputs: rng_dump needs dropout");
    BAD((p.dropout_mask = 1, p.outputs = FATTN_WANT_RNG_DUMP), "outputs: rng_dump needs dropout");
    BAD(p.outputs = FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2,
        "outputs: stats are natural or in base 2, not both");
    BAD((p.training = 1, p.outputs = FATTN_WANT_STATS_LOG2),
        "outputs: stats are natural or in base 2, not both");
    BAD((p.pass = FATTN_BACKWARD, p.dsink = 1), "dsink: there is no sink");
    BAD(p.sink = 2, "sink: 2 is not allowed; want 0 or 1");
    BAD(p.stats_dtype = FATTN_E4M3, "stats_dtype: 4 is not allowed");
    BAD((p.pass = FATTN_BACKWARD, p.has_bias = p.dbias = 1, p.bias_dtype = FATTN_BOOL),
        "dbias: a boolean mask has no gradient");
}

Test(refusal, of_rotation_and_types_names_the_field)
{
    BAD(p.rope_dim = 32,
        "rope_dim: 32 is not allowed; want an even number up to dim_qk, with rope");
    BAD((p.rope = 1, p.rope_dim = 66), "rope_dim: 66 is not allowed");
    BAD((p.rope = 1, p.rope_dim = 31), "rope_dim: 31 is not allowed");
    BAD((p.rope = 1, p.dim_qk = 65), "rope: dim_qk 65 is odd");
    BAD(p.o_dtype = FATTN_MXE4M3, "o_dtype: no output has a block-scaled type");
    BAD((p.pass = FATTN_BACKWARD, p.grad_dtype = FATTN_MXE5M2),
        "grad_dtype: no output has a block-scaled type");
    BAD(p.do_dtype = 8, "do_dtype: 8 is not allowed; want 1 (bf16) to 7 (mxe5m2)");
    BAD((p.pass = FATTN_BACKWARD, p.do_dtype = FATTN_E5M2),
        "do_dtype: 5 is not allowed: without 8-bit types dO has o_dtype, and it is block-scaled if "
        "Q, K and V are");
    BAD((p.pass = FATTN_BACKWARD, p.dtype = FATTN_E4M3, p.do_dtype = FATTN_MXE5M2),
        "do_dtype: 7 is not allowed");
    BAD((p.pass = FATTN_BACKWARD, p.dtype = FATTN_MXE4M3, p.do_dtype = FATTN_E5M2),
        "do_dtype: 5 is not allowed");
}

/* ---- defaults
 * ----------------------------------------------------------------------------------------------------------------
 */

Test(packed, is_everything_by_default_and_has_token_major_stats)
{
    fattn_problem p = small();
    p.padding = 1, p.ragged_bits = 32;
    p = resolved(p);
    cr_expect_eq(p.ragged, FATTN_RAGGED_ALL);
    const int64_t stats[4] = { 96 * 8, 1, 8, 1 };
    cr_expect_arr_eq(p.stats_strides, stats, sizeof stats);
    cr_expect(fattn__problem_ragged(&p, FATTN__ROLE_DV));
    cr_expect_not(fattn__problem_ragged(&p, FATTN__ROLE_BIAS));
    const fattn_problem again = resolved(p);
    cr_expect(fattn__problem_same(&again, &p));
}

Test(packed, does_not_read_the_stride_of_b)
{
    fattn_problem p = small();
    p.padding = 1, p.ragged_bits = 32;
    SET(q_strides, 7, 64, 8 * 64, 1);
    SET(stats_strides, 0, 500, 1, 1); /* head by head */
    const fattn_problem one = resolved(p);
    SET(q_strides, 12345, 64, 8 * 64, 1);
    SET(stats_strides, 99, 500, 1, 1);
    const fattn_problem other = resolved(p);
    cr_expect(fattn__problem_same(&one, &other));
    cr_expect_eq(one.q_strides[0], 96 * 8 * 64);
    cr_expect_eq(one.o_strides[2], 8 * 32, "O follows Q");
}

Test(paged, keeps_the_extents_of_attention_and_has_the_strides_of_the_pool)
{
    fattn_problem p = small();
    p.padding = 1, p.page_size_k = 16, p.pages_k = 30;
    p = resolved(p);
    cr_expect_eq(p.table_k, 8);
    cr_expect_eq(fattn__problem_shape(&p, FATTN__ROLE_K).dim[2], 128);
    const int64_t pool[4] = { 30, 4, 16, 64 }, strides[4] = { 16 * 4 * 64, 64, 4 * 64, 1 };
    const fattn__shape shape = fattn__problem_bytes_of(&p, FATTN__ROLE_K);
    cr_expect_arr_eq(shape.dim, pool, sizeof pool);
    cr_expect_arr_eq(shape.strides, strides, sizeof strides);
    cr_expect_eq(fattn__problem_page(&p, FATTN__ROLE_V), 0);
}

Test(paged, is_not_packed_as_well)
{
    fattn_problem p = small();
    p.padding = 1, p.ragged_bits = 32, p.page_size_v = 16, p.pages_v = 30;
    p = resolved(p);
    cr_expect_not(fattn__problem_ragged(&p, FATTN__ROLE_V));
    cr_expect(fattn__problem_ragged(&p, FATTN__ROLE_K));
}

Test(defaults, of_what_is_not_read_are_zero)
{
    fattn_problem p = small(), base = resolved(small());
    p.rng_bits = 32, p.len_rank = 1, p.stats_dtype = FATTN_F32, p.dropout = 0;
    p = resolved(p);
    cr_expect(fattn__problem_same(&p, &base));
    p = small();
    p.scale_in_memory = 1, p.has_attn_scale = 1, p.attn_scale = (double)NAN;
    cr_expect_eq(resolved(p).attn_scale, 0.0);
    p = small();
    p.sink = p.dsink = 1;
    cr_expect_eq(resolved(p).dsink, 0, "a forward has no gradients");
    p = small();
    p.dropout = 0.5;
    cr_expect_eq(resolved(p).rng_bits, 64);
    p = small();
    p.rope = 1;
    cr_expect_eq(resolved(p).rope_dim, 64);
    p = small();
    p.dtype = FATTN_MXE4M3;
    p = resolved(p);
    cr_expect_eq(p.o_dtype, FATTN_BF16);
    cr_expect_eq(p.grad_dtype, FATTN_BF16);
}

static int32_t do_dtype_of(fattn_pass pass, int32_t dtype, int32_t o_dtype, int32_t do_dtype)
{
    fattn_problem p = small();
    p.pass = pass, p.dtype = dtype, p.o_dtype = o_dtype, p.do_dtype = do_dtype;
    return resolved(p).do_dtype;
}

Test(problem, d_o_has_the_type_of_o_unless_8_bit_types_say_otherwise)
{
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_BF16, FATTN_F16, 0), FATTN_F16);
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_BF16, FATTN_F16, FATTN_F16), FATTN_F16);
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_E4M3, 0, 0), FATTN_E4M3);
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_E4M3, FATTN_BF16, 0), FATTN_BF16);
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_E4M3, FATTN_BF16, FATTN_E5M2), FATTN_E5M2);
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_MXE4M3, 0, 0), FATTN_MXE4M3,
                 "quantised as Q is");
    cr_expect_eq(do_dtype_of(FATTN_BACKWARD, FATTN_MXE4M3, 0, FATTN_MXE5M2), FATTN_MXE5M2);
    cr_expect_eq(do_dtype_of(FATTN_FORWARD, FATTN_E4M3, 0, FATTN_E5M2), FATTN_E4M3,
                 "no forward has one");
}

/* ---- the key
 * -------------------------------------------------------------------------------------------------------------------
 */

/* ---- what an engine lacks
 * --------------------------------------------------------------------------------------------------------
 */

Test(features, that_an_engine_lacks_are_named)
{
    static const struct {
        uint64_t feature;
        fattn_problem change; /* over small() */
        const char *clause;
    } rows[] = {
        { FATTN__HAS(RAGGED), { .padding = 1, .ragged_bits = 32 }, "ragged offsets" },
        { FATTN__HAS(CUMULATIVE), { .padding = 1, .cumulative = 1 }, "cumulative lengths" },
        { FATTN__HAS(LEN_RANK), { .padding = 1, .len_rank = 1 }, "len_rank 1" },
        { FATTN__HAS(PAGED), { .padding = 1, .page_size_k = 16, .pages_k = 9 }, "paged K or V" },
        { FATTN__HAS(BOOL_MASK), { .has_bias = 1, .bias_dtype = FATTN_BOOL }, "boolean masks" },
        { FATTN__HAS(ALIBI), { .alibi = 1 }, "alibi" },
        { FATTN__HAS(SINK), { .sink = 1 }, "sinks" },
        { FATTN__HAS(DROPOUT), { .dropout = 0.5 }, "dropout" },
        { FATTN__HAS(DROPOUT_MASK), { .dropout_mask = 1 }, "dropout_mask" },
        { FATTN__HAS(STATS_LOG2),
          { .outputs = FATTN_WANT_STATS_LOG2 },
          "outputs: stats in base 2" },
        { FATTN__HAS(STATS_DTYPE), { .stats_dtype = FATTN_BF16 }, "stats_dtype other than f32" },
        { FATTN__HAS(SCALE_IN_MEMORY), { .scale_in_memory = 1 }, "scale_in_memory" },
        { FATTN__HAS(BLOCK_MASK), { .block_mask = 1 }, "block_mask" },
        { FATTN__HAS(UNFUSE_FMA), { .unfuse_fma = 1 }, "unfuse_fma" },
        { FATTN__HAS(ROPE), { .rope = 1 }, "rope" },
        { FATTN__HAS(FP8), { .dtype = FATTN_E5M2 }, "e4m3 and e5m2" },
        { FATTN__HAS(MXFP8), { .dtype = FATTN_MXE4M3 }, "mxe4m3 and mxe5m2" },
        { FATTN__HAS(UNIFIED), { .impl = FATTN_IMPL_UNIFIED }, "impl unified" },
    };
    const fattn_problem plain = resolved(small());
    cr_expect_null(fattn__features_missing(&plain, 0), "plain attention asks for nothing");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fattn_problem base = small();
        fattn_problem p = rows[i].change;
        p.struct_size = sizeof p, p.batch = base.batch, p.heads_q = base.heads_q,
        p.seq_q = base.seq_q, p.seq_kv = base.seq_kv;
        p.dim_qk = base.dim_qk;
        p = resolved(p);
        const char *missing = fattn__features_missing(&p, 0);
        cr_expect(missing != NULL && strcmp(missing, rows[i].clause) == 0, "got '%s', want '%s'",
                  missing, rows[i].clause);
        cr_expect_null(fattn__features_missing(&p, rows[i].feature), "%s", rows[i].clause);
    }
}

/* ---- small blocks
 * ------------------------------------------------------------------------------------------------------------------
 */

static void expect_bytes(const fattn_problem *p, fattn__auxiliary which, int64_t bytes)
{
    cr_expect_eq(fattn__auxiliary_bytes(p, which), bytes, "%s: got %ld, want %ld",
                 fattn__auxiliary_name(which), (long)fattn__auxiliary_bytes(p, which), (long)bytes);
}

Test(auxiliary, is_there_where_the_problem_uses_it)
{
    fattn_problem p = small();
    p.padding = 1, p.ragged_bits = 64, p.page_size_v = 16, p.pages_v = 30, p.packed_table = 1;
    p.alibi = p.sink = p.scale_in_memory = 1, p.dropout = 0.5, p.rng_bits = 32,
    p.outputs = FATTN_WANT_RNG_DUMP;
    p = resolved(p);
    expect_bytes(&p, FATTN__AUXILIARY_Q_OFFSETS, 4 * 8);
    expect_bytes(&p, FATTN__AUXILIARY_V_OFFSETS, 0);
    expect_bytes(&p, FATTN__AUXILIARY_STATS_OFFSETS, 0); /* no output of rows */
    expect_bytes(&p, FATTN__AUXILIARY_DQ_OFFSETS, 0);
    expect_bytes(&p, FATTN__AUXILIARY_PAGE_TABLE_K, 0);
    expect_bytes(&p, FATTN__AUXILIARY_PAGE_TABLE_V, 3 * 8 * 4);
    expect_bytes(&p, FATTN__AUXILIARY_TABLE_OFFSETS_V, 4 * 8);
    expect_bytes(&p, FATTN__AUXILIARY_ATTN_SCALE, 4);
    expect_bytes(&p, FATTN__AUXILIARY_ALIBI_SLOPES, 32);
    expect_bytes(&p, FATTN__AUXILIARY_SINK, 32);
    expect_bytes(&p, FATTN__AUXILIARY_SEED, 4);
    expect_bytes(&p, FATTN__AUXILIARY_RNG_DUMP, 3 * 8 * 96 * 128 * 4);
    p = small();
    p.pass = FATTN_BACKWARD, p.padding = 1, p.ragged_bits = 32,
    p.sink = p.dsink = p.dropout_mask = 1;
    p = resolved(p);
    expect_bytes(&p, FATTN__AUXILIARY_STATS_OFFSETS, 16);
    expect_bytes(&p, FATTN__AUXILIARY_DQ_OFFSETS, 16);
    expect_bytes(&p, FATTN__AUXILIARY_DSINK, 32);
    expect_bytes(&p, FATTN__AUXILIARY_SEED, 0);
    expect_bytes(&p, FATTN__AUXILIARY_DROPOUT_MASK, 3 * 8 * 96 * 128 * 2);
    expect_bytes(&p, FATTN__AUXILIARY_DROPOUT_SCALE_INVERSE, 4);
}

Test(auxiliary, that_cannot_be_counted_does_not_overflow)
{
    fattn_problem p = small();
    p.batch = (int64_t)1 << 58, p.heads_q = p.heads_k = p.heads_v = 1,
    p.seq_q = p.seq_kv = p.dim_qk = p.dim_v = 1;
    p.padding = 1, p.ragged_bits = 64;
    SET(q_strides, 1, 1, 1, 1);
    p = resolved(p);
    cr_expect_gt(fattn__auxiliary_bytes(&p, FATTN__AUXILIARY_Q_OFFSETS), (int64_t)1 << 60);
    p = small();
    p.batch = 1, p.heads_q = p.heads_k = p.heads_v = (int64_t)1 << 61,
    p.seq_q = p.seq_kv = p.dim_qk = p.dim_v = 1, p.sink = 1;
    p = resolved(p);
    expect_bytes(&p, FATTN__AUXILIARY_SINK, INT64_MAX);
}
