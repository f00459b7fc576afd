/* The reference as the other opinion: libfref's answers for a scene, in the types of its outputs.
 * It knows no score_mod. */
#ifndef FATTN_TEST_MATH_ORACLE_H
#define FATTN_TEST_MATH_ORACLE_H

#include <fref/fref.h>

#include "fattn/score_mod.h"
#include "math_scene.h"
#include "problem/dropout.h"

static inline fref_type reference_type(int32_t dtype)
{
    return dtype == FATTN_BF16 ? FREF_BF16 : dtype == FATTN_F16 ? FREF_F16 : FREF_F32;
}

static inline fref_tensor reference_tensor(scene *s, size_t offset)
{
    fref_tensor t = { 0 };
    const memory *m = find(s, offset);
    if (m == NULL)
        return t;
    t.data = data_of(m), t.type = reference_type(m->dtype);
    memcpy(t.stride, m->strides, sizeof t.stride);
    t.first = m->packed ? m->first : NULL;
    t.pages = m->page > 0 ? m->table : NULL;
    t.page_size = m->page, t.pages_of_batch = m->pages;
    return t;
}

/* To the nearest, ties to even. */
static inline void put_number_as(void *at, int32_t dtype, int64_t i, double x)
{
    if (dtype == FATTN_F32) {
        ((float *)at)[i] = (float)x;
    } else if (dtype == FATTN_BF16) {
        const float y = (float)x;
        uint32_t bits;
        memcpy(&bits, &y, sizeof bits);
        ((uint16_t *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    } else {
        int exponent;
        const double magnitude = fabs(x);
        frexp(magnitude, &exponent);
        const double step = ldexp(1, (exponent < -13 ? -13 : exponent) - 11),
                     y = nearbyint(magnitude / step) * step;
        const unsigned sign = signbit(x) ? 0x8000 : 0;
        unsigned code = 0x7c00;
        if (y < 65536) {
            frexp(y, &exponent);
            code = y < 0x1p-14 ? (unsigned)(y * 0x1p24)
                               : (unsigned)(exponent + 14) << 10 |
                                     ((unsigned)(y / ldexp(1, exponent - 11)) & 1023);
        }
        ((uint16_t *)at)[i] = (uint16_t)(sign | code);
    }
}

/* Dense answers with the extents of the whole, summed where the output's extent is 1. */
typedef struct answers {
    const double *of;
    int64_t dim[4];
    double factor;
} answers;

static inline void answer_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    const answers *a = user;
    int64_t count[4], i[4];
    double sum = 0;
    for (int axis = 0; axis < 4; axis++)
        count[axis] = m->dim[axis] == 1 ? a->dim[axis] : 1;
    for (i[0] = at[0]; i[0] < at[0] + count[0]; i[0]++)
        for (i[1] = at[1]; i[1] < at[1] + count[1]; i[1]++)
            for (i[2] = at[2]; i[2] < at[2] + count[2]; i[2]++)
                for (i[3] = at[3]; i[3] < at[3] + count[3]; i[3]++)
                    sum += a->of[((i[0] * a->dim[1] + i[1]) * a->dim[2] + i[2]) * a->dim[3] + i[3]];
    put_number_as(data_of(m), m->dtype, offset, sum * a->factor);
}

static inline double *numbers(int64_t count)
{
    double *out = calloc((size_t)count, sizeof *out);
    cr_assert_not_null(out);
    return out;
}

static inline void give(scene *s, size_t offset, double *of, int64_t b, int64_t h, int64_t rows,
                        int64_t width, double factor)
{
    answers a = { of, { b, h, rows, width }, factor };
    if (find(s, offset) != NULL)
        each(find(s, offset), answer_one, &a);
    free(of);
}

/* Everything that is added to a score or hides it, of the whole, fp32; NULL: nothing. */
static inline float *added_of(scene *s)
{
    const fattn_problem *p = &s->p;
    const memory *bias = find(s, offsetof(fattn_tensors, bias)),
                 *tiles = find(s, offsetof(fattn_tensors, block_mask));
    if (bias == NULL && tiles == NULL)
        return NULL;
    const int64_t rows = (p->seq_q + 127) / 128, bytes = ((p->seq_kv + 127) / 128 + 7) / 8;
    float *out = calloc((size_t)(p->batch * p->heads_q * p->seq_q * p->seq_kv), sizeof *out);
    float *to = out;
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->seq_q; i++)
                for (int64_t j = 0; j < p->seq_kv; j++, to++) {
                    const int64_t at = bias == NULL
                                           ? 0
                                           : b * bias->strides[0] + h * bias->strides[1] +
                                                 i * bias->strides[2] + j * bias->strides[3];
                    if (bias != NULL && bias->dtype == FATTN_BOOL)
                        *to = ((const char *)data_of(bias))[at] != 0 ? 0 : -INFINITY;
                    else if (bias != NULL)
                        *to = element(data_of(bias), bias->dtype, at);
                    const int64_t tile = ((b * p->heads_q + h) * rows + i / 128) * bytes + j / 1024;
                    if (tiles != NULL &&
                        (((const uint8_t *)data_of(tiles))[tile] >> j / 128 % 8 & 1) == 0)
                        *to = -INFINITY;
                }
    return out;
}

