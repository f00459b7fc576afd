/* Finds accepted neighbours of a refused problem. It asks the target and has no rules of its own. A
 * table lists the possible changes, nearest first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "error.h"
#include "fattn/fattn.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

typedef enum change_kind {
    SET, /* the field becomes `argument`, if it has another value */
    CLEAR_BIT /* of outputs */,
    ROUND_UP, /* to the next multiple of `argument` */
    ROUND_DOWN,
    ATLEAST,
    AS_HEADS,  /* heads_k and heads_v become heads_q */
    AS_DIM,    /* dim_v becomes dim_qk */
    BOTH_DIMS, /* dim_qk and dim_v, where they are equal, to the next multiple of `argument` */
    EACH_DIM,  /* dim_qk and dim_v, each to its next multiple of `argument` */
    SET_DIMS,  /* dim_qk and dim_v become the halves of `argument` */
    SET_PAGES, /* pages of K and V get `argument` rows */
    DENSE,     /* every stride is derived */
    ALL_KEYS,  /* padding is set; the caller gives full lengths */
    UNPACKED,  /* every entry has its place in a tensor of rank 4 */
    UNPAGED    /* K and V are tensors of rank 4 */
} change_kind;

typedef enum width { WORD_32, WORD_64 } width;

typedef struct change {
    change_kind kind;
    width width;
    size_t offset;
    int64_t argument;
    const char *field;
    const char *text; /* NULL: "field new instead of old" */
} change;

