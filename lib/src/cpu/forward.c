#include <math.h>
#include <omp.h>
#include <string.h>

#include "attention.h"
#include "kernels.h"
#include "scores.h"
#include "scratch.h"

/* One tile of rows on its way through the keys. */
typedef struct tile {
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__kernels *kernels;
    fattn__scratch *w;
    int64_t b, h, row0, rows;
} tile;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Takes keys [key0, key0 + keys) into the running maximum, sum and output. Scores stand transposed, so that 16 rows are one register and no
 * sum runs across it. */
static void absorb(const tile *x, const fattn__band *band, int64_t key0, int64_t keys)
{
    const fattn_problem *p = x->p;
    fattn__scratch *w = x->w;
    const fattn__view k = { (char *)(uintptr_t)x->t->k, p->dtype, p->k_strides }, v = { (char *)(uintptr_t)x->t->v, p->dtype, p->v_strides };
    const fattn__sight sight = fattn__tile_sight(band, x->row0, x->rows, key0, keys);
    if (sight.last == 0)
        return;
    /* Whole registers of rows: those beside the ones that see something are masked like them. */
    const int64_t first = sight.first / 16 * 16, rows = least(x->rows, fattn__padded(sight.last)) - first, step = FATTN__ROWS;
    float *s = w->s + first;
    fattn__tile_load(w->k, w->wide_q, &k, x->b, x->h / (p->heads_q / p->heads_k), key0, keys, p->dim_qk);
    fattn__tile_load(w->v, w->wide_v, &v, x->b, x->h / (p->heads_q / p->heads_v), key0, keys, p->dim_v);
    x->kernels->multiply(&(fattn__product){ .c = s, .a = w->k, .b = w->qt + first, .c_row = step, .a_row = w->wide_q, .a_column = 1, .b_row = step,
                                            .m = keys, .n = fattn__padded(rows), .k = p->dim_qk, .factor = (float)p->attn_scale });
    if (!fattn__scores_are_plain(p))
        fattn__scores_modify(&(fattn__scores){ p, x->t, x->b, x->h, x->row0 + first, rows, key0, keys, 1, step }, s);
    if (!sight.whole)
        fattn__tile_mask(s, 1, step, band, x->row0 + first, rows, key0, keys);
    x->kernels->soften(&(fattn__soft){ s, w->max + first, w->sum + first, w->rescale + first, keys, rows, step });
    x->kernels->scale_rows(w->o + first * w->wide_v, rows, w->wide_v, w->rescale + first);
    fattn__weigh(x->kernels,
                 &(fattn__product){ .c = w->o + first * w->wide_v, .a = s, .b = w->v, .c_row = w->wide_v, .a_row = 1, .a_column = step,
                                    .b_row = w->wide_v, .m = rows, .n = w->wide_v, .k = keys, .factor = 1, .accumulate = true },
                 x->kernels->is_finite(w->v, keys * w->wide_v));
}

static void store_row_value(float *to, const tile *x, int64_t i, float value)
{
    const int64_t *stride = x->p->stats_strides;
    if (to)
        to[x->b * stride[0] + x->h * stride[1] + (x->row0 + i) * stride[2]] = value;
}

static void finish(const tile *x)
{
    const fattn__scratch *w = x->w;
    const fattn__view o = { x->t->o, x->p->o_dtype, x->p->o_strides };
    for (int64_t i = 0; i < x->rows; i++) {
        const bool dead = w->max[i] == -INFINITY;
        w->rescale[i] = dead ? 0.0f : 1.0f / w->sum[i];
        store_row_value(x->t->stats, x, i, dead ? -INFINITY : w->max[i] + logf(w->sum[i]));
        store_row_value(x->t->max, x, i, w->max[i]);
        store_row_value(x->t->sum_exp, x, i, w->sum[i]);
    }
    x->kernels->scale_rows(w->o, x->rows, w->wide_v, w->rescale);
    fattn__tile_store(&o, x->b, x->h, x->row0, x->rows, x->p->dim_v, w->o, w->wide_v);
}

static void forward_rows(const tile *x)
{
    const fattn_problem *p = x->p;
    fattn__scratch *w = x->w;
    const fattn__view q = { (char *)(uintptr_t)x->t->q, p->dtype, p->q_strides };
    const fattn__band band = fattn__band_of(p, x->t, x->b);
    memset(w->o, 0, (size_t)(x->rows * w->wide_v) * sizeof *w->o);
    for (int64_t i = 0; i < FATTN__ROWS; i++) {
        w->max[i] = -INFINITY;
        w->sum[i] = 0;
    }
    fattn__tile_load(w->q, w->wide_q, &q, x->b, x->h, x->row0, x->rows, p->dim_qk);
    fattn__tile_transpose(w->qt, FATTN__ROWS, w->q, w->wide_q, x->rows, p->dim_qk);
    for (int64_t key0 = 0; key0 < band.len_kv; key0 += FATTN__KEYS)
        absorb(x, &band, key0, least(FATTN__KEYS, band.len_kv - key0));
    finish(x);
}

void fattn__cpu_forward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    const fattn__kernels *kernels = fattn__cpu_kernels();
    int64_t tiles = (p->seq_q + FATTN__ROWS - 1) / FATTN__ROWS, tasks = p->batch * p->heads_q * tiles;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++) {
        fattn__scratch w = fattn__scratch_at(p, scratch, omp_get_thread_num());
        int64_t row0 = task % tiles * FATTN__ROWS, bh = task / tiles;
        forward_rows(&(tile){ p, t, kernels, &w, bh / p->heads_q, bh % p->heads_q, row0, least(FATTN__ROWS, p->seq_q - row0) });
    }
}
