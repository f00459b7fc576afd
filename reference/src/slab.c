#include "slab.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "freedom.h"

/* Doubles that one slab may hold; a unit that needs more is a slab of its own. */
#define SLAB_DOUBLES ((int64_t)1 << 23)

/* Bounds beyond this mask nothing, and sums with them must not overflow. */
#define FAR ((int64_t)1 << 40)

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void fref_keys_of_row(const fref_problem *p, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    int64_t len_q = p->len_q ? p->len_q[b] : p->rows;
    int64_t len_kv = p->len_kv ? p->len_kv[b] : p->keys;
    int64_t diagonal = i + (p->bottom_right ? len_kv - len_q : 0);
    *first = 0;
    *last = larger(0, smaller(len_kv, p->keys));
    if (p->has_left)
        *first = larger(*first, diagonal - smaller(p->left, FAR) + 1);
    if (p->has_right)
        *last = smaller(*last, diagonal + smaller(p->right, FAR) + 1);
    if (i >= len_q || *first >= *last)
        *first = *last = 0;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

fref__shape fref__shape_of(const fref_problem *p)
{
    fref__shape s = { .problem = p, .group_k = p->heads_q / p->heads_k, .group_v = p->heads_q / p->heads_v };
    s.span = common_multiple(s.group_k, s.group_v);
    s.span_k = s.span / s.group_k;
    s.span_v = s.span / s.group_v;
    s.units_of_batch = p->heads_q / s.span;
    s.units = p->batch * s.units_of_batch;
    s.ld_qk = fref__padded(p->dim_qk);
    s.ld_v = fref__padded(p->dim_v);
    s.panels = fref__padded(p->keys) / FREF__LANES;
    return s;
}

static bool allocate(double **out, int64_t count)
{
    *out = calloc((size_t)larger(count, 1), sizeof **out);
    return *out != NULL;
}

int fref__slab_create(fref__slab *slab, const fref__shape *s, const fref__inputs *inputs)
{
    const fref_problem *p = s->problem;
    bool backward = inputs->d_o != NULL;
    int64_t padded_keys = s->panels * FREF__LANES;
    int64_t of_unit = s->span * p->rows * (s->ld_qk + (backward ? s->ld_v : 0)) + s->span_k * padded_keys * s->ld_qk * 2 +
                      s->span_v * padded_keys * s->ld_v * (backward ? 2 : 1);
    int64_t n = larger(1, smaller(s->units, SLAB_DOUBLES / larger(1, of_unit)));
    int64_t rows = n * s->span * p->rows;
    *slab = (fref__slab){ .capacity = n };
    slab->range = calloc((size_t)larger(rows, 1), sizeof *slab->range);
    slab->finite = calloc((size_t)(n * (s->span + s->span_k + s->span_v)), sizeof *slab->finite);
    bool ok = slab->range && slab->finite;
    ok = ok && allocate(&slab->q, rows * s->ld_qk);
    ok = ok && allocate(&slab->k, n * s->span_k * p->keys * s->ld_qk);
    ok = ok && allocate(&slab->v, n * s->span_v * p->keys * s->ld_v);
    ok = ok && allocate(&slab->k_panels, n * s->span_k * padded_keys * p->dim_qk);
    ok = ok && allocate(&slab->norm_k, n * s->span_k * p->keys);
    ok = ok && allocate(&slab->norm_v, n * s->span_v * p->keys);
    if (backward) {
        ok = ok && allocate(&slab->v_panels, n * s->span_v * padded_keys * p->dim_v);
        ok = ok && allocate(&slab->d_o, rows * s->ld_v);
        ok = ok && allocate(&slab->stats, rows);
    }
    if (inputs->freedom) {
        ok = ok && allocate(&slab->channels, n * (s->span + s->span_k + s->span_v));
        ok = ok && allocate(&slab->channels_d_o, n * s->span);
        ok = ok && allocate(&slab->scratch, omp_get_max_threads() * fref__effective_channels_scratch(larger(s->ld_qk, s->ld_v)));
    }
    if (ok)
        return 0;
    fref__slab_destroy(slab);
    return ENOMEM;
}

void fref__slab_destroy(fref__slab *slab)
{
    double *const owned[] = { slab->q,        slab->d_o,    slab->k,      slab->v,    slab->k_panels,
                              slab->v_panels, slab->norm_k, slab->norm_v, slab->stats,
                              slab->channels, slab->channels_d_o, slab->scratch };
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
    free(slab->range);
    free(slab->finite);
    *slab = (fref__slab){ 0 };
}

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

/* Effective channels of what was decoded to `x`; 0 when they are not wanted. */
static double channels_of(const fref__slab *slab, const fref__shape *s, const double *x, int64_t ld, int64_t dim, fref__range live)
{
    if (!slab->scratch)
        return 0.0;
    int64_t size = fref__effective_channels_scratch(larger(s->ld_qk, s->ld_v));
    return fref__effective_channels(x, ld, dim, live.first, live.last, slab->scratch + omp_get_thread_num() * size);
}

/* Widens `live`, empty at first, so that it holds `one`. */
static void include(fref__range *live, fref__range one)
{
    bool none_yet = live->first == live->last;
    live->first = none_yet ? one.first : smaller(live->first, one.first);
    live->last = none_yet ? one.last : larger(live->last, one.last);
}

/* Decodes the rows of one query head and finds what each may read. */
static bool load_rows(fref__slab *slab, const fref__shape *s, const fref__inputs *in, const fref__head *head,
                      int64_t part)
{
    const fref_problem *p = s->problem;
    bool finite = true;
    fref__range live = { 0, 0 };
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t at = head->slot * p->rows + i;
        fref__range *range = &slab->range[at];
        fref_keys_of_row(p, head->b, i, &range->first, &range->last);
        if (in->stats && range->first != range->last) { /* beyond a ragged length lies somebody else's */
            fref__read_row(&slab->stats[at], in->stats, head->b, head->h, i, 1);
            if (slab->stats[at] == -INFINITY)
                *range = (fref__range){ 0, 0 };
        }
        bool dead = range->first == range->last;
        double *q = slab->q + at * s->ld_qk, *d_o = slab->d_o ? slab->d_o + at * s->ld_v : NULL;
        if (dead) {
            memset(q, 0, (size_t)s->ld_qk * sizeof *q);
            if (d_o)
                memset(d_o, 0, (size_t)s->ld_v * sizeof *d_o);
            continue;
        }
        include(&live, (fref__range){ i, i + 1 });
        fref__read_row(q, in->q, head->b, head->h, i, p->dim_qk);
        finite = finite && all_finite(q, p->dim_qk);
        if (d_o) {
            fref__read_row(d_o, in->d_o, head->b, head->h, i, p->dim_v);
            finite = finite && all_finite(d_o, p->dim_v) && isfinite(slab->stats[at]);
        }
    }
    if (slab->channels) {
        int64_t first = head->slot * p->rows;
        slab->channels[part] = channels_of(slab, s, slab->q + first * s->ld_qk, s->ld_qk, p->dim_qk, live);
        if (slab->d_o)
            slab->channels_d_o[head->slot] = channels_of(slab, s, slab->d_o + first * s->ld_v, s->ld_v, p->dim_v, live);
    }
    return finite;
}

