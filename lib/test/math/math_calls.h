/* A call of a random problem on the math backend and on the cpu backend, which the worker's
 * tests hold against the oracle. All that it brings lies in one arena. What nobody may read is NaN, and what
 * nobody writes stays as it was. */
#ifndef FATTN_TEST_MATH_CALLS_H
#define FATTN_TEST_MATH_CALLS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/arguments.h"
#include "core/engine.h"
#include "fattn/device.h"
#include "math/math_run.h"
#include "math_problems.h"
#include "problem/auxiliary.h"

enum { GUARD = 256, POISON = 0xff, UNTOUCHED = 0xcb, MOST_BATCH = 8 };

/* Who computes; the math backend within limits (0: its own). */
typedef struct side {
    fattn_context *context;
    const fattn__engine *engine;
    int64_t score_bytes, most_keys;
} side;

typedef struct tally {
    int problems, wrong;
    double worst, of_largest; /* difference: of what is allowed; of the tensor's largest element */
} tally;

typedef struct scene {
    fattn_problem p; /* resolved */
    uint64_t seed;   /* of both passes */
    int32_t length[2][MOST_BATCH];
    int64_t start[2][MOST_BATCH + 1], pages[2][MOST_BATCH + 1]; /* of entries: tokens; pages */
    fattn__arguments a;
    size_t from[FATTN__MAX_ARGUMENTS], bytes;
    char *arena;
} scene;

/* ---- where things lie */

static inline fattn__role role_of(const fattn__argument *a)
{
    static const struct {
        size_t offset;
        fattn__role role;
    } table[] = {
#define AS_ROW(field, role) { offsetof(fattn_tensors, field), FATTN__ROLE_##role },
        AS_ROW(q, Q) AS_ROW(k, K) AS_ROW(v, V) AS_ROW(o, O) AS_ROW(stats, STATS) AS_ROW(max, STATS)
            AS_ROW(sum_exp, STATS) AS_ROW(d_o, DO) AS_ROW(dq, DQ) AS_ROW(dk, DK) AS_ROW(dv, DV)
                AS_ROW(bias, BIAS) AS_ROW(dbias, DBIAS)
#undef AS_ROW
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].offset == (size_t)a->offset)
            return table[i].role;
    return FATTN__ROLE_COUNT;
}

static inline bool of_keys(fattn__role role)
{
    return role == FATTN__ROLE_K || role == FATTN__ROLE_V || role == FATTN__ROLE_DK ||
           role == FATTN__ROLE_DV;
}

static inline int32_t dtype_of(const scene *s, const fattn__argument *a)
{
    const fattn__role role = role_of(a);
    if (role < FATTN__ROLE_COUNT)
        return fattn__problem_shape(&s->p, role).dtype;
    if (strcmp(a->name, "dropout_mask") == 0)
        return s->p.dtype;
    return a->place >= 0 && !a->written
               ? fattn_score_mod_tensor(s->p.score_mod, (size_t)a->place)->dtype
               : FATTN_F32;
}

/* Pages in an order of their own; an entry's follow those of the entries before it. */
static inline int32_t page_of(const scene *s, fattn__role role, int64_t b, int64_t i)
{
    return (int32_t)((5 * (int)role + 7 * (s->pages[role == FATTN__ROLE_V][b] + i)) % POOL);
}

/* Each ragged tensor begins at a token of its own. */
static inline int64_t token_of(const scene *s, fattn__role role, int64_t b)
{
    return s->start[of_keys(role)][b] + (int)role;
}

static inline int64_t element_at(const scene *s, fattn__role role, int64_t b, int64_t h, int64_t i)
{
    const int64_t *stride = fattn__problem_bytes_of(&s->p, role).strides,
                  page = fattn__problem_page(&s->p, role);
    if (fattn__problem_ragged(&s->p, role))
        return (token_of(s, role, b) + i) * stride[2] + h * stride[1];
    if (page != 0)
        return page_of(s, role, b, i / page) * stride[0] + h * stride[1] + i % page * stride[2];
    return b * stride[0] + h * stride[1] + i * stride[2];
}

