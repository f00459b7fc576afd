#include <math.h>
#include <omp.h>
#include <string.h>

#include "cpu_attention.h"
#include "cpu_call.h"
#include "cpu_scores.h"
#include "cpu_scratch.h"
#include "kernels/cpu_number.h"
#include "liars/lies.h"
#include "problem/layout.h"

/* The state of one tile of rows during the loop over the keys. */
typedef struct tile {
    const fattn__call *c;
    fattn__scratch *w;
    int64_t b, h, row0, rows;
    int64_t live;         /* rows before the end of the entry */
    float amax_s, amax_o; /* 8-bit types */
} tile;

/* A planted fault: the row sums take P after its cast. */
static void sum_casts(const tile *x, const fattn__scores *at, int64_t first, const float *s)
{
    const fattn__factors *f = &x->c->factors;
    for (int64_t i = 0; i < at->rows && f->narrow != 0; i++)
        for (int64_t j = 0; j < at->keys; j++) {
            const float p = s[i * at->row_step + j * at->key_step];
            x->w->sum[first + i] += fattn__number_round(f->narrow, p * f->p_scale) / f->p_scale - p;
        }
}

/* A planted fault: the maximum is taken before the mask. */
static void raise_maximum(const fattn__scratch *w, int64_t i, int64_t keys)
{
    float top = w->max[i];
    for (int64_t j = 0; j < keys; j++)
        top = fmaxf(top, w->s[j * FATTN__ROWS + i]);
    const float rescale = w->max[i] == top ? 1.0f : expf(w->max[i] - top);
    for (int64_t d = 0; d < w->wide_v; d++)
        w->o[i * w->wide_v + d] *= rescale;
    w->sum[i] *= rescale;
    w->max[i] = top;
}

/* Applies dropout and the rounding of 8-bit types between the softmax and the second product. The
 * row sums are complete. */
static void drop_and_narrow(const tile *x, const fattn__scores *at, int64_t first, float *s)
{
    const fattn__call *c = x->c;
    fattn__dropping_apply(&c->dropping, at, s);
    if (FATTN__LIE(SUM_OF_CAST))
        sum_casts(x, at, first, s);
    for (int64_t i = 0; i < at->rows && c->factors.eight_bit; i++) {
        float *top = &x->w->top[first + i];
        *top *= x->w->rescale[first + i];
        for (int64_t j = 0; j < at->keys; j++)
            *top = fmaxf(*top, s[i * at->row_step + j * at->key_step]);
    }
    fattn__narrow_p(&c->factors, at, s);
}

/* A planted fault: rows lose the last key that they read. */
static void lose_last_key(const fattn__scores *at, float *s)
{
    for (int64_t i = 0; i < at->rows; i++) {
        int64_t first, last;
        fattn__band_keys(at->band, at->row0 + i, &first, &last);
        if (first < last && last > at->key0 && last <= at->key0 + at->keys)
            s[i * at->row_step + (last - 1 - at->key0) * at->key_step] = -INFINITY;
    }
}

/* Takes keys [key0, key0 + keys) into the running maximum, sum and output. Scores stand transposed,
 * so that 16 rows are one register and no sum runs across it. */
