#include <math.h>

#include "fattn/fattn.h"

void fattn_alibi_slopes(int64_t heads, float *out)
{
    int64_t power = 1;
    while (power <= heads / 2)
        power *= 2;
    for (int64_t h = 0; h < heads; h++)
        out[h] = (float)(h < power ? exp2(-8.0 * (double)(h + 1) / (double)power)
                                   : exp2(-4.0 * (double)(2 * (h - power) + 1) / (double)power));
}