static inline int64_t span_of(const scene *s, const fattn__argument *a)
{
    const fattn__role role = role_of(a);
    if (role == FATTN__ROLE_COUNT || !fattn__problem_ragged(&s->p, role))
        return a->footprint.span;
    const fattn__shape shape = fattn__problem_shape(&s->p, role);
    return fattn__dtype_bytes(shape.dtype) *
           (element_at(s, role, s->p.batch, shape.dim[1] - 1, 0) + shape.dim[3]);
}

/* ---- elements */

static inline float element(const void *at, int32_t dtype, int64_t i)
{
    uint32_t bits;
    float x;
    if (dtype == FATTN_F32)
        return ((const float *)at)[i];
    const uint16_t code = ((const uint16_t *)at)[i];
    bits = (uint32_t)code << 16;
    memcpy(&x, &bits, sizeof x);
    if (dtype == FATTN_BF16)
        return x;
    const int exponent = code >> 10 & 31;
    x = exponent == 0    ? ldexpf((float)(code & 1023), -24)
        : exponent == 31 ? ((code & 1023) != 0 ? NAN : INFINITY)
                         : ldexpf((float)(1024 + (code & 1023)), exponent - 25);
    return code & 0x8000 ? -x : x;
}

/* Between -1 and 1; a boolean's byte is 0 to 3. */
static inline void fill(void *at, int32_t dtype, int64_t i, generator *g)
{
    const uint32_t bits = draw(g);
    const float x = (float)bits * 0x1p-30F - 1;
    uint32_t code;
    memcpy(&code, &x, sizeof code);
    if (dtype == FATTN_F32)
        ((float *)at)[i] = x;
    else if (dtype == FATTN_BF16)
        ((uint16_t *)at)[i] = (uint16_t)(code >> 16);
    else if (dtype == FATTN_F16)
        ((uint16_t *)at)[i] = (uint16_t)((bits & 0x8000) | (0x2c00 + (bits >> 16) % 0x1000));
    else
        ((char *)at)[i] = (char)(bits % 4);
}

/* ---- what a call brings */

static inline void put_number(void *at, int32_t bits, int64_t i, int64_t x)
{
    if (bits == 64)
        ((int64_t *)at)[i] = x;
    else
        ((int32_t *)at)[i] = (int32_t)x;
}

static inline void draw_lengths(scene *s)
{
    generator g = { .state = s->seed };
    for (int keys = 0; keys < 2 && s->p.padding; keys++) {
        const int64_t most = keys ? s->p.seq_kv : s->p.seq_q;
        cr_assert_leq(s->p.batch, MOST_BATCH);
        for (int64_t b = 0; b < s->p.batch; b++) {
            s->length[keys][b] = chance(&g, 15) ? 0 : (int32_t)between(&g, 0, most);
            if (s->p.len_broadcast)
                s->length[keys][b] = s->length[keys][0];
            s->start[keys][b + 1] = s->start[keys][b] + s->length[keys][b] + between(&g, 0, 2);
        }
    }
    for (int v = 0; v < 2; v++) {
        const int64_t page = v ? s->p.page_size_v : s->p.page_size_k;
        for (int64_t b = 0; page != 0 && b < s->p.batch; b++)
            s->pages[v][b + 1] = s->pages[v][b] + (s->length[1][b] + page - 1) / page;
    }
}

static inline void put_lengths(const scene *s, int32_t *at, bool keys)
{
    const bool sums = (s->p.cumulative >> keys & 1) != 0;
    for (int64_t b = 0; b < (s->p.len_broadcast ? 1 : s->p.batch); b++)
        at[b + sums] = s->length[keys][b] + (sums ? at[b] : 0);
}

/* Entries of a table that no row needs are no pages. */
static inline void put_pages(const scene *s, int32_t *at, fattn__role role)
{
    const bool v = role == FATTN__ROLE_V;
    const int64_t *pages = s->pages[v], entries = v ? s->p.table_v : s->p.table_k;
    for (int64_t b = 0; b < s->p.batch; b++)
        for (int64_t i = 0; i < pages[b + 1] - pages[b]; i++)
            at[(s->p.packed_table ? pages[b] : b * entries) + i] = page_of(s, role, b, i);
}

