/* Problems that guards are about: one that each holds for. */
#ifndef FATTN_TEST_GUARDED_H
#define FATTN_TEST_GUARDED_H

#include "fattn/fattn.h"
#include "rules.h"
#include <criterion/criterion.h>
#include <string.h>

/* A problem on which a guard holds. */
typedef struct subject {
    const char *name;
    int32_t version, sm;
    void (*make)(fattn_problem *p);
} subject;

static inline void one_row(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    p->batch = p->heads_q = p->seq_q = 1;
}

static inline void one_row_of_two_heads(fattn_problem *p)
{
    one_row(p);
    p->heads_q = 2;
}

static inline void one_row_and_key(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->batch = 2;
    p->seq_q = p->seq_kv = 1;
}

static inline void wide(fattn_problem *p)
{
    memcpy(p->k_strides, (int64_t[4]){ 1 << 20, 132, 8 * 132, 1 }, sizeof p->k_strides);
}

static inline void captured(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    p->capture = 1, p->seq_kv = 500;
}

static inline void captured_forward(fattn_problem *p)
{
    captured(p);
    p->pass = FATTN_FORWARD, p->training = 1;
}

static inline void ragged(fattn_problem *p)
{
    p->ragged_bits = 64, p->padding = 1;
}

static inline void bshd_stats(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    memcpy(p->stats_strides, (int64_t[4]){ 8 * 512, 1, 8, 1 }, sizeof p->stats_strides);
}

static inline void bshd_stats_wanted(fattn_problem *p)
{
    bshd_stats(p);
    p->pass = FATTN_FORWARD, p->outputs = FATTN_WANT_STATS;
}

static inline void negative_scale(fattn_problem *p)
{
    p->has_attn_scale = 1, p->attn_scale = -0.125, p->seq_kv = 500;
}

static inline void zero_scale_backward(fattn_problem *p)
{
    negative_scale(p);
    p->pass = FATTN_BACKWARD, p->attn_scale = 0;
}

/* Its gradient reads the indices again; a test's program ends before anybody misses the memory. */
static inline void masked_by_mod(fattn_problem *p)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    p->pass = FATTN_BACKWARD, p->score_mod = mod;
}

/* Its gradient is a multiple of the incoming one. */
static inline void cooled_by_mod(fattn_problem *p)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_temperature(&mod, 2.0), FATTN_OK);
    p->pass = FATTN_BACKWARD, p->score_mod = mod;
}

static inline void biased_and_cooled(fattn_problem *p)
{
    cooled_by_mod(p);
    p->has_bias = p->dbias = 1;
}

static inline void wide_output(fattn_problem *p)
{
    p->o_dtype = FATTN_F32;
}

static inline void wide_gradients(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_F16, p->grad_dtype = FATTN_F32;
}

static inline void masked(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_BOOL;
}

static inline void one_block_scaled_row(fattn_problem *p)
{
    p->dtype = FATTN_MXE4M3, p->seq_q = 1;
}

static inline void short_bias(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_E4M3;
}

static inline void narrow_gradients(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_BF16, p->grad_dtype = FATTN_F16;
}

static inline void narrow_stats(fattn_problem *p)
{
    p->outputs = FATTN_WANT_STATS, p->stats_dtype = FATTN_BF16;
}

static inline void narrow_stats_read(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->stats_dtype = FATTN_F16;
}

static inline void one_length(fattn_problem *p)
{
    p->padding = p->len_broadcast = 1;
}

static inline void packed(fattn_problem *p, uint32_t which)
{
    p->padding = 1, p->ragged_bits = 32, p->ragged = which;
}

static inline void packed_o(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_O);
}

static inline void packed_gradients(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV);
    p->pass = FATTN_BACKWARD;
}

static inline void interleaved_gradients(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD;
    memcpy(p->dk_strides, (int64_t[4]){ 512 * 3 * 8 * 64, 64, 3 * 8 * 64, 1 }, sizeof p->dk_strides);
    memcpy(p->dv_strides, p->dk_strides, sizeof p->dv_strides);
}

