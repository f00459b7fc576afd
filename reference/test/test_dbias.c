/* Elements of dBias as engines gave them: the error model allows them, and no less than it says. */
#include <criterion/criterion.h>
#include <math.h>

#include "problems.h"

/* One row and one key, so P = 1 and D = 0: dX is dO v. */
typedef struct element_of {
    const char *what;
    int64_t batch, heads, entries; /* entries of dBias; 1: all of the batch are summed */
    fref_type type;
    double scale, part[2][4], came;
    bool cast, allowed; /* the model: parts are cast before they are summed */
} element_of;

/* An H200 rounded them, summed over b, rounded, summed over h, rounded. */
#define AFTER_EACH                                                                                 \
    "rounded after each dimension", 2, 4, 1, FREF_BF16, 1.0,                                       \
        { { -4.27683517e-05, 6.50241423e-06, -5.04978239e-04, -3.42435040e-05 },                   \
          { -7.60348703e-06, 5.02437102e-04, -2.85281128e-05, 1.06104845e-05 } },                  \
        -9.298324584960938e-05
/* An H100's with attn_scale 1/sqrt(128), which no sum touches: 190 units where 189 are the nearest.
 * A power of two allows one cast, any other scale two. */
#define SCALED(scale)                                                                              \
    "rounded with the scale", 1, 1, 1, FREF_BF16, scale, { { -0.0115233702 } }, -0.0115966796875
/* An H200's with attn_scale 1/sqrt(32): each part is rounded twice, and then the sum. */
#define SCALED_PARTS                                                                               \
    "parts rounded with the scale", 2, 1, 1, FREF_BF16, 0.17677669529663687,                       \
        { { 0.06200635 }, { -0.13358304 } }, -0.0703125
/* An H200's with attn_scale 1/8: 107 units of 2^-21, which are f16's smallest over attn_scale. Below
 * the least normal number a power of two rounds twice as well. */
#define SUBNORMAL(entries, sum)                                                                    \
    "subnormal with the scale", 2, 1, entries, FREF_F16, 0.125,                                    \
        { { 5.12578998e-05 }, { 5.12578998e-05 } }, sum * 5.10215759e-05

static const element_of elements[] = { { AFTER_EACH, true, true },
                                       { AFTER_EACH, false, false },
                                       { SCALED(0.08838834764831845), true, true },
                                       { SCALED(0.125), true, false },
                                       { SCALED_PARTS, true, true },
                                       { SUBNORMAL(1, 2), true, true },
                                       { SUBNORMAL(1, 2), false, false },
                                       { SUBNORMAL(2, 1), true, true },
                                       { SUBNORMAL(2, 1), false, false } };

Test(dbias, of_an_engine_is_allowed_as_it_was_rounded)
{
    for (size_t n = 0; n < sizeof elements / sizeof *elements; n++) {
        const element_of *x = &elements[n];
        const fref_problem p = dense_problem(x->batch, x->heads, x->heads, 1, 1, 1, 1);
        data d;
        data_create(&d, &p, FREF_F32, FILL_GAUSS, 1);
        data_bias(&d, (int64_t[]){ x->entries, 1, 1, 1 }, x->type, 0.0);
        d.problem.scale = x->scale;
        for (int64_t b = 0; b < x->batch; b++)
            for (int64_t h = 0; h < x->heads; h++) {
                set_element(&d.q, b, h, 0, 0, 0.0);
                set_element(&d.v, b, h, 0, 0, 1.0);
                set_element(&d.d_o, b, h, 0, 0, x->part[b][h]);
            }
        double value[2], sigma[2], bound[2];
        const fref_backward_out out = { .dbias = { value, sigma, bound },
                                        .dbias_dim = { x->entries, 1, 1, 1 } };
        fref_rounding r = fref_rounding_of(FREF_F32, FREF_F32);
        r.bias = x->type;
        r.bias_parts_cast = x->cast;
        cr_assert_eq(fref_backward(&d.problem, &d.q, &d.k, &d.v, &d.o, &d.stats, &d.d_o, &r, &out),
                     0);
        const double z = sqrt(2.0 * log(2.0 / 1e-8)),
                     ratio = fabs(x->came - value[0]) / fmin(bound[0], z * sigma[0]); /* T1 */
        cr_expect_eq(ratio <= 1.0, x->allowed, "%s, parts cast %d, %d entries: %g", x->what,
                     x->cast, (int)x->entries, ratio);
        data_destroy(&d);
    }
}
