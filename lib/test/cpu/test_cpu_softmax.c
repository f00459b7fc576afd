/* What joins the score and the softmax on the cpu: masks, slopes, sinks, dropout, a scale
 * in memory, base 2, block masks, rotation. */
#include "support/surface.h"

#include "problem/dropout.h"

Test(cpu_softmax, each_mask_over_one_head_of_values)
{
    for (int mask = 0; mask < 4; mask++) {
        world x = make();
        x.p.heads_v = 1;
        x.p.has_right = mask > 0, x.p.has_left = mask > 1, x.p.padding = mask == 3;
        x.p.window_left = 9, x.p.window_right = mask > 1 ? 4 : 0;
        x.p.align = mask == 3 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
        expect_all(&x);
    }
}

Test(cpu_softmax, a_boolean_mask_hides_where_it_is_0)
{
    for (int shape = 0; shape < 4; shape++) {
        world x = make();
        const int64_t rows = shape & 1 ? SQ : 1, heads = shape & 2 ? HQ : 1, n = heads * rows * SK;
        uint8_t *mask = aligned_alloc(64, (size_t)(n + 63) / 64 * 64);
        x.p.has_bias = 1, x.p.bias_dtype = FATTN_BOOL, x.p.padding = shape & 1;
        memcpy(x.p.bias_dim, (int64_t[4]){ 1, heads, rows, SK }, sizeof x.p.bias_dim);
        for (int64_t i = 0; i < n; i++)
            mask[i] = (uint8_t)(i < 2 * SK && rows > 1
                                    ? 0
                                    : random_bits() % 3 *
                                          40); /* any byte but 0 shows; two rows see nothing */
        float *bias = reference_bias(&x);
        for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
            bias[i] =
                mask[((heads > 1 ? i / SK / SQ % HQ : 0) * rows + (rows > 1 ? i / SK % SQ : 0)) *
                         SK +
                     i % SK]
                    ? 0
                    : -INFINITY;
        x.t.bias = mask;
        expect_all(&x);
    }
}

Test(cpu_softmax, alibi_counts_from_the_top_left)
{
    for (int form = 0; form < 3; form++) {
        world x = make();
        float *slopes = aligned_alloc(16, 16);
        double wide[HQ];
        fattn_alibi_slopes(HQ, slopes);
        for (int h = 0; h < HQ; h++)
            wide[h] = (double)slopes[h];
        x.p.alibi = 1, x.p.padding = form > 0, x.p.has_right = form != 1,
        x.p.align = form == 2 ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
        x.r.alibi = wide, x.t.alibi_slopes = slopes;
        expect_all(&x);
    }
}

Test(cpu_softmax, slopes_of_four_and_of_six_heads)
{
    float out[6];
    fattn_alibi_slopes(4, out);
    const float four[4] = { 0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f },
                six[6] = { 0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f };
    cr_assert_arr_eq(out, four, sizeof four);
    fattn_alibi_slopes(6, out);
    cr_assert_arr_eq(out, six, sizeof six);
    fattn_alibi_slopes(1, out);
    cr_assert_float_eq(out[0], 0x1p-8, 0);
}

Test(cpu_softmax, a_sink_joins_the_denominator_and_has_a_gradient)
{
    for (int form = 0; form < 4; form++) {
        world x = make();
        float *sink = floats(HQ), *dsink = floats(HQ);
        sink[1] = form == 3 ? 0 : 5.0f; /* greater than any score */
        x.p.sink = x.p.dsink = 1, x.p.padding = form & 1, x.p.has_right = form >> 1,
        x.p.window_right = -40; /* rows without a key */
        x.len_kv[1] = form == 3 ? 0 : 101;
        x.r.sink = sink, x.t.sink = sink, x.t.dsink = dsink;
        expect_all(&x);
        for (int h = 0; h < HQ; h++)
            cr_assert_float_eq((double)dsink[h], x.backward.dsink[h],
                               1.5 * x.backward.dsink_bound[h] + 1e-6, "dsink %d: %g, not %g", h,
                               (double)dsink[h], x.backward.dsink[h]);
    }
}

