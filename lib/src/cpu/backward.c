#include <math.h>
#include <omp.h>
#include <string.h>

#include "../liars/liars.h"
#include "../problem.h"
#include "attention.h"
#include "gradient.h"

/* A gradient of Q, of K, of V, or of K and V together, and how it is divided into tasks: (b, h, tile of rows or keys) of the output. */
typedef struct part {
    bool of_q, of_k, of_v;
    bool summed[4];
    int64_t batch, heads, seq; /* extents before sums */
    int64_t tile;
} part;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t tiles_of(const part *x)
{
    return x->summed[2] ? 1 : (x->seq + x->tile - 1) / x->tile;
}

static int64_t tasks_of(const part *x)
{
    return (x->summed[0] ? 1 : x->batch) * (x->summed[1] ? 1 : x->heads) * tiles_of(x);
}

/* Stores a tile of sums; where the sequence is summed, all its rows as one. */
static void store(const fattn__view *to, const part *x, int64_t b, int64_t h, int64_t s0, int64_t dim, float *acc, int64_t step)
{
    int64_t count = least(x->tile, x->seq - s0);
    if (x->summed[2]) {
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0;
            for (int64_t i = 0; i < x->tile; i++)
                sum += (double)acc[i * step + d];
            acc[d] = (float)sum;
        }
        count = 1;
    }
    fattn__tile_store(to, b, h, s0, count, dim, acc, step);
}

/* acc += dS K for one tile of rows of one (b, h). */
static void add_to_q(fattn__gradient *g, const fattn__band *band, int64_t b, int64_t h, int64_t row0)
{
    const fattn_problem *p = g->p;
    fattn__scratch *w = &g->w;
    const int64_t rows = least(FATTN__ROWS, band->len_q - row0);
    if (rows <= 0)
        return;
    fattn__gradient_rows(g, b, h, row0, rows);
    for (int64_t key0 = 0; key0 < band->len_kv; key0 += FATTN__KEYS) {
        const int64_t keys = least(FATTN__KEYS, band->len_kv - key0);
        if (fattn__tile_sight(band, row0, rows, key0, keys).last == 0)
            continue;
        fattn__gradient_keys(g, b, h, key0, keys);
        fattn__gradient_tile(g, band, b, h, row0, rows, key0, keys, FATTN__PLACE_SCORE, false);
        fattn__weigh(g->kernels,
                     &(fattn__product){ .c = w->acc_q, .a = w->dp, .b = w->k, .c_row = w->wide_q, .a_row = FATTN__KEYS, .a_column = 1,
                                        .b_row = w->wide_q, .m = rows, .n = w->wide_q, .k = keys, .factor = (float)p->attn_scale, .accumulate = true },
                     g->k_finite);
    }
}

/* acc += dS^T Q and P^T dO for one tile of keys of one (b, query head). */
static void add_to_keys(fattn__gradient *g, const part *x, const fattn__band *band, int64_t b, int64_t h, int64_t key0)
{
    fattn__scratch *w = &g->w;
    const int64_t keys = least(FATTN__KEYS, band->len_kv - key0);
    if (keys <= 0)
        return;
    fattn__gradient_keys(g, b, h, key0, keys);
    for (int64_t row0 = 0; row0 < band->len_q; row0 += FATTN__ROWS) {
        const int64_t rows = least(FATTN__ROWS, band->len_q - row0);
        if (fattn__tile_sight(band, row0, rows, key0, keys).last == 0)
            continue;
        fattn__gradient_rows(g, b, h, row0, rows);
        fattn__gradient_tile(g, band, b, h, row0, rows, key0, keys, FATTN__PLACE_SCORE, !x->of_k);
        fattn__product sum = { .a_row = 1, .a_column = FATTN__KEYS, .m = keys, .k = rows, .accumulate = true };
        if (x->of_k) {
            sum.c = w->acc_k, sum.a = w->dp, sum.b = w->q, sum.c_row = sum.b_row = sum.n = w->wide_q, sum.factor = (float)g->p->attn_scale;
            fattn__weigh(g->kernels, &sum, g->q_finite);
        }
        if (x->of_v) {
            sum.c = w->acc_v, sum.a = w->s, sum.b = w->d_o, sum.c_row = sum.b_row = sum.n = w->wide_v, sum.factor = 1.0f;
            fattn__weigh(g->kernels, &sum, g->d_o_finite);
        }
    }
}

