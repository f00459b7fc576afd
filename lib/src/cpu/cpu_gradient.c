#include "cpu_gradient.h"

#include <math.h>
#include <string.h>

#include "cpu/kernels/cpu_number.h"
#include "liars/lies.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"
#include "score_mod/mod_program.h"

int fattn__reductions_of(const fattn_problem *p, const fattn_tensors *t,
                         fattn__reduction out[FATTN__MOST_REDUCTIONS])
{
    int count = 0;
    if (p->dbias) {
        const fattn__shape shape = fattn__problem_shape(p, FATTN__ROLE_DBIAS);
        out[count] = (fattn__reduction){ .to = t->dbias,
                                         .dtype = shape.dtype,
                                         .place = FATTN__PLACE_MODIFIED };
        memcpy(out[count].dim, shape.dim, sizeof shape.dim);
        memcpy(out[count++].strides, shape.strides, sizeof shape.strides);
    }
    for (size_t i = 0; i < FATTN_MOD_MAX_TENSORS && p->score_mod != NULL; i++) {
        if ((p->mod_gradients >> i & 1u) == 0)
            continue;
        const fattn_mod_tensor *tensor = fattn_score_mod_tensor(p->score_mod, i);
        out[count] =
            (fattn__reduction){ .to = t->mod_gradients[i],
                                .dtype = FATTN_F32,
                                .place =
                                    fattn__score_mod_gradient(p->score_mod)->tensor_results[i] };
        memcpy(out[count].dim, tensor->dim, sizeof tensor->dim);
        fattn__dense_strides(tensor->dim, "bhsd", out[count++].strides);
    }
    return count;
}

static int64_t tiles(int64_t extent, int64_t of)
{
    return (extent + of - 1) / of;
}

int64_t fattn__reduction_tasks(const fattn__reduction *r)
{
    return r->dim[0] * r->dim[1] * tiles(r->dim[2], FATTN__ROWS) * tiles(r->dim[3], FATTN__KEYS);
}

/* Adds one (b, h): the rows and the keys of the output's tile. */
static void add_head(fattn__gradient *g, int64_t b, int64_t h, fattn__span row_tiles,
                     fattn__span key_tiles)
{
    const fattn__band band = fattn__band_of(g->c->p, g->c->t, b);
    for (int64_t row0 = row_tiles.first * FATTN__ROWS;
         row0 < row_tiles.last * FATTN__ROWS && row0 < band.len_q; row0 += FATTN__ROWS) {
        fattn__scores at = { .p = g->c->p,
                             .t = g->c->t,
                             .band = &band,
                             .b = b,
                             .h = h,
                             .row0 = row0,
                             .rows = fattn__least(FATTN__ROWS, band.len_q - row0),
                             .row_step = FATTN__KEYS,
                             .key_step = 1 };
        fattn__gradient_rows(g, &at);
        for (int64_t key0 = key_tiles.first * FATTN__KEYS;
             key0 < key_tiles.last * FATTN__KEYS && key0 < band.len_kv; key0 += FATTN__KEYS) {
            at.key0 = key0, at.keys = fattn__least(FATTN__KEYS, band.len_kv - key0);
            if (fattn__tile_sight(&at).last == 0)
                continue;
            fattn__gradient_keys(g, &at);
            fattn__gradient_tile(g, &at, g->reduced_place, false);
            for (int64_t i = 0; i < at.rows; i++)
                for (int64_t j = 0; j < at.keys; j++)
                    g->w.acc[i * FATTN__KEYS + j] += g->w.dp[i * FATTN__KEYS + j];
        }
    }
}

/* Rows (keys) that are summed to one are added in double, and every element is rounded once. */
static void store_sums(const fattn__gradient *g, const fattn__reduction *r, const int64_t at[4])
{
    const bool one_row = r->dim[2] == 1, one_key = r->dim[3] == 1;
    const int64_t rows = one_row ? 1 : fattn__least(FATTN__ROWS, r->dim[2] - at[2]),
                  keys = one_key ? 1 : fattn__least(FATTN__KEYS, r->dim[3] - at[3]);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            double sum = 0;
            for (int64_t y = i; y < (one_row ? FATTN__ROWS : i + 1); y++)
                for (int64_t x = j; x < (one_key ? FATTN__KEYS : j + 1); x++)
                    sum += (double)g->w.acc[y * FATTN__KEYS + x];
            if (r->place == FATTN__PLACE_MODIFIED && FATTN__LIE(DBIAS_SCALED))
                sum *= (double)g->c->factors.attn_scale;
            if (r->place == FATTN__PLACE_MODIFIED && FATTN__LIE(DBIAS_COLUMN) &&
                r->dim[3] % 2 == 1 && at[3] + j == r->dim[3] - 1)
                sum = 0.0;
            if (r->place == FATTN__PLACE_MODIFIED && FATTN__LIE(DBIAS_MASKED) && sum == 0.0)
                continue;
            const int64_t to = at[0] * r->strides[0] + at[1] * r->strides[1] +
                               (at[2] + i) * r->strides[2] + (at[3] + j) * r->strides[3];
            fattn__number_store(r->to, r->dtype, to, (float)sum);
        }
}