static inline uint8_t *kept_of(scene *s)
{
    const fattn_problem *p = &s->p;
    const memory *mask = find(s, offsetof(fattn_tensors, dropout_mask));
    if (mask == NULL && p->dropout == 0.0)
        return NULL;
    uint8_t *out = malloc((size_t)(p->batch * p->heads_q * p->seq_q * p->seq_kv)), *to = out;
    fattn__dropout drops = { 0 };
    if (mask == NULL) {
        const void *seed = data_of(find(s, offsetof(fattn_tensors, seed))),
                   *offset = data_of(find(s, offsetof(fattn_tensors, offset)));
        drops = p->rng_bits == 64
                    ? fattn__dropout_of(*(const int64_t *)seed, *(const int64_t *)offset,
                                        fattn__dropout_threshold(p->dropout))
                    : fattn__dropout_of(*(const int32_t *)seed, *(const int32_t *)offset,
                                        fattn__dropout_threshold(p->dropout));
    }
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            for (int64_t i = 0; i < p->seq_q; i++)
                for (int64_t j = 0; j < p->seq_kv; j++, to++)
                    *to = mask != NULL ? element(data_of(mask), mask->dtype, to - out) != 0
                                       : fattn__dropout_keeps(&drops, b, h, i, j) != 0;
    return out;
}

typedef struct reference {
    fref_problem p;
    fref_rounding rounding;
    fref_tensor bias;
    float *added;
    uint8_t *kept;
    double slopes[64];
} reference;