/* False: the array is filled with elements. */
static inline bool put_numbers(const scene *s, const fattn__argument *a, void *at)
{
    const fattn_problem *p = &s->p;
    for (fattn__role role = 0; role < FATTN_RAGGED_TENSORS; role++)
        if ((size_t)a->offset ==
            fattn__auxiliary_place((fattn__auxiliary)(FATTN__AUXILIARY_Q_OFFSETS + (int)role))) {
            const int64_t step = fattn__problem_shape(p, role).strides[2];
            for (int64_t b = 0; b <= p->batch; b++)
                put_number(at, p->ragged_bits, b,
                           token_of(s, role, b) * (p->ragged_tokens ? 1 : step));
            return true;
        }
#define IS(field) ((size_t)a->offset == offsetof(fattn_tensors, field))
    if (IS(seq_len_q) || IS(seq_len_kv))
        memset(at, 0, (size_t)a->footprint.span), put_lengths(s, at, IS(seq_len_kv));
    else if (IS(page_table_k) || IS(page_table_v))
        put_pages(s, at, IS(page_table_k) ? FATTN__ROLE_K : FATTN__ROLE_V);
    else if (IS(seed) || IS(offset))
        put_number(at, p->rng_bits, 0, IS(seed) ? -1234567891 : 42);
    else if (IS(attn_scale) || IS(dropout_scale) || IS(dropout_scale_inverse))
        *(float *)at = IS(attn_scale) ? 0.1875F : IS(dropout_scale) ? 1.25F : 0.8F;
    else if (IS(alibi_slopes))
        fattn_alibi_slopes(p->heads_q, at);
    else if (IS(table_offsets_k) || IS(table_offsets_v))
        for (int64_t b = 0; b <= p->batch; b++)
            put_number(at, p->ragged_bits == 64 ? 64 : 32, b, s->pages[IS(table_offsets_v)][b]);
    else
        return false;
    return true;
#undef IS
}

/* Rows past an entry's end stay NaN. `only`: a row that is made NaN; -1: none. */
static inline void put_rows(const scene *s, fattn__role role, char *at, generator *g, int64_t only)
{
    const fattn__shape shape = fattn__problem_shape(&s->p, role);
    for (int64_t b = 0; b < shape.dim[0]; b++)
        for (int64_t h = 0; h < shape.dim[1]; h++)
            for (int64_t i = 0; i < (s->p.padding ? s->length[of_keys(role)][b] : shape.dim[2]);
                 i++)
                for (int64_t d = 0; d < shape.dim[3]; d++) {
                    const int64_t e = element_at(s, role, b, h, i) + d,
                                  bytes = fattn__dtype_bytes(shape.dtype);
                    if (only < 0)
                        fill(at, shape.dtype, e, g);
                    else if (only == i)
                        memset(at + e * bytes, POISON, (size_t)bytes);
                }
}

static inline void fill_argument(const scene *s, int i)
{
    static const uint32_t one[] = { 0, 0x3f80, 0x3c00, 0x3f800000 };
    const fattn__argument *a = &s->a.at[i];
    char *at = s->arena + s->from[i];
    const fattn__role role = role_of(a);
    const int32_t dtype = dtype_of(s, a);
    const int64_t bytes = fattn__dtype_bytes(dtype);
    generator g = { .state = (s->seed + (uint64_t)(a->offset + a->place)) * 2862933555777941757u };
    if (a->written)
        memset(at, UNTOUCHED, (size_t)span_of(s, a));
    else if (put_numbers(s, a, at))
        return;
    else if (role < FATTN_RAGGED_TENSORS)
        put_rows(s, role, at, &g, -1);
    else if (strcmp(a->name, "block_mask") == 0)
        for (int64_t n = 0; n < a->footprint.span; n++)
            at[n] = (char)(draw(&g) | draw(&g));
    else
        for (int64_t n = 0; n < a->footprint.span / bytes; n++) {
            fill(at, dtype, n, &g);
            if (strcmp(a->name, "dropout_mask") == 0)
                memcpy(at + n * bytes, &one[chance(&g, 80) ? dtype : 0], (size_t)bytes);
        }
}

static inline int find(const scene *s, size_t offset)
{
    for (int i = 0; i < s->a.count; i++)
        if ((size_t)s->a.at[i].offset == offset)
            return i;
    return -1;
}

/* A NaN that a band hides from some rows: it may reach those alone that see it. What a mask, a
 * modification or dropout takes away either side may multiply by 0, which is a NaN. */