void fattn__reduction_run(fattn__gradient *g, const fattn__reduction *r, int64_t task)
{
    const fattn_problem *p = g->c->p;
    const int64_t key_tiles = tiles(r->dim[3], FATTN__KEYS),
                  row_tiles = tiles(r->dim[2], FATTN__ROWS);
    const int64_t key_tile = task % key_tiles, row_tile = task / key_tiles % row_tiles,
                  head = task / key_tiles / row_tiles % r->dim[1],
                  batch = task / key_tiles / row_tiles / r->dim[1];
    const fattn__span batches = fattn__span_of(r->dim[0] == 1, batch, p->batch),
                      heads = fattn__span_of(r->dim[1] == 1, head, p->heads_q);
    memset(g->w.acc, 0, FATTN__ROWS * FATTN__KEYS * sizeof *g->w.acc);
    g->reduced_place = r->place;
    const bool of_one = r->place == FATTN__PLACE_MODIFIED && FATTN__LIE(DBIAS_BATCH);
    for (int64_t b = of_one ? batches.last - 1 : batches.first;
         b < batches.last && r->place != FATTN__PLACE_NONE; b++)
        for (int64_t h = heads.first; h < heads.last; h++)
            add_head(g, b, h,
                     fattn__span_of(r->dim[2] == 1, row_tile, tiles(p->seq_q, FATTN__ROWS)),
                     fattn__span_of(r->dim[3] == 1, key_tile, tiles(p->seq_kv, FATTN__KEYS)));
    store_sums(g, r, (int64_t[4]){ batch, head, row_tile * FATTN__ROWS, key_tile * FATTN__KEYS });
}

void fattn__sink_run(fattn__gradient *g, int64_t h)
{
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    double sum = 0;
    for (int64_t b = 0; b < p->batch; b++) {
        const fattn__band band = fattn__band_of(p, c->t, b);
        for (int64_t row0 = 0; row0 < band.len_q; row0 += FATTN__ROWS) {
            const int64_t rows = fattn__least(FATTN__ROWS, band.len_q - row0);
            fattn__gradient_rows(g, &(fattn__scores){ .b = b, .h = h, .row0 = row0, .rows = rows });
            for (int64_t i = 0; i < rows; i++)
                if (g->w.stats[i] != -INFINITY)
                    sum += exp((double)c->t->sink[h] - (double)g->w.stats[i]) * (double)g->w.row[i];
        }
    }
    c->t->dsink[h] = (float)-sum;
}

fattn__gradient fattn__gradient_of(const fattn__call *call, char *scratch, int thread)
{
    return (fattn__gradient){ .c = call, .w = fattn__scratch_at(call->p, scratch, thread) };
}

float *fattn__gradient_q(const fattn__gradient *g)
{
    return g->c->factors.block_scaled && !FATTN__LIE(MX_COPY_Q) ? g->w.q_t : g->w.q;
}

float *fattn__gradient_k(const fattn__gradient *g)
{
    return g->c->factors.block_scaled && !FATTN__LIE(MX_COPY_K) ? g->w.k_t : g->w.k;
}

float *fattn__gradient_do(const fattn__gradient *g)
{
    return g->c->factors.block_scaled && !FATTN__LIE(MX_COPY_DO) ? g->w.do_t : g->w.d_o;
}

void fattn__gradient_rows(fattn__gradient *g, const fattn__scores *at)
{
    const int64_t b = at->b, h = at->h, row0 = at->row0, rows = at->rows;
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = &g->w;
    const float *d_o = c->factors.block_scaled ? w->do_16 : w->d_o; /* inputs of D */
    fattn__view_load(w->q, w->wide_q, &c->q, b, h, row0, rows, p->dim_qk);
    fattn__view_load(w->d_o, w->wide_v, &c->d_o, b, h, row0, rows, p->dim_v);
    fattn__view_load(w->o, w->wide_v, &c->o, b, h, row0, rows, p->dim_v);
    if (c->factors.block_scaled) {
        fattn__view_load(w->q_t, w->wide_q, &c->q_t, b, h, row0, rows, p->dim_qk);
        fattn__view_load(w->do_t, w->wide_v, &c->do_t, b, h, row0, rows, p->dim_v);
        fattn__view_load(w->do_16, w->wide_v, &c->do_16, b, h, row0, rows, p->dim_v);
    }
    g->q_finite = c->kernels->is_finite(fattn__gradient_q(g), rows * w->wide_q);
    g->d_o_finite = c->kernels->is_finite(fattn__gradient_do(g), rows * w->wide_v);
    for (int64_t i = 0; i < rows; i++) {
        w->row[i] =
            c->factors.dot * c->kernels->dot(d_o + i * w->wide_v, w->o + i * w->wide_v, w->wide_v);
        for (int64_t d = p->dim_v - 8; d < p->dim_v && FATTN__LIE(B_DELTA_TAIL); d++)
            w->row[i] -= c->factors.dot * d_o[i * w->wide_v + d] * w->o[i * w->wide_v + d];
        if (FATTN__LIE(B_NO_DELTA))
            w->row[i] = 0.0f;
        w->stats[i] = c->t->stats[fattn__view_row(&c->stats, b, h, row0 + i)];
    }
}