/* Where one key or value head is decoded to; `panels` may be NULL. */
typedef struct keys_out {
    double *rows, *panels, *norm, *channels;
    int64_t ld, dim;
} keys_out;

static bool load_keys(const keys_out *out, const fref__slab *slab, const fref__shape *s, const fref_tensor *tensor, int64_t b, int64_t h)
{
    const fref_problem *p = s->problem;
    fref__range live = { 0, 0 };
    for (int64_t i = 0; i < p->rows; i++) {
        fref__range one;
        fref_keys_of_row(p, b, i, &one.first, &one.last);
        if (one.first != one.last)
            include(&live, one);
    }
    bool finite = true;
    for (int64_t j = 0; j < p->keys; j++) {
        double *row = out->rows + j * out->ld;
        memset(row, 0, (size_t)out->ld * sizeof *row);
        if (j >= live.first && j < live.last)
            fref__read_row(row, tensor, b, h, j, out->dim);
        out->norm[j] = norm_of(row, out->dim);
        finite = finite && all_finite(row, out->dim);
        if (!out->panels)
            continue;
        double *panel = out->panels + j / FREF__LANES * out->dim * FREF__LANES + j % FREF__LANES;
        for (int64_t c = 0; c < out->dim; c++)
            panel[c * FREF__LANES] = row[c];
    }
    if (out->channels)
        *out->channels = channels_of(slab, s, out->rows, out->ld, out->dim, live);
    return finite;
}

static bool load_k(fref__slab *slab, const fref__shape *s, const fref__inputs *in, int64_t unit, int64_t head, int64_t part)
{
    const fref_problem *p = s->problem;
    int64_t slot = unit * s->span_k + head, global = slab->first + unit;
    keys_out out = { .rows = slab->k + slot * p->keys * s->ld_qk,
                     .panels = slab->k_panels + slot * s->panels * FREF__LANES * p->dim_qk,
                     .norm = slab->norm_k + slot * p->keys,
                     .channels = slab->channels ? slab->channels + part : NULL,
                     .ld = s->ld_qk,
                     .dim = p->dim_qk };
    return load_keys(&out, slab, s, in->k, global / s->units_of_batch, global % s->units_of_batch * s->span_k + head);
}