static void absorb(const tile *x, const fattn__band *band, int64_t key0, int64_t keys)
{
    const fattn__call *c = x->c;
    const fattn_problem *p = c->p;
    fattn__scratch *w = x->w;
    const int64_t step = FATTN__ROWS;
    fattn__scores at = { p, c->t, band, x->b, x->h, x->row0, x->live, key0, keys, 1, step };
    const fattn__sight sight = fattn__tile_sight(&at);
    if (sight.last == 0)
        return;
    /* Works on whole registers of rows. Rows that see nothing are masked like the others. */
    const int64_t first = sight.first / 16 * 16,
                  rows = fattn__least(x->live, fattn__padded(sight.last)) - first;
    float *s = w->s + first;
    at.row0 += first, at.rows = rows;
    fattn__call_load_keys(c, false, w->k, &at);
    fattn__call_load_keys(c, true, w->v, &at);
    c->kernels->multiply(&(fattn__product){ .c = s,
                                            .a = w->k,
                                            .b = w->qt + first,
                                            .c_row = step,
                                            .a_row = w->wide_q,
                                            .a_column = 1,
                                            .b_row = step,
                                            .m = keys,
                                            .n = fattn__padded(rows),
                                            .k = p->dim_qk - (FATTN__LIE(DQK_TAIL) ? 8 : 0),
                                            .factor = c->factors.score });
    if (!fattn__scores_are_plain(p))
        fattn__scores_modify(&at, s);
    for (int64_t i = 0; FATTN__LIE(MAX_UNMASKED) && i < rows; i++)
        raise_maximum(w, first + i, keys);
    if (!sight.whole)
        fattn__tile_mask(&at, s);
    if (FATTN__LIE(LAST_HEAD_KEY) && x->h == p->heads_q - 1)
        lose_last_key(&at, s);
    c->kernels->soften(&(fattn__soft){ s, w->max + first, w->sum + first, w->rescale + first, keys,
                                       rows, step, w->peak + first });
    if (!FATTN__LIE(O_NO_RESCALE) || key0 + keys < band->len_kv)
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
    for (int64_t n = 0; FATTN__LIE(O_ACC_NARROW) && n < rows * w->wide_v; n++)
        w->o[first * w->wide_v + n] = fattn__number_round(p->o_dtype, w->o[first * w->wide_v + n]);
}

/* Rows past the end of an entry belong to another entry if the tensor is ragged. */
static int64_t stored_rows(const tile *x, const fattn__view *to)
{
    return to->offsets != NULL ? x->live : x->rows;
}

typedef struct row_values {
    float max, sum, stats;
} row_values;

/* A pair of Max and Sum_exp of 8-bit types is that of a lazy kernel's own maximum; without Sum_exp
 * Max is the largest score. The rest are planted faults. */
static void bend_row(const tile *x, int64_t i, row_values *row)
{
    const bool dead = x->w->max[i] == -INFINITY;
    if (fattn__like_gpu.on && !dead &&
        !(x->c->factors.eight_bit && (x->c->p->outputs & FATTN_WANT_SUM_EXP) != 0)) {
        row->sum *= expf(row->max - x->w->peak[i]);
        row->max = x->w->peak[i];
    }
    if (FATTN__LIE(LOG2E_SHORT) && !dead) { /* the maximum is kept in base 2 */
        const float off = row->max * 1.4427f * 0x1.62e43p-1f - row->max;
        row->max += off;
        row->stats += off;
    }
    if (FATTN__LIE(DEAD_STATS) && dead && i < x->live)
        row->stats = 0.0f;
    if (FATTN__LIE(MAX_LOW)) {
        row->max -= 3.0f;
        row->sum *= expf(3.0f);
    }
    if (FATTN__LIE(EMPTY_BATCH) && dead)
        row->max = row->stats = NAN;
    if (FATTN__LIE(LSE_LOG2))
        row->stats *= 0x1.715476p+0f;
}