#define FIELD_32(kind, field, argument, text)                                                      \
    { kind, WORD_32, offsetof(fattn_problem, field), argument, #field, text },
#define FIELD_64(kind, field, argument, text)                                                      \
    { kind, WORD_64, offsetof(fattn_problem, field), argument, #field, text },
#define DIMS(multiple)                                                                             \
    { BOTH_DIMS, WORD_64, offsetof(fattn_problem, dim_qk), multiple, "dim_qk and dim_v", NULL },
#define EACH(multiple) { EACH_DIM, WORD_64, 0, multiple, "", NULL },
#define HEADS(qk, v) { SET_DIMS, WORD_64, 0, (qk) << 16 | (v), "", "head dims " #qk "/" #v },
#define PAGES(rows) { SET_PAGES, WORD_64, 0, rows, "", "pages of " #rows },
#define WHOLE(kind, text) { kind, WORD_32, 0, 0, "", text },

/* First changes that cost the caller nothing, then changes that can be undone (a tail that is cut
 * off, full lengths, another form of the same lengths), then changes that lose something. */
static const change changes[] = {
    /* clang-format off */
    FIELD_32(SET, spelling, FATTN_SPELLING_AUTO, "spelling auto")
    FIELD_32(SET, impl, FATTN_IMPL_AUTO, "impl auto")
    FIELD_32(SET, determinism, FATTN_DETERMINISM_AUTO, "determinism auto")
    FIELD_32(SET, capture, 0, "not captured in a CUDA graph")
    FIELD_64(SET, total_q, 0, "without total_q")
    FIELD_64(SET, total_kv, 0, "without total_kv")
    FIELD_32(SET, len_rank, 0, "len_rank 4")
    WHOLE(DENSE, "dense strides")
    FIELD_32(SET, cumulative, 0, "lengths in the place of prefix sums")
    FIELD_32(SET, ragged_tokens, 0, "offsets in elements")
    FIELD_32(SET, packed_table, 0, "page tables of one length")
    FIELD_32(SET, rng_bits, 0, "rng_bits 64")
    FIELD_32(SET, scale_in_memory, 0, "attn_scale by value")
    DIMS(8)
    FIELD_64(ROUND_UP, dim_qk, 8, NULL)
    FIELD_64(ROUND_UP, dim_v, 8, NULL)
    DIMS(16)
    FIELD_64(ROUND_UP, dim_qk, 16, NULL)
    FIELD_64(ROUND_UP, dim_v, 16, NULL)
    WHOLE(AS_DIM, "dim_v as dim_qk")
    EACH(8)
    HEADS(128, 128) HEADS(192, 128) HEADS(256, 256) HEADS(96, 96) HEADS(64, 64)
    PAGES(16) PAGES(32) PAGES(64) PAGES(128)
    WHOLE(ALL_KEYS, "with padding, and full lengths")
    FIELD_64(ROUND_UP, seq_q, 8, NULL)
    FIELD_64(ROUND_UP, seq_kv, 8, NULL)
    FIELD_64(ROUND_UP, seq_q, 64, NULL)
    FIELD_64(ROUND_UP, seq_kv, 64, NULL)
    FIELD_64(ATLEAST, seq_q, 2, NULL)
    FIELD_64(ATLEAST, seq_kv, 2, NULL)
    FIELD_64(ATLEAST, seq_q, 64, NULL)
    FIELD_64(ATLEAST, seq_kv, 128, NULL)
    FIELD_32(SET, deterministic, 0, "without deterministic")
    FIELD_32(SET, unfuse_fma, 0, "without unfuse_fma")
    FIELD_32(CLEAR_BIT, outputs, FATTN_WANT_MAX, "without the output max")
    FIELD_32(CLEAR_BIT, outputs, FATTN_WANT_SUM_EXP, "without the output sum_exp")
    FIELD_32(CLEAR_BIT, outputs, FATTN_WANT_STATS, "without the output stats")
    FIELD_32(CLEAR_BIT, outputs, FATTN_WANT_STATS_LOG2, "without stats in base 2")
    FIELD_32(CLEAR_BIT, outputs, FATTN_WANT_RNG_DUMP, "without the output rng_dump")
    FIELD_32(SET, dsink, 0, "without dsink")
    FIELD_32(SET, dbias, 0, "without dbias")
    FIELD_32(SET, mod_gradients, 0, "without gradients of the score_mod's tensors")
    FIELD_32(SET, dtype, FATTN_BF16, "bf16")
    FIELD_32(SET, dtype, FATTN_F16, "f16")
    FIELD_32(SET, o_dtype, FATTN_DTYPE_DEFAULT, "o_dtype as dtype")
    FIELD_32(SET, grad_dtype, FATTN_DTYPE_DEFAULT, "grad_dtype as dtype")
    FIELD_32(SET, do_dtype, FATTN_DTYPE_DEFAULT, "do_dtype as o_dtype")
    FIELD_32(SET, bias_dtype, FATTN_DTYPE_DEFAULT, "bias_dtype as dtype")
    FIELD_32(SET, stats_dtype, FATTN_DTYPE_DEFAULT, "stats in f32")
    WHOLE(AS_HEADS, "heads_k and heads_v as heads_q")
    FIELD_64(ATLEAST, batch, 2, NULL)
    FIELD_64(SET, batch, 1, NULL)
    WHOLE(UNPACKED, "without ragged offsets")
    WHOLE(UNPAGED, "without pages")
    FIELD_32(SET, align, FATTN_TOP_LEFT, "align tl")
    FIELD_32(SET, has_right, 1, "with window_right")
    FIELD_32(SET, has_left, 0, "without window_left")
    FIELD_32(SET, has_right, 0, "without window_right")
    FIELD_32(SET, block_mask, 0, "without block_mask")
    FIELD_64(SET, dropout, 0, "without dropout")
    FIELD_32(SET, dropout_mask, 0, "without dropout_mask")
    FIELD_32(SET, sink, 0, "without sink")
    FIELD_32(SET, alibi, 0, "without alibi")
    FIELD_32(SET, rope, 0, "without rope")
    FIELD_32(SET, padding, 0, "without padding")
    FIELD_32(SET, has_bias, 0, "without bias")
    FIELD_64(SET, score_mod, 0, "without score_mod")
    FIELD_64(ROUND_DOWN, dim_qk, 64, NULL)
    FIELD_64(ROUND_DOWN, dim_v, 64, NULL)
    /* clang-format on */
};
enum { CHANGES = sizeof changes / sizeof *changes, DEFAULT_BUDGET = 200 };

/* ---- one change
 * ------------------------------------------------------------------------------------------------------------
 */

static int64_t read_field(const fattn_problem *p, const change *c)
{
    int32_t narrow;
    int64_t wide;
    memcpy(&narrow, (const char *)p + c->offset, sizeof narrow);
    memcpy(&wide, (const char *)p + c->offset, sizeof wide);
    return c->width == WORD_32 ? narrow : wide;
}

static void write_field(fattn_problem *p, const change *c, int64_t value)
{
    const int32_t narrow = (int32_t)value;
    if (c->width == WORD_32)
        memcpy((char *)p + c->offset, &narrow, sizeof narrow);
    else
        memcpy((char *)p + c->offset, &value, sizeof value);
}

static int64_t changed_value(const change *c, int64_t value)
{
    switch (c->kind) {
    case SET:
        return c->argument;
    case CLEAR_BIT:
        return value & ~c->argument;
    case ROUND_UP:
    case BOTH_DIMS:
    case EACH_DIM:
        return value > INT64_MAX - c->argument
                   ? value
                   : (value + c->argument - 1) / c->argument * c->argument;
    case ROUND_DOWN:
        return value > c->argument ? value / c->argument * c->argument : value;
    case ATLEAST:
        return value < c->argument ? c->argument : value;
    default:
        return value;
    }
}

/* After a change of extents or types: strides keep their order, a bias of the size of the scores
 * keeps that size, and dO keeps the type of O if it had it. */
static void follow(fattn_problem *p, const fattn_problem *before)
{
    const int64_t was[4] = { before->batch, before->heads_q, before->seq_q, before->seq_kv };
    const int64_t is[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    bool moved = p->dim_qk != before->dim_qk || p->dim_v != before->dim_v ||
                 p->heads_k != before->heads_k || p->heads_v != before->heads_v;
    for (int axis = 0; axis < 4; axis++) {
        moved = moved || was[axis] != is[axis];
        if (p->has_bias && p->bias_dim[axis] == was[axis])
            p->bias_dim[axis] = is[axis];
    }
    int32_t *const types[] = { &p->o_dtype, &p->grad_dtype, &p->bias_dtype };
    for (size_t i = 0; i < sizeof types / sizeof *types && p->dtype != before->dtype; i++)
        if (*types[i] == before->dtype)
            *types[i] = FATTN_DTYPE_DEFAULT;
    if (before->do_dtype == before->o_dtype && p->do_dtype == before->do_dtype)
        p->do_dtype = FATTN_DTYPE_DEFAULT;
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT && moved; which++) {
        const fattn__shape shape = fattn__problem_shape(p, which);
        fattn_match_layout(shape.dim, shape.strides, fattn__problem_strides(p, which));
    }
}

/* Derives the strides again. */
static void forget_strides(fattn_problem *p)
{
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++)
        memset(fattn__problem_strides(p, which), 0, 4 * sizeof(int64_t));
}

static void set_pages(fattn_problem *p, int64_t rows)
{
    const int64_t pages = p->batch * ((p->seq_kv + rows - 1) / rows);
    if (p->page_size_k != 0)
        p->page_size_k = rows, p->pages_k = pages, p->table_k = 0;
    if (p->page_size_v != 0)
        p->page_size_v = rows, p->pages_v = pages, p->table_v = 0;
    forget_strides(p);
}

/* Removes fields that no longer have a meaning. */
static void tidy(fattn_problem *p)
{
    const bool paged = p->page_size_k != 0 || p->page_size_v != 0;
    if (!p->padding)
        p->cumulative = 0, p->len_rank = 0, p->len_broadcast = 0;
    if (p->ragged_bits == 0 || !p->padding)
        p->ragged_bits = 0, p->ragged = 0, p->ragged_tokens = 0, p->total_q = p->total_kv = 0;
    p->packed_table = paged ? p->packed_table : 0;
    if (p->dropout == 0.0)
        p->outputs &= ~FATTN_WANT_RNG_DUMP;
    p->dsink = p->sink ? p->dsink : 0;
    p->rope_dim = p->rope ? p->rope_dim : 0;
    p->bias_dtype = p->has_bias ? p->bias_dtype : FATTN_DTYPE_DEFAULT;
    p->do_dtype = fattn__dtype_is_fp8(p->dtype) || fattn__dtype_is_mx(p->dtype)
                      ? p->do_dtype
                      : FATTN_DTYPE_DEFAULT;
    p->dbias = p->has_bias ? p->dbias : 0;
    p->mod_gradients = p->score_mod != NULL ? p->mod_gradients : 0;
    p->outputs |= p->pass == FATTN_FORWARD && p->training ? FATTN_WANT_STATS : 0;
}

/* Does this change apply to the problem? `text` gets its description. */
static bool apply(fattn_problem *p, const change *c, char *text, size_t capacity)
{
    const fattn_problem before = *p;
    int64_t value = 0;
    if (c->kind == AS_HEADS) {
        p->heads_k = p->heads_v = p->heads_q;
    } else if (c->kind == AS_DIM) {
        p->dim_v = p->dim_qk;
    } else if (c->kind == BOTH_DIMS) {
        value = p->dim_qk;
        if (p->dim_qk == p->dim_v)
            p->dim_qk = p->dim_v = changed_value(c, value);
    } else if (c->kind == EACH_DIM) {
        p->dim_qk = changed_value(c, p->dim_qk);
        p->dim_v = changed_value(c, p->dim_v);
    } else if (c->kind == SET_DIMS) {
        p->dim_qk = c->argument >> 16;
        p->dim_v = c->argument & 0xffff;
    } else if (c->kind == SET_PAGES) {
        set_pages(p, c->argument);
    } else if (c->kind == ALL_KEYS) {
        p->padding = 1;
    } else if (c->kind == DENSE) {
        forget_strides(p);
    } else if (c->kind == UNPACKED) {
        p->ragged_bits = 0;
        forget_strides(p);
    } else if (c->kind == UNPAGED) {
        p->page_size_k = p->page_size_v = p->pages_k = p->pages_v = p->table_k = p->table_v = 0;
        forget_strides(p);
    } else {
        value = read_field(p, c);
        write_field(p, c, changed_value(c, value));
    }
    follow(p, &before);
    tidy(p);
    fattn_problem was, is;
    if (fattn_problem_resolve(&before, &was) != FATTN_OK ||
        fattn_problem_resolve(p, &is) != FATTN_OK || fattn__problem_same(&was, &is))
        return false;
    if (c->text != NULL)
        snprintf(text, capacity, "%s", c->text);
    else if (c->kind == EACH_DIM)
        snprintf(text, capacity, "dim_qk %" PRId64 ", dim_v %" PRId64, p->dim_qk, p->dim_v);
    else
        snprintf(text, capacity, "%s %" PRId64 " instead of %" PRId64, c->field,
                 changed_value(c, value), value);
    return true;
}

/* ---- the search
 * ------------------------------------------------------------------------------------------------------------
 */

typedef struct search {
    fattn_context *context;
    const fattn_problem *problem; /* resolved */
    fattn_neighbour *out;
    size_t count;
    int budget, asked;
    fattn_status status;
} search;

static bool is_new(const search *s, const fattn_problem *resolved)
{
    for (size_t i = 0; i < s->count; i++) {
        if (fattn__problem_same(&s->out[i].problem, resolved))
            return false;
    }
    return true;
}

/* Asks, and keeps an accepted neighbour. False when the search is over. */
static bool try_one(search *s, const fattn_problem *p, const char *text, int count)
{
    fattn_problem resolved;
    fattn_decision *decision;
    if (fattn_problem_resolve(p, &resolved) != FATTN_OK || !is_new(s, &resolved))
        return true;
    if (s->budget == 0)
        return false;
    s->budget--;
    s->asked++;
    s->status = fattn_decide(&decision, s->context, &resolved, FATTN_ASK_A);
    if (s->status != FATTN_OK)
        return false;
    if (fattn_decision_supported(decision)) {
        fattn_neighbour *to = &s->out[s->count++];
        *to = (fattn_neighbour){ .problem = resolved, .changes = count, .asked = s->asked };
        snprintf(to->change, sizeof to->change, "%s", text);
    }
    fattn_decision_destroy(decision);
    return s->count < FATTN_MAX_NEIGHBOURS;
}

static bool several(change_kind kind)
{
    return kind == BOTH_DIMS || kind == EACH_DIM || kind == SET_DIMS;
}

static void search_one(search *s)
{
    for (int i = 0; i < CHANGES; i++) {
        fattn_problem p = *s->problem;
        char text[48];
        if (apply(&p, &changes[i], text, sizeof text) &&
            !try_one(s, &p, text, several(changes[i].kind) ? 2 : 1))
            return;
    }
}

/* Pairs in the order of the sum of their positions: two near changes come before a near and a far
 * one. */
static void search_two(search *s)
{
    for (int sum = 1; sum < 2 * CHANGES; sum++) {
        for (int i = sum < CHANGES ? 0 : sum - CHANGES + 1; 2 * i < sum; i++) {
            fattn_problem p = *s->problem;
            char first[44], second[44], text[96];
            if (!apply(&p, &changes[i], first, sizeof first) ||
                !apply(&p, &changes[sum - i], second, sizeof second))
                continue;
            snprintf(text, sizeof text, "%s, %s", first, second);
            if (!try_one(s, &p, text, 2))
                return;
        }
    }
}

fattn_status fattn_explain(fattn_context *context, const fattn_problem *problem, int budget,
                           fattn_neighbour *out, size_t *count)
{
    NEED(context, out, count);
    fattn_problem resolved;
    *count = 0;
    if (budget < 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "budget: %d is not allowed; want 0 (%d) or more",
                           budget, DEFAULT_BUDGET);
    TRY(fattn_problem_resolve(problem, &resolved));
    search s = { context, &resolved, out, 0, budget > 0 ? budget : DEFAULT_BUDGET, 0, FATTN_OK };
    search_one(&s);
    if (s.status == FATTN_OK && s.count == 0)
        search_two(&s);
    *count = s.count;
    if (s.count == 0)
        out[0] = (fattn_neighbour){ .asked = s.asked };
    return s.status;
}
