#include <math.h>
#include <omp.h>
#include <string.h>

#include "cpu_attention.h"
#include "cpu_gradient.h"
#include "kernels/cpu_number.h"
#include "liars/lies.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* A gradient of Q, of K, of V, or of K and V together, and how it is divided into tasks: (b, h,
 * tile of rows or keys) of the output. */
typedef struct part {
    bool of_q, of_k, of_v;
    bool summed[4];
    int64_t batch, heads, seq; /* extents before sums */
    int64_t tile;
} part;

static int64_t tiles_of(const part *x)
{
    return x->summed[2] ? 1 : (x->seq + x->tile - 1) / x->tile;
}

static int64_t tasks_of(const part *x)
{
    return (x->summed[0] ? 1 : x->batch) * (x->summed[1] ? 1 : x->heads) * tiles_of(x);
}

/* Planted faults of dK and dV. */
static void bend_keys(const fattn__gradient *g, bool of_k, const int64_t at[3], int64_t count,
                      float *acc, int64_t step)
{
    const int64_t live = fattn__band_of(g->c->p, g->c->t, at[0]).len_kv - at[2];
    fattn__liar_bend_keys(g->c->p, of_k, count, acc, step);
    for (int64_t j = live; j < count && FATTN__LIE(B_PADDED_DK) && of_k && live > 0; j++)
        memcpy(acc + j * step, acc + (live - 1) * step, (size_t)step * sizeof *acc);
}

/* Stores a tile of sums of entry b: the rows that the tensor has, or all rows as one if the
 * sequence is summed. */
static void store(fattn__gradient *g, const part *x, const fattn__view *to, const int64_t at[3],
                  int64_t dim, float *acc, int64_t step, float factor, float scale, float *amax)
{
    int64_t count = fattn__least(x->tile, x->seq - at[2]);
    for (int64_t n = 0; n < x->tile * step && factor != 1.0f; n++)
        acc[n] *= factor;
    if (x->summed[2]) {
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0;
            for (int64_t i = 0; i < x->tile; i++)
                sum += (double)acc[i * step + d];
            acc[d] = (float)sum;
        }
        count = 1;
    } else if (to->offsets != NULL) {
        const fattn__band band = fattn__band_of(g->c->p, g->c->t, at[0]);
        const int64_t length = x->of_q ? band.len_q : band.len_kv;
        count = length > at[2] ? fattn__least(count, length - at[2]) : 0;
    }
    if (g->c->factors.eight_bit)
        fattn__scale_output(acc, count, step, dim, scale, amax);
    if (!x->of_q)
        bend_keys(g, to == &g->c->dk, at, count, acc, step);
    fattn__view_store(to, at[0], at[1], at[2], count, dim, acc, step);
}

/* acc += dS K for one tile of rows of one (b, h). */
static void add_to_q(fattn__gradient *g, const fattn__band *band, int64_t b, int64_t h,
                     int64_t row0)
{
    const fattn__call *c = g->c;
    fattn__scratch *w = &g->w;
    const int64_t rows = fattn__least(FATTN__ROWS, band->len_q - row0);
    if (rows <= 0)
        return;
    fattn__scores at = { c->p, c->t, band, b, h, row0, rows, 0, 0, FATTN__KEYS, 1 };
    fattn__gradient_rows(g, &at);
    const int64_t step = fattn__tile_keys(), tiles = (band->len_kv + step - 1) / step;
    for (int64_t n = 0; n < tiles; n++) {
        at.key0 = (fattn__like_gpu.reversed ? tiles - 1 - n : n) * step;
        at.keys = fattn__least(step, band->len_kv - at.key0);
        if (fattn__tile_sight(&at).last == 0)
            continue;
        fattn__gradient_keys(g, &at);
        fattn__gradient_tile(g, &at, FATTN__PLACE_SCORE, false);
        fattn__narrow_ds(&c->factors, &at, w->dp, false,
                         FATTN__LIE(AMAX_DP_EARLY) ? NULL : &g->amax[FATTN__AMAX_DP]);
        const fattn__product sum = { .c = w->acc_q,
                                     .a = w->dp,
                                     .b = fattn__gradient_k(g),
                                     .c_row = w->wide_q,
                                     .a_row = FATTN__KEYS,
                                     .a_column = 1,
                                     .b_row = w->wide_q,
                                     .m = rows,
                                     .n = w->wide_q,
                                     .k = at.keys,
                                     .factor = 1,
                                     .accumulate = true };
        fattn__weigh(c->kernels, &sum, g->k_finite);
        if (FATTN__LIE(B_DQ_TWICE) && at.key0 == 0)
            fattn__weigh(c->kernels, &sum, g->k_finite);
        for (int64_t k = 0; FATTN__LIE(B_DQ_NARROW) && k < rows * w->wide_q; k++)
            w->acc_q[k] = fattn__number_round(c->p->dtype, w->acc_q[k]);
    }
}