static inline void spoil(scene *s, fattn__role role, size_t offset, generator *g)
{
    const fattn__shape shape = fattn__problem_shape(&s->p, role);
    const bool taken_away = s->p.dropout != 0 || s->p.dropout_mask || s->p.block_mask ||
                            s->p.bias_dtype == FATTN_BOOL || s->p.score_mod != NULL;
    if ((s->p.has_left || s->p.has_right) && shape.strides[2] != 0 && chance(g, 30) && !taken_away)
        put_rows(s, role, s->arena + s->from[find(s, offset)], g, between(g, 0, shape.dim[2] - 1));
}

static inline void make_scene(scene *s, const fattn_problem *problem, uint64_t seed)
{
    memset(s, 0, sizeof *s);
    cr_assert_eq(fattn_problem_resolve(problem, &s->p), FATTN_OK, "%s", fattn_last_error());
    s->seed = seed;
    draw_lengths(s);
    fattn__arguments_of(&s->a, &s->p, 0);
    for (int i = 0; i < s->a.count; i++) {
        s->from[i] = s->bytes + GUARD;
        s->bytes = (s->from[i] + (size_t)span_of(s, &s->a.at[i]) + GUARD - 1) / GUARD * GUARD;
    }
    s->bytes += GUARD;
    s->arena = malloc(s->bytes);
    memset(s->arena, POISON, s->bytes);
    for (int i = 0; i < s->a.count; i++)
        fill_argument(s, i);
}

/* ---- run */

static inline fattn_plan plan_of(const side *who, const fattn_problem *p)
{
    fattn_plan plan = { .engine = who->engine, .context = who->context, .problem = *p };
    const fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    cr_assert_eq(who->engine->setup(&plan, &options), FATTN_OK, "%s", fattn_last_error());
    if (who->score_bytes > 0) {
        fattn__math_state *state = plan.state;
        fattn__chunks_within(&state->chunks, p, who->score_bytes, who->most_keys);
        plan.workspace_bytes = state->chunks.bytes;
    }
    return plan;
}

#define OK(call) cr_assert_eq(call, FATTN_OK, "%s", fattn_last_error())

/* The arena after the call. The workspace is dirty and guarded. */
static inline char *run_scene(const side *who, const scene *s)
{
    fattn_plan plan = plan_of(who, &s->p);
    const void *mod_tensors[FATTN_MOD_MAX_TENSORS] = { NULL };
    void *mod_gradients[FATTN_MOD_MAX_TENSORS] = { NULL }, *memory, *workspace;
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.mod_tensors = mod_tensors, t.mod_gradients = mod_gradients;
    OK(fattn_buffer_create(&memory, who->context, s->bytes));
    OK(fattn_buffer_write(who->context, memory, s->arena, s->bytes));
    for (int i = 0; i < s->a.count; i++) {
        void *at = (char *)memory + s->from[i];
        const fattn__argument *a = &s->a.at[i];
        if (a->place < 0)
            memcpy((char *)&t + a->offset, &at, sizeof at);
        else if (a->written)
            mod_gradients[a->place] = at;
        else
            mod_tensors[a->place] = at;
    }
    /* Under a sanitizer that looks for what was never written the workspace is left as it came. */
    const bool dirty = getenv("FACTS_TEST_MATH_UNWRITTEN") == NULL;
    const size_t bytes = plan.workspace_bytes + 2 * GUARD;
    char *dirt = malloc(bytes), *after = malloc(s->bytes);
    memset(dirt, POISON, bytes);
    OK(fattn_buffer_create(&workspace, who->context, bytes));
    if (dirty)
        OK(fattn_buffer_write(who->context, workspace, dirt, bytes));
    t.workspace = (char *)workspace + GUARD, t.workspace_bytes = plan.workspace_bytes;
    OK(who->engine->run(&plan, &t, NULL));
    OK(fattn_stream_synchronize(who->context, NULL));
    if (dirty)
        OK(fattn_buffer_read(who->context, dirt, workspace, bytes));
    for (int i = 0; i < GUARD; i++)
        cr_assert(dirt[i] == (char)POISON && dirt[bytes - 1 - (size_t)i] == (char)POISON,
                  "the workspace's guard was overwritten");
    OK(fattn_buffer_read(who->context, after, memory, s->bytes));
    fattn_buffer_destroy(who->context, memory);
    fattn_buffer_destroy(who->context, workspace);
    free(dirt);
    who->engine->done(&plan);
    return after;
}