static void run_part(fattn__gradient *g, const part *x, int64_t task)
{
    const fattn_problem *p = g->p;
    const fattn_tensors *t = g->t;
    fattn__scratch *w = &g->w;
    const int64_t tiles = tiles_of(x), heads = x->summed[1] ? 1 : x->heads, tile = task % tiles, head = task / tiles % heads,
                  batch = task / tiles / heads, group = p->heads_q / x->heads;
    const fattn__span bs = fattn__span_of(x->summed[0] && !FATTN__LIE(ZERO_STRIDE_UNSUMMED), batch, x->batch), hs = fattn__span_of(x->summed[1], head, x->heads),
                      ts = fattn__span_of(x->summed[2], tile, (x->seq + x->tile - 1) / x->tile);
    const fattn__view dq = { t->dq, p->grad_dtype, p->dq_strides }, dk = { t->dk, p->grad_dtype, p->dk_strides },
                      dv = { t->dv, p->grad_dtype, p->dv_strides };
    memset(x->of_q ? w->acc_q : w->acc_k, 0, (size_t)(x->tile * w->wide_q) * sizeof(float));
    memset(w->acc_v, 0, (size_t)(FATTN__KEYS * w->wide_v) * sizeof(float));
    for (int64_t b = bs.first; b < bs.last; b++) {
        const fattn__band band = fattn__band_of(p, t, b);
        for (int64_t h = hs.first * group; h < hs.last * group; h++)
            for (int64_t at = ts.first; at < ts.last; at++)
                x->of_q ? add_to_q(g, &band, b, h, at * x->tile) : add_to_keys(g, x, &band, b, h, at * x->tile);
    }
    if (x->of_q)
        store(&dq, x, batch, head, tile * x->tile, p->dim_qk, w->acc_q, w->wide_q);
    if (x->of_k)
        store(&dk, x, batch, head, tile * x->tile, p->dim_qk, w->acc_k, w->wide_q);
    if (x->of_v)
        store(&dv, x, batch, head, tile * x->tile, p->dim_v, w->acc_v, w->wide_v);
}

/* dQ, dK, dV; dK and dV in one go where their tiles are the same. */
static int parts_of(const fattn_problem *p, part out[3])
{
    part q = { .of_q = true, .batch = p->batch, .heads = p->heads_q, .seq = p->seq_q, .tile = FATTN__ROWS };
    part k = { .of_k = true, .batch = p->batch, .heads = p->heads_k, .seq = p->seq_kv, .tile = FATTN__KEYS }, v = k;
    v.of_k = false, v.of_v = true, v.heads = p->heads_v;
    fattn__problem_sums(p, FATTN__ROLE_DQ, q.summed);
    fattn__problem_sums(p, FATTN__ROLE_DK, k.summed);
    fattn__problem_sums(p, FATTN__ROLE_DV, v.summed);
    const bool together = k.heads == v.heads && memcmp(k.summed, v.summed, sizeof k.summed) == 0;
    k.of_v = together;
    out[0] = q, out[1] = k, out[2] = v;
    return together ? 2 : 3;
}

void fattn__cpu_backward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    const fattn__kernels *kernels = fattn__cpu_kernels();
    part parts[3];
    fattn__reduction reductions[FATTN__MOST_REDUCTIONS];
    const int part_count = parts_of(p, parts), reduction_count = fattn__reductions_of(p, t, reductions);
    int64_t tasks = 0;
    for (int i = 0; i < part_count; i++)
        tasks += tasks_of(&parts[i]);
    for (int i = 0; i < reduction_count; i++)
        tasks += fattn__reduction_tasks(&reductions[i]);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t task = 0; task < tasks; task++) {
        fattn__gradient g = fattn__gradient_of(p, t, kernels, scratch, omp_get_thread_num());
        int64_t at = task;
        int i = 0;
        for (; i < part_count && at >= tasks_of(&parts[i]); i++)
            at -= tasks_of(&parts[i]);
        if (i < part_count) {
            run_part(&g, &parts[i], at);
            continue;
        }
        for (i = 0; at >= fattn__reduction_tasks(&reductions[i]); i++)
            at -= fattn__reduction_tasks(&reductions[i]);
        fattn__reduction_run(&g, &reductions[i], at);
    }
}
