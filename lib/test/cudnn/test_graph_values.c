/* The graphs that problems become, evaluated: whatever an engine makes of a graph, its operations
 * must compute attention. Real cuDNN, asked without a GPU, recognises a graph by its operations; it
 * says nothing about swapped operands, a wrong bound, a wrong scale or another tensor of the same
 * shape. */
#define SURFACE_EXTENTS SQ = 20, SK = 36
#include "support/narrow.h"

#include "fattn/score_mod.h"
#include "graph_values.h"

static int version;

static void by_the_graph(world *x, const fattn_problem *p)
{
    evaluate(p, version, &x->t);
}

static void begin(void)
{
    run_instead = by_the_graph, version = 91900;
}

TestSuite(graph_values, .init = begin, .timeout = 300);

/* ---- masks
 * ----------------------------------------------------------------------------------------------------------------------
 */

typedef struct masking {
    int has_right, right, has_left, left;
} masking;

static const masking masks[] = {
    { 0, 0, 0, 0 }, { 1, 0, 0, 0 }, { 1, 3, 0, 0 }, { 0, 0, 1, 7 }, { 1, 2, 1, 5 }
};

static void every_mask(fattn_spelling spelling)
{
    for (size_t i = 0; i < 4 * sizeof masks / sizeof *masks; i++) {
        const masking *mask = &masks[i / 4];
        world x = make();
        x.p.spelling = spelling, x.p.padding = i & 1,
        x.p.align = i & 2 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
        x.p.has_right = mask->has_right, x.p.window_right = mask->right,
        x.p.has_left = mask->has_left, x.p.window_left = mask->left;
        expect_all(&x);
    }
}

Test(graph_values, every_mask_in_expanded_operations)
{
    every_mask(FATTN_SPELLING_EXPANDED);
}

Test(graph_values, every_mask_in_single_operations)
{
    version = 92000;
    every_mask(FATTN_SPELLING_SINGLE);
}

Test(graph_values, one_length_for_every_entry)
{
    world x = make();
    x.p.padding = x.p.len_broadcast = 1;
    expect_all(&x);
}

/* ---- heads and layouts
 * ----------------------------------------------------------------------------------------------------------
 */

Test(graph_values, heads_that_keys_and_values_share_or_do_not_share)
{
    static const int64_t heads[][2] = { { 4, 4 }, { 4, 1 }, { 1, 4 }, { 2, 4 }, { 1, 1 } };
    for (size_t i = 0; i < 2 * sizeof heads / sizeof *heads; i++) {
        world x = make();
        x.p.heads_k = heads[i / 2][0], x.p.heads_v = heads[i / 2][1], x.p.deterministic = i & 1,
        x.p.has_right = 1;
        expect_all(&x);
    }
}

Test(graph_values, packed_sequences)
{
    for (int form = 0; form < 4; form++) {
        world x = make();
        version = 92700;
        x.p.padding = 1, x.p.ragged_bits = form & 1 ? 64 : 32, x.p.has_right = form & 1,
        x.p.align = FATTN_BOTTOM_RIGHT;
        x.p.total_q = form & 2 ? SQ * 2 + 6 : 0, x.p.total_kv = form & 2 ? SK * 3 : 0;
        memcpy(x.p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof x.p.stats_strides);
        expect_all(&x);
    }
}

Test(graph_values, keys_and_values_in_pages)
{
    for (int which = 1; which < 4; which++) {
        world x = make();
        x.p.pass = FATTN_FORWARD, x.p.padding = 1, x.p.page_size_k = which & 1 ? 8 : 0,
        x.p.page_size_v = which & 2 ? 8 : 0;
        x.p.pages_k = which & 1 ? 17 : 0, x.p.pages_v = which & 2 ? 17 : 0;
        place_pages(&x, 8);
        if (which == 3) { /* V has a table of its own */
            int32_t *table = calloc(16, 4);
            for (int n = 0; n < 15; n++)
                table[n] = (x.t.page_table_k[n] + 3) % 17;
            x.t.page_table_v = table;
        }
        settle(&x);
        expect_forward(&x);
    }
}

/* ---- what joins the score and the softmax
 * ---------------------------------------------------------------------------------------
 */

