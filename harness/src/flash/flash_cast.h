/* The casts of a kernel: from a double to the nearest value of a narrow type (ties to even), or
 * toward zero. The results are values, not codes. */
#ifndef FACTS_FLASH_CAST_H
#define FACTS_FLASH_CAST_H

#include <fref/fref.h>
#include <math.h>
#include <string.h>

typedef struct facts_grid {
    int fraction_bits;
    double tiny, largest; /* smallest normal; largest finite */
    bool saturates;
} facts_grid;

static inline facts_grid facts_grid_of(fref_type type)
{
    static const facts_grid grids[] = { [FREF_F32] = { 23, 0x1p-126, 0x1.fffffep127, false },
                                        [FREF_F16] = { 10, 0x1p-14, 65504.0, false },
                                        [FREF_BF16] = { 7, 0x1p-126, 0x1.fep127, false },
                                        [FREF_E4M3] = { 3, 0x1p-6, 448.0, true },
                                        [FREF_E5M2] = { 2, 0x1p-14, 57344.0, true } };
    return grids[type];
}

/* The distance between neighbouring values around a finite x. */
static inline double facts_grid_step(facts_grid g, double x)
{
    uint64_t bits;
    double power;
    memcpy(&bits, &x, sizeof bits);
    bits &= UINT64_C(0x7FF) << 52;
    memcpy(&power, &bits, sizeof power);
    return (power > g.tiny ? power : g.tiny) / (double)(1 << g.fraction_bits);
}

static inline double facts_cast(facts_grid g, double x)
{
    if (!isfinite(x))
        return isnan(x) || !g.saturates ? x : copysign(g.largest, x);
    double magic = 0x1.8p52 * facts_grid_step(g, x), r = (x + magic) - magic;
    return fabs(r) <= g.largest ? r : g.saturates ? copysign(g.largest, x) : copysign(INFINITY, x);
}

static inline double facts_truncate(facts_grid g, double x)
{
    if (!isfinite(x))
        return facts_cast(g, x);
    double step = facts_grid_step(g, x), r = trunc(x / step) * step;
    return fabs(r) <= g.largest ? r : copysign(g.largest, x);
}

/* Rounds toward minus infinity. */
static inline double facts_floor(facts_grid g, double x)
{
    double r = facts_truncate(g, x);
    return isfinite(x) && r > x && fabs(r - facts_grid_step(g, x)) <= g.largest
               ? r - facts_grid_step(g, x)
               : r;
}

/* The type of the same size with fewer bits, to which a wrong kernel may round P or dS. */
static inline facts_grid facts_grid_coarser(facts_grid g)
{
    return facts_grid_of(g.saturates ? FREF_E5M2 : FREF_BF16);
}

#endif
