#include <math.h>
#include <omp.h>
#include <string.h>

#include "freedom.h"
#include "slab.h"

static bool all_finite(const double *x, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        if (!isfinite(x[c]))
            return false;
    return true;
}

static double norm_of(const double *x, int64_t n)
{
    double sum = 0.0;
    for (int64_t c = 0; c < n; c++)
        sum += x[c] * x[c];
    return sqrt(sum);
}

static double *scratch_of_thread(const fref__slab *slab, const fref__shape *s)
{
    return slab->scratch + omp_get_thread_num() * fref__slab_scratch(s, slab->channels != NULL);
}

/* Rows of x, `ld` doubles long, as panels of 16 columns: [ld / 16, rows, 16]. */
static void to_panels(double *out, const double *x, int64_t ld, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < ld; c += FREF__LANES)
            memcpy(out + c * rows + r * FREF__LANES, x + r * ld + c, FREF__LANES * sizeof *out);
}

/* Decodes the listed rows of one query head and finds what each may read. */
static bool load_rows(fref__slab *slab, const fref__shape *s, const fref__inputs *in,
                      const fref__head *head, int64_t part)
{
    const fref_problem *p = s->problem;
    bool finite = true;
    fref__range live = { 0, 0 }, readable;
    for (int64_t r = 0; r < s->rows.count; r++) {
        int64_t at = head->slot * s->rows.count + r, i = fref__place(&s->rows, r);
        double *q = slab->q + at * s->ld_qk, *d_o = slab->d_o ? slab->d_o + at * s->ld_v : NULL;
        memset(q, 0, (size_t)s->ld_qk * sizeof *q);
        if (d_o)
            memset(d_o, 0, (size_t)s->ld_v * sizeof *d_o);
        slab->range[at] = (fref__range){ 0, 0 };
        fref_keys_of_row(p, head->b, i, &readable.first, &readable.last);
        if (readable.first == readable.last)
            continue; /* beyond a ragged length lies somebody else's */
        if (in->stats) {
            fref__read_row(&slab->stats[at], in->stats, head->b, head->h, i, 1);
            if (slab->stats[at] == -INFINITY)
                continue;
        }
        slab->range[at] = fref__listed(&s->keys, readable);
        fref__include(&live, (fref__range){ r, r + 1 });
        fref__read_row(q, in->q, head->b, head->h, i, p->dim_qk);
        finite = finite && all_finite(q, p->dim_qk);
        if (d_o) {
            fref__read_row(d_o, in->d_o, head->b, head->h, i, p->dim_v);
            finite = finite && all_finite(d_o, p->dim_v) && isfinite(slab->stats[at]);
        }
    }
    if (slab->d_o) {
        int64_t at = head->slot * s->rows.count;
        to_panels(slab->q_panels + at * s->ld_qk, slab->q + at * s->ld_qk, s->ld_qk, s->rows.count);
        to_panels(slab->d_o_panels + at * s->ld_v, slab->d_o + at * s->ld_v, s->ld_v,
                  s->rows.count);
    }
    if (slab->channels && slab->d_o && !s->rows.at) {
        const fref__matrix of_q = { slab->q + head->slot * s->rows.count * s->ld_qk, FREF__LANES,
                                    s->ld_qk, p->dim_qk };
        const fref__matrix of_d_o = { slab->d_o + head->slot * s->rows.count * s->ld_v, FREF__LANES,
                                      s->ld_v, p->dim_v };
        slab->channels[part] = fref__effective_channels(&of_q, live, scratch_of_thread(slab, s));
        slab->channels_d_o[head->slot] =
            fref__effective_channels(&of_d_o, live, scratch_of_thread(slab, s));
    }
    return finite;
}

/* Where one key or value head is decoded to; `panels` and `channels` may be NULL. */
typedef struct keys_out {
    double *by_channel, *by_key, *channels;
    fref__norms norms;
    int64_t dim;
} keys_out;

