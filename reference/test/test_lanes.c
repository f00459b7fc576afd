/* exp of eight at a time against the C library's in long double; what is done to entries against
 * plain loops. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lanes.h"
#include "problems.h"

Test(lanes, exp_is_within_one_unit_in_the_last_place)
{
    enum { COUNT = 1 << 16 };
    static double x[COUNT], y[COUNT];
    static const double ranges[][2] = { { -1, 1 }, { -40, 0 }, { -708, 709 }, { -1e-3, 1e-3 } };
    uint64_t state = 3;
    double worst = 0.0;
    for (int range = 0; range < 4; range++) {
        for (int n = 0; n < COUNT; n++)
            x[n] = ranges[range][0] + (ranges[range][1] - ranges[range][0]) *
                                          (double)(random_bits(&state) >> 11) * 0x1p-53;
        fref__exp(y, x, COUNT);
        for (int n = 0; n < COUNT; n++) {
            long double want = expl(x[n]);
            double unit = ldexp(1.0, ilogb((double)want) - 52);
            worst = fmax(worst, (double)(fabsl(y[n] - want) / unit));
        }
    }
    printf("exp: worst %.3f units in the last place\n", worst);
    cr_expect_leq(worst, 1.0);
}

Test(lanes, exp_at_its_ends)
{
    const double x[] = {
        0.0, -0.0, INFINITY, -INFINITY, NAN, 710.0, -746.0, 1e300, -1e300, -745.0
    };
    const double want[] = { 1.0, 1.0, INFINITY, 0.0, NAN, INFINITY, 0.0, INFINITY, 0.0, 0x1p-1074 };
    double y[10];
    fref__exp(y, x, 10);
    for (int n = 0; n < 10; n++)
        cr_expect(isnan(want[n]) ? isnan(y[n]) : y[n] == want[n], "exp(%g) is %g", x[n], y[n]);
}

/* Every length, so that what is left over after whole eights is seen. */
Test(lanes, rows_of_every_length_are_scaled_measured_and_exponentiated)
{
    uint64_t state = 5;
    for (int64_t n = 1; n < 40; n++) {
        double x[40], e[40], max = -INFINITY, magnitude = 0.0, sum = 0.0, squares = 0.0, pull = 0.0;
        for (int64_t k = 0; k < n; k++) {
            x[k] = random_normal(&state);
            e[k] = -1.5 * x[k];
            max = fmax(max, e[k]);
            magnitude = fmax(magnitude, fabs(e[k]));
        }
        const fref__extremes found = fref__scale(x, n, -1.5);
        cr_expect(found.max == max && found.magnitude == magnitude);
        for (int64_t k = 0; k < n; k++) {
            double p = exp(e[k] - max);
            sum += p;
            squares += p * p;
            pull += p * fabs(e[k]);
        }
        const fref__exp_sums sums = fref__exponentiate(x, n, max);
        cr_expect_float_eq(sums.sum, sum, 1e-14 * sum);
        cr_expect_float_eq(sums.squares, squares, 1e-14 * squares);
        cr_expect_float_eq(sums.pull, pull, 1e-14 * pull);
        for (int64_t k = 0; k < n; k++)
            cr_expect_float_eq(x[k], exp(e[k] - max), 1e-15);
        x[n / 2] = NAN;
        cr_expect(isnan(fref__scale(x, n, 1.0).max));
    }
}

/* What fills the last eight is no key, however low (or high) all keys are. */
Test(lanes, scores_far_below_zero_are_exponentiated_alone)
{
    const double maxima[] = { -1e5 - 1398.0, -3e9, -1e300, 0.0, 3e9, 1e300 };
    for (int64_t n = 1; n < 18; n++)
        for (int m = 0; m < 6; m++) {
            double x[18];
            for (int64_t k = 0; k < n; k++)
                x[k] = maxima[m];
            const fref__exp_sums sums = fref__exponentiate(x, n, maxima[m]);
            cr_expect(sums.sum == (double)n && sums.squares == (double)n, "%g, %lld keys: %g",
                      maxima[m], (long long)n, sums.sum);
            cr_expect_float_eq(sums.pull, (double)n * fabs(maxima[m]),
                               1e-15 * (double)n * fabs(maxima[m]));
        }
}

Test(lanes, entries_of_every_length_are_weighed)
{
    uint64_t state = 6;
    const fref__entry_terms t = { .relative = 0.01,
                                  .of_p = 0.02,
                                  .floor = 0.001,
                                  .var_ds = 0.1,
                                  .var_p = 0.2,
                                  .var_floor = 0.3,
                                  .limit = 0.05,
                                  .v_relative = 0.03,
                                  .v_floor = 0.004,
                                  .v_var = 0.5,
                                  .v_var_floor = 0.6,
                                  .v_limit = 0.2 };
    for (int64_t n = 1; n < 26; n++) {
        double s[26], dp[26], out[9][26];
        fref__entry_weights w = { out[2], out[3], out[4], out[5], out[6],
                                  out[7], out[8], false,  false };
        bool lost = false, v_lost = false;
        for (int64_t k = 0; k < n; k++) {
            s[k] = 3.0 * random_normal(&state);
            dp[k] = random_normal(&state);
        }
        memcpy(out[0], dp, sizeof dp);
        fref__entries(out[1], out[0], s, n,
                      &(fref__entry_row){ .scale = 0.5, .stats = 1.0, .delta = 0.25 });
        fref__weigh(&w, out[1], out[0], n, &t);
        for (int64_t k = 0; k < n; k++) {
            double p = exp(0.5 * s[k] - 1.0), ds = p * (dp[k] - 0.25), size = fabs(ds);
            double want[9] = { ds,
                               p,
                               size,
                               0.01 * size + 0.02 * p + 0.001,
                               0.1 * ds * ds + 0.2 * p * p + 0.3,
                               size < 0.05 ? ds : 0.0,
                               0.03 * p + 0.004,
                               0.5 * p * p + 0.6,
                               p < 0.2 ? p : 0.0 };
            for (int m = 0; m < 9; m++)
                cr_expect_float_eq(out[m][k], want[m], 1e-14 * (1.0 + fabs(want[m])),
                                   "array %d, %ld of %ld", m, (long)k, (long)n);
            lost |= size < 0.05;
            v_lost |= p < 0.2;
        }
        cr_expect(w.any_lost == lost && w.any_v_lost == v_lost);
    }
}
