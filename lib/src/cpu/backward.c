#include <math.h>
#include <omp.h>
#include <string.h>

#include "attention.h"
#include "scratch.h"

/* The tensors of a backward call, as views. */
typedef struct call {
    const fattn_problem *p;
    const fattn_tensors *t;
    fattn__view q, k, v, o, d_o, dq, dk, dv;
} call;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static char *writable(const void *data)
{
    return (char *)(uintptr_t)data; /* views of inputs are only read */
}

static call call_of(const fattn_problem *p, const fattn_tensors *t)
{
    return (call){ p,
                   t,
                   { writable(t->q), p->dtype, p->q_strides },
                   { writable(t->k), p->dtype, p->k_strides },
                   { writable(t->v), p->dtype, p->v_strides },
                   { t->o, p->o_dtype, p->o_strides },
                   { writable(t->d_o), p->o_dtype, p->do_strides },
                   { t->dq, p->grad_dtype, p->dq_strides },
                   { t->dk, p->grad_dtype, p->dk_strides },
                   { t->dv, p->grad_dtype, p->dv_strides } };
}

/* Rows of Q and dO, their Stats and D = sum_c dO O. */
static void load_rows(const call *c, fattn__scratch *w, int64_t b, int64_t h, int64_t row0, int64_t rows)
{
    const fattn_problem *p = c->p;
    fattn__tile_load(w->q, &c->q, b, h, row0, rows, p->dim_qk);
    fattn__tile_load(w->d_o, &c->d_o, b, h, row0, rows, p->dim_v);
    fattn__tile_load(w->o, &c->o, b, h, row0, rows, p->dim_v);
    for (int64_t i = 0; i < rows; i++) {
        float lane[16] = { 0 }, sum = 0;
        for (int64_t d = 0; d < p->dim_v; d++)
            lane[d % 16] += w->d_o[i * p->dim_v + d] * w->o[i * p->dim_v + d];
        for (int l = 0; l < 16; l++)
            sum += lane[l];
        w->row[i] = sum;
        w->stats[i] = c->t->stats[b * p->stats_strides[0] + h * p->stats_strides[1] + (row0 + i) * p->stats_strides[2]];
    }
}

/* s becomes P = exp(score - Stats); with `gradient`, dp becomes attn_scale * P * (dO.v - D). w->q, w->d_o, w->k, w->v are loaded. */
static void probabilities(const call *c, fattn__scratch *w, const fattn__band *band, int64_t row0, int64_t rows, int64_t key0,
                          int64_t keys, bool gradient)
{
    const fattn_problem *p = c->p;
    fattn__tile_dot(w->s, w->q, w->k, rows, keys, p->dim_qk, (float)p->attn_scale);
    fattn__tile_mask(w->s, band, row0, rows, key0, keys);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            float *s = &w->s[i * FATTN__KEYS + j];
            *s = *s == -INFINITY || w->stats[i] == -INFINITY ? 0.0f : expf(*s - w->stats[i]);
        }
    if (!gradient)
        return;
    fattn__tile_dot(w->dp, w->d_o, w->v, rows, keys, p->dim_v, 1.0f);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            int64_t at = i * FATTN__KEYS + j;
            w->dp[at] = w->s[at] == 0.0f ? 0.0f : (float)p->attn_scale * w->s[at] * (w->dp[at] - w->row[i]);
        }
}

static void backward_rows(const call *c, fattn__scratch *w, int64_t b, int64_t h, int64_t row0)
{
    const fattn_problem *p = c->p;
    int64_t rows = least(FATTN__ROWS, p->seq_q - row0);
    int64_t hk = h / (p->heads_q / p->heads_k), hv = h / (p->heads_q / p->heads_v);
    fattn__band band = fattn__band_of(p, c->t, b);
    memset(w->acc_q, 0, (size_t)(rows * p->dim_qk) * sizeof *w->acc_q);
    load_rows(c, w, b, h, row0, rows);
    for (int64_t key0 = 0; key0 < band.len_kv; key0 += FATTN__KEYS) {
        int64_t keys = least(FATTN__KEYS, band.len_kv - key0);
        if (!fattn__tile_touches(&band, row0, rows, key0, keys))
            continue;
        fattn__tile_load(w->k, &c->k, b, hk, key0, keys, p->dim_qk);
        fattn__tile_load(w->v, &c->v, b, hv, key0, keys, p->dim_v);
        probabilities(c, w, &band, row0, rows, key0, keys, true);
        fattn__tile_add(w->acc_q, w->dp, w->k, rows, keys, p->dim_qk);
    }
    fattn__tile_store(&c->dq, b, h, row0, rows, p->dim_qk, w->acc_q);
}

/* dK (or, with `values`, dV) of one tile of keys of one key (value) head: summed over the query heads of its group. */
static void backward_keys(const call *c, fattn__scratch *w, int64_t b, int64_t head, int64_t key0, bool values)
{
    const fattn_problem *p = c->p;
    int64_t keys = least(FATTN__KEYS, p->seq_kv - key0), dim = values ? p->dim_v : p->dim_qk;
    int64_t group = p->heads_q / (values ? p->heads_v : p->heads_k);
    float *acc = values ? w->acc_v : w->acc_k;
    fattn__band band = fattn__band_of(p, c->t, b);
    memset(acc, 0, (size_t)(keys * dim) * sizeof *acc);
    for (int64_t h = head * group; h < (head + 1) * group; h++) {
        fattn__tile_load(w->k, &c->k, b, h / (p->heads_q / p->heads_k), key0, keys, p->dim_qk);
        fattn__tile_load(w->v, &c->v, b, h / (p->heads_q / p->heads_v), key0, keys, p->dim_v);
        for (int64_t row0 = 0; row0 < band.len_q; row0 += FATTN__ROWS) {
            int64_t rows = least(FATTN__ROWS, band.len_q - row0);
            if (!fattn__tile_touches(&band, row0, rows, key0, keys))
                continue;
            load_rows(c, w, b, h, row0, rows);
            probabilities(c, w, &band, row0, rows, key0, keys, !values);
            fattn__tile_add_transposed(acc, values ? w->s : w->dp, values ? w->d_o : w->q, rows, keys, dim);
        }
    }
    fattn__tile_store(values ? &c->dv : &c->dk, b, head, key0, keys, dim, acc);
}

void fattn__cpu_backward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    const call c = call_of(p, t);
    int64_t row_tiles = (p->seq_q + FATTN__ROWS - 1) / FATTN__ROWS, key_tiles = (p->seq_kv + FATTN__KEYS - 1) / FATTN__KEYS;
    int64_t q_tasks = p->batch * p->heads_q * row_tiles, k_tasks = p->batch * p->heads_k * key_tiles,
            v_tasks = p->batch * p->heads_v * key_tiles;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t task = 0; task < q_tasks + k_tasks + v_tasks; task++) {
        fattn__scratch w = fattn__scratch_at(p, scratch, omp_get_thread_num());
        bool values = task >= q_tasks + k_tasks;
        if (task < q_tasks) {
            int64_t bh = task / row_tiles;
            backward_rows(&c, &w, bh / p->heads_q, bh % p->heads_q, task % row_tiles * FATTN__ROWS);
        } else {
            int64_t at = task - q_tasks - (values ? k_tasks : 0), heads = values ? p->heads_v : p->heads_k, bh = at / key_tiles;
            backward_keys(&c, &w, bh / heads, bh % heads, at % key_tiles * FATTN__KEYS, values);
        }
    }
}