/* A planted fault: a ragged sequence's rows of one head after another. */
static int64_t row_of_head(const tile *x, int64_t i, int64_t at)
{
    const fattn__view *v = &x->c->stats;
    return v->offsets == NULL ? at : fattn__view_row(v, x->b, 0, 0) + x->h * x->live + x->row0 + i;
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
        row_values row = { w->max[i], w->sum[i],
                           w->max[i] == -INFINITY ? -INFINITY
                                                  : (w->max[i] + logf(w->sum[i])) * unit };
        if (FATTN__TESTING)
            bend_row(x, i, &row);
        if ((wanted & stats) != 0)
            c->t->stats[FATTN__LIE(STATS_STRIDE) ? row_of_head(x, i, at) : at] = row.stats;
        if ((wanted & FATTN_WANT_MAX) != 0)
            c->t->max[at] = row.max;
        if ((wanted & FATTN_WANT_SUM_EXP) != 0)
            c->t->sum_exp[at] = row.sum;
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
    const bool last = x->row0 + x->rows == c->p->seq_q;
    const float amax_s = x->amax_s, amax_o = x->amax_o;
    (void)amax_s, (void)amax_o; /* read by planted faults alone */
    for (int64_t i = 0; i < x->rows; i++) {
        if (FATTN__LIE(DEAD_VALUE) && w->sum[i] == 0.0f && i < x->live)
            w->o[i * w->wide_v] = w->sum[i] = 1.0f;
        const bool none = w->sum[i] == 0.0f;
        w->rescale[i] =
            none ? (FATTN__LIE(EMPTY_BATCH) && i < x->live ? NAN : 0.0f) : c->factors.o / w->sum[i];
        if (FATTN__LIE(RECIPROCAL) && w->max[i] != -INFINITY)
            w->rescale[i] = c->factors.o * fattn__number_round(c->p->o_dtype, 1.0f / w->sum[i]);
        if (c->factors.eight_bit && w->sum[i] > 0.0f)
            x->amax_s = fmaxf(x->amax_s, w->top[i] / w->sum[i]);
    }
    if (last && FATTN__LIE(Q_TILE_UNWRITTEN))
        return;
    store_row_values(x);
    c->kernels->scale_rows(w->o, x->rows, w->wide_v, w->rescale);
    if (c->factors.eight_bit) {
        fattn__scale_output(w->o, x->rows, w->wide_v, dim, c->factors.scale_o, &x->amax_o);
        if (FATTN__LIE(AMAX_O_LATE))
            x->amax_o = amax_o * c->factors.scale_o;
    }
    if (last && FATTN__LIE(AMAX_TILE))
        x->amax_s = amax_s, x->amax_o = amax_o;
    fattn__liar_bend_o(c->p, ((const int64_t[3]){ x->b, x->h, x->row0 }), x->rows, w->o, w->wide_v);
    fattn__view_store(&c->o, x->b, x->h, x->row0, stored_rows(x, &c->o), dim, w->o, w->wide_v);
}

/* A sink acts as a key of every existing row: its score is known before all others, and it has no
 * value. */
static void begin(const tile *x, bool with_sink)
{
    const fattn__scratch *w = x->w;
    const float sink =
        with_sink && x->c->p->sink && !FATTN__LIE(NO_SINK) ? x->c->t->sink[x->h] : -INFINITY;
    memset(w->o, 0, (size_t)(x->rows * w->wide_v) * sizeof *w->o);
    memset(w->top, 0, FATTN__ROWS * sizeof *w->top);
    for (int64_t i = 0; i < FATTN__ROWS; i++) {
        w->max[i] = i < x->live ? sink : -INFINITY;
        w->sum[i] = w->max[i] == -INFINITY ? 0.0f : 1.0f;
        if ((FATTN__LIE(MAX_INIT_0) || FATTN__LIE(MAX_INIT_LOW)) && w->max[i] == -INFINITY)
            w->max[i] = FATTN__LIE(MAX_INIT_0) ? 0.0f : -10000.0f;
        w->peak[i] = w->max[i];
    }
}

/* The keys of one part, in tiles. */
static void absorb_part(const tile *x, const fattn__band *band, int64_t first, int64_t last)
{
    const int64_t step = fattn__tile_keys();
    for (int64_t n = first; n < last && x->live > 0; n++) {
        const int64_t key0 = (fattn__like_gpu.reversed ? first + last - 1 - n : n) * step,
                      keys = fattn__least(step, band->len_kv - key0);
        absorb(x, band, key0, keys);
        if (FATTN__LIE(TILE_TWICE) && key0 + keys == band->len_kv)
            absorb(x, band, key0, keys);
    }
}