void fattn__gradient_keys(fattn__gradient *g, const fattn__scores *at)
{
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = &g->w;
    const int64_t head_k = at->h / (p->heads_q / p->heads_k), keys = at->keys;
    fattn__call_load_keys(c, false, w->k, at);
    fattn__call_load_keys(c, true, w->v, at);
    if (c->factors.block_scaled)
        fattn__view_load(w->k_t, w->wide_q, &c->k_t, at->b, head_k, at->key0, keys, p->dim_qk);
    fattn__tile_transpose(w->kt, FATTN__KEYS, w->k, w->wide_q, keys, p->dim_qk);
    fattn__tile_transpose(w->vt, FATTN__KEYS, w->v, w->wide_v, keys, p->dim_v);
    g->k_finite = c->kernels->is_finite(fattn__gradient_k(g), keys * w->wide_q);
}

/* c[rows][KEYS] = factor * a[rows][dim] bt[dim][KEYS] */
static void dot(const fattn__gradient *g, float *c, const float *a, int64_t a_row, const float *bt,
                int64_t rows, int64_t keys, int64_t dim, float factor)
{
    g->c->kernels->multiply(&(fattn__product){ .c = c,
                                               .a = a,
                                               .b = bt,
                                               .c_row = FATTN__KEYS,
                                               .a_row = a_row,
                                               .a_column = 1,
                                               .b_row = FATTN__KEYS,
                                               .m = rows,
                                               .n = fattn__padded(keys),
                                               .k = dim,
                                               .factor = factor });
}

/* w.s: from scores to P. */
static void weigh_tile(fattn__gradient *g, int64_t rows, int64_t keys)
{
    fattn__scratch *w = &g->w;
    for (int64_t i = 0; i < rows; i++) {
        float *s = w->s + i * FATTN__KEYS;
        if (w->stats[i] == -INFINITY)
            memset(s, 0, FATTN__KEYS * sizeof *s);
        else
            g->c->kernels->exponential(s, fattn__padded(keys), w->stats[i]);
    }
}

void fattn__gradient_tile(fattn__gradient *g, const fattn__scores *at, int32_t place,
                          bool values_only)
{
    const fattn__call *c = g->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = &g->w;
    const int64_t rows = at->rows, keys = at->keys;
    bool through_mod = p->score_mod != NULL && place != FATTN__PLACE_MODIFIED && !values_only &&
                       !FATTN__LIE(MOD_NO_GRADIENT);
    if (FATTN__LIE(SOFTCAP_GRAD))
        through_mod = false;
    dot(g, w->s, w->q, w->wide_q, w->kt, rows, keys, p->dim_qk, c->factors.score);
    if (through_mod)
        memcpy(w->raw, w->s, (size_t)(rows * FATTN__KEYS) * sizeof *w->raw);
    if (!fattn__scores_are_plain(p))
        fattn__scores_modify(at, w->s);
    if (!fattn__tile_sight(at).whole)
        fattn__tile_mask(at, w->s);
    weigh_tile(g, rows, keys);
    if (!values_only) {
        dot(g, w->dp, w->d_o, w->wide_v, w->vt, rows, keys, p->dim_v, c->factors.dp);
        fattn__dropping_apply(&c->dropping, at, w->dp);
        for (int64_t n = 0; FATTN__LIE(AMAX_DP_EARLY) && n < rows * keys; n++) {
            const int64_t e = n / keys * FATTN__KEYS + n % keys;
            g->amax[FATTN__AMAX_DP] =
                fmaxf(g->amax[FATTN__AMAX_DP], fabsf(w->s[e] * w->dp[e] * c->factors.attn_scale));
        }
        for (int64_t i = 0; i < rows; i++)
            c->kernels->slope(w->dp + i * FATTN__KEYS, w->s + i * FATTN__KEYS, fattn__padded(keys),
                              w->row[i]);
    }
    if (through_mod)
        fattn__scores_gradient(
            at, w->raw, w->dp,
            place == FATTN__PLACE_SCORE ? fattn__score_mod_gradient(p->score_mod)->result : place);
    fattn__dropping_apply(&c->dropping, at, w->s);
}