Test(cpu_softmax, max_and_sum_exp_see_the_sink)
{
    world x = make();
    float *sink = floats(HQ), *max = floats(B * HQ * SQ), *sum = floats(B * HQ * SQ);
    sink[2] = 9;
    x.p.pass = FATTN_FORWARD, x.p.sink = 1,
    x.p.outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP | FATTN_WANT_STATS;
    x.r.sink = sink, x.t.sink = sink, x.t.max = max, x.t.sum_exp = sum;
    settle(&x);
    expect_forward(&x);
    for (int64_t i = 0; i < B * HQ * SQ; i++) {
        cr_assert_float_eq((double)max[i], x.forward.max[i], 1e-5);
        cr_assert_float_eq((double)sum[i], x.forward.sum_exp[i], 1e-4 * x.forward.sum_exp[i]);
    }
}

Test(cpu_softmax, a_sink_of_minus_infinity_is_none)
{
    world x = make();
    float *sink = floats(HQ), *dsink = floats(HQ);
    for (int h = 0; h < HQ; h++)
        sink[h] = -INFINITY;
    x.p.sink = x.p.dsink = 1, x.p.has_right = 1, x.p.window_right = -3, x.t.sink = sink,
    x.t.dsink = dsink;
    expect_all(&x);
    for (int h = 0; h < HQ; h++)
        cr_assert_float_eq((double)dsink[h], 0, 0);
}

/* ---- dropout
 * --------------------------------------------------------------------------------------------------------------------------
 */

Test(cpu_softmax, dropout_keeps_what_its_function_says_forward_and_backward)
{
    for (int bits = 32; bits <= 64; bits += 32) {
        world x = make();
        int64_t *seed = aligned_alloc(16, 16), *offset = aligned_alloc(16, 16);
        float *dump = floats((int64_t)B * HQ * SQ * SK), *again = floats((int64_t)B * HQ * SQ * SK);
        uint8_t *keep = calloc((size_t)B * HQ * SQ * SK, 1);
        if (bits == 64)
            *seed = INT64_C(-0x123456789abcdef), *offset = INT64_C(0x700000000), x.p.rng_bits = 0;
        else
            *(int32_t *)seed = -77, *(int32_t *)offset = 12, x.p.rng_bits = 32;
        x.p.dropout = 0.3, x.p.padding = 1, x.p.outputs = FATTN_WANT_RNG_DUMP, x.t.seed = seed,
        x.t.offset = offset;
        const fattn__dropout generator = fattn__dropout_of(
            bits == 64 ? *seed : -77, bits == 64 ? *offset : 12, fattn__dropout_threshold(0.3));
        int64_t kept = 0;
        for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
            kept += keep[i] = (uint8_t)fattn__dropout_keeps(&generator, i / SK / SQ / HQ,
                                                            i / SK / SQ % HQ, i / SK % SQ, i % SK);
        cr_assert_float_eq((double)kept / (B * HQ * SQ * SK), 0.7,
                           6 * sqrt(0.21 / (B * HQ * SQ * SK)));
        x.r.keep = keep, x.r.keep_scale = 1 / 0.7;
        settle(&x);
        x.t.rng_dump = dump;
        expect_forward(&x);
        x.t.rng_dump = again;
        expect_backward(&x);
        for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
            cr_assert(dump[i] == (float)keep[i] && again[i] == dump[i], "score %lld", (long long)i);
    }
}

