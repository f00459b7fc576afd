/* Random problems for the math backend, with the cpu backend as the other opinion: the same bits of
 * input, everything else poisoned. */
#ifndef FATTN_TEST_MATH_CASES_H
#define FATTN_TEST_MATH_CASES_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "fattn/score_mod.h"
#include "math/math_run.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

enum { GUARD = 256, POISON = 0xff, MOST_TENSORS = 40, MOST_BATCH = 8, MOST_PAGES = 1024 };

typedef struct generator {
    uint64_t state;
    int64_t most_seq, most_dim;
} generator;

static inline uint32_t draw(generator *g)
{
    g->state = g->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(g->state >> 33);
}

static inline int64_t between(generator *g, int64_t least, int64_t most)
{
    return least + (int64_t)(draw(g) % (uint64_t)(most - least + 1));
}

static inline bool chance(generator *g, int percent)
{
    return (int)(draw(g) % 100) < percent;
}

/* ---- elements
 * ---------------------------------------------------------------------------------------------------------------------
 */

static inline float element(const void *at, int32_t dtype, int64_t i)
{
    uint32_t bits;
    float x;
    if (dtype == FATTN_F32)
        return ((const float *)at)[i];
    const uint16_t code = ((const uint16_t *)at)[i];
    if (dtype == FATTN_F16) {
        const int exponent = code >> 10 & 31;
        x = exponent == 0    ? ldexpf((float)(code & 1023), -24)
            : exponent == 31 ? ((code & 1023) != 0 ? NAN : INFINITY)
                             : ldexpf((float)(1024 + (code & 1023)), exponent - 25);
        return code & 0x8000 ? -x : x;
    }
    bits = (uint32_t)code << 16;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A multiple of 1/64 below 2: exact in every type. */
static inline void put_element(void *at, int32_t dtype, int64_t i, int sixtyfourths)
{
    const float x = (float)sixtyfourths / 64;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == FATTN_F32)
        memcpy((float *)at + i, &x, sizeof x);
    else if (dtype == FATTN_BF16)
        ((uint16_t *)at)[i] = (uint16_t)(bits >> 16);
    else
        ((uint16_t *)at)[i] =
            (uint16_t)(x == 0 ? 0
                              : (bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 |
                                    (bits >> 13 & 1023));
}

static inline void put_nan(void *at, int32_t dtype, int64_t i)
{
    memset((char *)at + i * fattn__dtype_bytes(dtype), 0xff, (size_t)fattn__dtype_bytes(dtype));
}

/* ---- problems
 * ---------------------------------------------------------------------------------------------------------------------
 */

/* An order of b, h, s with or without gaps, sometimes broadcast; not always aligned to anything. */
static inline void draw_strides(generator *g, const int64_t dim[4], bool input, int64_t out[4])
{
    static const char *const orders[] = { "bshd", "bhsd", "sbhd", "hbsd" };
    int64_t gapped[4] = { dim[0], dim[1], dim[2], dim[3] };
    if (chance(g, 30))
        gapped[3] += between(g, 1, 9);
    fattn__dense_strides(gapped, orders[draw(g) % 4], out);
    if (input && chance(g, 15))
        out[draw(g) % 3] = 0;
}

static inline fattn_value odd_callback(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    const fattn_value gap = fattn_record(r, FATTN_MOD_SUB, key, row, 0),
                      far = fattn_record(r, FATTN_MOD_ABS, gap, 0, 0);
    const fattn_value near = fattn_record(r, FATTN_MOD_LT, far, fattn_record_constant(r, 40), 0);
    const fattn_value bent = fattn_record(r, FATTN_MOD_SIN, score, 0, 0),
                      wide = fattn_record(r, FATTN_MOD_TANH, score, 0, 0);
    const fattn_value twice = fattn_record(r, FATTN_MOD_MUL, wide, fattn_record_constant(r, 2), 0);
    const fattn_value soft = fattn_record(r, FATTN_MOD_SOFTPLUS, score, 0, 0);
    return fattn_record(r, FATTN_MOD_ADD, fattn_record(r, FATTN_MOD_SELECT, near, bent, twice),
                        soft, 0);
}

static inline const fattn_score_mod *draw_mod(generator *g, fattn_problem *p)
{
    fattn_score_mod *mod = NULL;
    int64_t dim[4] = { chance(g, 50) ? 1 : p->batch, chance(g, 50) ? 1 : p->heads_q,
                       chance(g, 50) ? 1 : p->seq_q, chance(g, 50) ? 1 : p->seq_kv };
    const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32 };
    fattn_status st = FATTN_OK;
    switch (draw(g) % 5) {
    case 0:
        st = fattn_score_mod_softcap(&mod, 1.5);
        break;
    case 1:
        st = fattn_score_mod_post_scale_bias(&mod, (fattn_dtype)dtypes[draw(g) % 3], dim, NULL);
        break;
    case 2:
        st = fattn_score_mod_relative_position(&mod, p->heads_q);
        break;
    case 3:
        st = fattn_score_mod_prefix_lm(&mod, 20);
        break;
    default:
        st = fattn_score_mod_create(&mod, odd_callback, NULL, NULL);
    }
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    p->mod_gradients = fattn_score_mod_tensor_count(mod) > 0 && chance(g, 70) ? 1 : 0;
    return mod;
}