static inline void describe_reference(scene *s, reference *r)
{
    const fattn_problem *p = &s->p;
    const memory *scale = find(s, offsetof(fattn_tensors, attn_scale)),
                 *slopes = find(s, offsetof(fattn_tensors, alibi_slopes));
    const memory *sink = find(s, offsetof(fattn_tensors, sink)),
                 *factor = find(s, offsetof(fattn_tensors, dropout_scale));
    memset(r, 0, sizeof *r);
    r->p = (fref_problem){ .batch = p->batch,
                           .heads_q = p->heads_q,
                           .heads_k = p->heads_k,
                           .heads_v = p->heads_v,
                           .rows = p->seq_q,
                           .keys = p->seq_kv,
                           .dim_qk = p->dim_qk,
                           .dim_v = p->dim_v,
                           .has_left = p->has_left != 0,
                           .has_right = p->has_right != 0,
                           .bottom_right = p->align == FATTN_BOTTOM_RIGHT,
                           .left = p->window_left,
                           .right = p->window_right };
    r->p.scale = scale != NULL ? (double)*(const float *)data_of(scale) : p->attn_scale;
    r->p.len_q = p->padding ? s->len_q : NULL;
    r->p.len_kv = p->padding ? s->len_kv : NULL;
    r->added = added_of(s);
    r->bias = (fref_tensor){ .data = r->added, .type = FREF_F32 };
    const int64_t full[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    fattn__dense_strides(full, "bhsd", r->bias.stride);
    r->p.bias = r->added != NULL ? &r->bias : NULL;
    cr_assert_leq(p->heads_q, 64);
    for (int64_t h = 0; slopes != NULL && h < p->heads_q; h++)
        r->slopes[h] = (double)((const float *)data_of(slopes))[h];
    r->p.alibi = slopes != NULL ? r->slopes : NULL;
    r->p.sink = sink != NULL ? data_of(sink) : NULL;
    r->kept = kept_of(s);
    r->p.keep = r->kept;
    r->p.keep_scale =
        factor != NULL ? (double)*(const float *)data_of(factor) : 1 / (1 - p->dropout);
    r->rounding =
        fref_rounding_of(reference_type(p->dtype),
                         reference_type(p->pass == FATTN_FORWARD ? p->o_dtype : p->grad_dtype));
}

static inline void reference_forward(scene *s, reference *r)
{
    const fattn_problem *p = &s->p;
    const int64_t b = p->batch, h = p->heads_q, rows = p->seq_q, d = p->dim_v;
    const fref_tensor q = reference_tensor(s, offsetof(fattn_tensors, q)),
                      k = reference_tensor(s, offsetof(fattn_tensors, k));
    const fref_tensor v = reference_tensor(s, offsetof(fattn_tensors, v));
    const fref_forward_out out = { .o = numbers(b * h * rows * d),
                                   .lse = numbers(b * h * rows),
                                   .max = numbers(b * h * rows),
                                   .sum_exp = numbers(b * h * rows) };
    cr_assert_eq(fref_forward(&r->p, &q, &k, &v, &r->rounding, &out), 0);
    give(s, offsetof(fattn_tensors, o), out.o, b, h, rows, d, 1);
    give(s, offsetof(fattn_tensors, stats), out.lse, b, h, rows, 1,
         (p->outputs & FATTN_WANT_STATS_LOG2) != 0 ? M_LOG2E : 1);
    give(s, offsetof(fattn_tensors, max), out.max, b, h, rows, 1, 1);
    give(s, offsetof(fattn_tensors, sum_exp), out.sum_exp, b, h, rows, 1, 1);
}

static inline void reference_backward(scene *s, reference *r)
{
    const fattn_problem *p = &s->p;
    const int64_t b = p->batch, dqk = p->dim_qk, dv = p->dim_v;
    const fref_tensor q = reference_tensor(s, offsetof(fattn_tensors, q)),
                      k = reference_tensor(s, offsetof(fattn_tensors, k));
    const fref_tensor v = reference_tensor(s, offsetof(fattn_tensors, v)),
                      o = reference_tensor(s, offsetof(fattn_tensors, o));
    const fref_tensor stats = reference_tensor(s, offsetof(fattn_tensors, stats)),
                      d_o = reference_tensor(s, offsetof(fattn_tensors, d_o));
    fref_backward_out out = { .dq = numbers(b * p->heads_q * p->seq_q * dqk),
                              .dk = numbers(b * p->heads_k * p->seq_kv * dqk),
                              .dv = numbers(b * p->heads_v * p->seq_kv * dv),
                              .dsink = numbers(p->heads_q) };
    fattn__shape dbias = fattn__problem_shape(p, FATTN__ROLE_DBIAS);
    dbias.dim[3] = p->seq_kv; /* the reference has every key; give() sums them */
    if (p->dbias) {
        memcpy(out.dbias_dim, dbias.dim, sizeof out.dbias_dim);
        out.dbias = numbers(dbias.dim[0] * dbias.dim[1] * dbias.dim[2] * dbias.dim[3]);
    }
    cr_assert_eq(fref_backward(&r->p, &q, &k, &v, &o, &stats, &d_o, &r->rounding, &out), 0);
    give(s, offsetof(fattn_tensors, dq), out.dq, b, p->heads_q, p->seq_q, dqk, 1);
    give(s, offsetof(fattn_tensors, dk), out.dk, b, p->heads_k, p->seq_kv, dqk, 1);
    give(s, offsetof(fattn_tensors, dv), out.dv, b, p->heads_v, p->seq_kv, dv, 1);
    give(s, offsetof(fattn_tensors, dbias), out.dbias, dbias.dim[0], dbias.dim[1], dbias.dim[2],
         dbias.dim[3], 1);
    give(s, offsetof(fattn_tensors, dsink), out.dsink, 1, 1, 1, p->heads_q, 1);
}

/* Writes what an engine would write. */
static inline void compute_reference(scene *s)
{
    static reference r;
    describe_reference(s, &r);
    if (s->p.pass == FATTN_FORWARD)
        reference_forward(s, &r);
    else
        reference_backward(s, &r);
    const memory *dump = find(s, offsetof(fattn_tensors, rng_dump));
    for (int64_t i = 0; dump != NULL && i < dump->span; i++)
        ((float *)data_of(dump))[i] = r.kept[i];
    free(r.added);
    free(r.kept);
}

/* ---- problems
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* Token by token or head by head, with or without gaps; the stride of b is not read. */
static inline void draw_packed_strides(generator *g, const int64_t dim[4], bool broadcast,
                                       int64_t out[4])
{
    const int64_t width = dim[3] + (chance(g, 30) ? between(g, 1, 9) : 0),
                  most = dim[0] * (dim[2] + 3) + 3;
    const bool by_head = chance(g, 25);
    out[0] = chance(g, 50) ? 0 : dim[1] * width * dim[2];
    out[1] = broadcast ? 0 : by_head ? width * most : width;
    out[2] = by_head || broadcast ? width : dim[1] * width;
    out[3] = 1;
}

static inline void draw_ragged(generator *g, fattn_problem *p)
{
    p->ragged_bits = chance(g, 50) ? 32 : 64;
    p->ragged_tokens = chance(g, 50);
    p->ragged = chance(g, 50) ? 0 : draw(g) & FATTN_RAGGED_ALL;
    p->total_q = chance(g, 20) ? p->batch * (p->seq_q + 3) + 3 : 0;
    const uint32_t ragged = p->ragged == 0 ? FATTN_RAGGED_ALL : p->ragged;
    const int64_t heads[3] = { p->heads_q, p->heads_k, p->heads_v };
    int64_t *const strides[FATTN_RAGGED_TENSORS] = {
        p->q_strides,  p->k_strides,  p->v_strides,  p->o_strides, p->stats_strides,
        p->do_strides, p->dq_strides, p->dk_strides, p->dv_strides
    };
    bool broadcast[3];
    for (int i = 0; i < 3; i++)
        broadcast[i] = chance(g, 15);
    for (int i = 0; i < FATTN_RAGGED_TENSORS; i++) {
        const bool keys = i == 1 || i == 2 || i >= 7, values = i == 2 || i == 3 || i == 5 || i == 8;
        const int64_t h = heads[!keys ? 0 : i == 1 || i == 7 ? 1 : 2];
        const int64_t dim[4] = { p->batch, h, keys ? p->seq_kv : p->seq_q,
                                 i == 4   ? 1
                                 : values ? p->dim_v
                                          : p->dim_qk };
        if ((ragged >> i & 1) != 0)
            draw_packed_strides(g, dim,
                                (i < 3 && broadcast[i]) || (i > 5 && broadcast[i - 6] && h > 1),
                                strides[i]);
        else if (i > 5) /* the gradient of every element, whatever its input is */
            fattn__dense_strides(dim, "bshd", strides[i]);
    }
    for (int i = 0; i < 3; i++) /* a sum only where the input is broadcast: both are, or neither */
        if ((ragged >> (6 + i) & 1) != 0 && strides[6 + i][1] == 0 && strides[i][1] != 0)
            strides[6 + i][1] = strides[6 + i][2], strides[6 + i][2] *= heads[i];
}

static inline void draw_paged(generator *g, fattn_problem *p)
{
    const int64_t sizes[] = { 1, 5, 16, 64 };
    int64_t page = sizes[draw(g) % 4];
    while (p->batch * ((p->seq_kv + page - 1) / page) > MOST_PAGES ||
           p->batch * ((p->seq_kv + page - 1) / page) > 256)
        page *= 2;
    const int64_t dims[2][4] = { { 256, p->heads_k, page, p->dim_qk },
                                 { 256, p->heads_v, page, p->dim_v } };
    if (chance(g, 80))
        p->page_size_k = page, p->pages_k = 256,
        fattn__dense_strides(dims[0], chance(g, 50) ? "bhsd" : "bshd", p->k_strides);
    if (chance(g, 80) || p->page_size_k == 0)
        p->page_size_v = page, p->pages_v = 256,
        fattn__dense_strides(dims[1], chance(g, 50) ? "bhsd" : "bshd", p->v_strides);
    p->packed_table = chance(g, 40);
}

/* What draw_problem draws, and more; a score_mod only where the other opinion knows it. */
static inline fattn_problem draw_features(generator *g, bool modified)
{
    const double rates[] = { 0.1, 0.5, 0.9 };
    fattn_problem p = draw_problem(g);
    if (!modified) {
        fattn_score_mod_destroy((fattn_score_mod *)(uintptr_t)p.score_mod);
        p.score_mod = NULL, p.mod_gradients = 0;
    }
    const bool packed = chance(g, 40), paged = chance(g, 20);
    p.padding = p.padding || packed || paged;
    if (p.padding && chance(g, 40))
        p.len_broadcast = 0, p.cumulative = 1 + draw(g) % 3, p.len_rank = chance(g, 50);
    if (packed)
        draw_ragged(g, &p);
    if (paged)
        draw_paged(g, &p);
    if (p.has_bias && chance(g, 40))
        p.bias_dtype = FATTN_BOOL, p.dbias = 0;
    p.alibi = chance(g, 30);
    p.sink = chance(g, 30);
    p.dsink = p.sink && chance(g, 70);
    p.scale_in_memory = chance(g, 30);
    p.block_mask = chance(g, 20);
    p.dropout = chance(g, 40) ? rates[draw(g) % 3] : 0;
    p.rng_bits = p.dropout == 0 ? 0 : chance(g, 50) ? 32 : 64;
    p.dropout_mask = p.dropout == 0 && chance(g, 20);
    if (p.dropout != 0 && chance(g, 50))
        p.outputs |= FATTN_WANT_RNG_DUMP;
    if (chance(g, 15))
        p.outputs = (p.outputs & ~FATTN_WANT_STATS) | FATTN_WANT_STATS_LOG2;
    return p;
}

#endif
