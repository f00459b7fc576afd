/* The reference against plain loops in long double, element by element, value and error model. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "answers.h"
#include "modifications.h"
#include "naive_reference.h"

#define RELATIVE 1e-12

static double worst;

/* |got - want| relative to `size`, the magnitude of what was added. */
static bool agrees(double got, long double want, long double size)
{
    if (isinf(want))
        return got == (double)want;
    long double error = fabsl((long double)got - want);
    if (error == 0)
        return true;
    long double ratio = error / (RELATIVE * fmaxl(fabsl(want), size));
    worst = fmax(worst, (double)ratio);
    return ratio <= 1;
}

static void expect_equal(const char *what, const naive_tensor *want, const double *value,
                         const double *sigma, const double *bound)
{
    for (int64_t i = 0; i < want->count; i++) {
        cr_assert(agrees(value[i], want->value[i], want->size[i]),
                  "%s[%ld] is %.17g, should be %.17Lg", what, (long)i, value[i], want->value[i]);
        if (sigma)
            cr_assert(agrees(sigma[i], want->sigma[i], 0),
                      "sigma of %s[%ld] is %.17g, should be %.17Lg", what, (long)i, sigma[i],
                      want->sigma[i]);
        if (bound)
            cr_assert(agrees(bound[i], want->bound[i], 0),
                      "bound of %s[%ld] is %.17g, should be %.17Lg", what, (long)i, bound[i],
                      want->bound[i]);
    }
}

static void expect_all_equal(const data *d, const fref_rounding *rounding)
{
    answers got;
    naive_answers want;
    answers_create(&got, d, rounding);
    naive_create(&want, d, rounding);
    expect_equal("O", &want.o, got.f.o.value, got.f.o.sigma, got.f.o.bound);
    expect_equal("LSE", &want.lse, got.f.lse, NULL, got.f.lse_tau);
    expect_equal("Max", &want.max, got.f.max, NULL, got.f.max_tau);
    expect_equal("Sum_exp", &want.sum_exp, got.f.sum_exp, NULL, NULL);
    expect_equal("dQ", &want.dq, got.g.dq.value, got.g.dq.sigma, got.g.dq.bound);
    expect_equal("dK", &want.dk, got.g.dk.value, got.g.dk.sigma, got.g.dk.bound);
    expect_equal("dV", &want.dv, got.g.dv.value, got.g.dv.sigma, got.g.dv.bound);
    expect_equal("dBias", &want.dbias, got.g.dbias.value, got.g.dbias.sigma, got.g.dbias.bound);
    expect_equal("dSink", &want.dsink, got.g.dsink, NULL, got.g.dsink_bound);
    naive_destroy(&want);
    answers_destroy(&got);
}

static void check(const fref_problem *p, fref_type type, data_fill fill, uint64_t seed)
{
    data d;
    data_create(&d, p, type, fill, seed);
    data_answer(&d);
    fref_rounding rounding = fref_rounding_of(type, type);
    expect_all_equal(&d, &rounding);
    data_destroy(&d);
}

/* The masks: nothing, causal, windows on either side, both corners. */
static void set_mask(fref_problem *p, int mask)
{
    static const struct {
        bool has_left, has_right, bottom_right;
        int64_t left, right;
    } masks[] = {
        { 0 },
        { .has_right = true },
        { .has_right = true, .bottom_right = true },
        { .has_left = true, .has_right = true, .left = 5, .right = 2 },
        { .has_left = true, .has_right = true, .bottom_right = true, .left = 1, .right = 0 },
        { .has_left = true, .left = 3 },
        { .has_right = true, .right = -4 },
        { .has_left = true, .has_right = true, .left = INT64_MAX, .right = INT64_MAX }
    };
    p->has_left = masks[mask].has_left;
    p->has_right = masks[mask].has_right;
    p->bottom_right = masks[mask].bottom_right;
    p->left = masks[mask].left;
    p->right = masks[mask].right;
}

Test(naive, agrees_for_every_mask_with_and_without_lengths)
{
    static const int64_t heads[][3] = {
        { 4, 1, 4 }, { 4, 4, 2 }, { 6, 2, 3 }, { 2, 2, 2 }, { 8, 4, 2 }
    };
    const int32_t len_q[] = { 19, 0, 7 }, len_kv[] = { 23, 11, 0 };
    for (int mask = 0; mask < 7; mask++)
        for (int lengths = 0; lengths < 2; lengths++) {
            fref_problem p = dense_problem(3, heads[mask % 5][0], 1, 19, 23, 8, 5);
            p.heads_k = heads[mask % 5][1];
            p.heads_v = heads[mask % 5][2];
            set_mask(&p, mask);
            p.len_q = lengths ? len_q : NULL;
            p.len_kv = lengths ? len_kv : NULL;
            check(&p, (fref_type)(mask % 3), (data_fill)((mask + lengths) % FILL_COUNT),
                  (uint64_t)(mask * 2 + lengths + 1));
        }
    printf("worst error %.3g of the tolerance of %g\n", worst, RELATIVE);
}