/* Part n joins the sum of the parts before it; all[] are max, sum, top, peak of the rows. */
static void join_part(const tile *x, int64_t n, int64_t parts)
{
    const fattn__scratch *w = x->w;
    float *const mine[4] = { w->max, w->sum, w->top, w->peak };
    for (int64_t i = 0; i < FATTN__ROWS; i++) {
        float *all[4], *o = w->all_o + i * w->wide_v, weight[2] = { 0, 1 };
        for (int k = 0; k < 4; k++)
            all[k] = w->all + k * FATTN__ROWS + i;
        const float max = n == 0 ? w->max[i] : fmaxf(*all[0], w->max[i]);
        const bool wrong = FATTN__LIE(SPLIT_WEIGHT) && n > 0 && n == parts - 1;
        if (n > 0 && max != -INFINITY) {
            weight[0] = expf(*all[0] - max);
            weight[1] = expf((wrong ? *all[0] : w->max[i]) - max);
        }
        for (int64_t d = 0; d < w->wide_v; d++)
            o[d] = (n == 0 ? 0.0f : o[d] * weight[0]) + w->o[i * w->wide_v + d] * weight[1];
        *all[1] = (n == 0 ? 0.0f : *all[1] * weight[0]) + w->sum[i] * weight[1];
        *all[2] = fmaxf(n == 0 ? 0.0f : *all[2] * weight[0], w->top[i] * weight[1]);
        *all[3] = n == 0 ? w->peak[i] : fmaxf(*all[3], w->peak[i]);
        *all[0] = max;
        for (int k = 0; k < 4 && n == parts - 1; k++)
            mine[k][i] = *all[k];
    }
    if (n == parts - 1)
        memcpy(w->o, w->all_o, (size_t)(FATTN__ROWS * w->wide_v) * sizeof *w->o);
}

/* All keys that the band leaves: w has the sums of the rows. */
static void absorb_keys(const tile *x, const fattn__band *band)
{
    const fattn__call *c = x->c;
    const fattn__scratch *w = x->w;
    const int64_t tiles = (band->len_kv + fattn__tile_keys() - 1) / fattn__tile_keys(),
                  parts = fattn__like_gpu.splits > 1 ? fattn__like_gpu.splits : 1;
    fattn__view_load(w->q, w->wide_q, &c->q, x->b, x->h, x->row0, x->live, c->p->dim_qk);
    fattn__tile_transpose(w->qt, FATTN__ROWS, w->q, w->wide_q, x->live, c->p->dim_qk);
    for (int64_t n = 0; n < parts; n++) {
        begin(x, n == 0);
        absorb_part(x, band, tiles * n / parts, tiles * (n + 1) / parts);
        if (parts > 1)
            join_part(x, n, parts);
    }
}

/* A planted fault: the largest magnitudes of padded rows count, as if they read every key. */
static void amax_of_padding(tile *x, const fattn__band *band)
{
    fattn__band whole = *band;
    tile y = *x;
    whole.len_q = x->c->p->seq_q;
    y.live = y.rows;
    absorb_keys(&y, &whole);
    for (int64_t i = x->live; i < x->rows; i++) {
        const fattn__scratch *w = x->w;
        if (!(w->sum[i] > 0.0f))
            continue;
        x->amax_s = fmaxf(x->amax_s, w->top[i] / w->sum[i]);
        for (int64_t d = 0; d < x->c->p->dim_v; d++)
            x->amax_o =
                fmaxf(x->amax_o, fabsf(w->o[i * w->wide_v + d] * x->c->factors.o / w->sum[i]));
    }
}

static void forward_rows(tile *x)
{
    const fattn__call *c = x->c;
    const fattn__band band = fattn__band_of(c->p, c->t, x->b);
    x->live = band.len_q > x->row0 ? fattn__least(x->rows, band.len_q - x->row0) : 0;
    if (FATTN__LIE(AMAX_PADDING) && c->factors.eight_bit && x->live < x->rows)
        amax_of_padding(x, &band);
    absorb_keys(x, &band);
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
    if (c.factors.eight_bit)
        *t->amax_o = FATTN__LIE(AMAX_O_SAT)
                         ? fminf(amax_o, fattn__number_most(p->o_dtype) / c.factors.scale_o)
                         : amax_o;
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0)
        fattn__dropping_dump(&c.dropping, p, t->rng_dump, threads);
}