static inline void packed_decode(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->seq_q = 1, p->heads_k = 2, p->outputs = FATTN_WANT_STATS;
}

static inline void masked_row_for_all(fattn_problem *p)
{
    masked(p);
    p->pass = FATTN_BACKWARD;
    memcpy(p->bias_dim, (int64_t[4]){ 2, 1, 1, 512 }, sizeof p->bias_dim);
}

static inline void dropped_of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->dropout = 0.1;
}

static inline void of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3;
}

static inline void deep_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->dim_qk = 192;
}

static inline void padded_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->padding = 1;
}

static inline void backward(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
}

static inline void biased_of_32_bits(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_F32;
}

static inline void wide_heads(fattn_problem *p)
{
    p->dim_qk = p->dim_v = 256, p->seq_kv = 300;
}

static inline void biased_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->has_bias = 1;
}

static inline void tail_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->pass = FATTN_BACKWARD, p->seq_q = 224;
}

static inline void sink_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->pass = FATTN_BACKWARD, p->sink = p->dsink = 1;
}

static inline void packed_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD;
}

static inline void packed_wide_heads(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->dim_qk = 256;
}

static inline void packed_wide_values(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->dim_qk = 128, p->dim_v = 192;
}

static inline void rotated(fattn_problem *p)
{
    p->rope = 1, p->impl = FATTN_IMPL_UNIFIED, p->seq_q = 100;
}

static inline void many_tiles_of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->heads_q = 16, p->seq_q = 513;
}

static inline void unified_padded_fp8(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->padding = 1, p->impl = FATTN_IMPL_UNIFIED;
}

static inline void paged_decode_with_sink(fattn_problem *p)
{
    p->heads_k = p->heads_v = 2;
    p->seq_q = 1, p->sink = p->padding = 1;
    p->page_size_k = p->page_size_v = 16;
    p->pages_k = p->pages_v = 64;
}

static inline void packed_dsink(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->sink = p->dsink = 1;
}

static inline void block_scaled(fattn_problem *p)
{
    p->dtype = FATTN_MXE4M3;
}

/* The second batch entry 2^31 elements behind the first, bshd, 8 heads of 64. */
static void far_batches(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    memcpy(p->k_strides, (int64_t[4]){ INT64_C(1) << 31, 64, 512, 1 }, sizeof p->k_strides);
}

static void far_batches_of_do(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    memcpy(p->do_strides, (int64_t[4]){ INT64_C(1) << 31, 64, 512, 1 }, sizeof p->do_strides);
}

static inline void packed_dsink_of_padded_stats(fattn_problem *p)
{
    packed_dsink(p);
    p->ragged &= ~(uint32_t)FATTN_RAGGED_STATS;
}

static inline void repeatable_wide_heads(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->deterministic = 1;
    p->dim_qk = 160, p->dim_v = 96;
}

