#include <math.h>
#include <string.h>

#include "cpu/kernels/cpu_number.h"
#include "cpu_gradient.h"
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
