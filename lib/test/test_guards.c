/* The guards are data that is true: each holds where it says and not one step beyond, and each can be read. */
#include <criterion/criterion.h>
#include <string.h>

#include "fattn/fattn.h"
#include "predicate.h"
#include "rules.h"

static const fattn_rule *guard(const char *name)
{
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        if (strcmp(fattn_guard_at(i)->name, name) == 0)
            return fattn_guard_at(i);
    }
    cr_assert_fail("no guard %s", name);
    return NULL;
}

/* A problem on which a guard holds. */
typedef struct subject {
    const char *name;
    int32_t version, sm;
    void (*make)(fattn_problem *p);
} subject;

static void one_row(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    p->batch = p->heads_q = p->seq_q = 1;
}

static void one_row_of_two_heads(fattn_problem *p)
{
    one_row(p);
    p->heads_q = 2;
}

static void one_row_and_key(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->batch = 2;
    p->seq_q = p->seq_kv = 1;
}

static void wide(fattn_problem *p)
{
    memcpy(p->k_strides, (int64_t[4]){ 1 << 20, 132, 8 * 132, 1 }, sizeof p->k_strides);
}

static void captured(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    p->capture = 1, p->seq_kv = 500;
}

static void captured_forward(fattn_problem *p)
{
    captured(p);
    p->pass = FATTN_FORWARD, p->training = 1;
}

static void ragged(fattn_problem *p)
{
    p->ragged_bits = 64, p->padding = 1;
}

static void bshd_stats(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
    memcpy(p->stats_strides, (int64_t[4]){ 8 * 512, 1, 8, 1 }, sizeof p->stats_strides);
}

static void bshd_stats_wanted(fattn_problem *p)
{
    bshd_stats(p);
    p->pass = FATTN_FORWARD, p->outputs = FATTN_WANT_STATS;
}

static void negative_scale(fattn_problem *p)
{
    p->has_attn_scale = 1, p->attn_scale = -0.125, p->seq_kv = 500;
}

static void zero_scale_backward(fattn_problem *p)
{
    negative_scale(p);
    p->pass = FATTN_BACKWARD, p->attn_scale = 0;
}

/* Its gradient reads the indices again; a test's program ends before anybody misses the memory. */
static void masked_by_mod(fattn_problem *p)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    p->pass = FATTN_BACKWARD, p->score_mod = mod;
}

/* Its gradient is a multiple of the incoming one. */
static void cooled_by_mod(fattn_problem *p)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_temperature(&mod, 2.0), FATTN_OK);
    p->pass = FATTN_BACKWARD, p->score_mod = mod;
}

static void biased_and_cooled(fattn_problem *p)
{
    cooled_by_mod(p);
    p->has_bias = p->dbias = 1;
}

static void wide_output(fattn_problem *p)
{
    p->o_dtype = FATTN_F32;
}

static void wide_gradients(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_F16, p->grad_dtype = FATTN_F32;
}

static void masked(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_BOOL;
}

static void one_block_scaled_row(fattn_problem *p)
{
    p->dtype = FATTN_MXE4M3, p->seq_q = 1;
}

static void short_bias(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_E4M3;
}

static void narrow_gradients(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_BF16, p->grad_dtype = FATTN_F16;
}

static void narrow_stats(fattn_problem *p)
{
    p->outputs = FATTN_WANT_STATS, p->stats_dtype = FATTN_BF16;
}

static void one_length(fattn_problem *p)
{
    p->padding = p->len_broadcast = 1;
}

static void packed(fattn_problem *p, uint32_t which)
{
    p->padding = 1, p->ragged_bits = 32, p->ragged = which;
}

static void packed_o(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_O);
}

static void packed_gradients(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_DQ | FATTN_RAGGED_DK | FATTN_RAGGED_DV);
    p->pass = FATTN_BACKWARD;
}

static void interleaved_gradients(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD;
    memcpy(p->dk_strides, (int64_t[4]){ 512 * 3 * 8 * 64, 64, 3 * 8 * 64, 1 }, sizeof p->dk_strides);
    memcpy(p->dv_strides, p->dk_strides, sizeof p->dv_strides);
}

static void packed_decode(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->seq_q = 1, p->heads_k = 2, p->outputs = FATTN_WANT_STATS;
}

static void masked_row_for_all(fattn_problem *p)
{
    masked(p);
    p->pass = FATTN_BACKWARD;
    memcpy(p->bias_dim, (int64_t[4]){ 2, 1, 1, 512 }, sizeof p->bias_dim);
}

static void dropped_of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->dropout = 0.1;
}

static void of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3;
}