/* A sum over rows. What works as a GPU adds 16 rows at a time. */
static void weigh_rows(const fattn__call *c, fattn__product sum, bool finite)
{
    const int64_t rows = sum.k, step = fattn__like_gpu.on ? 16 : rows;
    for (int64_t first = 0; first < rows; first += step) {
        sum.k = fattn__least(step, rows - first);
        fattn__weigh(c->kernels, &sum, finite);
        sum.a += step * sum.a_column;
        sum.b += step * sum.b_row;
    }
}

/* acc += dS^T Q and P'^T dO for one tile of keys of one (b, query head). */
static void add_to_keys(fattn__gradient *g, const part *x, const fattn__band *band, int64_t b,
                        int64_t h, int64_t key0)
{
    const fattn__call *c = g->c;
    fattn__scratch *w = &g->w;
    const int64_t keys = fattn__least(x->tile, band->len_kv - key0);
    if (keys <= 0)
        return;
    fattn__scores at = { c->p, c->t, band, b, h, 0, 0, key0, keys, FATTN__KEYS, 1 };
    fattn__gradient_keys(g, &at);
    for (int64_t row0 = 0; row0 < band->len_q; row0 += FATTN__ROWS) {
        const int64_t rows = fattn__least(FATTN__ROWS, band->len_q - row0);
        at.row0 = row0, at.rows = rows;
        if (fattn__tile_sight(&at).last == 0)
            continue;
        fattn__gradient_rows(g, &at);
        fattn__gradient_tile(g, &at, FATTN__PLACE_SCORE, !x->of_k);
        fattn__product sum = { .a_row = 1,
                               .a_column = FATTN__KEYS,
                               .m = keys,
                               .k = rows,
                               .factor = 1,
                               .accumulate = true };
        if (x->of_k) {
            fattn__narrow_ds(&c->factors, &at, w->dp, true, NULL);
            if (FATTN__LIE(B_LAST_ROW_DK) && b + h == 0 && row0 + rows == band->len_q)
                memset(w->dp + (rows - 1) * FATTN__KEYS, 0, FATTN__KEYS * sizeof *w->dp);
            sum.c = w->acc_k, sum.a = w->dp, sum.b = fattn__gradient_q(g),
            sum.c_row = sum.b_row = sum.n = w->wide_q;
            weigh_rows(c, sum, g->q_finite);
        }
        if (x->of_v) {
            fattn__narrow_p(&c->factors, &at, w->s);
            sum.c = w->acc_v, sum.a = w->s, sum.b = fattn__gradient_do(g),
            sum.c_row = sum.b_row = sum.n = w->wide_v;
            weigh_rows(c, sum, g->d_o_finite);
        }
    }
}

/* Converts between the gradients of rotated rows, which the products add to, and those of the rows
 * themselves, which are stored. */
static void turn(const fattn__gradient *g, const part *x, int64_t s0, bool back)
{
    const fattn__call *c = g->c;
    const fattn__view *v = x->of_q ? &c->q : &c->k;
    float *acc = x->of_q ? g->w.acc_q : g->w.acc_k;
    for (int64_t i = 0;
         i < fattn__least(x->tile, x->seq - s0) && v->angles != NULL && !(x->of_v && !x->of_k); i++)
        fattn__rotate(acc + i * g->w.wide_q, c->p->dim_qk, v->angles + (s0 + i) * v->lanes,
                      v->lanes, back);
}