Test(graph_values, a_bias_and_its_gradient)
{
    for (int shape = 0; shape < 8; shape++) {
        world x = make();
        const int64_t dim[4] = { shape & 1 ? B : 1, shape & 2 ? HQ : 1, shape & 4 ? SQ : 1, SK },
                      n = dim[0] * dim[1] * dim[2] * SK;
        float *bias = floats(n), *dbias = floats(n);
        x.p.has_bias = x.p.dbias = 1, x.p.has_right = shape & 1, x.t.bias = bias, x.t.dbias = dbias;
        memcpy(x.p.bias_dim, dim, sizeof dim);
        x.bias = (fref_tensor){ .data = bias,
                                .type = FREF_F32,
                                .stride = { shape & 1 ? dim[1] * dim[2] * SK : 0,
                                            shape & 2 ? dim[2] * SK : 0, shape & 4 ? SK : 0, 1 } };
        x.r.bias = &x.bias;
        expect_all(&x);
        fref_backward_out out = {
            .dbias = { .value = doubles(n), .sigma = doubles(n), .bound = doubles(n) },
            .dbias_dim = { dim[0], dim[1], dim[2], SK }
        };
        cr_assert_eq(fref_backward(&x.r, &x.in[0], &x.in[1], &x.in[2], &x.in[3], &x.in[4], &x.in[5],
                                   &x.rounding, &out),
                     0);
        for (int64_t i = 0; i < n; i++)
            cr_assert_float_eq((double)dbias[i], out.dbias.value[i],
                               1.1 * out.dbias.bound[i] + 1e-6, "dbias %ld of shape %d: %g, not %g",
                               (long)i, shape, (double)dbias[i], out.dbias.value[i]);
    }
}

Test(graph_values, a_boolean_mask_hides_where_it_is_0)
{
    world x = make();
    uint8_t *mask = calloc(SQ * SK, 1);
    float *bias = calloc(SQ * SK, 4);
    x.p.has_bias = 1, x.p.bias_dtype = FATTN_BOOL, x.t.bias = mask;
    memcpy(x.p.bias_dim, (int64_t[4]){ 1, 1, SQ, SK }, sizeof x.p.bias_dim);
    for (int i = 0; i < SQ * SK; i++)
        mask[i] = (uint8_t)(random_bits() % 3 * 40), bias[i] = mask[i] ? 0 : -INFINITY;
    x.bias = (fref_tensor){ .data = bias, .type = FREF_F32, .stride = { 0, 0, SK, 1 } },
    x.r.bias = &x.bias;
    expect_all(&x);
}

Test(graph_values, alibi_counts_from_the_top_left)
{
    for (int form = 0; form < 2; form++) {
        static double wide[HQ];
        world x = make();
        float *slopes = floats(4);
        for (int h = 0; h < HQ; h++)
            wide[h] = (double)slopes[h];
        x.p.alibi = 1, x.p.padding = form, x.p.has_right = 1,
        x.p.align = form ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
        x.r.alibi = wide, x.t.alibi_slopes = slopes;
        expect_all(&x);
    }
}

Test(graph_values, a_sink_joins_the_denominator_and_has_a_gradient)
{
    for (int form = 0; form < 2; form++) {
        world x = make();
        float *sink = floats(HQ), *dsink = floats(HQ);
        sink[1] = 5.0f; /* greater than any score */
        version = form ? 92000 : 91900;
        x.p.spelling = form ? FATTN_SPELLING_SINGLE : FATTN_SPELLING_EXPANDED,
        x.p.sink = x.p.dsink = 1, x.r.sink = sink, x.t.sink = sink, x.t.dsink = dsink;
        expect_all(&x);
        for (int h = 0; h < HQ; h++) /* the sign is the engine's */
            cr_assert_float_eq(-(double)dsink[h], x.backward.dsink[h],
                               1.5 * x.backward.dsink_bound[h] + 1e-6, "dsink %d: %g, not %g", h,
                               (double)dsink[h], x.backward.dsink[h]);
    }
}

static world dropping(double probability)
{
    static int64_t seed = 5, offset = 700;
    static uint8_t keep[B * HQ * SQ * SK];
    world x = make();
    const fattn__dropout generator =
        fattn__dropout_of(seed, offset, fattn__dropout_threshold(probability));
    for (int i = 0; i < B * HQ * SQ * SK; i++)
        keep[i] = (uint8_t)fattn__dropout_keeps(&generator, i / SK / SQ / HQ, i / SK / SQ % HQ,
                                                i / SK % SQ, i % SK);
    x.p.dropout = probability, x.t.seed = &seed, x.t.offset = &offset, x.r.keep = keep,
    x.r.keep_scale = 1 / (1 - probability);
    return x;
}