static void deep_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->dim_qk = 192;
}

static void padded_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->padding = 1;
}

static void backward(fattn_problem *p)
{
    p->pass = FATTN_BACKWARD;
}

static void biased_of_32_bits(fattn_problem *p)
{
    p->has_bias = 1, p->bias_dtype = FATTN_F32;
}

static void wide_heads(fattn_problem *p)
{
    p->dim_qk = p->dim_v = 256, p->seq_kv = 300;
}

static void biased_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->has_bias = 1;
}

static void tail_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->pass = FATTN_BACKWARD, p->seq_q = 224;
}

static void sink_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    p->pass = FATTN_BACKWARD, p->sink = p->dsink = 1;
}

static void packed_of_8_bits(fattn_problem *p)
{
    of_8_bits(p);
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD;
}

static void packed_wide_heads(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->dim_qk = 256;
}

static void packed_wide_values(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->dim_qk = 128, p->dim_v = 192;
}

static void rotated(fattn_problem *p)
{
    p->rope = 1, p->impl = FATTN_IMPL_UNIFIED, p->seq_q = 100;
}

static void many_tiles_of_8_bits(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->heads_q = 16, p->seq_q = 513;
}

static void unified_padded_fp8(fattn_problem *p)
{
    p->dtype = FATTN_E4M3, p->padding = 1, p->impl = FATTN_IMPL_UNIFIED;
}

static void paged_decode_with_sink(fattn_problem *p)
{
    p->heads_k = p->heads_v = 2;
    p->seq_q = 1, p->sink = p->padding = 1;
    p->page_size_k = p->page_size_v = 16;
    p->pages_k = p->pages_v = 64;
}

static void packed_dsink(fattn_problem *p)
{
    packed(p, FATTN_RAGGED_ALL);
    p->pass = FATTN_BACKWARD, p->sink = p->dsink = 1;
}

static void block_scaled(fattn_problem *p)
{
    p->dtype = FATTN_MXE4M3;
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
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static fattn_problem made(const subject *s)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 64;
    if (s != NULL)
        s->make(&p);
    return p;
}

Test(guards, can_be_read_and_say_why_where_and_what_instead)
{
    cr_expect_gt(fattn_guard_count(), 0);
    cr_expect_null(fattn_guard_at(fattn_guard_count()));
    fattn__rule_list copy;
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        const fattn_rule *rule = fattn_guard_at(i);
        cr_expect_eq(fattn__rules_copy(&copy, rule, 1), FATTN_OK, "%s", fattn_last_error());
        fattn__rules_free(&copy);
        cr_expect(rule->name && rule->why && rule->link && rule->when && rule->remedy, "guard %zu", i);
        cr_expect_eq(rule->action, FATTN_DENY);
        for (size_t other = 0; other < i; other++)
            cr_expect_str_neq(rule->name, fattn_guard_at(other)->name);
        char text[768];
        const fattn_problem p = made(NULL);
        fattn_problem resolved;
        cr_assert_eq(fattn_problem_resolve(&p, &resolved), FATTN_OK);
        fattn__rule_text(text, sizeof text, rule, &resolved);
        cr_expect_null(strchr(text, '{'), "%s: a {field} that is none", text);
    }
}

Test(guards, each_holds_somewhere_and_for_no_ordinary_problem)
{
    for (size_t i = 0; i < fattn_guard_count(); i++) {
        bool held = false;
        for (int s = 0; s < SUBJECTS; s++) {
            const fattn_problem p = made(&subjects[s]);
            if (strcmp(subjects[s].name, fattn_guard_at(i)->name) != 0)
                continue;
            cr_expect(fattn_rule_holds(fattn_guard_at(i), &p, subjects[s].version, subjects[s].sm), "%s", subjects[s].name);
            held = true;
        }
        cr_expect(held, "%s has no case here", fattn_guard_at(i)->name);
        const fattn_problem p = made(NULL);
        for (int32_t version = 90800; version <= 92900; version += 100)
            for (int32_t sm = 80; sm <= 120; sm += 10)
                cr_expect_not(fattn_rule_holds(fattn_guard_at(i), &p, version, sm), "%s", fattn_guard_at(i)->name);
    }
}