/* ---- compared */

/* What is left of sums that cancel: the roundings of their terms dS_ij = P_ij (f dP_ij - D_i), f
 * what dropout multiplies with. The elements of dO and V have a variance of 1/3 at most: dP_ij, a
 * sum of d_v products, deviates by sqrt(d_v) / 3, D_i by f times that at most, and P_i sums to 1.
 * So sum_j |dS_ij| is 2 f sqrt(d_v) / 3 or so, four times that in the worst of some hundred rows.
 *   Keys that are all the same: dQ_i = scale k sum_j dS_ij, whose terms were cast to the inputs'
 *     type; one dK of them all adds up the rows, where a rounding of at most u has u / sqrt(3) and
 *     q 1 / sqrt(3).
 *   A bias's number for all keys: in fp32, and it is a sum of rows.
 *   A score_mod's number for all rows and keys: in fp32, but each term may be multiplied with its
 *     j - i (relative position), and it is a sum of rows. */
static inline double cancelled_of(const scene *s, const fattn__argument *a, double unit,
                                  double kept)
{
    const fattn_problem *p = &s->p;
    const fattn__role role = role_of(a);
    const double row = 2 * kept * sqrt((double)p->dim_v) / 3;
    const bool same = p->dtype != FATTN_F32 && p->seq_kv > 1 && p->k_strides[2] == 0;
    if (same && (role == FATTN__ROLE_DK || role == FATTN__ROLE_DQ)) {
        const double rows =
            role == FATTN__ROLE_DK ? (double)(p->heads_q / p->heads_k * p->seq_q) : 1;
        return unit / 2 * 4 * row * (p->scale_in_memory ? 0.1875 : fabs(p->attn_scale)) *
               fmax(1, sqrt(rows) / 3);
    }
    if (role == FATTN__ROLE_DBIAS && p->bias_dim[3] == 1) {
        const int64_t *dim = p->bias_dim, terms = p->batch * p->heads_q * p->seq_q;
        return 0x1p-23 * row * sqrt((double)(terms / (dim[0] * dim[1] * dim[2])));
    }
    if (a->place < 0)
        return 0;
    const int64_t *dim = fattn_score_mod_tensor(p->score_mod, (size_t)a->place)->dim;
    const int64_t heads = dim[1] == 1 ? p->heads_q : 1, batch = dim[0] == 1 ? p->batch : 1,
                  most = p->seq_q > p->seq_kv ? p->seq_q : p->seq_kv;
    return dim[2] * dim[3] > 1
               ? 0
               : 0x1p-23 * row * sqrt((double)(batch * heads * p->seq_q)) * (double)most;
}

/* Rounding: of the inputs' type in the weights, of the tensor's in what is stored; fp32 otherwise.
 * Not a bound from analysis, which is the harness's: enough to tell a mistake from rounding. Where
 * the terms of a gradient cancel their rounding stays. What dropout keeps it makes larger. */
static inline double allowed_of(const scene *s, const fattn__argument *a, double largest)
{
    const double unit[] = { 0, 0x1p-8, 0x1p-11, 0x1p-23 };
    const bool backward = s->p.pass == FATTN_BACKWARD;
    const double of_inputs = unit[s->p.dtype],
                 kept = s->p.dropout_mask ? 1.25 : 1 / (1 - s->p.dropout);
    const double weights =
        role_of(a) == FATTN__ROLE_STATS ? 0x1p-23 : of_inputs + (backward ? unit[s->p.o_dtype] : 0);
    const double cancelled = s->p.dtype != FATTN_F32 ? of_inputs * kept : 0,
                 all = backward ? fmax(cancelled, cancelled_of(s, a, of_inputs, kept)) : 0;
    return 4e-5 * kept + all + (4 * weights + 2 * unit[dtype_of(s, a)] + 2e-5) * largest;
}

static inline bool is_untouched(const char *at, int64_t bytes)
{
    return memcmp(at, "\xcb\xcb\xcb\xcb", (size_t)bytes) == 0;
}

