/* Random problems for the math backend. */
#ifndef FATTN_TEST_MATH_PROBLEMS_H
#define FATTN_TEST_MATH_PROBLEMS_H

#include <criterion/criterion.h>
#include <string.h>

#include "fattn/score_mod.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

enum { POOL = 256, SPARE_TOKENS = 12 };

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
static inline void draw_ragged(generator *g, fattn_problem *p)
{
    p->ragged_bits = chance(g, 50) ? 32 : 64;
    p->ragged_tokens = chance(g, 50);
    p->ragged = chance(g, 50) ? 0 : draw(g) & FATTN_RAGGED_ALL;
    p->total_q = chance(g, 20) ? p->batch * (p->seq_q + 3) + SPARE_TOKENS : 0;
    const uint32_t ragged = p->ragged == 0 ? FATTN_RAGGED_ALL : p->ragged;
    int64_t *const strides[FATTN_RAGGED_TENSORS] = {
        p->q_strides,  p->k_strides,  p->v_strides,  p->o_strides, p->stats_strides,
        p->do_strides, p->dq_strides, p->dk_strides, p->dv_strides
    };
    for (int i = 0; i < FATTN_RAGGED_TENSORS; i++) {
        const bool k = i == 1 || i == 7, v = i == 2 || i == 8, of_v = v || i == 3 || i == 5;
        const int64_t dim[4] = { p->batch,
                                 k   ? p->heads_k
                                 : v ? p->heads_v
                                     : p->heads_q,
                                 k || v ? p->seq_kv : p->seq_q,
                                 i == 4 ? 1
                                 : of_v ? p->dim_v
                                        : p->dim_qk };
        const int64_t width = dim[3] + (chance(g, 30) ? between(g, 1, 9) : 0),
                      all = dim[0] * (dim[2] + 3) + SPARE_TOKENS;
        const bool by_head = chance(g, 25);
        if ((ragged >> i & 1) != 0)
            memcpy(strides[i],
                   (int64_t[4]){ 0, by_head ? width * all : width, by_head ? width : dim[1] * width,
                                 1 },
                   sizeof dim);
        else if (i > 5) /* the gradient of every element, whatever its input is */
            fattn__dense_strides(dim, "bshd", strides[i]);
    }
}

static inline void draw_paged(generator *g, fattn_problem *p)
{
    const int64_t sizes[] = { 1, 5, 16, 64 };
    int64_t page = sizes[draw(g) % 4];
    while (p->batch * ((p->seq_kv + page - 1) / page) > POOL)
        page *= 2;
    const int64_t dims[2][4] = { { POOL, p->heads_k, page, p->dim_qk },
                                 { POOL, p->heads_v, page, p->dim_v } };
    if (chance(g, 80))
        p->page_size_k = page, p->pages_k = POOL,
        fattn__dense_strides(dims[0], chance(g, 50) ? "bhsd" : "bshd", p->k_strides);
    if (chance(g, 80) || p->page_size_k == 0)
        p->page_size_v = page, p->pages_v = POOL,
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

#endif