Test(guards, end_where_their_versions_and_architectures_do)
{
    for (int s = 0; s < SUBJECTS; s++) {
        const fattn_rule *rule = guard(subjects[s].name);
        const fattn_problem p = made(&subjects[s]);
        const int32_t v = subjects[s].version, sm = subjects[s].sm;
        if (rule->cudnn_from != 0) {
            cr_expect(fattn_rule_holds(rule, &p, rule->cudnn_from, sm), "%s", rule->name);
            cr_expect_not(fattn_rule_holds(rule, &p, rule->cudnn_from - 1, sm), "%s", rule->name);
        }
        if (rule->cudnn_to != 0) {
            cr_expect(fattn_rule_holds(rule, &p, rule->cudnn_to, sm), "%s", rule->name);
            cr_expect_not(fattn_rule_holds(rule, &p, rule->cudnn_to + 1, sm), "%s", rule->name);
        }
        if (rule->sm_from != 0)
            cr_expect_not(fattn_rule_holds(rule, &p, v, rule->sm_from - 1), "%s", rule->name);
        if (rule->sm_to != 0)
            cr_expect_not(fattn_rule_holds(rule, &p, v, rule->sm_to + 1), "%s", rule->name);
    }
}

/* Where a guard was seen to be needed and where not, said once more, so that nobody moves an edge by accident. */
Test(guards, have_the_edges_that_were_measured)
{
    static const struct {
        int place; /* in subjects */
        int32_t below, first, last, above;
    } edges[] = {
        { 1, 0, 90000, 91500, 91501 },      { 3, 0, 90000, 90499, 90500 },      { 4, 92599, 92600, 92800, 92801 },
        { 6, 90799, 90800, 91299, 91300 },  { 8, 91299, 91300, 91300, 91301 },  { 9, 90599, 90600, 91400, 91401 },
        { 10, 91899, 91900, 92599, 92600 }, { 11, 91399, 91400, 92800, 92801 }, { 12, 91899, 91900, 92800, 92801 },
        { 13, 91899, 91900, 92800, 92801 }, { 14, 91399, 91400, 91400, 91401 }, { 15, 91899, 91900, 92800, 92801 },
        { 16, 91399, 91400, 92800, 92801 }, { 17, 91399, 91400, 92800, 92801 }, { 18, 91399, 91400, 92800, 92801 },
        { 22, 91399, 91400, 92800, 92801 }, { 23, 90399, 90400, 92800, 92801 }, { 24, 91399, 91400, 92800, 92801 },
        { 25, 91399, 91400, 92800, 92801 }, { 27, 91899, 91900, 92800, 92801 }, { 28, 91399, 91400, 91400, 91401 },
        { 29, 91399, 91400, 91900, 91901 }, { 33, 90899, 90900, 92499, 92500 }, { 34, 92499, 92500, 92800, 92801 },
        { 35, 91300, 91301, 92499, 92500 }, { 36, 92499, 92500, 92800, 92801 }, { 37, 90399, 90400, 92800, 92801 },
        { 38, 91399, 91400, 91900, 91901 }, { 39, 91399, 91400, 91900, 91901 }, { 40, 91399, 91400, 92800, 92801 },
        { 49, 91399, 91400, 92800, 92801 }, { 52, 90399, 90400, 90900, 90901 }, { 53, 90399, 90400, 91000, 91001 },
        { 56, 91399, 91400, 91400, 91401 }, { 57, 91399, 91400, 91400, 91401 }, { 58, 90399, 90400, 91199, 91200 },
    };
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const subject *s = &subjects[edges[i].place];
        const fattn_rule *rule = guard(s->name);
        const fattn_problem p = made(s);
        cr_expect(edges[i].below == 0 || !fattn_rule_holds(rule, &p, edges[i].below, s->sm), "%s", s->name);
        cr_expect(fattn_rule_holds(rule, &p, edges[i].first, s->sm), "%s", s->name);
        cr_expect(fattn_rule_holds(rule, &p, edges[i].last, s->sm), "%s", s->name);
        cr_expect_not(fattn_rule_holds(rule, &p, edges[i].above, s->sm), "%s", s->name);
    }
}

/* The other configuration of the same engine is right, and stays. */
Test(guards, of_tiles_name_a_configuration)
{
    static const struct {
        const char *name, *knob;
        int64_t value;
    } tiles[] = {
        { "fp8-large-tile-kernel-32", "KERNEL_CFG", 32 },
        { "fp8-large-tile-n-3", "TILE_N", 3 },
        { "fp8-padded-tiles-kernel-7", "KERNEL_CFG", 7 },
        { "fp8-padded-tiles-n-2", "TILE_N", 2 },
        { "fp8-large-tile-kernel-31", "KERNEL_CFG", 31 },
    };
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const fattn_rule *rule = guard(tiles[i].name);
        cr_assert_eq(rule->knob_count, 1);
        cr_expect_str_eq(fattn_knob_name(rule->knobs[0].type), tiles[i].knob);
        cr_expect_eq(rule->knobs[0].value, tiles[i].value);
        fattn_engine engine = { .index = 2, .knob_count = 1 };
        engine.knobs[0] = rule->knobs[0];
        cr_expect(fattn__rule_means(rule, &engine));
        engine.knobs[0].value++;
        cr_expect_not(fattn__rule_means(rule, &engine));
    }
}