/* Counts what differs too much; what the cpu wrote moves from `got` to `before`. */
static inline void compare_output(const scene *s, int i, const char *want, const char *got,
                                  tally *out)
{
    const fattn__argument *a = &s->a.at[i];
    const int32_t dtype = dtype_of(s, a);
    const int64_t bytes = fattn__dtype_bytes(dtype), count = span_of(s, a) / bytes;
    char *before = s->arena + s->from[i];
    double largest = 0, worst = 0;
    int64_t worst_at = 0;
    want += s->from[i], got += s->from[i];
    for (int64_t n = 0; n < count; n++)
        if (isfinite(element(want, dtype, n)))
            largest = fmax(largest, fabs((double)element(want, dtype, n)));
    const double allowed = allowed_of(s, a, largest);
    for (int64_t n = 0; n < count; n++) {
        if (is_untouched(want + n * bytes, bytes))
            continue;
        const double x = (double)element(want, dtype, n), y = (double)element(got, dtype, n);
        const bool same = (isnan(x) && isnan(y)) || x == y;
        const double error = same ? 0 : isfinite(x) && isfinite(y) ? fabs(x - y) : 1e30;
        memcpy(before + n * bytes, got + n * bytes, (size_t)bytes);
        worst_at = error > worst ? n : worst_at;
        worst = fmax(worst, error);
    }
    out->worst = fmax(out->worst, worst / allowed);
    out->of_largest = fmax(out->of_largest, worst / largest);
    out->wrong += worst > allowed;
    cr_expect_leq(worst, allowed, "%s: element %lld: want %.9g, got %.9g, allowed %.3g", a->name,
                  (long long)worst_at, (double)element(want, dtype, worst_at),
                  (double)element(got, dtype, worst_at), allowed);
}

/* Both sides on one scene, the math backend twice: its bits must repeat. Returns what the cpu
 * wrote. */
static inline char *compare_scene(const side *cpu, const side *math, scene *s, tally *out)
{
    char *want = run_scene(cpu, s), *got = run_scene(math, s), *again = run_scene(math, s);
    for (int i = 0; i < s->a.count; i++)
        if (s->a.at[i].written)
            compare_output(s, i, want, got, out);
    size_t outside = 0;
    while (outside < s->bytes && s->arena[outside] == got[outside])
        outside++;
    int owner = 0;
    while (owner + 1 < s->a.count && s->from[owner + 1] - GUARD <= outside)
        owner++;
    cr_expect_eq(outside, s->bytes, "%s: byte %lld was written", s->a.at[owner].name,
                 (long long)outside - (long long)s->from[owner]);
    cr_expect_eq(memcmp(got, again, s->bytes), 0, "does not repeat bit for bit");
    free(got);
    free(again);
    free(s->arena);
    return want;
}

/* Forward, and backward from the cpu's forward. */
static inline void compare_problem(const side *cpu, const side *math, fattn_problem p, generator *g,
                                   tally *out)
{
    static scene forward, backward;
    const uint64_t seed = g->state;
    p.pass = FATTN_FORWARD;
    if ((p.outputs & FATTN_WANT_STATS_LOG2) == 0)
        p.outputs |= FATTN_WANT_STATS;
    make_scene(&forward, &p, seed);
    spoil(&forward, FATTN__ROLE_V, offsetof(fattn_tensors, v), g);
    char *before = compare_scene(cpu, math, &forward, out);
    out->problems++;
    if ((p.outputs & FATTN_WANT_STATS_LOG2) == 0 && p.page_size_k == 0 && p.page_size_v == 0) {
        p.pass = FATTN_BACKWARD;
        make_scene(&backward, &p, seed);
        for (int i = 0; i < backward.a.count; i++) {
            const fattn__argument *a = &backward.a.at[i];
            const int j = find(&forward, (size_t)a->offset);
            if (!a->written && a->place < 0 && j >= 0)
                memcpy(backward.arena + backward.from[i], before + forward.from[j],
                       (size_t)span_of(&backward, a));
        }
        spoil(&backward, FATTN__ROLE_DO, offsetof(fattn_tensors, d_o), g);
        free(compare_scene(cpu, math, &backward, out));
    }
    free(before);
}

#endif
