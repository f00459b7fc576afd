#include "slab.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "freedom.h"

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

/* Doubles that one slab may hold for each thread, and at least; a unit that needs more is a slab of
 * its own. Memory that is new to a process costs more than what was just used again, so a slab is
 * no larger than threads need. */
#define SLAB_DOUBLES ((int64_t)1 << 20)
#define LEAST_DOUBLES (4 * SLAB_DOUBLES)
/* Doubles of P and dS that are kept of one unit, at most. */
#define KEPT_DOUBLES ((int64_t)1 << 24)

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t peaks_of(const fref__shape *s)
{
    return s->problem->keys / FREF__PEAK_KEYS + 1;
}

static int64_t doubles_of_unit(const fref__shape *s, bool backward)
{
    return s->span * s->rows.count * (backward ? 2 * (s->ld_qk + s->ld_v) : s->ld_qk) +
           s->span_k * s->keys_padded * s->ld_qk * 2 +
           s->span_v * s->keys_padded * s->ld_v * (backward ? 2 : 1);
}

static int64_t widest(const fref__shape *s)
{
    return s->ld_qk > s->ld_v ? s->ld_qk : s->ld_v;
}

int64_t fref__slab_scratch(const fref__shape *s, bool freedom)
{
    return widest(s) + (freedom ? fref__effective_channels_scratch(widest(s)) : 0);
}

/* Of P, and of dS. */
static int64_t entries_of_head(const fref__shape *s)
{
    return s->rows.count *
           ((s->keys.count + FREF__TILE_KEYS - 1) / FREF__TILE_KEYS * FREF__TILE_KEYS);
}

/* All that a slab of `n` units owns but ranges and flags. */
static int64_t cut(fref__slab *slab, double *base, const fref__shape *s, const fref__inputs *inputs,
                   bool kept, int64_t n)
{
    const fref_problem *p = s->problem;
    bool backward = inputs->d_o != NULL, freedom = inputs->freedom;
    int64_t rows = n * s->span * s->rows.count, heads_k = n * s->span_k, heads_v = n * s->span_v;
    const fref__part parts[] = {
        { &slab->q, rows * s->ld_qk },
        { &slab->k, heads_k * s->keys.count * s->ld_qk },
        { &slab->v, heads_v * s->keys.count * s->ld_v },
        { &slab->k_panels, heads_k * s->keys_padded * p->dim_qk },
        { &slab->v_panels, backward ? heads_v * s->keys_padded * p->dim_v : 0 },
        { &slab->d_o, backward ? rows * s->ld_v : 0 },
        { &slab->q_panels, backward ? rows * s->ld_qk : 0 },
        { &slab->d_o_panels, backward ? rows * s->ld_v : 0 },
        { &slab->stats, backward ? rows : 0 },
        { &slab->p, kept ? n * s->span * entries_of_head(s) : 0 },
        { &slab->ds, kept ? n * s->span * entries_of_head(s) : 0 },
        { &slab->norms_k.of, heads_k * p->keys },
        { &slab->norms_k.peak, heads_k * peaks_of(s) },
        { &slab->norms_v.of, heads_v * p->keys },
        { &slab->norms_v.peak, heads_v * peaks_of(s) },
        { &slab->channels, freedom ? n * (s->span + s->span_k + s->span_v) : 0 },
        { &slab->channels_d_o, freedom ? n * s->span : 0 },
        { &slab->scratch, omp_get_max_threads() * fref__slab_scratch(s, freedom) },
    };
    return fref__cut(parts, sizeof parts / sizeof parts[0], base);
}

int fref__slab_create(fref__slab *slab, const fref__shape *s, const fref__inputs *inputs)
{
    bool kept = inputs->entries && 2 * s->span * entries_of_head(s) <= KEPT_DOUBLES;
    int64_t of_unit =
        doubles_of_unit(s, inputs->d_o != NULL) + (kept ? 2 * s->span * entries_of_head(s) : 0);
    int64_t most = larger(LEAST_DOUBLES, omp_get_max_threads() * SLAB_DOUBLES);
    int64_t n = larger(1, smaller(s->units, most / larger(1, of_unit)));
    int64_t rows = n * s->span * s->rows.count, parts = n * (s->span + s->span_k + s->span_v);
    *slab = (fref__slab){ .capacity = n };
    slab->range = calloc((size_t)larger(rows, 1), sizeof *slab->range);
    slab->finite = calloc((size_t)parts, sizeof *slab->finite);
    slab->memory = fref__allocate(cut(slab, NULL, s, inputs, kept, n));
    if (!slab->range || !slab->finite || !slab->memory) {
        fref__slab_destroy(slab);
        return ENOMEM;
    }
    cut(slab, slab->memory, s, inputs, kept, n);
    return 0;
}

