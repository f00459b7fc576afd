#include "gradient.h"

#include <math.h>
#include <string.h>

#include "../liars/liars.h"
#include "../score_mod/program.h"

static char *writable(const void *data)
{
    return (char *)(uintptr_t)data; /* views of inputs are only read */
}

fattn__gradient fattn__gradient_of(const fattn_problem *p, const fattn_tensors *t, const fattn__kernels *kernels, char *scratch, int thread)
{
    return (fattn__gradient){ .p = p,
                              .t = t,
                              .kernels = kernels,
                              .q = { writable(t->q), p->dtype, p->q_strides },
                              .k = { writable(t->k), p->dtype, p->k_strides },
                              .v = { writable(t->v), p->dtype, p->v_strides },
                              .o = { writable(t->o), p->o_dtype, p->o_strides },
                              .d_o = { writable(t->d_o), p->o_dtype, p->do_strides },
                              .w = fattn__scratch_at(p, scratch, thread) };
}

void fattn__gradient_rows(fattn__gradient *g, int64_t b, int64_t h, int64_t row0, int64_t rows)
{
    const fattn_problem *p = g->p;
    fattn__scratch *w = &g->w;
    fattn__tile_load(w->q, w->wide_q, &g->q, b, h, row0, rows, p->dim_qk);
    fattn__tile_load(w->d_o, w->wide_v, &g->d_o, b, h, row0, rows, p->dim_v);
    fattn__tile_load(w->o, w->wide_v, &g->o, b, h, row0, rows, p->dim_v);
    g->q_finite = g->kernels->is_finite(w->q, rows * w->wide_q);
    g->d_o_finite = g->kernels->is_finite(w->d_o, rows * w->wide_v);
    for (int64_t i = 0; i < rows; i++) {
        w->row[i] = g->kernels->dot(w->d_o + i * w->wide_v, w->o + i * w->wide_v, w->wide_v);
        w->stats[i] = g->t->stats[b * p->stats_strides[0] + h * p->stats_strides[1] + (row0 + i) * p->stats_strides[2]];
    }
}

void fattn__gradient_keys(fattn__gradient *g, int64_t b, int64_t h, int64_t key0, int64_t keys)
{
    const fattn_problem *p = g->p;
    fattn__scratch *w = &g->w;
    fattn__tile_load(w->k, w->wide_q, &g->k, b, h / (p->heads_q / p->heads_k), key0, keys, p->dim_qk);
    fattn__tile_load(w->v, w->wide_v, &g->v, b, h / (p->heads_q / p->heads_v), key0, keys, p->dim_v);
    fattn__tile_transpose(w->kt, FATTN__KEYS, w->k, w->wide_q, keys, p->dim_qk);
    fattn__tile_transpose(w->vt, FATTN__KEYS, w->v, w->wide_v, keys, p->dim_v);
    g->k_finite = g->kernels->is_finite(w->k, keys * w->wide_q);
}

/* c[rows][KEYS] = factor * a[rows][dim] bt[dim][KEYS] */
static void dot(const fattn__gradient *g, float *c, const float *a, int64_t a_row, const float *bt, int64_t rows, int64_t keys, int64_t dim,
                float factor)
{
    g->kernels->multiply(&(fattn__product){ .c = c, .a = a, .b = bt, .c_row = FATTN__KEYS, .a_row = a_row, .a_column = 1, .b_row = FATTN__KEYS,
                                            .m = rows, .n = fattn__padded(keys), .k = dim, .factor = factor });
}

void fattn__gradient_tile(fattn__gradient *g, const fattn__band *band, int64_t b, int64_t h, int64_t row0, int64_t rows, int64_t key0, int64_t keys,
                          int32_t place, bool values_only)
{
    const fattn_problem *p = g->p;
    fattn__scratch *w = &g->w;
    const fattn__scores at = { p, g->t, b, h, row0, rows, key0, keys, FATTN__KEYS, 1 };
    const bool through_mod = p->score_mod != NULL && place != FATTN__PLACE_MODIFIED && !values_only && !FATTN__LIE(MOD_NO_GRADIENT);
    dot(g, w->s, w->q, w->wide_q, w->kt, rows, keys, p->dim_qk, (float)p->attn_scale);
    if (through_mod)
        memcpy(w->raw, w->s, (size_t)(rows * FATTN__KEYS) * sizeof *w->raw);
    if (!fattn__scores_are_plain(p))
        fattn__scores_modify(&at, w->s);
    if (!fattn__tile_sight(band, row0, rows, key0, keys).whole)
        fattn__tile_mask(w->s, FATTN__KEYS, 1, band, row0, rows, key0, keys);
    for (int64_t i = 0; i < rows; i++) {
        float *s = w->s + i * FATTN__KEYS;
        if (w->stats[i] == -INFINITY)
            memset(s, 0, FATTN__KEYS * sizeof *s);
        else
            g->kernels->exponential(s, fattn__padded(keys), w->stats[i]);
    }
    if (values_only)
        return;
    dot(g, w->dp, w->d_o, w->wide_v, w->vt, rows, keys, p->dim_v, 1.0f);
    for (int64_t i = 0; i < rows; i++)
        g->kernels->slope(w->dp + i * FATTN__KEYS, w->s + i * FATTN__KEYS, fattn__padded(keys), w->row[i]);
    if (through_mod)
        fattn__scores_gradient(&at, w->raw, w->dp,
                               place == FATTN__PLACE_SCORE ? fattn__score_mod_gradient(p->score_mod)->result : place);
}
