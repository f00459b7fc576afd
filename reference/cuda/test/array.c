#include "array.h"

#include <math.h>
#include <stdio.h>

/* What is allowed: of the sums' magnitude for answers, of the value for sigmas, bounds and what
 * else only adds up. Beyond it, what double arithmetic makes of the conditioning: 2^-52 of the
 * largest |q||k| in every probability, 2^-52 over the slope where a soft cap saturates, and 2^-29
 * of an answer's bound, which is at least 2^-23 of what cancels in it. */
#define ALLOWED 1e-12

static double allowed_of(const array *a, int64_t n, double conditioning)
{
    const double size = fabs(a->expected[n]),
                 sums = a->bound ? fmax(size, a->bound[n] / a->unit) : size;
    return (ALLOWED + conditioning) * sums + (a->bound ? 0x1p-29 * a->bound[n] : 0.0) +
           1e-300; /* where doubles are subnormal */
}

/* What rounding may do to the weights of a row, relative: a gradient that cancels is made of noise.
 */
static double noise(const array *a, int64_t row)
{
    double largest = 0.0, bound = 0.0;
    for (int64_t n = 0; a->of && n < a->width; n++) {
        largest = fmax(largest, fabs(a->of->expected[row * a->width + n]));
        bound = fmax(bound, a->of->bound[row * a->width + n]);
    }
    return a->of ? 1e-8 * bound / largest : 0.0;
}

void compare_array(const array *a, double conditioning, uint64_t seed, tally *t)
{
    double worst = 0.0;
    int64_t at = -1;
    for (int64_t n = 0; n < a->count; n++) {
        double e = a->expected[n], g = a->got[n], ratio = 0.0;
        if (isinf(e) || g == e)
            ratio = g == e ? 0.0 : INFINITY;
        else
            ratio = fabs(g - e) / (allowed_of(a, n, conditioning) + noise(a, n) * fabs(e));
        if (!(ratio <= worst)) {
            worst = ratio;
            at = n;
        }
        if (isnan(ratio))
            break;
    }
    t->worst = isnan(worst) || worst > t->worst ? worst : t->worst;
    if (worst <= 1.0)
        return;
    t->wrong++;
    printf("seed %llu: %s[%lld of %lld]: %.17g, not %.17g (%.3g times what is allowed)\n",
           (unsigned long long)seed, a->name, (long long)at, (long long)a->count, a->got[at],
           a->expected[at], worst);
}