Test(naive, agrees_for_every_type_fill_and_size_around_a_tile)
{
    static const int64_t sizes[][2] = { { 1, 1 }, { 1, 130 }, { 33, 129 }, { 65, 16 }, { 70, 65 } };
    for (int type = 0; type < 3; type++)
        for (int fill = 0; fill < FILL_COUNT; fill++)
            for (int size = 0; size < 5; size++) {
                fref_problem p = dense_problem(1, 1, 1, sizes[size][0], sizes[size][1],
                                               size == 2 ? 40 : 16, size == 3 ? 33 : 16);
                set_mask(&p, size == 3 ? 2 : size == 4 ? 1 : 0);
                check(&p, (fref_type)type, (data_fill)fill, (uint64_t)(size + 11));
            }
    printf("worst error %.3g of the tolerance of %g\n", worst, RELATIVE);
}

Test(naive, agrees_for_every_rounding_setting)
{
    fref_problem p = dense_problem(1, 2, 1, 20, 30, 48, 40);
    data d;
    data_create(&d, &p, FREF_F16, FILL_STAIR, 5);
    data_answer(&d);
    fref_rounding r = { .in = FREF_F16,
                        .out = FREF_F32,
                        .ua = 0x1p-13,
                        .chunk = 32,
                        .cw = 4,
                        .cl = 6,
                        .acc_pv = 0.005,
                        .acc_run = 100,
                        .eps_exp = 1e-4 };
    expect_all_equal(&d, &r);
    r.partials_cast = true;
    r.own_o = true;
    r.acc_pv = 0;
    expect_all_equal(&d, &r);
    data_destroy(&d);
}

Test(naive, agrees_for_any_stride_and_for_broadcasts)
{
    fref_problem p = dense_problem(2, 2, 2, 7, 9, 8, 8);
    data d;
    data_create(&d, &p, FREF_F32, FILL_GAUSS, 3);
    int64_t bshd[4] = { 2 * 7 * 8, 8, 2 * 8, 1 };
    for (int n = 0; n < 4; n++)
        d.q.stride[n] = d.d_o.stride[n] = bshd[n];
    d.k.stride[0] = 0;
    d.v.stride[1] = 0;
    d.v.stride[2] = 1; /* channels outermost */
    d.v.stride[3] = 9;
    data_answer(&d);
    fref_rounding r = fref_rounding_of(FREF_F32, FREF_F32);
    expect_all_equal(&d, &r);
    d.k.stride[2] = 0; /* all keys equal */
    data_answer(&d);
    expect_all_equal(&d, &r);
    data_destroy(&d);
}

Test(naive, agrees_with_bias_and_modification)
{
    const int32_t len_q[] = { 30, 11 }, len_kv[] = { 37, 4 };
    const int64_t dims[6][4] = { { 1, 1, 33, 40 }, { 1, 4, 33, 40 }, { 2, 1, 33, 40 },
                                 { 2, 4, 33, 40 }, { 2, 1, 1, 40 },  { 1, 4, 1, 40 } };
    for (mod_kind mod = MOD_NONE; mod < MOD_COUNT; mod++)
        for (int bias = 0; bias < 7; bias++) {
            fref_problem p = dense_problem(2, 4, 2, 33, 40, 16, 24);
            set_mask(&p, (bias + (int)mod) % 4);
            p.len_q = bias % 3 == 2 ? len_q : NULL;
            p.len_kv = bias % 3 == 2 ? len_kv : NULL;
            p.modify = mod == MOD_NONE ? NULL : modify_exactly;
            p.modify_owner = &mod;
            data d;
            data_create(&d, &p, bias % 2 ? FREF_BF16 : FREF_F16, FILL_GAUSS, (uint64_t)(70 + bias));
            if (bias < 6)
                data_bias(&d, dims[bias], bias == 3 ? FREF_F32 : d.type, 2.0);
            for (int64_t j = 0; bias == 1 && j < 40; j += 4)
                for (int64_t i = 0; i < 33; i++)
                    set_element(&d.bias, 0, j % 3, i, j, i == 5 ? -INFINITY : -3e4);
            for (int64_t j = 0; bias == 5 && j < 40; j++)
                set_element(&d.bias, 0, 2, 0, j, -INFINITY); /* a head without keys */
            data_answer(&d);
            fref_rounding r = fref_rounding_of(d.type, d.type);
            r.eps_mod = bias % 2 ? 1e-4 : 0.0;
            r.bias = bias == 3 ? FREF_F32 : d.type;
            r.own_o = bias != 0;
            expect_all_equal(&d, &r);
            data_destroy(&d);
        }
}