/* Does each query head make a partial dK and dV of its own, as a GPU's does? */
static bool makes_partials(const fattn__call *c, const part *x, int64_t group)
{
    return fattn__like_gpu.on && !x->of_q && group > 1 && c->k.angles == NULL;
}

static void join(fattn__gradient *g, float *sum, float *partial, int64_t count, float factor)
{
    const int32_t type = g->c->p->dtype;
    const bool cast = !fattn__like_gpu.partials_fp32 && !g->c->factors.eight_bit;
    for (int64_t n = 0; n < count; n++) {
        const float value = partial[n] * factor;
        sum[n] += cast ? fattn__number_round(type, value) : value;
        if (FATTN__LIE(B_GROUP_NARROW))
            sum[n] = fattn__number_round(type, sum[n]);
    }
    memset(partial, 0, (size_t)count * sizeof *partial);
}

static void join_group(fattn__gradient *g, const part *x, int64_t h, int64_t group)
{
    fattn__scratch *w = &g->w;
    const bool counts = !FATTN__LIE(B_GQA_LAST) || (h + 1) % group == 0;
    if (x->of_k)
        join(g, w->group_k, w->acc_k, FATTN__KEYS * w->wide_q, counts ? g->c->factors.dk : 0.0f);
    if (x->of_v)
        join(g, w->group_v, w->acc_v, FATTN__KEYS * w->wide_v, counts ? g->c->factors.dv : 0.0f);
}

static void run_part(fattn__gradient *g, const part *x, int64_t task)
{
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = &g->w;
    const int64_t tiles = tiles_of(x), heads = x->summed[1] ? 1 : x->heads, tile = task % tiles,
                  head = task / tiles % heads, batch = task / tiles / heads,
                  group = p->heads_q / x->heads, place[3] = { batch, head, tile * x->tile };
    const fattn__span bs = fattn__span_of(x->summed[0] && !FATTN__LIE(ZERO_STRIDE_UNSUMMED), batch,
                                          x->batch),
                      hs = fattn__span_of(x->summed[1], head, x->heads),
                      ts = fattn__span_of(x->summed[2], tile, (x->seq + x->tile - 1) / x->tile);
    const bool parts = makes_partials(c, x, group);
    if (!x->of_q || !FATTN__LIE(WORKSPACE_DIRTY) || batch + head > 0)
        memset(x->of_q ? w->acc_q : w->acc_k, 0, (size_t)(x->tile * w->wide_q) * sizeof(float));
    memset(w->acc_v, 0, (size_t)(FATTN__KEYS * w->wide_v) * sizeof(float));
    if (parts) {
        memset(w->group_k, 0, (size_t)(FATTN__KEYS * w->wide_q) * sizeof(float));
        memset(w->group_v, 0, (size_t)(FATTN__KEYS * w->wide_v) * sizeof(float));
    }
    for (int64_t at = ts.first; at < ts.last; at++) {
        turn(g, x, at * x->tile, false);
        for (int64_t b = bs.first; b < bs.last; b++) {
            const fattn__band band = fattn__band_of(p, c->t, b);
            for (int64_t h = hs.first * group; h < hs.last * group; h++) {
                x->of_q ? add_to_q(g, &band, b, h, at * x->tile)
                        : add_to_keys(g, x, &band, b, h, at * x->tile);
                if (parts)
                    join_group(g, x, h, group);
            }
        }
        turn(g, x, at * x->tile, true);
    }
    if (x->of_q)
        store(g, x, &c->dq, place, p->dim_qk, w->acc_q, w->wide_q, c->factors.dq,
              c->factors.scale_dq, &g->amax[FATTN__AMAX_DQ]);
    if (x->of_k)
        store(g, x, &c->dk, place, p->dim_qk, parts ? w->group_k : w->acc_k, w->wide_q,
              parts ? 1.0f : c->factors.dk, c->factors.scale_dk, &g->amax[FATTN__AMAX_DK]);
    if (x->of_v)
        store(g, x, &c->dv, place, p->dim_v, parts ? w->group_v : w->acc_v, w->wide_v,
              parts ? 1.0f : c->factors.dv, c->factors.scale_dv, &g->amax[FATTN__AMAX_DV]);
}

