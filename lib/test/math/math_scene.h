/* One call as the tests make it: a problem's tensors on the host, filled or poisoned, and
 * everything else that it brings. */
#ifndef FATTN_TEST_MATH_SCENE_H
#define FATTN_TEST_MATH_SCENE_H

#include "fattn/score_mod.h"
#include "math_cases.h"
#include "problem/auxiliary.h"

/* The tensors of a call; a place in the list for each. */
typedef struct scene {
    fattn_problem p; /* resolved */
    memory at[MOST_TENSORS + 2 * FATTN_MOD_MAX_TENSORS];
    size_t offset[MOST_TENSORS + 2 * FATTN_MOD_MAX_TENSORS]; /* in fattn_tensors; of a list: place
                                                                is not negative */
    int place[MOST_TENSORS + 2 * FATTN_MOD_MAX_TENSORS];
    int count;
    uint64_t own;                                  /* of both passes */
    int32_t len_q[MOST_BATCH], len_kv[MOST_BATCH]; /* with padding */
} scene;

static inline memory *add_memory(scene *s, const char *name, size_t offset, int place,
                                 const int64_t dim[4], const int64_t strides[4], int32_t dtype,
                                 bool written)
{
    memory *m = &s->at[s->count];
    describe(m, name, dim, strides, dtype, written);
    s->offset[s->count] = offset;
    s->place[s->count++] = place;
    return m;
}

static inline memory *find(const scene *s, size_t offset)
{
    for (int i = 0; i < s->count; i++)
        if (s->offset[i] == offset && s->place[i] <= 0)
            return (memory *)(uintptr_t)&s->at[i];
    return NULL;
}

/* ---- packed and paged
 * --------------------------------------------------------------------------------------------------------------
 */

/* A generator that is the same for both passes of a problem, and another for each tensor. */
static inline generator own_of(const scene *s, int which)
{
    generator own = { .state = s->own * 2862933555777941757u + (uint64_t)which };
    draw(&own);
    return own;
}

static inline memory *blank_memory(scene *s, fattn__role role, size_t offset,
                                   const fattn__shape *shape)
{
    memory *m = &s->at[s->count];
    memset(m, 0, sizeof *m);
    m->name = fattn__role_name(role), m->dtype = shape->dtype, m->written = shape->written;
    for (int axis = 0; axis < 4; axis++) {
        m->dim[axis] = shape->dim[axis];
        m->strides[axis] = shape->dim[axis] == 1 ? 0 : shape->strides[axis];
    }
    const bool of_keys = role == FATTN__ROLE_K || role == FATTN__ROLE_V || role == FATTN__ROLE_DK ||
                         role == FATTN__ROLE_DV;
    memcpy(m->rows, of_keys ? s->len_kv : s->len_q, sizeof m->rows);
    for (int b = 0; b < MOST_BATCH && shape->dim[2] == 1;
         b++) /* a sum over the rows, where there are any */
        m->rows[b] = m->rows[b] > 0;
    s->offset[s->count] = offset;
    s->place[s->count++] = -1;
    return m;
}

/* An array of small integers that the call brings. */
static inline memory *add_numbers(scene *s, fattn__auxiliary which, int64_t count, int32_t bits)
{
    const int64_t dim[4] = { 1, 1, 1, count * bits / 32 }, strides[4] = { 0, 0, 0, 1 };
    return add_memory(s, fattn__auxiliary_name(which), fattn__auxiliary_place(which), -1, dim,
                      strides, FATTN_F32, false);
}

static inline void put_number(const memory *m, int32_t bits, int64_t i, int64_t x)
{
    if (bits == 64)
        ((int64_t *)data_of(m))[i] = x;
    else
        ((int32_t *)data_of(m))[i] = (int32_t)x;
}