Test(naive, agrees_with_dropout_sink_and_alibi)
{
    const int32_t len_q[] = { 30, 11 }, len_kv[] = { 37, 4 };
    const float sink[] = { 1.5F, -INFINITY, 30.0F, -0.25F };
    const double alibi[] = { 0.25, -0.5, 0.0, 0.0625 };
    uint8_t keep[2 * 4 * 33 * 40];
    uint64_t state = 12;
    for (size_t n = 0; n < sizeof keep; n++)
        keep[n] = random_bits(&state) % 4 != 0;
    for (int what = 1; what < 16; what++) {
        fref_problem p = dense_problem(2, 4, 2, 33, 40, 16, 24);
        mod_kind mod = MOD_SOFTCAP;
        set_mask(&p, what % 5);
        p.len_q = what % 3 == 2 ? len_q : NULL;
        p.len_kv = what % 3 == 2 ? len_kv : NULL;
        p.sink = what & 1 ? sink : NULL;
        p.keep = what & 2 ? keep : NULL;
        p.keep_scale = 4.0 / 3.0;
        p.alibi = what & 4 ? alibi : NULL;
        p.modify = what & 8 ? modify_exactly : NULL;
        p.modify_owner = &mod;
        data d;
        data_create(&d, &p, (fref_type)(what % 3), FILL_GAUSS, (uint64_t)(170 + what));
        if (what & 8)
            data_bias(&d, (int64_t[]){ 1, 4, 33, 40 }, FREF_F16, 2.0);
        for (int64_t j = 0; (what & 8) && j < 40; j++)
            set_element(&d.bias, 0, 0, 7, j, -INFINITY); /* dead but for its sink */
        data_answer(&d);
        fref_rounding r = fref_rounding_of(d.type, d.type);
        r.p_normalised = what % 4 == 1;
        r.own_o = what != 7;
        r.eps_exp = what == 5 ? 1e-4 : 0.0;
        expect_all_equal(&d, &r);
        data_destroy(&d);
    }
}

Test(naive, agrees_in_8_bit_types_with_scales)
{
    for (int what = 0; what < 12; what++) {
        fref_problem p = dense_problem(2, 4, 2, 19, 40, 48, 24);
        const fref_type in = what % 2 ? FREF_E5M2 : FREF_E4M3, out = what % 3 == 2 ? FREF_BF16
                                                                     : what % 3    ? FREF_E5M2
                                                                                   : FREF_E4M3;
        set_mask(&p, what % 4);
        p.scales = (fref_scales){ .scale_s = 301.5,
                                  .descale_s = 0.0041,
                                  .scale_dp = 0.77,
                                  .descale_dp = 1.9,
                                  .scale_o = 3.3 };
        if (what % 4 == 3) /* everything saturates somewhere */
            p.scales = (fref_scales){ .scale_o = 90000.0,
                                      .scale_dq = 1e7,
                                      .scale_dk = 1e6,
                                      .scale_dv = 5e5,
                                      .scale_s = 16.0,
                                      .scale_dp = 4e5 };
        data d;
        data_create(&d, &p, in, (data_fill)(what % FILL_COUNT), (uint64_t)(300 + what));
        d.q.descale = 0.7;
        d.k.descale = 1.3;
        d.v.descale = what % 5 ? 0.21 : 0.0;
        d.o.descale = 0.013;
        d.d_o.descale = 1.7;
        data_answer(&d);
        fref_rounding r = fref_rounding_of(in, out);
        r.partials_cast = what == 5;
        r.ds = what % 5 < 3 ? FREF_E5M2 : FREF_E4M3;
        r.coherent = what % 8; /* bits of fref_gradient */
        expect_all_equal(&d, &r);
        data_destroy(&d);
    }
}

Test(naive, agrees_when_stats_declare_rows_dead_or_the_scale_is_negative_or_large)
{
    fref_problem p = dense_problem(1, 2, 2, 40, 70, 8, 8);
    static const double scales[] = { 0.3, -0.7, 4.0 };
    for (int n = 0; n < 3; n++) {
        p.scale = scales[n];
        p.has_right = true;
        data d;
        data_create(&d, &p, FREF_BF16, FILL_GAUSS, 8);
        data_answer(&d);
        for (int64_t i = 0; i < 40; i += 3)
            set_element(&d.stats, 0, i % 2, i, 0, -INFINITY);
        fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
        expect_all_equal(&d, &r);
        data_destroy(&d);
    }
}

Test(keys_of_row, are_what_the_mask_keeps)
{
    const int32_t len_q[] = { 12, 5, 0, 12 }, len_kv[] = { 15, 3, 9, 0 };
    for (int mask = 0; mask < 8; mask++)
        for (int lengths = 0; lengths < 2; lengths++) {
            fref_problem p = dense_problem(4, 1, 1, 12, 15, 8, 8);
            set_mask(&p, mask);
            p.len_q = lengths ? len_q : NULL;
            p.len_kv = lengths ? len_kv : NULL;
            if (mask == 7)
                p.left = p.right =
                    1000; /* as wide as everything: the naive sum must not overflow */
            for (int64_t b = 0; b < 4; b++)
                for (int64_t i = 0; i < 12; i++) {
                    int64_t first, last;
                    fref_problem wide = p;
                    if (mask == 7)
                        wide.left = wide.right = INT64_MAX;
                    fref_keys_of_row(&wide, b, i, &first, &last);
                    for (int64_t j = 0; j < 15; j++)
                        cr_assert_eq(j >= first && j < last, naive_keeps(&p, b, i, j),
                                     "mask %d b %ld i %ld j %ld", mask, (long)b, (long)i, (long)j);
                }
        }
}
