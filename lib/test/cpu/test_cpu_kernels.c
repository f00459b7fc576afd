#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/cpu_kernels.h"

/* Those that this machine can run. */
static int usable(const fattn__kernels *out[3])
{
    const fattn__kernels *best = fattn__cpu_kernels();
    int count = 0;
    out[count++] = &fattn__kernels_base;
    if (best != &fattn__kernels_base)
        out[count++] = &fattn__kernels_v3; /* a machine with the fourth has the third */
    if (best == &fattn__kernels_v4)
        out[count++] = &fattn__kernels_v4;
    return count;
}

static double ulps(float got, double want)
{
    if (want == 0)
        return got == 0 ? 0 : INFINITY;
    return fabs((double)got - want) / ldexp(1, ilogb(want) - 23);
}

Test(cpu_kernels, the_exponential_is_within_2_ulp)
{
    const fattn__kernels *kernels[3];
    const int count = usable(kernels);
    for (int k = 0; k < count; k++) {
        double worst = 0;
        for (float at = -87.3f; at < 88.7f;) {
            float x[16], y[16];
            for (int i = 0; i < 16; i++, at += 1.7e-4f)
                x[i] = y[i] = at;
            kernels[k]->exponential(y, 16, 0);
            for (int i = 0; i < 16; i++)
                worst = fmax(worst, ulps(y[i], exp((double)x[i])));
        }
        cr_expect_lt(worst, 2, "kernels %d: %g ulp", k, worst);
    }
}

Test(cpu_kernels, the_exponential_keeps_its_edges)
{
    const fattn__kernels *kernels[3];
    const int count = usable(kernels);
    const float poison = (union {
                             uint32_t bits;
                             float x;
                         }){ 0xffffffffu }
                             .x;
    for (int k = 0; k < count; k++) {
        float x[16] = { INFINITY, -INFINITY, NAN,   poison, 89, 88.7f, -87.4f,   -1000,
                        0,        -0.0f,     1e30f, -1e30f, 1,  -1,    0x1p-30f, 0 };
        kernels[k]->exponential(x, 16, 0);
        cr_expect_eq(x[0], INFINITY);
        cr_expect_eq(x[1], 0);
        cr_expect(isnan(x[2]));
        cr_expect(isnan(x[3]));
        cr_expect_eq(x[4], INFINITY);
        cr_expect(isfinite(x[5]));
        cr_expect_eq(x[6], 0);
        cr_expect_eq(x[7], 0);
        cr_expect_eq(x[8], 1);
        cr_expect_eq(x[9], 1);
        cr_expect_eq(x[10], INFINITY);
        cr_expect_eq(x[11], 0);
        cr_expect_eq(x[14], 1);
    }
}

Test(cpu_kernels, the_hyperbolic_tangent_is_within_4_ulp)
{
    const fattn__kernels *kernels[3];
    const int count = usable(kernels);
    for (int k = 0; k < count; k++) {
        double worst = 0;
        for (double at = -12; at < 12;) {
            float x[16], y[16];
            for (int i = 0; i < 16; i++, at += 3.1e-5)
                x[i] = (float)(at * fabs(at) / 12); /* closer together near 0 */
            kernels[k]->hyperbolic_tangent(y, x, 16);
            for (int i = 0; i < 16; i++)
                worst = fmax(worst, ulps(y[i], tanh((double)x[i])));
        }
        cr_expect_lt(worst, 4, "kernels %d: %g ulp", k, worst);
        float x[16] = { INFINITY, -INFINITY, NAN, -0.0f, 1e-30f, 1e30f };
        kernels[k]->hyperbolic_tangent(x, x, 16);
        cr_expect_eq(x[0], 1);
        cr_expect_eq(x[1], -1);
        cr_expect(isnan(x[2]));
        cr_expect(x[3] == 0 && signbit(x[3]));
        cr_expect_eq(x[4], 1e-30f);
        cr_expect_eq(x[5], 1);
    }
}

static float noise(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) * 0x1p-23f - 1;
}

/* Every remainder of rows and registers, steps of all kinds, and nothing beside c is touched. */
Test(cpu_kernels, products_of_every_shape_are_sums_of_products)
{
    enum { MOST = 160 };
    static float a[MOST * MOST], b[MOST * MOST], c[MOST * MOST], before[MOST * MOST];
    const fattn__kernels *kernels[3];
    const int count = usable(kernels);
    unsigned seed = 1;
    for (int i = 0; i < MOST * MOST; i++)
        a[i] = noise(&seed), b[i] = noise(&seed);
    for (int k = 0; k < count; k++)
        for (int m = 1; m <= 14; m++)
            for (int n = 16; n <= 112; n += 16)
                for (int trial = 0; trial < 4; trial++) {
                    const int64_t depth = (int64_t[]){ 1, 7, 128, 150 }[trial];
                    const bool turned = trial % 2, more = m % 2;
                    for (int i = 0; i < MOST * MOST; i++)
                        c[i] = before[i] = noise(&seed);
                    const fattn__product p = {
                        c, a,     b,    MOST, turned ? 1 : MOST, turned ? MOST : 1, MOST, m,
                        n, depth, 0.5f, more
                    };
                    kernels[k]->multiply(&p);
                    for (int i = 0; i < 20; i++)
                        for (int j = 0; j < MOST; j++) {
                            double want =
                                more || i >= m || j >= n ? (double)before[i * MOST + j] : 0;
                            for (int64_t d = 0; i < m && j < n && d < depth; d++)
                                want += 0.5 * (double)a[i * p.a_row + d * p.a_column] *
                                        (double)b[d * MOST + j];
                            cr_assert_float_eq(c[i * MOST + j], want, 2e-5,
                                               "kernels %d m %d n %d k %d: %d,%d", k, m, n,
                                               (int)depth, i, j);
                        }
                }
}

Test(cpu_kernels, what_is_not_finite_is_seen_wherever_it_stands)
{
    const fattn__kernels *kernels[3];
    const int count = usable(kernels);
    const float bad[] = { NAN, INFINITY, -INFINITY };
    for (int k = 0; k < count; k++)
        for (int n = 1; n < 40; n++) {
            float x[40] = { 0 };
            cr_assert(kernels[k]->is_finite(x, n));
            for (int i = 0; i < n; i++) {
                x[i] = bad[i % 3];
                cr_assert_not(kernels[k]->is_finite(x, n), "kernels %d: %d of %d", k, i, n);
                x[i] = 3e38f;
            }
        }
}