/* Entries in the order of the batch, with room between some. */
static inline void add_ragged(scene *s, fattn__role role, size_t offset, generator *g)
{
    const fattn__shape shape = fattn__problem_shape(&s->p, role);
    generator own = own_of(s, (int)role);
    memory *m = blank_memory(s, role, offset, &shape);
    const bool tokens = s->p.ragged_tokens != 0;
    const int64_t step = shape.strides[2];
    int64_t at = chance(&own, 30) ? 3 * (tokens ? step : 1) : 0;
    m->packed = true;
    for (int64_t b = 0; b < s->p.batch; b++) {
        m->first[b] = at;
        at +=
            m->rows[b] * step + (chance(&own, 30) ? between(&own, 1, 3) * (tokens ? step : 1) : 0);
    }
    m->first[s->p.batch] = at;
    m->span = at + (m->dim[1] - 1) * m->strides[1] + m->dim[3] + step;
    allocate(m);
    if (!m->written && role != FATTN__ROLE_STATS)
        each(m, fill_one, g);
    const fattn__auxiliary which = (fattn__auxiliary)(FATTN__AUXILIARY_Q_OFFSETS + (int)role);
    if (find(s, fattn__auxiliary_place(which)) != NULL) /* max and sum_exp lie as stats do */
        return;
    const memory *numbers = add_numbers(s, which, s->p.batch + 1, s->p.ragged_bits);
    for (int64_t b = 0; b <= s->p.batch; b++)
        put_number(numbers, s->p.ragged_bits, b, tokens ? m->first[b] / step : m->first[b]);
}

/* Pages in any order; entries of the table that no row needs are no pages. */
static inline void add_pool(scene *s, fattn__role role, size_t offset, generator *g)
{
    const bool k = role == FATTN__ROLE_K;
    const fattn__shape shape = fattn__problem_shape(&s->p, role),
                       pool = fattn__problem_bytes_of(&s->p, role);
    generator own = own_of(s, (int)role);
    memory *m = blank_memory(s, role, offset, &shape);
    const int64_t page = k ? s->p.page_size_k : s->p.page_size_v,
                  entries = k ? s->p.table_k : s->p.table_v;
    m->page = page, m->pages = entries, m->span = 1;
    for (int axis = 0; axis < 4; axis++) {
        m->strides[axis] = pool.strides[axis];
        m->span += (pool.dim[axis] - 1) * pool.strides[axis];
    }
    allocate(m);
    const int64_t step =
        1 + 2 * between(&own, 0, 3); /* odd, and the pool's pages are a power of two */
    const int32_t bits = s->p.ragged_bits == 64 ? 64 : 32;
    int64_t used = 0, at = between(&own, 0, 9);
    int64_t starts[MOST_BATCH + 1] = { 0 };
    for (int64_t b = 0; b < s->p.batch; b++) {
        for (int64_t i = 0; i < entries; i++) {
            const bool wanted = i * page < m->rows[b];
            m->table[b * entries + i] =
                wanted ? (int32_t)((at + step * used++) % pool.dim[0]) : INT32_MAX;
        }
        starts[b + 1] = starts[b] + (m->rows[b] + page - 1) / page;
    }
    const fattn__auxiliary table =
        k ? FATTN__AUXILIARY_PAGE_TABLE_K : FATTN__AUXILIARY_PAGE_TABLE_V;
    const memory *numbers = add_numbers(s, table, s->p.batch * entries, 32);
    for (int64_t b = 0; b < s->p.batch; b++)
        for (int64_t i = 0; i < entries; i++) {
            const int64_t to = s->p.packed_table ? starts[b] + i : b * entries + i;
            if (!s->p.packed_table || i < starts[b + 1] - starts[b])
                put_number(numbers, 32, to, m->table[b * entries + i]);
        }
    each(m, fill_one, g);
    if (!s->p.packed_table)
        return;
    numbers =
        add_numbers(s, k ? FATTN__AUXILIARY_TABLE_OFFSETS_K : FATTN__AUXILIARY_TABLE_OFFSETS_V,
                    s->p.batch + 1, bits);
    for (int64_t b = 0; b <= s->p.batch; b++)
        put_number(numbers, bits, b, starts[b]);
}

/* ---- what else a call brings
 * --------------------------------------------------------------------------------------------------------
 */

static inline memory *add_floats(scene *s, fattn__auxiliary which, int64_t count, bool written)
{
    const int64_t dim[4] = { 1, 1, 1, count }, strides[4] = { 0, 0, 0, 1 };
    return add_memory(s, fattn__auxiliary_name(which), fattn__auxiliary_place(which), -1, dim,
                      strides, FATTN_F32, written);
}

