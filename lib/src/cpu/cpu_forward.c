#include <math.h>
#include <omp.h>
#include <string.h>

#include "cpu_attention.h"
#include "cpu_call.h"
#include "cpu_scores.h"
#include "cpu_scratch.h"
#include "problem/layout.h"

/* The state of one tile of rows during the loop over the keys. */
typedef struct tile {
    const fattn__call *c;
    fattn__scratch *w;
    int64_t b, h, row0, rows;
    int64_t live;         /* rows before the end of the entry */
    float amax_s, amax_o; /* 8-bit types */
} tile;

/* Applies dropout and the rounding of 8-bit types between the softmax and the second product. The
 * row sums are complete. */
static void drop_and_narrow(const tile *x, const fattn__scores *at, int64_t first, float *s)
{
    const fattn__call *c = x->c;
    fattn__dropping_apply(&c->dropping, at, s);
    if (c->factors.narrow == 0)
        return;
    for (int64_t i = 0; i < at->rows; i++) {
        float *top = &x->w->top[first + i];
        *top *= x->w->rescale[first + i];
        for (int64_t j = 0; j < at->keys; j++)
            *top = fmaxf(*top, s[i * at->row_step + j * at->key_step]);
    }
    fattn__narrow_p(&c->factors, at, s);
}

/* Takes keys [key0, key0 + keys) into the running maximum, sum and output. Scores stand transposed,
 * so that 16 rows are one register and no sum runs across it. */
static void absorb(const tile *x, const fattn__band *band, int64_t key0, int64_t keys)
{
    const fattn__call *c = x->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = x->w;
    const fattn__sight sight = fattn__tile_sight(band, x->row0, x->live, key0, keys);
    if (sight.last == 0)
        return;
    /* Works on whole registers of rows. Rows that see nothing are masked like the others. */
    const int64_t first = sight.first / 16 * 16,
                  rows = fattn__least(x->live, fattn__padded(sight.last)) - first,
                  step = FATTN__ROWS;
    const fattn__scores at = { p, c->t, x->b, x->h, x->row0 + first, rows, key0, keys, 1, step };
    float *s = w->s + first;
    fattn__view_load(w->k, w->wide_q, &c->k, x->b, x->h / (p->heads_q / p->heads_k), key0, keys,
                     p->dim_qk);
    fattn__view_load(w->v, w->wide_v, &c->v, x->b, x->h / (p->heads_q / p->heads_v), key0, keys,
                     p->dim_v);
    c->kernels->multiply(&(fattn__product){ .c = s,
                                            .a = w->k,
                                            .b = w->qt + first,
                                            .c_row = step,
                                            .a_row = w->wide_q,
                                            .a_column = 1,
                                            .b_row = step,
                                            .m = keys,
                                            .n = fattn__padded(rows),
                                            .k = p->dim_qk,
                                            .factor = c->factors.score });
    if (!fattn__scores_are_plain(p))
        fattn__scores_modify(&at, s);
    if (!sight.whole)
        fattn__tile_mask(s, 1, step, band, x->row0 + first, rows, key0, keys);
    c->kernels->soften(
        &(fattn__soft){ s, w->max + first, w->sum + first, w->rescale + first, keys, rows, step });
    c->kernels->scale_rows(w->o + first * w->wide_v, rows, w->wide_v, w->rescale + first);
    drop_and_narrow(x, &at, first, s);
    fattn__weigh(c->kernels,
                 &(fattn__product){ .c = w->o + first * w->wide_v,
                                    .a = s,
                                    .b = w->v,
                                    .c_row = w->wide_v,
                                    .a_row = 1,
                                    .a_column = step,
                                    .b_row = w->wide_v,
                                    .m = rows,
                                    .n = w->wide_v,
                                    .k = keys,
                                    .factor = 1,
                                    .accumulate = true },
                 c->kernels->is_finite(w->v, keys * w->wide_v));
}

/* Rows past the end of an entry belong to another entry if the tensor is ragged. */
static int64_t stored_rows(const tile *x, const fattn__view *to)
{
    return to->offsets != NULL ? x->live : x->rows;
}