/* dQ, dK, dV. One task computes dK and dV together if their tiles are the same. */
static int parts_of(const fattn_problem *p, part out[3])
{
    part q = {
        .of_q = true, .batch = p->batch, .heads = p->heads_q, .seq = p->seq_q, .tile = FATTN__ROWS
    };
    part k = { .of_k = true,
               .batch = p->batch,
               .heads = p->heads_k,
               .seq = p->seq_kv,
               .tile = fattn__tile_keys() },
         v = k;
    v.of_k = false, v.of_v = true, v.heads = p->heads_v;
    fattn__problem_sums(p, FATTN__ROLE_DQ, q.summed);
    fattn__problem_sums(p, FATTN__ROLE_DK, k.summed);
    fattn__problem_sums(p, FATTN__ROLE_DV, v.summed);
    const bool together = k.heads == v.heads && memcmp(k.summed, v.summed, sizeof k.summed) == 0;
    k.of_v = together;
    out[0] = q, out[1] = k, out[2] = v;
    return together ? 2 : 3;
}

/* The tasks of a backward, one after the other. */
typedef struct work {
    part parts[3];
    fattn__reduction reductions[FATTN__MOST_REDUCTIONS];
    int part_count, reduction_count;
    int64_t sinks, tasks;
} work;

static void work_of(work *out, const fattn_problem *p, const fattn_tensors *t)
{
    out->part_count = parts_of(p, out->parts);
    out->reduction_count = fattn__reductions_of(p, t, out->reductions);
    out->sinks = out->tasks = p->dsink ? p->heads_q : 0;
    for (int i = 0; i < out->part_count; i++)
        out->tasks += tasks_of(&out->parts[i]);
    for (int i = 0; i < out->reduction_count; i++)
        out->tasks += fattn__reduction_tasks(&out->reductions[i]);
}

static void run_task(fattn__gradient *g, const work *x, int64_t task)
{
    for (int i = 0; i < x->part_count; task -= tasks_of(&x->parts[i++]))
        if (task < tasks_of(&x->parts[i])) {
            run_part(g, &x->parts[i], task);
            return;
        }
    for (int i = 0; i < x->reduction_count; task -= fattn__reduction_tasks(&x->reductions[i++]))
        if (task < fattn__reduction_tasks(&x->reductions[i])) {
            fattn__reduction_run(g, &x->reductions[i], task);
            return;
        }
    fattn__sink_run(g, task);
}

static void store_amax(const fattn_problem *p, const fattn_tensors *t,
                       const float amax[FATTN__AMAX_COUNT])
{
    float *const to[] = {
#define AS_FIELD(symbol, field) t->field,
        FATTN__AMAX_LIST(AS_FIELD)
#undef AS_FIELD
    };
    for (int i = fattn__dtype_is_fp8(p->dtype) ? 0 : FATTN__AMAX_DQ; i < FATTN__AMAX_COUNT; i++)
        *to[i] = amax[i];
}

void fattn__cpu_backward(const fattn_problem *p, const fattn_tensors *t, int threads, char *scratch)
{
    fattn__call c;
    float amax[FATTN__AMAX_COUNT] = { 0 };
    work x;
    fattn__call_of(&c, p, t);
    work_of(&x, p, t);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (x.tasks > 1)                   \
    reduction(max : amax[ : FATTN__AMAX_COUNT])
    for (int64_t task = 0; task < x.tasks; task++) {
        fattn__gradient g = fattn__gradient_of(&c, scratch, omp_get_thread_num());
        run_task(&g, &x, task);
        for (int i = 0; i < FATTN__AMAX_COUNT; i++)
            amax[i] = fmaxf(amax[i], g.amax[i]);
    }
    if (FATTN__LIE(AMAX_DQ_SAT))
        amax[FATTN__AMAX_DQ] =
            fminf(amax[FATTN__AMAX_DQ], fattn__number_most(p->grad_dtype) / c.factors.scale_dq);
    if (c.factors.eight_bit)
        store_amax(p, t, amax);
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0)
        fattn__dropping_dump(&c.dropping, p, t->rng_dump, threads);
}
