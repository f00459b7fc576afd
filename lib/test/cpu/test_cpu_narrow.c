/* e4m3, e5m2 and the block-scaled types on the cpu: codes with scales, forward and backward, and
 * the largest magnitudes. Casts to f16. */
#include "support/narrow.h"

#include "cpu/cpu_view.h"
#include "cpu/kernels/cpu_number.h"

Test(cpu_narrow, both_types_forward_and_backward)
{
    for (int form = 0; form < 4; form++) {
        world x = scaled(form & 1 ? FATTN_E5M2 : FATTN_E4M3);
        x.p.padding = x.p.has_right = form >> 1;
        expect_scaled(&x);
    }
}

Test(cpu_narrow, packed_with_a_sink_and_dropout)
{
    world x = scaled(FATTN_E4M3);
    float *sink = aligned_alloc(16, 16), *dsink = aligned_alloc(16, 16),
          *dump = aligned_alloc(32, (size_t)B * HQ * SQ * SK * 4);
    int64_t *seed = aligned_alloc(16, 16), *offset = aligned_alloc(16, 16);
    uint8_t *keep = calloc((size_t)B * HQ * SQ * SK, 1);
    *seed = 3, *offset = 4;
    for (int h = 0; h < HQ; h++)
        sink[h] = (float)h * 0.5f;
    x.p.padding = 1, x.p.ragged_bits = 32, x.p.ragged = FATTN_RAGGED_ALL & ~FATTN_RAGGED_STATS,
    x.p.sink = x.p.dsink = 1;
    x.p.dropout = 0.2, x.p.outputs = FATTN_WANT_RNG_DUMP, x.t.rng_dump = dump, x.t.seed = seed,
    x.t.offset = offset, x.t.sink = sink, x.t.dsink = dsink;
    x.r.sink = sink, x.r.keep = keep, x.r.keep_scale = 1.25;
    world first = x;
    settle(&first);
    call(&first, FATTN_FORWARD); /* for the mask */
    for (int64_t i = 0; i < B * HQ * SQ * SK; i++)
        keep[i] = dump[i] != 0;
    expect_scaled(&x);
    for (int h = 0; h < HQ; h++)
        cr_assert_float_eq((double)dsink[h], x.backward.dsink[h],
                           1.5 * x.backward.dsink_bound[h] + 1e-5, "%g, not %g", (double)dsink[h],
                           x.backward.dsink[h]);
}

Test(cpu_narrow, o_and_gradients_of_sixteen_bits_count_with_a_scale_of_1)
{
    world x = scaled(FATTN_E4M3);
    x.p.o_dtype = x.p.grad_dtype = FATTN_BF16;
    x.t.scale_o = x.t.scale_dq = x.t.scale_dk = x.t.scale_dv = NULL;
    x.scale_o = x.scale_dq = x.scale_dk = x.scale_dv = 1;
    x.r.scales.scale_o = x.r.scales.scale_dq = x.r.scales.scale_dk = x.r.scales.scale_dv = 1;
    expect_scaled(&x);
}

/* What e4m3 would saturate is e5m2's to hold; and e4m3 beside inputs of e5m2 is the finer one. */
Test(cpu_narrow, ds_is_cast_to_the_type_of_d_o)
{
    for (int form = 0; form < 2; form++) {
        world x = scaled(form ? FATTN_E4M3 : FATTN_E5M2);
        x.p.o_dtype = FATTN_E4M3;
        x.p.do_dtype = form ? FATTN_E5M2 : FATTN_E4M3;
        if (form) {
            x.t.scale_dp = scalar(20000.0f), x.t.descale_dp = scalar(0.00005f);
            x.r.scales.scale_dp = 20000, x.r.scales.descale_dp = (double)*x.t.descale_dp;
        }
        expect_scaled(&x);
    }
}

