#include "score.h"

#include <math.h>

#include "lanes.h"

bool fref__is_scored(const fref_problem *p)
{
    return p->modify != NULL || p->bias != NULL || p->alibi != NULL;
}

double fref__sink_of(const fref_problem *p, int64_t b, int64_t h, int64_t i)
{
    return p->sink && (!p->len_q || i < p->len_q[b]) ? (double)p->sink[h] : -INFINITY;
}

const uint8_t *fref__keep_of(const fref_problem *p, int64_t b, int64_t h, int64_t i)
{
    return p->keep ? p->keep + ((b * p->heads_q + h) * p->rows + i) * p->keys : NULL;
}

static void put(double *array, int64_t n, double value)
{
    if (array)
        array[n] = value;
}

static void modify_one(double *x, const fref__score_arrays *out, const fref_problem *p,
                       double eps_mod, const fref__row_place *at, int64_t n)
{
    const int64_t place[4] = { at->b, at->h, at->i, fref__place(at->keys, at->first + n) };
    double s = *x;
    fref_modified m = { .value = s, .slope = 1.0 };
    double extra = 0.0;
    if (p->modify) {
        m = p->modify(p->modify_owner, s, place);
        extra = fabs(m.slope * s) + m.rounded + eps_mod / E32 * m.approximated;
    }
    *x = m.value;
    put(out->slope, n, m.slope);
    put(out->curvature, n, m.curvature);
    put(out->slope_extra, n, m.slope_rounded + eps_mod / E32 * m.slope_approximated);
    put(out->extra, n, extra);
    put(out->pull, n, fabs(m.slope * s));
}

/* Bias of the listed keys. */
static void read_bias(double *out, const fref_tensor *bias, const fref__row_place *at, int64_t n)
{
    fref_tensor from_key = *bias;
    for (int64_t k = 0; k < n; k += at->keys->at ? 1 : n) {
        int64_t j = fref__place(at->keys, at->first + k);
        from_key.data =
            (const unsigned char *)bias->data + j * bias->stride[3] * fref__bytes_of(bias->type);
        fref__read_row(out + k, &from_key, at->b, at->h, at->i, at->keys->at ? 1 : n);
    }
}

static void add_bias(double *x, const fref__score_arrays *out, double *bias, const fref_problem *p,
                     const fref__row_place *at, int64_t n)
{
    read_bias(bias, p->bias, at, n);
    for (int64_t k = 0; k < n; k++) {
        x[k] += bias[k];
        if (out->extra && x[k] != -INFINITY)
            out->extra[k] += fabs(x[k]);
    }
}

static void add_alibi(double *x, const fref__score_arrays *out, double slope,
                      const fref__row_place *at, int64_t n)
{
    for (int64_t k = 0; k < n; k++) {
        double added = slope * (double)(fref__place(at->keys, at->first + k) - at->i);
        x[k] += added;
        if (out->extra && x[k] != -INFINITY)
            out->extra[k] += fabs(added) + fabs(x[k]);
    }
}

void fref__score(double *s, const fref__score_arrays *out, double *bias, const fref_problem *p,
                 double eps_mod, const fref__row_place *at, int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        modify_one(&s[k], out, p, eps_mod, at, k);
    if (p->bias)
        add_bias(s, out, bias, p, at, n);
    if (p->alibi)
        add_alibi(s, out, p->alibi[at->h], at, n);
}

static void add_sink(fref__score_row *row, double sink)
{
    row->dead = row->max == -INFINITY;
    row->max = sink > row->max ? sink : row->max;
}

/* Its magnitude counts as a key's does. */
static void measure_sink(fref__score_row *row, double sink)
{
    if (sink >= row->max - FREF__OUT_OF_REACH && sink != -INFINITY)
        row->largest_x = fmax(row->largest_x, fabs(sink));
}

fref__score_row fref__score_plain(double *s, int64_t n, double scale, double sink)
{
    const fref__extremes found = fref__scale(s, n, scale);
    fref__score_row row = {
        .max = found.max, .largest_x = found.magnitude, .largest_s = found.magnitude, .slope = 1.0
    };
    add_sink(&row, sink);
    measure_sink(&row, sink);
    return row;
}

fref__score_row fref__score_measure(const double *x, const fref__score_arrays *arrays, int64_t n,
                                    double sink)
{
    fref__score_row row = { .max = -INFINITY };
    for (int64_t k = 0; k < n; k++)
        row.max = x[k] > row.max || isnan(x[k]) ? x[k] : row.max;
    add_sink(&row, sink);
    for (int64_t k = 0; k < n; k++) {
        double slope = fabs(arrays->slope[k]);
        if (x[k] < row.max - FREF__OUT_OF_REACH)
            continue;
        row.largest_x = fmax(row.largest_x, fabs(x[k]));
        row.largest_s = slope > 0.0 ? fmax(row.largest_s, arrays->pull[k] / slope) : row.largest_s;
        row.slope = fmax(row.slope, slope);
        row.extra = fmax(row.extra, arrays->extra[k]);
    }
    measure_sink(&row, sink);
    return row;
}
