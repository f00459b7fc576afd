#include <math.h>
#include <omp.h>
#include <string.h>

#include "attention.h"
#include "scratch.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Takes one tile of scores into the running row maximum, row sum and output (the online softmax). */
static void absorb(fattn__scratch *w, int64_t rows, int64_t keys, int64_t dim_v)
{
    for (int64_t i = 0; i < rows; i++) {
        float *s = w->s + i * FATTN__KEYS, top = w->max[i], sum = 0;
        for (int64_t j = 0; j < keys; j++)
            top = fmaxf(top, s[j]);
        if (top == -INFINITY) { /* nothing visible so far */
            memset(s, 0, (size_t)keys * sizeof *s);
            continue;
        }
        float rescale = expf(w->max[i] - top);
        for (int64_t j = 0; j < keys; j++) {
            s[j] = s[j] == -INFINITY ? 0.0f : expf(s[j] - top);
            sum += s[j];
        }
        w->max[i] = top;
        w->sum[i] = w->sum[i] * rescale + sum;
        for (int64_t d = 0; d < dim_v; d++)
            w->o[i * dim_v + d] *= rescale;
    }
    fattn__tile_add(w->o, w->s, w->v, rows, keys, dim_v);
}

static void store_row_value(float *to, const fattn_problem *p, int64_t b, int64_t h, int64_t s, float value)
{
    if (to)
        to[b * p->stats_strides[0] + h * p->stats_strides[1] + s * p->stats_strides[2]] = value;
}

static void finish(const fattn_problem *p, const fattn_tensors *t, fattn__scratch *w, int64_t b, int64_t h, int64_t row0, int64_t rows)
{
    const fattn__view o = { t->o, p->o_dtype, p->o_strides };
    for (int64_t i = 0; i < rows; i++) {
        bool dead = w->max[i] == -INFINITY;
        float inverse = dead ? 0.0f : 1.0f / w->sum[i];
        for (int64_t d = 0; d < p->dim_v; d++)
            w->o[i * p->dim_v + d] *= inverse;
        store_row_value(t->stats, p, b, h, row0 + i, dead ? -INFINITY : w->max[i] + logf(w->sum[i]));
        store_row_value(t->max, p, b, h, row0 + i, w->max[i]);
        store_row_value(t->sum_exp, p, b, h, row0 + i, w->sum[i]);
    }
    fattn__tile_store(&o, b, h, row0, rows, p->dim_v, w->o);
}

static void forward_rows(const fattn_problem *p, const fattn_tensors *t, fattn__scratch *w, int64_t b, int64_t h, int64_t row0)
{
    const fattn__view q = { (char *)(uintptr_t)t->q, p->dtype, p->q_strides }, k = { (char *)(uintptr_t)t->k, p->dtype, p->k_strides },
                      v = { (char *)(uintptr_t)t->v, p->dtype, p->v_strides };
    int64_t rows = least(FATTN__ROWS, p->seq_q - row0);
    int64_t hk = h / (p->heads_q / p->heads_k), hv = h / (p->heads_q / p->heads_v);
    fattn__band band = fattn__band_of(p, t, b);

    memset(w->o, 0, (size_t)(rows * p->dim_v) * sizeof *w->o);
    for (int64_t i = 0; i < rows; i++) {
        w->max[i] = -INFINITY;
        w->sum[i] = 0;
    }
    fattn__tile_load(w->q, &q, b, h, row0, rows, p->dim_qk);
    for (int64_t key0 = 0; key0 < band.len_kv; key0 += FATTN__KEYS) {
        int64_t keys = least(FATTN__KEYS, band.len_kv - key0);
        if (!fattn__tile_touches(&band, row0, rows, key0, keys))
            continue;
        fattn__tile_load(w->k, &k, b, hk, key0, keys, p->dim_qk);
        fattn__tile_load(w->v, &v, b, hv, key0, keys, p->dim_v);
        fattn__tile_dot(w->s, w->q, w->k, rows, keys, p->dim_qk, (float)p->attn_scale);
        fattn__tile_mask(w->s, &band, row0, rows, key0, keys);
        absorb(w, rows, keys, p->dim_v);
    }
    finish(p, t, w, b, h, row0, rows);
}

void fattn__cpu_forward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    int64_t tiles = (p->seq_q + FATTN__ROWS - 1) / FATTN__ROWS, tasks = p->batch * p->heads_q * tiles;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++) {
        fattn__scratch w = fattn__scratch_at(p, scratch, omp_get_thread_num());
        int64_t tile = task % tiles, bh = task / tiles;
        forward_rows(p, t, &w, bh / p->heads_q, bh % p->heads_q, tile * FATTN__ROWS);
    }
}