Test(cpu_narrow, a_scale_that_lifts_p_past_the_type_is_undone)
{
    world x = scaled(FATTN_E4M3);
    x.t.scale_s = scalar(3000.0f), x.t.descale_s = scalar(0.0003f), x.r.scales.scale_s = 3000,
    x.r.scales.descale_s = (double)*x.t.descale_s;
    expect_scaled(&x);
}

Test(cpu_narrow, casts_are_to_nearest_even_and_saturate)
{
    for (int type = 0; type < 2; type++) {
        const int32_t dtype = type ? FATTN_E5M2 : FATTN_E4M3;
        const int last = type ? 0x7b : 0x7e;
        for (int code = 0; code < last; code++) {
            const uint8_t low[4] = { (uint8_t)code }, high[4] = { (uint8_t)(code + 1) };
            const double a = number(low, dtype, 0), b = number(high, dtype, 0);
            cr_assert_eq((double)fattn__number_load(low, dtype, 0), a);
            cr_assert_eq((double)fattn__number_round(dtype, (float)a), a);
            cr_assert_eq((double)fattn__number_round(dtype, (float)((a + b) / 2)), code & 1 ? b : a,
                         "the tie after %x", code);
            cr_assert_eq((double)fattn__number_round(dtype, (float)(a * 0.49 + b * 0.51)), b,
                         "above the tie after %x", code);
            cr_assert_eq((double)fattn__number_round(dtype, -(float)(a * 0.51 + b * 0.49)), -a,
                         "below the tie after %x", code);
        }
        const float most = fattn__number_most(dtype);
        cr_assert_eq(fattn__number_round(dtype, 1e30f), most);
        cr_assert_eq(fattn__number_round(dtype, -INFINITY), -most);
        cr_assert(isnan(fattn__number_round(dtype, NAN)));
    }
}

Test(cpu_narrow, sixteen_bit_types_round_to_nearest_even)
{
    int64_t stride[4] = { 1, 1, 1, 1 };
    for (uint32_t code = 0; code < 0x7c00u;
         code++) { /* between each f16 and the next: the tie goes to the even one */
        uint16_t out = 0, low = (uint16_t)code, high = (uint16_t)(code + 1);
        float a, b, middle;
        fattn__view view = { .data = (char *)&low, .dtype = FATTN_F16, .stride = stride };
        fattn__view_load(&a, 1, &view, 0, 0, 0, 1, 1);
        view.data = (char *)&high;
        fattn__view_load(&b, 1, &view, 0, 0, 0, 1, 1);
        middle = code == 0x7bffu ? 65520.0f : (a + b) / 2;
        view.data = (char *)&out;
        fattn__view_store(&view, 0, 0, 0, 1, 1, &middle, 1);
        cr_assert_eq(out, code & 1u ? high : low, "code %x", code);
        fattn__view_store(&view, 0, 0, 0, 1, 1, &a, 1);
        cr_assert_eq(out, low, "code %x stays itself", code);
    }
}

/* ---- block-scaled
 * ----------------------------------------------------------------------------------------------------------------------
 */

Test(cpu_narrow, factors_of_blocks_lie_in_tiles_of_128_by_4)
{
    expect_block_scaled(FATTN_MXE4M3, false);
    expect_block_scaled(FATTN_MXE4M3, true);
    expect_block_scaled(FATTN_MXE5M2, false);
    each_line = true; /* forward */
    expect_block_scaled(FATTN_MXE4M3, true);
}

Test(cpu_narrow, where_factors_of_packed_tensors_lie_nobody_says)
{
    fattn_context *context = cpu_context(1);
    fattn_plan *plan = NULL;
    world x = make();
    x.p.dtype = FATTN_MXE4M3, x.p.padding = 1, x.p.ragged_bits = 32;
    cr_assert_eq(fattn_plan_create(&plan, context, &x.p, NULL), FATTN_UNSUPPORTED);
    cr_assert(strstr(fattn_last_error(), "block-scaled") != NULL, "%s", fattn_last_error());
    fattn_context_destroy(context);
}