static void store_row_values(const tile *x)
{
    const fattn__call *c = x->c;
    const fattn__scratch *w = x->w;
    const uint32_t wanted = c->p->outputs, stats = FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2;
    const float unit = (wanted & FATTN_WANT_STATS_LOG2) != 0 ? 0x1.715476p+0f : 1.0f; /* log2 e */
    if ((wanted & (stats | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP)) == 0)
        return;
    for (int64_t i = 0; i < stored_rows(x, &c->stats); i++) {
        const int64_t at = fattn__view_row(&c->stats, x->b, x->h, x->row0 + i);
        if ((wanted & stats) != 0)
            c->t->stats[at] =
                w->max[i] == -INFINITY ? -INFINITY : (w->max[i] + logf(w->sum[i])) * unit;
        if ((wanted & FATTN_WANT_MAX) != 0)
            c->t->max[at] = w->max[i];
        if ((wanted & FATTN_WANT_SUM_EXP) != 0)
            c->t->sum_exp[at] = w->sum[i];
    }
}

static void finish(tile *x)
{
    const fattn__call *c = x->c;
    const fattn__scratch *w = x->w;
    const int64_t dim = c->p->dim_v;
    for (int64_t i = x->live; i < x->rows;
         i++) { /* they may have shared a register with existing rows */
        w->max[i] = -INFINITY;
        w->sum[i] = 0;
    }
    for (int64_t i = 0; i < x->rows; i++) {
        w->rescale[i] = w->max[i] == -INFINITY ? 0.0f : c->factors.o / w->sum[i];
        if (c->factors.narrow != 0 && w->sum[i] > 0.0f)
            x->amax_s = fmaxf(x->amax_s, w->top[i] / w->sum[i]);
    }
    store_row_values(x);
    c->kernels->scale_rows(w->o, x->rows, w->wide_v, w->rescale);
    if (c->factors.narrow != 0)
        fattn__scale_output(w->o, x->rows, w->wide_v, dim, c->factors.scale_o, &x->amax_o);
    fattn__view_store(&c->o, x->b, x->h, x->row0, stored_rows(x, &c->o), dim, w->o, w->wide_v);
}

/* A sink acts as a key of every existing row: its score is known before all others, and it has no
 * value. */
static void begin(const tile *x)
{
    const fattn__scratch *w = x->w;
    const float sink = x->c->p->sink ? x->c->t->sink[x->h] : -INFINITY;
    memset(w->o, 0, (size_t)(x->rows * w->wide_v) * sizeof *w->o);
    memset(w->top, 0, FATTN__ROWS * sizeof *w->top);
    for (int64_t i = 0; i < FATTN__ROWS; i++) {
        w->max[i] = i < x->live ? sink : -INFINITY;
        w->sum[i] = w->max[i] == -INFINITY ? 0.0f : 1.0f;
    }
}

static void forward_rows(tile *x)
{
    const fattn__call *c = x->c;
    fattn__scratch *w = x->w;
    const fattn__band band = fattn__band_of(c->p, c->t, x->b);
    x->live = band.len_q > x->row0 ? fattn__least(x->rows, band.len_q - x->row0) : 0;
    begin(x);
    fattn__view_load(w->q, w->wide_q, &c->q, x->b, x->h, x->row0, x->live, c->p->dim_qk);
    fattn__tile_transpose(w->qt, FATTN__ROWS, w->q, w->wide_q, x->live, c->p->dim_qk);
    for (int64_t key0 = 0; key0 < band.len_kv && x->live > 0; key0 += FATTN__KEYS)
        absorb(x, &band, key0, fattn__least(FATTN__KEYS, band.len_kv - key0));
    finish(x);
}

void fattn__cpu_forward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    fattn__call c;
    int64_t tiles = (p->seq_q + FATTN__ROWS - 1) / FATTN__ROWS,
            tasks = p->batch * p->heads_q * tiles;
    float amax_s = 0, amax_o = 0;
    fattn__call_of(&c, p, t);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (tasks > 1)                     \
    reduction(max : amax_s, amax_o)
    for (int64_t task = 0; task < tasks; task++) {
        fattn__scratch w = fattn__scratch_at(p, scratch, omp_get_thread_num());
        const int64_t row0 = task % tiles * FATTN__ROWS, bh = task / tiles;
        tile x = { .c = &c,
                   .w = &w,
                   .b = bh / p->heads_q,
                   .h = bh % p->heads_q,
                   .row0 = row0,
                   .rows = fattn__least(FATTN__ROWS, p->seq_q - row0) };
        forward_rows(&x);
        amax_s = fmaxf(amax_s, x.amax_s);
        amax_o = fmaxf(amax_o, x.amax_o);
    }
    if (fattn__dtype_is_fp8(p->dtype))
        *t->amax_s = amax_s;
    if (c.factors.narrow != 0)
        *t->amax_o = amax_o;
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0)
        fattn__dropping_dump(&c.dropping, p, t->rng_dump, threads);
}