static fref__range live_keys(const fref_problem *p, int64_t b)
{
    fref__range live = { 0, 0 }, one;
    for (int64_t i = 0; i < p->rows; i++) {
        fref_keys_of_row(p, b, i, &one.first, &one.last);
        if (one.first != one.last)
            fref__include(&live, one);
    }
    return live;
}

/* Listed key n. */
static void place_key(const keys_out *out, const fref__shape *s, const double *row, int64_t n)
{
    for (int64_t c = 0; c < fref__padded(out->dim); c += FREF__LANES)
        memcpy(out->by_channel + (c / FREF__LANES * s->keys.count + n) * FREF__LANES, row + c,
               FREF__LANES * sizeof *row);
    if (!out->by_key)
        return;
    double *panel = out->by_key + n / FREF__LANES * out->dim * FREF__LANES + n % FREF__LANES;
    for (int64_t c = 0; c < out->dim; c++)
        panel[c * FREF__LANES] = row[c];
}

static bool load_keys(const keys_out *out, const fref__slab *slab, const fref__shape *s,
                      const fref_tensor *tensor, int64_t b, int64_t h)
{
    const fref_problem *p = s->problem;
    const fref__range live = live_keys(p, b);
    double *row = scratch_of_thread(slab, s);
    bool finite = true;
    int64_t next = 0; /* in the list */
    memset(out->norms.peak, 0, (size_t)(p->keys / FREF__PEAK_KEYS + 1) * sizeof(double));
    for (int64_t j = 0; j < p->keys; j++) {
        memset(row, 0, (size_t)fref__padded(out->dim) * sizeof *row);
        if (j >= live.first && j < live.last)
            fref__read_row(row, tensor, b, h, j, out->dim);
        double norm = norm_of(row, out->dim), *peak = &out->norms.peak[j / FREF__PEAK_KEYS];
        out->norms.of[j] = norm;
        *peak = norm > *peak ? norm : *peak;
        if (next == s->keys.count || fref__place(&s->keys, next) != j)
            continue;
        finite = finite && all_finite(row, out->dim);
        place_key(out, s, row, next++);
    }
    if (out->channels && !s->keys.at) {
        const fref__matrix x = { out->by_channel, s->keys.count * FREF__LANES, FREF__LANES,
                                 out->dim };
        *out->channels = fref__effective_channels(&x, live, row);
    }
    return finite;
}

static keys_out keys_of(const fref__slab *slab, const fref__shape *s, int64_t part,
                        const fref__head *head, bool of_k)
{
    return (keys_out){ .by_channel = (double *)(uintptr_t)(of_k ? head->k : head->v),
                       .by_key = (double *)(uintptr_t)(of_k ? head->k_panels : head->v_panels),
                       .channels = slab->channels ? slab->channels + part : NULL,
                       .norms = of_k ? head->norms_k : head->norms_v,
                       .dim = of_k ? s->problem->dim_qk : s->problem->dim_v };
}

void fref__slab_load(fref__slab *slab, const fref__shape *s, const fref__inputs *inputs,
                     int64_t first)
{
    slab->first = first;
    slab->count = slab->capacity < s->units - first ? slab->capacity : s->units - first;
    int64_t parts = s->span + s->span_k + s->span_v;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < slab->count * parts; task++) {
        int64_t unit = task / parts, part = task % parts;
        bool of_k = part < s->span + s->span_k;
        int64_t h = part < s->span ? part
                    : of_k         ? (part - s->span) * s->group_k
                                   : (part - s->span - s->span_k) * s->group_v;
        const fref__head head = fref__head_of(slab, s, unit, h);
        if (part < s->span) {
            slab->finite[task] = load_rows(slab, s, inputs, &head, task);
            continue;
        }
        const keys_out out = keys_of(slab, s, task, &head, of_k);
        slab->finite[task] = load_keys(&out, slab, s, of_k ? inputs->k : inputs->v, head.b,
                                       head.h / (of_k ? s->group_k : s->group_v));
    }
}
