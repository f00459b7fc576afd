#include "cpu_gradient.h"

#include <math.h>
#include <string.h>

#include "liars/lies.h"
#include "score_mod/mod_program.h"

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