void fref__slab_destroy(fref__slab *slab)
{
    fref__release(slab->memory);
    free(slab->range);
    free(slab->finite);
    *slab = (fref__slab){ 0 };
}

bool fref__slab_is_finite(const fref__slab *slab, const fref__shape *s, int64_t unit)
{
    int64_t parts = s->span + s->span_k + s->span_v;
    for (int64_t part = 0; part < parts; part++)
        if (!slab->finite[unit * parts + part])
            return false;
    return true;
}

static fref__norms norms_of(const fref__norms *all, const fref__shape *s, int64_t head)
{
    return (fref__norms){ all->of + head * s->problem->keys, all->peak + head * peaks_of(s) };
}

fref__head fref__head_of(const fref__slab *slab, const fref__shape *s, int64_t unit, int64_t head)
{
    const fref_problem *p = s->problem;
    int64_t global = slab->first + unit, slot = unit * s->span + head;
    int64_t k = unit * s->span_k + head / s->group_k, v = unit * s->span_v + head / s->group_v;
    const double *channels =
        slab->channels ? slab->channels + unit * (s->span + s->span_k + s->span_v) : NULL;
    return (fref__head){
        .b = global / s->units_of_batch,
        .h = global % s->units_of_batch * s->span + head,
        .slot = slot,
        .q = slab->q + slot * s->rows.count * s->ld_qk,
        .d_o = slab->d_o ? slab->d_o + slot * s->rows.count * s->ld_v : NULL,
        .k = slab->k + k * s->keys.count * s->ld_qk,
        .k_panels = slab->k_panels + k * s->keys_padded * p->dim_qk,
        .norms_k = norms_of(&slab->norms_k, s, k),
        .v = slab->v + v * s->keys.count * s->ld_v,
        .v_panels = slab->v_panels ? slab->v_panels + v * s->keys_padded * p->dim_v : NULL,
        .norms_v = norms_of(&slab->norms_v, s, v),
        .stats = slab->stats ? slab->stats + slot * s->rows.count : NULL,
        .q_panels = slab->q_panels ? slab->q_panels + slot * s->rows.count * s->ld_qk : NULL,
        .d_o_panels = slab->d_o_panels ? slab->d_o_panels + slot * s->rows.count * s->ld_v : NULL,
        .p = slab->p ? slab->p + slot * entries_of_head(s) : NULL,
        .ds = slab->ds ? slab->ds + slot * entries_of_head(s) : NULL,
        .range = slab->range + slot * s->rows.count,
        .channels_q = channels ? channels[head] : 0.0,
        .channels_d_o = channels ? slab->channels_d_o[slot] : 0.0,
        .channels_k = channels ? channels[s->span + head / s->group_k] : 0.0,
        .channels_v = channels ? channels[s->span + s->span_k + head / s->group_v] : 0.0,
    };
}

double fref__longest(const fref__norms *norms, fref__range keys)
{
    double longest = 0.0;
    for (int64_t j = keys.first; j < keys.last;) {
        bool whole = j % FREF__PEAK_KEYS == 0 && j + FREF__PEAK_KEYS <= keys.last;
        double one = whole ? norms->peak[j / FREF__PEAK_KEYS] : norms->of[j];
        longest = one > longest ? one : longest;
        j += whole ? FREF__PEAK_KEYS : 1;
    }
    return longest;
}

fref__range fref__keys_of_rows(const fref__head *head, int64_t i, int64_t rows)
{
    fref__range all = { 0, 0 };
    for (int64_t r = i; r < i + rows; r++)
        if (head->range[r].first != head->range[r].last)
            fref__include(&all, head->range[r]);
    return all;
}

fref__range fref__rows_of_keys(const fref__head *head, int64_t rows, fref__range keys)
{
    fref__range all = { 0, 0 };
    for (int64_t i = 0; i < rows; i++) {
        fref__range one = head->range[i];
        if (one.first >= keys.last || one.last <= keys.first)
            continue;
        fref__include(&all, (fref__range){ i, i + 1 });
    }
    return all;
}

int64_t fref__dot_panels(double *tile, int64_t ld, const double *x, int64_t ld_x, int64_t rows,
                         int64_t dim, const double *panels, fref__range keys)
{
    int64_t from = keys.first / FREF__LANES * FREF__LANES, columns = fref__padded(keys.last - from);
    const fref__operands product = { .rows = rows,
                                     .columns = columns,
                                     .inner = dim,
                                     .a = x,
                                     .a_row = ld_x,
                                     .a_inner = 1,
                                     .b = panels + from * dim,
                                     .b_panel = dim * FREF__LANES,
                                     .b_inner = FREF__LANES,
                                     .c = tile,
                                     .c_row = ld,
                                     .from_zero = true };
    fref__add_product(&product, FREF__OF_VALUE);
    return from;
}