Test(graph_values, dropout_drops_the_same_in_both_passes)
{
    for (int form = 0; form < 2; form++) {
        world x = dropping(0.3);
        version = form ? 92000 : 91900;
        x.p.spelling = form ? FATTN_SPELLING_SINGLE : FATTN_SPELLING_EXPANDED, x.p.has_right = 1;
        expect_all(&x);
    }
}

Test(graph_values, a_mask_of_the_caller_drops_and_its_scale_scales)
{
    static uint8_t keep[B * HQ * SQ * SK];
    world x = make();
    float *mask = floats(B * HQ * SQ * SK);
    for (int i = 0; i < B * HQ * SQ * SK; i++)
        mask[i] = (float)(keep[i] = random_bits() % 4 != 0);
    x.p.dropout_mask = 1, x.t.dropout_mask = mask, x.t.dropout_scale = scalar(1.25f),
    x.t.dropout_scale_inverse = scalar(0.8f);
    x.r.keep = keep, x.r.keep_scale = 1.25;
    expect_all(&x);
}

Test(graph_values, a_scale_in_memory)
{
    world x = make();
    x.p.scale_in_memory = 1, x.p.attn_scale = 99, x.t.attn_scale = scalar(0.7f),
    x.r.scale = (double)0.7f;
    expect_all(&x);
}

/* Max, Sum_exp and Stats in base 2: whatever the spelling writes. */
Test(graph_values, row_outputs)
{
    static const struct {
        fattn_spelling spelling;
        uint32_t outputs;
        int sink;
    } rows[] = { { FATTN_SPELLING_EXPANDED, FATTN_WANT_MAX | FATTN_WANT_SUM_EXP, 0 },
                 { FATTN_SPELLING_AUTO, FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP, 0 },
                 { FATTN_SPELLING_AUTO, FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP, 1 },
                 { FATTN_SPELLING_EXPANDED, FATTN_WANT_MAX | FATTN_WANT_SUM_EXP, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world x = make();
        float *max = floats(B * HQ * SQ), *sum = floats(B * HQ * SQ), *sink = floats(HQ);
        version = 92700, sink[2] = 9;
        x.p.pass = FATTN_FORWARD, x.p.spelling = rows[i].spelling, x.p.outputs = rows[i].outputs,
        x.p.sink = rows[i].sink, x.p.guards_off = 1;
        x.t.max = max, x.t.sum_exp = sum, x.t.sink = sink, x.r.sink = rows[i].sink ? sink : NULL;
        settle(&x);
        expect_forward(&x);
        for (int row = 0; row < B * HQ * SQ; row++) {
            cr_assert_float_eq((double)max[row], x.forward.max[row], 1e-5, "max of %zu", i);
            cr_assert_float_eq((double)sum[row], x.forward.sum_exp[row],
                               1e-4 * x.forward.sum_exp[row], "sum_exp of %zu", i);
        }
    }
    world x = make();
    x.p.pass = FATTN_FORWARD, x.p.outputs = FATTN_WANT_STATS_LOG2;
    settle(&x);
    expect_forward(&x);
}

/* ---- score_mod
 * ------------------------------------------------------------------------------------------------------------------
 */

static fref_modified cap(const void *owner, double score, const int64_t at[4])
{
    const double t = tanh(score / 2);
    (void)owner, (void)at;
    return (fref_modified){ .value = 2 * t,
                            .slope = 1 - t * t,
                            .curvature = -t * (1 - t * t),
                            .rounded = 4,
                            .slope_rounded = 4 };
}

/* 2 tanh(score / 2) of the scaled score, and then a bias; keys behind the row hidden by a
 * selection. */
Test(graph_values, a_score_mod_stands_between_the_scale_and_the_bias)
{
    for (int form = 0; form < 2; form++) {
        world x = make();
        fattn_score_mod *mod;
        float *bias = floats(SQ * SK);
        cr_assert_eq(form ? fattn_score_mod_causal(&mod) : fattn_score_mod_softcap(&mod, 2),
                     FATTN_OK);
        x.p.score_mod = mod, x.p.has_bias = 1, x.t.bias = bias;
        memcpy(x.p.bias_dim, (int64_t[4]){ 1, 1, SQ, SK }, sizeof x.p.bias_dim);
        x.bias = (fref_tensor){ .data = bias, .type = FREF_F32, .stride = { 0, 0, SK, 1 } },
        x.r.bias = &x.bias;
        x.r.modify = form ? NULL : cap;
        settle(&x);
        x.r.has_right = form;
        expect_forward(&x);
        expect_backward(&x);
        fattn_score_mod_destroy(mod);
    }
}

static fattn_value step_of(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    return fattn_record(r, FATTN_MOD_FLOOR, score, 0, 0);
}

static fref_modified step(const void *owner, double score, const int64_t at[4])
{
    (void)owner, (void)at;
    return (fref_modified){ .value = floor(score) };
}

Test(graph_values, a_score_mod_of_steps_has_the_gradient_0)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, step_of, NULL, NULL), FATTN_OK);
    x.p.score_mod = mod, x.r.modify = step;
    settle(&x);
    expect_forward(&x);
    call(&x, FATTN_BACKWARD);
    for (int64_t i = 0; i < B * HQ * SQ * D; i++)
        cr_assert_float_eq((double)((const float *)x.t.dq)[i], 0, 0, "dq %ld: %g", (long)i,
                           (double)((const float *)x.t.dq)[i]);
    fattn_score_mod_destroy(mod);
}

