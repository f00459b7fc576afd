#include "freedom.h"

#include <math.h>
#include <string.h>

#include "ref_product.h"

#define CHUNK 64 /* rows that are multiplied at a time */

double fref__effective_number(const fref__weight_sums *sums)
{
    double number = sums->first < 0x1p-400 ? 1.0 : sums->first * sums->first / sums->second;
    return number < 1.0 ? 1.0 : number;
}

int64_t fref__effective_channels_scratch(int64_t ld)
{
    return (CHUNK + ld) * ld;
}

static void copy_finite(double *out, const fref__matrix *x, int64_t row)
{
    memset(out, 0, (size_t)fref__padded(x->dim) * sizeof *out);
    for (int64_t c = 0; c < x->dim; c++)
        if (!isfinite(x->x[c / FREF__LANES * x->panel + row * x->ld + c % FREF__LANES]))
            return;
    for (int64_t c = 0; c < x->dim; c++)
        out[c] = x->x[c / FREF__LANES * x->panel + row * x->ld + c % FREF__LANES];
}

/* C_ab / (rms_a rms_b) has a diagonal of ones, so tr(C) counts the channels that are not all zero.
 */
static double channels_of(const double *c, int64_t ld, int64_t dim)
{
    double trace = 0.0, squares = 0.0;
    for (int64_t a = 0; a < dim; a++) {
        if (!(c[a * ld + a] > 0.0))
            continue;
        trace += 1.0;
        for (int64_t b = 0; b < dim; b++)
            if (c[b * ld + b] > 0.0)
                squares += c[a * ld + b] / c[a * ld + a] * (c[a * ld + b] / c[b * ld + b]);
    }
    return trace > 0.0 && trace * trace > squares ? trace * trace / squares : 1.0;
}

double fref__effective_channels(const fref__matrix *x, fref__range live, double *scratch)
{
    int64_t n = live.last - live.first, used = n < FREF__FREEDOM_ROWS ? n : FREF__FREEDOM_ROWS,
            ld = fref__padded(x->dim);
    double *rows = scratch, *c = scratch + CHUNK * ld;
    memset(c, 0, (size_t)(ld * ld) * sizeof *c);
    for (int64_t r = 0; r < used; r += CHUNK) {
        int64_t count = used - r < CHUNK ? used - r : CHUNK;
        for (int64_t m = 0; m < count; m++)
            copy_finite(rows + m * ld, x, live.first + (r + m) * n / used);
        const fref__operands product = { .rows = x->dim,
                                         .columns = ld,
                                         .inner = count,
                                         .a = rows,
                                         .a_row = 1,
                                         .a_inner = ld,
                                         .b = rows,
                                         .b_panel = FREF__LANES,
                                         .b_inner = ld,
                                         .c = c,
                                         .c_row = ld };
        fref__add_product(&product, FREF__OF_VALUE);
    }
    return channels_of(c, ld, x->dim);
}

double fref__degrees_of_freedom(const fref__row_variance *variance, double neff, double nch,
                                int64_t dim)
{
    double all = variance->single + variance->cast + variance->whole;
    double single = variance->single / all, cast = variance->cast / all,
           whole = variance->whole / all;
    double nu = 1.0 / (single * single * (1.0 / neff + 1.0 / nch) + whole * whole +
                       cast * cast / (double)dim);
    return nu > 0.5 ? nu : 0.5;
}
