#include "scalars.h"

#include <math.h>

/* Outputs of ordinary values are then near what their type holds. */
#define TIGHTER 100.0

/* Scales of fp8. Odd scales are all different, and neither 1 nor powers of two. A scale times its
 * descale is not 1, except for O, because a backward reads O as its own forward wrote it. S's scale
 * is a number of both types: P is 1 for the largest key of a row, and the cast of another number
 * would have the same relative error in every row. Large: P scaled to half of what its type holds,
 * so that an exponential above 2 saturates; the rest is odd. Tight: the largest outputs saturate. */
static double scale_of(const facts_problem *p, facts_array_id id)
{
    static const struct {
        facts_array_id id;
        double pow2, odd;
    } rows[] = {
        { FACTS_ARRAY_DESCALE_Q, 0x1p-4, 0.0713 },  { FACTS_ARRAY_DESCALE_K, 0x1p-3, 0.1129 },
        { FACTS_ARRAY_DESCALE_V, 0x1p-5, 0.0851 },  { FACTS_ARRAY_DESCALE_S, 0x1p-7, 0.00613 },
        { FACTS_ARRAY_SCALE_S, 0x1p7, 160.0 },      { FACTS_ARRAY_SCALE_O, 0x1p3, 11.7 },
        { FACTS_ARRAY_DESCALE_DO, 0x1p-6, 0.0457 }, { FACTS_ARRAY_DESCALE_DP, 0x1p-4, 0.0549 },
        { FACTS_ARRAY_SCALE_DP, 0x1p4, 19.3 },      { FACTS_ARRAY_SCALE_DQ, 0x1p2, 5.3 },
        { FACTS_ARRAY_SCALE_DK, 0x1p1, 3.7 },       { FACTS_ARRAY_SCALE_DV, 0x1p5, 7.1 },
    };
    const double most = p->ask.dtype == FATTN_E5M2 ? 28672.0 : 224.0;
    if (p->scales == FACTS_SCALES_LARGE && id == FACTS_ARRAY_SCALE_S)
        return most;
    if (p->scales == FACTS_SCALES_LARGE && id == FACTS_ARRAY_DESCALE_S)
        return 1.09 / most;
    const bool stored = id == FACTS_ARRAY_SCALE_O || id == FACTS_ARRAY_SCALE_DQ ||
                        id == FACTS_ARRAY_SCALE_DK || id == FACTS_ARRAY_SCALE_DV;
    const double tight = p->scales == FACTS_SCALES_TIGHT && stored ? TIGHTER * most / 224.0 : 1.0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == id)
            return p->scales == FACTS_SCALES_UNIT   ? 1.0
                   : p->scales == FACTS_SCALES_POW2 ? rows[i].pow2
                                                    : rows[i].odd * tight;
    return 1.0;
}

double facts_array_scalar(const facts_problem *p, facts_array_id id)
{
    switch (id) {
    case FACTS_ARRAY_ATTN_SCALE:
        return (double)(float)(0.75 / sqrt((double)p->ask.dim_qk));
    case FACTS_ARRAY_DROPOUT_SCALE:
        return (double)(float)(1.0 / (1.0 - p->drop));
    case FACTS_ARRAY_DROPOUT_SCALE_INVERSE:
        return (double)(float)(1.0 - p->drop);
    case FACTS_ARRAY_DESCALE_O:
        return facts_is_fp8(p->ask.o_dtype)
                   ? (double)(float)(1.0 / facts_array_scalar(p, FACTS_ARRAY_SCALE_O))
                   : 1.0;
    default:
        return (double)(float)scale_of(p, id);
    }
}

double facts_keep_scale_of(const facts_problem *p)
{
    return p->ask.dropout_mask ? facts_array_scalar(p, FACTS_ARRAY_DROPOUT_SCALE)
                               : (double)(float)(1.0 / (1.0 - p->ask.dropout));
}

double facts_oracle_scale(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    if (ask->scale_in_memory)
        return facts_array_scalar(problem, FACTS_ARRAY_ATTN_SCALE);
    return (double)(float)(ask->has_attn_scale ? ask->attn_scale : 1.0 / sqrt((double)ask->dim_qk));
}

double facts_mod_slope(int64_t heads, int64_t h)
{
    int64_t n = 1;
    while (2 * n <= heads)
        n *= 2;
    return h < n ? exp2(-8.0 * (double)(h + 1) / (double)n)
                 : exp2(-4.0 * (double)(2 * (h - n) + 1) / (double)n);
}
