/* dSink: - sum over b, i of exp(sink - Stats_i) D_i, D_i = sum_c dO O.
 *
 * The sums are fp32: 2^-20 of what is added up covers them and a weight whose exponent is small. Where it is not, it is rounded as a score's (ew of
 * backward_rows.c, of a score that is the sink). D_i itself is off by eD = e32 sqrt(dv) sum_c |dO O|, as there, which is more where it cancels:
 *
 *   bound = sum exp(sink - Stats_i) ((2^-20 + e32 (2 |sink| + 2 |Stats_i|)) |D_i| + eD)
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>

#include "backward/ref_backward.h"

/* One batch entry of one head; rows without a key have D = 0. */
static void add_rows(double *value, double *bound, double *row, const fref__shape *s,
                     const fref__inputs *in, int64_t b, int64_t h)
{
    const fref_problem *p = s->problem;
    double *o = row, *d_o = row + p->dim_v;
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t first, last;
        double stats, delta = 0.0, size = 0.0;
        fref_keys_of_row(p, b, i, &first, &last);
        if (first == last)
            continue;
        fref__read_row(&stats, in->stats, b, h, i, 1);
        if (stats == -INFINITY)
            continue;
        fref__read_row(o, in->o, b, h, i, p->dim_v);
        fref__read_row(d_o, in->d_o, b, h, i, p->dim_v);
        for (int64_t c = 0; c < p->dim_v; c++) {
            delta += d_o[c] * o[c];
            size += fabs(d_o[c] * o[c]);
        }
        double sink = (double)p->sink[h], weight = exp(sink - stats);
        double off = 0x1p-20 + (weight > 0.0 ? E32 * 2.0 * (fabs(sink) + fabs(stats)) : 0.0);
        *value -= weight * delta;
        *bound += weight * (off * fabs(delta) + E32 * sqrt((double)p->dim_v) * size);
    }
}

int fref__backward_sink(const fref__shape *s, const fref__inputs *in, const fref_backward_out *out)
{
    const fref_problem *p = s->problem;
    if (!out->dsink && !out->dsink_bound)
        return 0;
    double *memory = malloc((size_t)(2 * p->dim_v * omp_get_max_threads()) * sizeof *memory);
    if (!memory)
        return ENOMEM;
#pragma omp parallel for schedule(dynamic)
    for (int64_t h = 0; h < p->heads_q; h++) {
        double value = 0.0, bound = 0.0;
        for (int64_t b = 0; p->sink && b < p->batch; b++)
            add_rows(&value, &bound, memory + 2 * p->dim_v * omp_get_thread_num(), s, in, b, h);
        if (out->dsink)
            out->dsink[h] = value;
        if (out->dsink_bound)
            out->dsink_bound[h] = bound;
    }
    free(memory);
    return 0;
}