/* ---- 8-bit types
 * ----------------------------------------------------------------------------------------------------------------
 */

Test(graph_values, every_scale_of_8_bit_types_is_where_it_belongs)
{
    for (int form = 0; form < 8; form++) {
        world x = scaled(form & 1 ? FATTN_E5M2 : FATTN_E4M3);
        version = form & 4 ? 92000 : 91900;
        x.p.spelling = form & 4 ? FATTN_SPELLING_SINGLE : FATTN_SPELLING_EXPANDED;
        x.p.padding = x.p.has_right = form >> 1 & 1, x.p.heads_k = form & 2 ? 4 : 2;
        expect_scaled(&x);
    }
}

Test(graph_values, outputs_of_sixteen_bits_have_a_scale_of_1)
{
    world x = scaled(FATTN_E4M3);
    x.p.o_dtype = x.p.grad_dtype = FATTN_BF16, x.t.descale_o = scalar(1);
    x.t.scale_o = x.t.scale_dq = x.t.scale_dk = x.t.scale_dv = NULL;
    x.scale_o = x.scale_dq = x.scale_dk = x.scale_dv = 1;
    x.r.scales.scale_o = x.r.scales.scale_dq = x.r.scales.scale_dk = x.r.scales.scale_dv = 1;
    expect_scaled(&x);
}

/* What e4m3 would saturate is e5m2's to hold. */
Test(graph_values, ds_is_cast_to_the_type_of_d_o)
{
    world x = scaled(FATTN_E4M3);
    x.p.o_dtype = FATTN_E4M3, x.p.do_dtype = FATTN_E5M2;
    x.t.scale_dp = scalar(20000.0f), x.t.descale_dp = scalar(0.00005f);
    x.r.scales.scale_dp = 20000, x.r.scales.descale_dp = (double)*x.t.descale_dp;
    expect_scaled(&x);
}

Test(graph_values, eight_bits_with_a_sink_and_dropout)
{
    world x = scaled(FATTN_E4M3), drops = dropping(0.2);
    float *sink = floats(HQ), *dsink = floats(HQ);
    x.p.dropout = drops.p.dropout, x.t.seed = drops.t.seed, x.t.offset = drops.t.offset,
    x.r.keep = drops.r.keep, x.r.keep_scale = drops.r.keep_scale;
    x.p.sink = x.p.dsink = 1, x.t.sink = sink, x.t.dsink = dsink, x.r.sink = sink;
    expect_scaled(&x);
    for (int h = 0; h < HQ; h++)
        cr_assert_float_eq(-(double)dsink[h], x.backward.dsink[h],
                           1.5 * x.backward.dsink_bound[h] + 1e-5, "%g, not %g", (double)dsink[h],
                           x.backward.dsink[h]);
}

Test(graph_values, block_scaled_operands)
{
    version = 92300;
    expect_block_scaled(FATTN_MXE4M3, false);
    expect_block_scaled(FATTN_MXE4M3, true);
    expect_block_scaled(FATTN_MXE5M2, false);
    each_line = true; /* forward */
    expect_block_scaled(FATTN_MXE4M3, true);
}