Test(cpu_softmax, a_given_mask_drops_and_its_scale_scales)
{
    world x = make();
    float *mask = floats((int64_t)B * HQ * SQ * SK), *scale = floats(4), *inverse = floats(4);
    uint8_t *keep = calloc((size_t)B * HQ * SQ * SK, 1);
    for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
        mask[i] = (float)(keep[i] = random_bits() % 4 != 0);
    *scale = 1.25f, *inverse = 0.8f;
    x.p.dropout_mask = 1, x.p.has_right = 1;
    x.t.dropout_mask = mask, x.t.dropout_scale = scale, x.t.dropout_scale_inverse = inverse,
    x.r.keep = keep, x.r.keep_scale = 1.25;
    expect_all(&x);
}

Test(cpu_softmax, dropout_with_a_bias_its_gradient_a_sink_and_packed_sequences)
{
    world x = make();
    float *sink = floats(HQ), *dsink = floats(HQ), *bias = floats(HQ * SQ * SK),
          *dbias = floats(HQ * SQ * SK);
    int64_t *seed = aligned_alloc(16, 16), *offset = aligned_alloc(16, 16);
    uint8_t *keep = calloc((size_t)B * HQ * SQ * SK, 1);
    *seed = 5, *offset = 6;
    x.p.dropout = 0.1, x.p.padding = 1, x.p.ragged_bits = 32, x.p.sink = x.p.dsink = 1,
    x.p.has_bias = x.p.dbias = 1, x.t.sink = sink, x.t.dsink = dsink;
    memcpy(x.p.stats_strides, (int64_t[4]){ 0, 1, HQ, 1 }, sizeof x.p.stats_strides);
    const fattn__dropout generator = fattn__dropout_of(5, 6, fattn__dropout_threshold(0.1));
    for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
        keep[i] = (uint8_t)fattn__dropout_keeps(&generator, i / SK / SQ / HQ, i / SK / SQ % HQ,
                                                i / SK % SQ, i % SK);
    x.bias = (fref_tensor){ .data = bias, .type = FREF_F32, .stride = { 0, SQ * SK, SK, 1 } };
    x.r.bias = &x.bias, x.r.sink = sink, x.r.keep = keep, x.r.keep_scale = 1 / 0.9;
    x.t.bias = bias, x.t.dbias = dbias, x.t.seed = seed, x.t.offset = offset;
    expect_all(&x);
    fref_backward_out out = { .dbias = { .value = doubles(HQ * SQ * SK),
                                         .sigma = doubles(HQ * SQ * SK),
                                         .bound = doubles(HQ * SQ * SK) },
                              .dbias_dim = { 1, HQ, SQ, SK } };
    cr_assert_eq(fref_backward(&x.r, &x.in[0], &x.in[1], &x.in[2], &x.in[3], &x.in[4], &x.in[5],
                               &x.rounding, &out),
                 0);
    for (int64_t i = 0; i < HQ * SQ * SK; i++)
        cr_assert_float_eq((double)dbias[i], out.dbias.value[i], 1.1 * out.dbias.bound[i] + 1e-7,
                           "dbias %lld: %g, not %g", (long long)i, (double)dbias[i],
                           out.dbias.value[i]);
}

/* ---- the rest
 * -------------------------------------------------------------------------------------------------------------------------
 */

Test(cpu_softmax, a_scale_in_memory_and_unfused_arithmetic)
{
    world x = make();
    float *scale = floats(4);
    *scale = 0.7f;
    x.p.scale_in_memory = 1, x.p.attn_scale = 99, x.p.unfuse_fma = 1, x.t.attn_scale = scale,
    x.r.scale = (double)*scale;
    expect_all(&x);
}

Test(cpu_softmax, stats_in_base_2)
{
    world x = make();
    x.p.pass = FATTN_FORWARD, x.p.outputs = FATTN_WANT_STATS_LOG2, x.p.padding = 1, x.len_kv[2] = 0;
    settle(&x);
    expect_forward(&x);
}