static const subject subjects[] = {
    { "misaligned-strides", 92000, 90, wide },
    { "graph-capture-seq-kv-mod-128", 91500, 90, captured },
    { "graph-capture-seq-kv-mod-128", 90800, 100, captured_forward },
    { "ragged-offsets-64", 90499, 90, ragged },
    { "planner-crash-b1-h1-s1", 92600, 90, one_row },
    { "planner-crash-b1-h1-s1", 92800, 80, one_row },
    { "planner-crash-sm100-s1", 90800, 100, one_row_of_two_heads },
    { "planner-crash-sm100-s1", 91299, 100, one_row },
    { "planner-crash-sm100-s1-b1", 91300, 100, one_row_of_two_heads },
    { "stats-order-engine-1", 91400, 90, bshd_stats },
    { "stats-order-engine-7", 92000, 90, bshd_stats },
    { "scale-not-positive-forward", 92000, 90, negative_scale },
    { "scale-not-positive-backward-engine-6", 92000, 90, zero_scale_backward },
    { "scale-not-positive-backward-engine-7", 92000, 90, zero_scale_backward },
    { "score-mod-gradient-engine-1", 91400, 90, masked_by_mod },
    { "score-mod-gradient-engine-7", 92000, 90, masked_by_mod },
    { "dbias-with-score-mod", 92000, 90, biased_and_cooled },
    { "wide-output-engine-2", 92000, 90, wide_output },
    { "wide-gradients", 92000, 90, wide_gradients },
    { "planner-crash-bool-mask", 92700, 90, masked },
    { "planner-crash-bias-8-bit", 92000, 90, short_bias },
    { "planner-crash-mx-s1", 92800, 100, one_block_scaled_row },
    { "gradients-of-the-other-type", 92800, 90, narrow_gradients },
    { "narrow-stats", 92800, 90, narrow_stats },
    { "one-length-for-all", 92800, 90, one_length },
    { "packed-output-of-dense-inputs-engine-2", 92800, 90, packed_o },
    { "packed-output-of-dense-inputs-engine-2", 91400, 90, packed_gradients },
    { "packed-output-of-dense-inputs-engine-6", 92800, 90, packed_gradients },
    { "gradients-at-their-inputs-offsets", 91400, 90, interleaved_gradients },
    { "decode-packed-stats", 91900, 90, packed_decode },
    { "bool-mask", 92000, 90, masked_row_for_all },
    { "fp8-padded-tiles-unified", 92800, 90, unified_padded_fp8 },
    { "dropout-8-bit", 92000, 90, dropped_of_8_bits },
    { "fp8-large-tile-kernel-32", 92000, 90, deep_of_8_bits },
    { "fp8-large-tile-n-3", 92800, 90, deep_of_8_bits },
    { "fp8-padded-tiles-kernel-7", 92000, 90, padded_of_8_bits },
    { "fp8-padded-tiles-n-2", 92800, 90, padded_of_8_bits },
    { "fp8-bias", 92000, 90, biased_of_8_bits },
    { "fp8-backward-tail", 91900, 90, tail_of_8_bits },
    { "fp8-backward-dsink", 91400, 90, sink_of_8_bits },
    { "fp8-backward-packed", 92800, 90, packed_of_8_bits },
    { "packed-d256-backward", 91400, 90, packed_wide_heads },
    { "rope-more-keys-than-rows", 92800, 90, rotated },
    { "decode-paged-sink", 91900, 90, paged_decode_with_sink },
    { "dsink-packed-engine-2", 91400, 90, packed_dsink },
    { "dsink-packed-engine-6", 91900, 90, packed_dsink },
    { "planner-crash-mx-sm120", 92700, 120, block_scaled },
    { "planner-crash-sm100-s1-kv1", 90900, 100, one_row_and_key },
    { "planner-crash-mx-s1", 92100, 100, one_block_scaled_row },
    { "fp8-padded-rows", 92000, 90, padded_of_8_bits },
    { "fp8-large-tile-kernel-31", 90400, 90, deep_of_8_bits },
    { "dq-over-what-was-there", 90501, 90, backward },
    { "bias-of-32-bits", 90900, 90, biased_of_32_bits },
    { "dsink-unwritten", 91000, 90, packed_dsink },
    { "single-row-and-key-backward", 90900, 90, one_row_and_key },
    { "wide-heads-partial-tile", 91000, 90, wide_heads },
    { "fp8-more-tiles-than-128", 91400, 90, many_tiles_of_8_bits },
    { "packed-d256-backward", 91400, 90, packed_wide_values },
    { "stats-order-forward", 90701, 90, bshd_stats_wanted },
    { "strides-beyond-31-bits-engine-1", 91400, 90, far_batches },
    { "strides-beyond-31-bits-engine-7", 91900, 90, far_batches },
    { "strides-beyond-31-bits-o", 91400, 90, far_batches_of_do },
    { "dsink-packed-stats-padded", 92800, 90, packed_dsink_of_padded_stats },
    { "deterministic-wide-heads-workspace", 91100, 90, repeatable_wide_heads },
    { "planner-crash-narrow-stats", 92000, 100, narrow_stats_read },
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static inline fattn_problem made(const subject *s)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 64;
    if (s != NULL)
        s->make(&p);
    return p;
}

#endif