static bool load_v(fref__slab *slab, const fref__shape *s, const fref__inputs *in, int64_t unit, int64_t head, int64_t part)
{
    const fref_problem *p = s->problem;
    int64_t slot = unit * s->span_v + head, global = slab->first + unit;
    keys_out out = { .rows = slab->v + slot * p->keys * s->ld_v,
                     .panels = slab->v_panels ? slab->v_panels + slot * s->panels * FREF__LANES * p->dim_v : NULL,
                     .norm = slab->norm_v + slot * p->keys,
                     .channels = slab->channels ? slab->channels + part : NULL,
                     .ld = s->ld_v,
                     .dim = p->dim_v };
    return load_keys(&out, slab, s, in->v, global / s->units_of_batch, global % s->units_of_batch * s->span_v + head);
}

void fref__slab_load(fref__slab *slab, const fref__shape *s, const fref__inputs *inputs, int64_t first)
{
    slab->first = first;
    slab->count = smaller(slab->capacity, s->units - first);
    int64_t parts = s->span + s->span_k + s->span_v;
#pragma omp parallel for schedule(dynamic)
    for (int64_t task = 0; task < slab->count * parts; task++) {
        int64_t unit = task / parts, part = task % parts;
        if (part < s->span) {
            fref__head head = fref__head_of(slab, s, unit, part);
            slab->finite[task] = load_rows(slab, s, inputs, &head, task);
        } else if (part < s->span + s->span_k) {
            slab->finite[task] = load_k(slab, s, inputs, unit, part - s->span, task);
        } else {
            slab->finite[task] = load_v(slab, s, inputs, unit, part - s->span - s->span_k, task);
        }
    }
}

bool fref__slab_is_finite(const fref__slab *slab, const fref__shape *s, int64_t unit)
{
    int64_t parts = s->span + s->span_k + s->span_v;
    for (int64_t part = 0; part < parts; part++)
        if (!slab->finite[unit * parts + part])
            return false;
    return true;
}

fref__head fref__head_of(const fref__slab *slab, const fref__shape *s, int64_t unit, int64_t head)
{
    const fref_problem *p = s->problem;
    int64_t global = slab->first + unit, slot = unit * s->span + head;
    int64_t k = unit * s->span_k + head / s->group_k, v = unit * s->span_v + head / s->group_v;
    const double *channels = slab->channels ? slab->channels + unit * (s->span + s->span_k + s->span_v) : NULL;
    return (fref__head){
        .b = global / s->units_of_batch,
        .h = global % s->units_of_batch * s->span + head,
        .slot = slot,
        .q = slab->q + slot * p->rows * s->ld_qk,
        .d_o = slab->d_o ? slab->d_o + slot * p->rows * s->ld_v : NULL,
        .k = slab->k + k * p->keys * s->ld_qk,
        .k_panels = slab->k_panels + k * s->panels * FREF__LANES * p->dim_qk,
        .norm_k = slab->norm_k + k * p->keys,
        .v = slab->v + v * p->keys * s->ld_v,
        .v_panels = slab->v_panels ? slab->v_panels + v * s->panels * FREF__LANES * p->dim_v : NULL,
        .norm_v = slab->norm_v + v * p->keys,
        .stats = slab->stats ? slab->stats + slot * p->rows : NULL,
        .range = slab->range + slot * p->rows,
        .channels_q = channels ? channels[head] : 0.0,
        .channels_d_o = channels ? slab->channels_d_o[slot] : 0.0,
        .channels_k = channels ? channels[s->span + head / s->group_k] : 0.0,
        .channels_v = channels ? channels[s->span + s->span_k + head / s->group_v] : 0.0,
    };
}

fref__range fref__keys_of_rows(const fref__head *head, int64_t i, int64_t rows)
{
    fref__range all = { 0, 0 };
    for (int64_t r = i; r < i + rows; r++) {
        if (head->range[r].first != head->range[r].last)
            include(&all, head->range[r]);
    }
    return all;
}

fref__range fref__rows_of_keys(const fref__head *head, int64_t rows, fref__range keys)
{
    fref__range all = { 0, 0 };
    for (int64_t i = 0; i < rows; i++) {
        fref__range one = head->range[i];
        if (one.first >= keys.last || one.last <= keys.first)
            continue;
        if (all.first == all.last)
            all.first = i;
        all.last = i + 1;
    }
    return all;
}

int64_t fref__dot_panels(double *tile, int64_t ld, const double *x, int64_t ld_x, int64_t rows, int64_t dim, const double *panels,
                         fref__range keys)
{
    int64_t from = keys.first / FREF__LANES * FREF__LANES;
    for (int64_t r = 0; r < rows; r++)
        memset(tile + r * ld, 0, (size_t)fref__padded(keys.last - from) * sizeof *tile);
    for (int64_t j = from; j < keys.last; j += FREF__LANES) {
        fref__operands product = { .rows = rows,
                                   .columns = FREF__LANES,
                                   .inner = dim,
                                   .a = x,
                                   .a_row = ld_x,
                                   .a_inner = 1,
                                   .b = panels + j * dim,
                                   .b_inner = FREF__LANES,
                                   .c = tile + (j - from),
                                   .c_row = ld };
        fref__add_product(&product, FREF__OF_VALUE);
    }
    return from;
}