static inline void add_float(scene *s, fattn__auxiliary which, float x)
{
    *(float *)data_of(add_floats(s, which, 1, false)) = x;
}

static inline void add_masks(scene *s, generator *g)
{
    const fattn_problem *p = &s->p;
    const int64_t full[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    int64_t strides[4];
    fattn__dense_strides(full, "bhsd", strides);
    if (p->dropout_mask) {
        memory *m = add_memory(s, "dropout_mask", offsetof(fattn_tensors, dropout_mask), -1, full,
                               strides, p->dtype, false);
        for (int64_t i = 0; i < m->span; i++)
            put_element(data_of(m), p->dtype, i, chance(g, 80) ? 64 : 0);
        add_float(s, FATTN__AUXILIARY_DROPOUT_SCALE, 1.25F);
        if (p->pass == FATTN_BACKWARD)
            add_float(s, FATTN__AUXILIARY_DROPOUT_SCALE_INVERSE, 0.8F);
    }
    if (p->outputs & FATTN_WANT_RNG_DUMP)
        add_memory(s, "rng_dump", offsetof(fattn_tensors, rng_dump), -1, full, strides, FATTN_F32,
                   true);
    if (p->block_mask) {
        const int64_t bytes = fattn__auxiliary_bytes(p, FATTN__AUXILIARY_BLOCK_MASK);
        uint8_t *tiles =
            data_of(add_floats(s, FATTN__AUXILIARY_BLOCK_MASK, (bytes + 3) / 4, false));
        for (int64_t i = 0; i < bytes; i++)
            tiles[i] = (uint8_t)(draw(g) | draw(g));
    }
}

static inline void add_features(scene *s, generator *g)
{
    const fattn_problem *p = &s->p;
    if (p->scale_in_memory)
        add_float(s, FATTN__AUXILIARY_ATTN_SCALE, 0.1875F);
    if (p->alibi)
        fattn_alibi_slopes(
            p->heads_q, data_of(add_floats(s, FATTN__AUXILIARY_ALIBI_SLOPES, p->heads_q, false)));
    if (p->sink)
        each(add_floats(s, FATTN__AUXILIARY_SINK, p->heads_q, false), fill_one, g);
    if (p->dsink)
        add_floats(s, FATTN__AUXILIARY_DSINK, p->heads_q, true);
    if (p->dropout != 0.0) {
        put_number(add_numbers(s, FATTN__AUXILIARY_SEED, 1, p->rng_bits), p->rng_bits, 0,
                   -1234567891);
        put_number(add_numbers(s, FATTN__AUXILIARY_OFFSET, 1, p->rng_bits), p->rng_bits, 0, 42);
    }
    add_masks(s, g);
}

/* ---- the scene
 * ----------------------------------------------------------------------------------------------------------------------
 */

static inline void add_role(scene *s, fattn__role role, size_t offset, generator *g)
{
    const fattn__shape shape = fattn__problem_shape(&s->p, role);
    if (!shape.used)
        return;
    if (fattn__problem_page(&s->p, role) != 0) {
        add_pool(s, role, offset, g);
        return;
    }
    if (fattn__problem_ragged(&s->p, role)) {
        add_ragged(s, role, offset, g);
        return;
    }
    memory *m = add_memory(s, fattn__role_name(role), offset, -1, shape.dim, shape.strides,
                           shape.dtype, shape.written);
    if (!shape.written)
        each(m, fill_one, g);
}

static inline void add_mod(scene *s, generator *g)
{
    const size_t count = s->p.score_mod != NULL ? fattn_score_mod_tensor_count(s->p.score_mod) : 0;
    for (size_t i = 0; i < count; i++) {
        const fattn_mod_tensor *t = fattn_score_mod_tensor(s->p.score_mod, i);
        each(add_memory(s, "mod_tensor", offsetof(fattn_tensors, mod_tensors), (int)i, t->dim,
                        t->strides, t->dtype, false),
             fill_one, g);
        if ((s->p.mod_gradients >> i & 1) != 0)
            add_memory(s, "mod_gradient", offsetof(fattn_tensors, mod_gradients), (int)i, t->dim,
                       t->strides, FATTN_F32, true);
    }
}

/* One for each entry, or one for all, or prefix sums. */
static inline void add_lengths(scene *s, generator *g)
{
    const int64_t most[2] = { s->p.seq_q, s->p.seq_kv };
    const size_t offset[2] = { offsetof(fattn_tensors, seq_len_q),
                               offsetof(fattn_tensors, seq_len_kv) };
    for (int which = 0; which < 2 && s->p.padding; which++) {
        const bool sums = (s->p.cumulative >> which & 1) != 0;
        const int64_t dim[4] = { 1, 1, 1, s->p.len_broadcast ? 1 : s->p.batch + sums },
                      strides[4] = { 0, 0, 0, 1 };
        int32_t *at = data_of(
                    add_memory(s, "lengths", offset[which], -1, dim, strides, FATTN_F32, false)),
                sum = 0;
        int32_t *lengths = which == 0 ? s->len_q : s->len_kv;
        cr_assert_leq(s->p.batch, MOST_BATCH);
        for (int64_t b = 0; b < s->p.batch; b++) {
            if (b == 0 || !s->p.len_broadcast)
                lengths[b] = chance(g, 15) ? 0 : (int32_t)between(g, 0, most[which]);
            else
                lengths[b] = lengths[0];
            if (sums)
                at[b] = sum, at[b + 1] = sum + lengths[b], sum += lengths[b];
            else if (b < dim[3])
                at[b] = lengths[b];
        }
    }
}

static inline void hide(scene *s)
{
    const size_t rows[] = { offsetof(fattn_tensors, q), offsetof(fattn_tensors, d_o) },
                 keys[] = { offsetof(fattn_tensors, k), offsetof(fattn_tensors, v) };
    if (!s->p.padding)
        return;
    for (int i = 0; i < 2; i++) {
        if (find(s, rows[i]) != NULL)
            each(find(s, rows[i]), hide_one, s->len_q);
        each(find(s, keys[i]), hide_one, s->len_kv);
    }
}

static inline void make_scene(scene *s, const fattn_problem *problem, generator *g)
{
    memset(s, 0, sizeof *s);
    cr_assert_eq(fattn_problem_resolve(problem, &s->p), FATTN_OK, "%s", fattn_last_error());
    s->own = g->state;
    add_lengths(s, g);
#define ADD(field, role) add_role(s, FATTN__ROLE_##role, offsetof(fattn_tensors, field), g);
    /* clang-format off */
    ADD(q, Q) ADD(k, K) ADD(v, V) ADD(o, O) ADD(d_o, DO) ADD(dq, DQ) ADD(dk, DK) ADD(dv, DV)
    ADD(bias, BIAS) ADD(dbias, DBIAS)
    /* clang-format on */
#undef ADD
        const fattn__shape stats = fattn__problem_shape(&s->p, FATTN__ROLE_STATS);
    const bool base_2 = (s->p.outputs & FATTN_WANT_STATS_LOG2) != 0;
    const size_t offset[3] = { offsetof(fattn_tensors, stats), offsetof(fattn_tensors, max),
                               offsetof(fattn_tensors, sum_exp) };
    for (int i = 0; i < 3; i++)
        if (s->p.pass == FATTN_BACKWARD ? i == 0
                                        : (s->p.outputs >> i & 1) != 0 || (i == 0 && base_2)) {
            const int at = s->count;
            if (fattn__problem_ragged(&s->p, FATTN__ROLE_STATS))
                add_ragged(s, FATTN__ROLE_STATS, offset[i], g);
            else
                add_memory(s, "", offset[i], -1, stats.dim, stats.strides, FATTN_F32,
                           s->p.pass == FATTN_FORWARD);
            s->at[at].name = i == 0 ? "stats" : i == 1 ? "max" : "sum_exp";
        }
    add_mod(s, g);
    hide(s);
    add_features(s, g);
}

static inline void free_scene(scene *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->at[i].bytes);
}

#endif
