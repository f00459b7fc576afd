/* Degrees of freedom, as docs/numerics.md section 2 says them. */
#include <stdlib.h>

#include "naive_parts.h"

real naive__channels(const fref_tensor *x, int64_t b, int64_t h, int64_t rows, int64_t dim,
                     const bool *live)
{
    int64_t first = 0, last = rows;
    while (first < last && !live[first])
        first++;
    while (last > first && !live[last - 1])
        last--;
    int64_t n = last - first, used = n < 1024 ? n : 1024;
    real *c = calloc((size_t)(dim * dim) + 1, sizeof *c), trace = 0, squares = 0;
    if (!c)
        abort();
    for (int64_t r = 0; r < used; r++) {
        int64_t i = first + r * n / used;
        for (int64_t k = 0; live[i] && k < dim; k++)
            for (int64_t m = 0; m < dim; m++)
                c[k * dim + m] +=
                    (real)element(x, b, h, i, k) * (real)element(x, b, h, i, m) / (real)used;
    }
    for (int64_t k = 0; k < dim; k++) {
        real rms = sqrtl(c[k * dim + k]);
        trace += rms > 0;
        for (int64_t m = 0; m < dim; m++)
            if (rms > 0 && c[m * dim + m] > 0)
                squares += square(c[k * dim + m] / (rms * sqrtl(c[m * dim + m])));
    }
    free(c);
    return trace > 0 ? fmaxl(1, trace * trace / squares) : 1;
}

void naive__take_amax(real amax[3], real x, real tolerance)
{
    amax[0] = fmaxl(amax[0], fabsl(x));
    amax[1] = fmaxl(amax[1], fabsl(x) - tolerance);
    amax[2] = fmaxl(amax[2], fabsl(x) + tolerance);
}

void naive__add_weight(naive_line *line, real w)
{
    line->first += w;
    line->second += w * w;
}

void naive__finish_line(naive_line *line, int64_t dim)
{
    if (!line->live)
        return;
    line->neff = line->first < 0x1p-400L ? 1 : line->first * line->first / line->second;
    real single = line->single / line->all, cast = line->cast / line->all,
         whole = 1 - single - cast;
    real spread = square(single) * (1 / line->neff + 1 / line->channels) + square(whole) +
                  square(cast) / (real)dim;
    line->nu = line->nu == 0 ? fmaxl(0.5L, 1 / spread) : line->nu;
}