static inline void draw_bias(generator *g, fattn_problem *p)
{
    const int64_t full[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32 };
    p->has_bias = 1;
    p->bias_dtype = dtypes[draw(g) % 3];
    for (int axis = 0; axis < 4; axis++)
        p->bias_dim[axis] = chance(g, 50) ? 1 : full[axis];
    fattn__dense_strides(p->bias_dim, "bhsd", p->bias_strides);
    if (chance(g, 20))
        p->bias_strides[draw(g) % 3] = 0;
    p->dbias = chance(g, 60);
}

static inline void draw_layouts(generator *g, fattn_problem *p)
{
    const int64_t q[4] = { p->batch, p->heads_q, p->seq_q, p->dim_qk },
                  k[4] = { p->batch, p->heads_k, p->seq_kv, p->dim_qk };
    const int64_t v[4] = { p->batch, p->heads_v, p->seq_kv, p->dim_v },
                  o[4] = { p->batch, p->heads_q, p->seq_q, p->dim_v };
    const int64_t stats[4] = { p->batch, p->heads_q, p->seq_q, 1 };
    draw_strides(g, q, true, p->q_strides);
    draw_strides(g, k, true, p->k_strides);
    draw_strides(g, v, true, p->v_strides);
    draw_strides(g, o, false, p->o_strides);
    draw_strides(g, o, true, p->do_strides);
    fattn__dense_strides(stats, chance(g, 50) ? "bhsd" : "bshd", p->stats_strides);
    /* A gradient of every element, or the sum where its input is broadcast. */
    const int64_t *const dims[3] = { q, k, v }, *const inputs[3] = { p->q_strides, p->k_strides,
                                                                     p->v_strides };
    int64_t *const outputs[3] = { p->dq_strides, p->dk_strides, p->dv_strides };
    for (int i = 0; i < 3; i++) {
        draw_strides(g, dims[i], false, outputs[i]);
        for (int axis = 0; axis < 3; axis++)
            if (inputs[i][axis] == 0 && dims[i][axis] > 1 && chance(g, 60))
                outputs[i][axis] = 0;
    }
}

static inline fattn_problem draw_problem(generator *g)
{
    static const int64_t dims[] = {
        1, 8, 33, 40, 64, 72, 75, 96, 100, 128, 130, 192, 256, 520, 1024
    };
    const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = dtypes[draw(g) % 3];
    p.o_dtype = chance(g, 75) ? p.dtype : dtypes[draw(g) % 3];
    p.grad_dtype = chance(g, 60) ? p.dtype : dtypes[draw(g) % 3];
    p.batch = between(g, 1, 3);
    p.heads_k = between(g, 1, 2);
    p.heads_v = chance(g, 70) ? p.heads_k : between(g, 1, 2);
    p.heads_q = p.heads_k * p.heads_v * between(g, 1, 2);
    p.seq_q = chance(g, 10) ? 1 : between(g, 1, g->most_seq);
    p.seq_kv = chance(g, 30) ? p.seq_q : between(g, 1, g->most_seq);
    do
        p.dim_qk = dims[draw(g) % (sizeof dims / sizeof *dims)];
    while (p.dim_qk > g->most_dim);
    p.dim_v = p.dim_qk;
    while (chance(g, 30) || p.dim_v > g->most_dim)
        p.dim_v = dims[draw(g) % (sizeof dims / sizeof *dims)];
    p.has_right = chance(g, 40);
    p.window_right = chance(g, 60) ? 0 : between(g, -10, 50);
    p.has_left = chance(g, 25);
    p.window_left = between(g, 1, 150);
    p.align = chance(g, 40) ? FATTN_BOTTOM_RIGHT : FATTN_TOP_LEFT;
    p.padding = chance(g, 40);
    p.len_broadcast = p.padding && chance(g, 30);
    p.outputs = draw(g) % 8;
    if (chance(g, 40))
        draw_bias(g, &p);
    if (chance(g, 40))
        p.score_mod = draw_mod(g, &p);
    draw_layouts(g, &p);
    return p;
}

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