/* One step from the subject, and the guard does not hold: X(place in subjects, change) */
#define EDGE_LIST(X)                                                                                                               \
    X(49, p.seq_q = 256)                                                                                                           \
    X(49, p.padding = 0)                                                                                                           \
    X(52, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(54, p.seq_kv = 2)                                                                                                            \
    X(55, p.seq_kv = 320)                                                                                                          \
    X(0, memcpy(p.k_strides, (int64_t[4]){ 1 << 20, 136, 8 * 136, 1 }, sizeof p.k_strides))                                        \
    X(1, p.capture = 0)                                                                                                            \
    X(1, p.seq_kv = 512)                                                                                                           \
    X(1, p.padding = 1)                                                                                                            \
    X(1, p.dtype = FATTN_E4M3)                                                                                                     \
    X(1, p.dtype = FATTN_E5M2)                                                                                                     \
    X(1, p.dtype = FATTN_F32)                                                                                                      \
    X(1, p.pass = FATTN_FORWARD)                                                                                                   \
    X(1, memcpy(p.q_strides, (int64_t[4]){ 8 * 512 * 64, 512 * 64, 64, 1 }, sizeof p.q_strides))                                   \
    X(2, p.training = 0)                                                                                                           \
    X(3, p.ragged_bits = 32)                                                                                                       \
    X(4, p.batch = 2)                                                                                                              \
    X(4, p.heads_q = 2)                                                                                                            \
    X(4, p.seq_q = 2)                                                                                                              \
    X(4, p.pass = FATTN_FORWARD)                                                                                                   \
    X(6, p.batch = 2)                                                                                                              \
    X(6, p.seq_q = 2)                                                                                                              \
    X(6, p.pass = FATTN_FORWARD)                                                                                                   \
    X(7, (p.batch = 2, p.heads_q = 2))                                                                                             \
    X(8, p.batch = 2)                                                                                                              \
    X(8, p.seq_q = 2)                                                                                                              \
    X(9, p.pass = FATTN_FORWARD)                                                                                                   \
    X(9, memset(p.stats_strides, 0, sizeof p.stats_strides))                                                                       \
    X(10, p.heads_q = 1)                                                                                                           \
    X(11, p.attn_scale = 0.001)                                                                                                    \
    X(11, p.has_attn_scale = 0)                                                                                                    \
    X(11, p.seq_kv = 448)                                                                                                          \
    X(11, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(12, p.pass = FATTN_FORWARD)                                                                                                  \
    X(12, p.seq_kv = 512)                                                                                                          \
    X(13, p.attn_scale = 0.001)                                                                                                    \
    X(17, p.o_dtype = FATTN_F16)                                                                                                   \
    X(17, p.dtype = FATTN_F32)                                                                                                     \
    X(17, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(18, p.grad_dtype = FATTN_BF16)                                                                                               \
    X(18, p.dtype = FATTN_F32)                                                                                                     \
    X(18, p.pass = FATTN_FORWARD)                                                                                                  \
    X(19, (p.bias_dim[0] = p.bias_dim[1] = p.bias_dim[2] = 1, p.bias_dim[3] = p.seq_kv))                                           \
    X(19, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(19, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(20, p.bias_dtype = FATTN_F32)                                                                                                \
    X(20, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(21, p.sink = 1)                                                                                                              \
    X(21, p.seq_q = 2)                                                                                                             \
    X(21, p.dtype = FATTN_E4M3)                                                                                                    \
    X(21, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(22, p.grad_dtype = FATTN_BF16)                                                                                               \
    X(22, p.dtype = FATTN_F16)                                                                                                     \
    X(22, p.pass = FATTN_FORWARD)                                                                                                  \
    X(23, p.stats_dtype = FATTN_F32)                                                                                               \
    X(23, p.outputs = 0)                                                                                                           \
    X(24, p.len_broadcast = 0)                                                                                                     \
    X(24, p.batch = 1)                                                                                                             \
    X(25, p.ragged |= FATTN_RAGGED_Q)                                                                                              \
    X(25, p.ragged = FATTN_RAGGED_Q)                                                                                               \
    X(26, p.ragged |= FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V)                                                            \
    X(27, p.ragged = FATTN_RAGGED_ALL)                                                                                             \
    X(28, (memset(p.dk_strides, 0, sizeof p.dk_strides), memset(p.dv_strides, 0, sizeof p.dv_strides)))                            \
    X(28, p.ragged &= ~(uint32_t)(FATTN_RAGGED_DK | FATTN_RAGGED_DV))                                                              \
    X(29, p.seq_q = 2)                                                                                                             \
    X(29, p.heads_k = 0)                                                                                                           \
    X(29, p.outputs = 0)                                                                                                           \
    X(29, p.ragged &= ~(uint32_t)FATTN_RAGGED_STATS)                                                                               \
    X(30, p.has_bias = 0)                                                                                                          \
    X(30, p.bias_dtype = FATTN_BF16)                                                                                               \
    X(31, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(31, p.impl = FATTN_IMPL_COMPOSITE)                                                                                           \
    X(31, p.dtype = FATTN_F16)                                                                                                     \
    X(32, p.dropout = 0)                                                                                                           \
    X(32, p.dtype = FATTN_BF16)                                                                                                    \
    X(33, p.dim_qk = 128)                                                                                                          \
    X(33, p.dtype = FATTN_BF16)                                                                                                    \
    X(33, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(35, p.dim_qk = 192)                                                                                                          \
    X(35, p.padding = 0)                                                                                                           \
    X(35, p.seq_q = 64)                                                                                                            \
    X(36, p.ragged_bits = 32)                                                                                                      \
    X(37, p.has_bias = 0)                                                                                                          \
    X(37, p.dtype = FATTN_F16)                                                                                                     \
    X(37, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(38, p.seq_q = 192)                                                                                                           \
    X(38, p.pass = FATTN_FORWARD)                                                                                                  \
    X(38, p.dtype = FATTN_BF16)                                                                                                    \
    X(39, p.dsink = 0)                                                                                                             \
    X(39, p.dtype = FATTN_BF16)                                                                                                    \
    X(40, (p.ragged_bits = 0, p.ragged = 0))                                                                                       \
    X(40, p.pass = FATTN_FORWARD)                                                                                                  \
    X(40, p.dtype = FATTN_F16)                                                                                                     \
    X(41, p.dim_qk = 128)                                                                                                          \
    X(41, (p.ragged_bits = 0, p.ragged = 0))                                                                                       \
    X(41, p.pass = FATTN_FORWARD)                                                                                                  \
    X(56, p.seq_q = 512)                                                                                                           \
    X(56, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(56, p.dtype = FATTN_F16)                                                                                                     \
    X(57, p.dim_v = 128)                                                                                                           \
    X(58, p.outputs = 0)                                                                                                           \
    X(58, p.pass = FATTN_BACKWARD)                                                                                                 \
    X(58, memset(p.stats_strides, 0, sizeof p.stats_strides))

Test(guards, end_where_their_problems_do)
{
#define AS_EDGE(place, change)                                                                                                     \
    do {                                                                                                                           \
        fattn_problem p = made(&subjects[place]);                                                                                  \
        const fattn_rule *rule = guard(subjects[place].name);                                                                      \
        cr_expect(fattn_rule_holds(rule, &p, subjects[place].version, subjects[place].sm), "%s", rule->name);                      \
        change;                                                                                                                    \
        cr_expect_not(fattn_rule_holds(rule, &p, subjects[place].version, subjects[place].sm), "%s: %s", rule->name, #change);     \
    } while (0);
    EDGE_LIST(AS_EDGE)
}

Test(guards, hold_alike_for_both_16_bit_types_and_both_orders)
{
    fattn_problem p = made(&subjects[1]);
    const fattn_rule *rule = guard(subjects[1].name);
    p.dtype = FATTN_F16;
    cr_expect(fattn_rule_holds(rule, &p, 91500, 90));
    memcpy(p.q_strides, (int64_t[4]){ 8 * 64, 64, 2 * 8 * 64, 1 }, sizeof p.q_strides);
    cr_expect(fattn_rule_holds(rule, &p, 91500, 90), "sbhd");
}

Test(guards, a_score_mod_whose_gradient_is_a_multiple_of_what_comes_is_left_alone)
{
    const subject cooled = { "score-mod-gradient-engine-7", 92000, 90, cooled_by_mod };
    const fattn_problem p = made(&cooled);
    cr_expect_not(fattn_rule_holds(guard(cooled.name), &p, cooled.version, cooled.sm));
    fattn_problem forward = made(&(subject){ "", 0, 0, masked_by_mod });
    forward.pass = FATTN_FORWARD;
    cr_expect_not(fattn_rule_holds(guard(cooled.name), &forward, cooled.version, cooled.sm));
}
