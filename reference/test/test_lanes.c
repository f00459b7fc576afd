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