/* What draw_problem draws, and more. */
static inline fattn_problem draw_features(generator *g)
{
    const double rates[] = { 0.1, 0.5, 0.9 };
    fattn_problem p = draw_problem(g);
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

/* ---- memory
 * -----------------------------------------------------------------------------------------------------------------------
 */

/* A tensor's memory on the host, with a guard on both sides: what both backends read, or what one
 * of them wrote. */
typedef struct memory {
    const char *name;
    int64_t dim[4], strides[4], span; /* span in elements */
    int32_t dtype;
    bool written;
    char *bytes;
    size_t count;
    bool packed; /* entry b begins at element first[b] and has rows[b] rows */
    int64_t first[MOST_BATCH + 1];
    int32_t rows[MOST_BATCH];
    int64_t page,
        pages; /* 0; row s of entry b lies in page table[b * pages + s / page]; rows[b] as above */
    int32_t table[MOST_PAGES];
} memory;

static inline void *data_of(const memory *m)
{
    return m->bytes + GUARD;
}

static inline void allocate(memory *m)
{
    m->count = (size_t)(m->span * fattn__dtype_bytes(m->dtype)) + 2 * GUARD;
    m->bytes = malloc(m->count);
    memset(m->bytes, POISON, m->count);
}

static inline void describe(memory *m, const char *name, const int64_t dim[4],
                            const int64_t strides[4], int32_t dtype, bool written)
{
    memset(m, 0, sizeof *m);
    m->name = name, m->dtype = dtype, m->written = written, m->span = 1;
    for (int axis = 0; axis < 4; axis++) {
        m->dim[axis] = dim[axis];
        m->strides[axis] = dim[axis] == 1 ? 0 : strides[axis];
        m->span += (dim[axis] - 1) * m->strides[axis];
    }
    allocate(m);
}

static inline int64_t offset_of(const memory *m, const int64_t at[4])
{
    const int64_t within = at[1] * m->strides[1] + at[3] * m->strides[3];
    if (m->page > 0)
        return m->table[at[0] * m->pages + at[2] / m->page] * m->strides[0] +
               at[2] % m->page * m->strides[2] + within;
    return (m->packed ? m->first[at[0]] : at[0] * m->strides[0]) + at[2] * m->strides[2] + within;
}

/* Calls `visit` for every element. */
static inline void each(const memory *m,
                        void (*visit)(const memory *, const int64_t at[4], int64_t offset, void *),
                        void *user)
{
    int64_t at[4];
    for (at[0] = 0; at[0] < m->dim[0]; at[0]++)
        for (at[1] = 0; at[1] < m->dim[1]; at[1]++)
            for (at[2] = 0;
                 at[2] < (m->packed || m->page > 0 ? (int64_t)m->rows[at[0]] : m->dim[2]); at[2]++)
                for (at[3] = 0; at[3] < m->dim[3]; at[3]++)
                    visit(m, at, offset_of(m, at), user);
}

static inline void fill_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    (void)at;
    if (m->dtype == FATTN_BOOL) {
        ((char *)data_of(m))[offset] = (char)(draw(user) % 4);
        return;
    }
    put_element(data_of(m), m->dtype, offset, (int)between(user, -64, 64));
}

/* What nobody may read: rows and keys past the lengths. Where a stride is 0 another entry may read
 * it. */
static inline void hide_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    const int32_t *lengths = user;
    if (at[2] >= lengths[at[0]] && (m->strides[0] != 0 || m->dim[0] == 1) && m->strides[2] != 0)
        put_nan(data_of(m), m->dtype, offset);
}

/* One row or key, in every batch entry and head: NaN, where only some may see it. */
static inline void spoil_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    if (at[2] == *(const int64_t *)user)
        put_nan(data_of(m), m->dtype, offset);
}

#endif