Test(cpu_softmax, a_block_mask_hides_tiles_of_128)
{
    world x = make();
    const int64_t row_tiles = (SQ + 127) / 128;
    uint8_t *bits = aligned_alloc(64, 64);
    float *bias = reference_bias(&x);
    for (int i = 0; i < B * HQ * row_tiles; i++)
        bits[i] = (uint8_t)(i == 4 ? 0 : random_bits()); /* one row of tiles sees nothing */
    for (int64_t i = 0; i < B * HQ * SQ * SK; i++) {
        const int64_t line = i / SK / SQ * row_tiles + i / SK % SQ / 128;
        bias[i] = bits[line] >> (i % SK / 128) & 1 ? 0 : -INFINITY;
    }
    cr_assert((SK + 127) / 128 > 1 && SK <= 8 * 128, "a byte has the tiles of a row");
    x.p.block_mask = 1, x.t.block_mask = bits;
    expect_all(&x);
}

static void rotate(float *row, const float *angles, int64_t lanes)
{
    for (int64_t i = 0; i < lanes / 2; i++) {
        const double c = cos((double)angles[i]), s = sin((double)angles[i]),
                     a = (double)row[D - lanes + i], b = (double)row[D - lanes / 2 + i];
        row[D - lanes + i] = (float)(a * c - b * s),
                        row[D - lanes / 2 + i] = (float)(b * c + a * s);
    }
}

/* Rotated, and rounded to the type once more. */
static float *rotated(const world *x, fattn__role which, int64_t heads, int64_t seq,
                      const float *angles)
{
    const int64_t n = B * heads * seq * D;
    float *out = malloc((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)number(x->dense[which], x->p.dtype, i);
    for (int64_t row = 0; row < B * heads * seq; row++)
        rotate(out + row * D, angles + row % seq * x->p.rope_dim, x->p.rope_dim);
    for (int64_t i = 0; i < n && x->p.dtype == FATTN_BF16; i++) {
        uint32_t bits;
        memcpy(&bits, &out[i], 4);
        bits = (bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u;
        memcpy(&out[i], &bits, 4);
    }
    return out;
}

static void expect_rotated(int32_t dtype, int64_t lanes, bool is_packed)
{
    world x = make();
    x.p.dtype = dtype, x.p.rope = 1, x.p.rope_dim = lanes, x.p.padding = is_packed;
    x.p.ragged_bits = is_packed ? 32 : 0,
    x.p.ragged = is_packed ? FATTN_RAGGED_Q | FATTN_RAGGED_DK : 0;
    settle(&x);
    float *q = floats(SQ * x.p.rope_dim), *k = floats(SK * x.p.rope_dim);
    for (int64_t i = 0; i < SQ * x.p.rope_dim; i++)
        q[i] *= 40;
    x.t.rope_q = x.angles_q = q, x.t.rope_k = x.angles_k = k;
    x.in[FATTN__ROLE_Q].data = rotated(&x, FATTN__ROLE_Q, HQ, SQ, q),
    x.in[FATTN__ROLE_K].data = rotated(&x, FATTN__ROLE_K, HK, SK, k);
    x.in[FATTN__ROLE_Q].type = x.in[FATTN__ROLE_K].type = FREF_F32;
    x.slack = dtype == FATTN_F32 ? 3 : 1.5; /* the rotation itself is done in fp32 */
    expect_forward(&x);
    expect_backward(&x);
}

Test(cpu_softmax, the_last_lanes_rotate_and_their_gradients_rotate_back)
{
    expect_rotated(FATTN_F32, 0, false);
    expect_rotated(FATTN_F32, 12, true);
    expect_rotated(FATTN_BF16, 0, false);
}

Test(cpu_softmax, the_unified_operation_is_not_the_cpus)
{
    fattn_context *context = cpu_context(1);
    fattn_plan *plan = NULL;
    world x = make();
    x.p.impl = FATTN_IMPL_UNIFIED;
    cr_assert_eq(fattn_plan_create(&plan, context, &x.p, NULL), FATTN_UNSUPPORTED);
    cr_assert(strstr(fattn_last_error(), "the cpu backend has no cuDNN graph") != NULL, "%s",
              fattn_last_error());
    fattn_context_destroy(context);
}
