/* The reference against plain loops in long double, element by element, value and error model. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "answers.h"
#include "drawn.h"
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

/* Masks, lengths, groups, types, fills, roundings: drawn.c. */
static void sweep(feature with, uint64_t count, const size_limits *most)
{
    for (uint64_t seed = 1; seed <= count; seed++) {
        drawn x;
        drawn_create(&x, with, seed, most);
        expect_all_equal(&x.data, &x.rounding);
        drawn_destroy(&x);
    }
    printf("%s: worst error %.3g of the tolerance of %g\n", feature_words[with], worst, RELATIVE);
}

Test(naive, agrees_with_every_feature)
{
    static const size_limits small = { .batch = 2, .heads = 4, .seq = 40, .dim = 40 };
    for (feature with = FEATURE_ANY; with < FEATURE_STEEP; with++) /* not where doubles underflow */
        if (feature_words[with] != NULL && with != FEATURE_APART)
            sweep(with, 8, &small);
}

Test(naive, agrees_for_sizes_around_a_tile)
{
    static const size_limits large = { .batch = 1, .heads = 1, .seq = 140, .dim = 40 };
    sweep(FEATURE_BAND, 12, &large);
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
