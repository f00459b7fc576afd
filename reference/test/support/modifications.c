#include "modifications.h"

#include <math.h>

const char *const mod_words[MOD_COUNT] = { "none",   "softcap", "temperature",
                                           "relpos", "causal",  "stripes" };

#define CAP 3.0
#define TEMPERATURE 0.7
#define SLOPE 0.11

/* Stripes leave row 2 without a key. */
static bool visible(mod_kind kind, const int64_t at[4])
{
    return kind == MOD_CAUSAL ? at[3] <= at[2]
                              : kind != MOD_STRIPES || (at[2] != 2 && (at[3] + at[2]) % 3 != 0);
}

fref_modified modify_exactly(const void *owner, double s, const int64_t at[4])
{
    const mod_kind kind = *(const mod_kind *)owner;
    fref_modified m = { .value = s, .slope = 1.0 };
    double t, by = (double)(float)TEMPERATURE,
              offset = (double)(float)SLOPE * (double)(at[3] - at[2]);
    switch (kind) {
    case MOD_SOFTCAP:
        t = tanh(s / CAP);
        m.value = CAP * t;
        m.slope = 1.0 - t * t;
        m.curvature = -2.0 * t * m.slope / CAP;
        m.rounded = fabs(m.slope * s) + 3.0 * fabs(m.value);
        m.approximated = fabs(m.value);
        m.slope_rounded = 2.0 * fabs(t * m.slope * s / CAP) + 5.0 * t * t + 1.0;
        m.slope_approximated = 2.0 * t * t;
        break;
    case MOD_TEMPERATURE:
        m.value = s / by;
        m.slope = 1.0 / by;
        m.rounded = 2.0 * fabs(m.value);
        m.slope_rounded = 2.0 / by;
        break;
    case MOD_RELPOS:
        m.value = s + offset;
        m.rounded = fabs(offset) + fabs(m.value);
        break;
    default:
        m.value = visible(kind, at) ? s : -INFINITY;
        m.slope = visible(kind, at);
    }
    return m;
}
