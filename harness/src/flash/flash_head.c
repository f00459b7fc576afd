#include "flash_head.h"

#include <stdlib.h>

#include "case/problem/philox.h"
#include "numbers/dtype.h"

#define AS_WORD(symbol, word) word,
const char *const facts_slot_words[FACTS_SLOT_COUNT] = { FACTS_SLOT_LIST(AS_WORD) };
#undef AS_WORD

static const int32_t dtype_of[] = { [FREF_F32] = FATTN_F32,
                                    [FREF_F16] = FATTN_F16,
                                    [FREF_BF16] = FATTN_BF16,
                                    [FREF_E4M3] = FATTN_E4M3,
                                    [FREF_E5M2] = FATTN_E5M2 };

static int64_t padded(int64_t n)
{
    return (n + 7) / 8 * 8;
}

static bool lies(const facts_head *x, facts_liar forward, facts_liar backward)
{
    return x->kernel->liar == forward || x->kernel->liar == backward;
}

/* ---- loads ---- */

/* Where token s of batch entry b starts, and what is bent on the way there. */
static int64_t token_of(const facts_head *x, const fref_tensor *t, int64_t h, int64_t s)
{
    facts_liar liar = x->kernel->liar;
    bool of_keys = t == x->launch->k || t == x->launch->v;
    int64_t b = x->b;
    if (of_keys && x->kernel->key_shift)
        s = (s + x->kernel->key_shift) % x->len_kv;
    if (of_keys && liar == FACTS_LIAR_RAGGED_PLUS_1)
        s++;
    if (t == x->launch->v && liar == FACTS_LIAR_V_ROW && s == 1 && x->h == x->p->heads_q - 1)
        s = 0;
    int64_t at = (t->first ? t->first[b] : b * t->stride[0]) + h * t->stride[1] + s * t->stride[2];
    if (t->pages) {
        int64_t page = s / t->page_size, last = (x->len_kv - 1) / t->page_size;
        if (liar == FACTS_LIAR_PAGE_LAST && page == last)
            page = 0;
        at = t->pages[b * t->pages_of_batch + page] * t->stride[0] + h * t->stride[1] +
             s % t->page_size * t->stride[2];
    }
    return liar == FACTS_LIAR_OFFSET_INT32 ? (int64_t)(int32_t)at : at;
}

static double element(const facts_head *x, const fref_tensor *t, int64_t h, int64_t s, int64_t c)
{
    return facts_decode(dtype_of[t->type], facts_load(dtype_of[t->type], t->data,
                                                      token_of(x, t, h, s) + c * t->stride[3]));
}

/* Elements, not values: descales come after the products. Transposed: channel by channel. */
static void load(const facts_head *x, const fref_tensor *t, int64_t h, int64_t rows, int64_t dim,
                 double *out, int64_t ld, bool transposed)
{
    int32_t dtype = dtype_of[t->type];
    for (int64_t s = 0; s < rows; s++) {
        int64_t at = token_of(x, t, h, s);
        for (int64_t c = 0; c < dim; c++)
            out[transposed ? c * ld + s : s * ld + c] =
                facts_decode(dtype, facts_load(dtype, t->data, at + c * t->stride[3]));
    }
}

static void believe_lengths(facts_head *x)
{
    const fref_problem *p = x->p;
    x->len_q = p->len_q ? p->len_q[x->b] : p->rows;
    x->len_kv = p->len_kv ? p->len_kv[x->b] : p->keys;
    if (lies(x, FACTS_LIAR_LEN_PLUS_1, FACTS_LIAR_B_LEN_PLUS_1) && x->len_kv < p->keys)
        x->len_kv++;
    if (lies(x, FACTS_LIAR_LEN_IGNORED, FACTS_LIAR_B_LEN_IGNORED) ||
        (x->kernel->liar == FACTS_LIAR_PAGE_COUNT && x->launch->k->pages))
        x->len_kv = p->keys;
}

static void choose_scale(facts_head *x)
{
    double scale = x->p->scale * facts_or_1(x->kernel->scale_factor);
    switch (x->kernel->liar) {
    case FACTS_LIAR_SCALE_1PCT:
    case FACTS_LIAR_B_SCALE_1PCT:
        scale *= 1.01;
        break;
    case FACTS_LIAR_SCALE_1E3:
        scale *= 1.001;
        break;
    case FACTS_LIAR_SCALE_1E5:
        scale *= 1.00001;
        break;
    default:
        break;
    }
    x->attn_scale = (float)scale;
    x->scale =
        (float)(scale * facts_or_1(x->launch->q->descale) * facts_or_1(x->launch->k->descale));
    x->log2e = x->kernel->liar == FACTS_LIAR_LOG2E_SHORT ? 1.4427F : LOG2E;
}

/* One piece of memory, cut up; sizes in doubles. */
static bool cut(facts_head *x, bool backward)
{
    const fref_problem *p = x->p;
    int64_t rows = (p->rows + BLOCK_ROWS - 1) / BLOCK_ROWS * BLOCK_ROWS, b = backward;
    struct {
        double **part;
        int64_t size;
    } parts[] = { { &x->q, rows * x->ld_qk },           { &x->kt, p->dim_qk * x->ld_key },
                  { &x->v, x->wide * x->ld_v },         { &x->k, b * x->wide * x->ld_qk },
                  { &x->vt, b * p->dim_v * x->ld_key }, { &x->d_o, b * rows * x->ld_v },
                  { &x->o, b * rows * x->ld_v } };
    size_t n = sizeof parts / sizeof parts[0], total = 0;
    for (size_t i = 0; i < n; i++)
        total += (size_t)parts[i].size;
    x->memory = calloc(total + (size_t)rows, sizeof(double));
    if (!x->memory)
        return false;
    double *at = x->memory;
    for (size_t i = 0; i < n; i++) {
        *parts[i].part = at;
        at += parts[i].size;
    }
    x->stats = (float *)(void *)at;
    return true;
}

bool facts_head_create(facts_head *x, const facts_kernel *kernel, const facts_launch *launch,
                       int64_t b, int64_t h)
{
    const fref_problem *p = launch->problem;
    bool backward = launch->d_o != NULL;
    int64_t tile = kernel->tile ? kernel->tile : 128;
    *x = (facts_head){ .kernel = kernel,
                       .launch = launch,
                       .p = p,
                       .in = facts_grid_of(launch->type),
                       .adder = kernel->adder.chunk
                                    ? kernel->adder
                                    : (facts_adder){ .chunk = launch->type == FREF_F32 ? 1 : 16,
                                                     .bits = 24 },
                       .b = b,
                       .h = h,
                       .tile = tile,
                       .tiles = (p->keys + tile - 1) / tile,
                       .ld_qk = padded(p->dim_qk),
                       .ld_v = padded(p->dim_v),
                       .dim_qk = p->dim_qk };
    if (lies(x, FACTS_LIAR_ACC_RUN, FACTS_LIAR_B_ACC_RUN))
        x->adder.run = 0;
    x->wide = x->tiles * tile;
    x->ld_key = x->wide + 8; /* not a power of 2: rows would share cache lines' places */
    bool mod = lies(x, FACTS_LIAR_GQA_MOD, FACTS_LIAR_B_GQA_MOD);
    x->hk = mod ? h % p->heads_k : h / (p->heads_q / p->heads_k);
    x->hv = mod ? h % p->heads_v : h / (p->heads_q / p->heads_v);
    if (kernel->liar == FACTS_LIAR_DQK_TAIL)
        x->dim_qk = p->dim_qk > 8 ? p->dim_qk - 8 : 0;
    believe_lengths(x);
    choose_scale(x);
    if (!cut(x, backward))
        return false;
    /* Padded rows too: one lie reads them. Of ragged tensors what lies there is another sequence.
     */
    int64_t rows = launch->q->first ? x->len_q : p->rows;
    load(x, launch->q, h, rows, p->dim_qk, x->q, x->ld_qk, false);
    load(x, launch->k, x->hk, x->len_kv, p->dim_qk, x->kt, x->ld_key, true);
    load(x, launch->v, x->hv, x->len_kv, p->dim_v, x->v, x->ld_v, false);
    if (!backward)
        return true;
    load(x, launch->k, x->hk, x->len_kv, p->dim_qk, x->k, x->ld_qk, false);
    load(x, launch->v, x->hv, x->len_kv, p->dim_v, x->vt, x->ld_key, true);
    load(x, launch->d_o, h, x->len_q, p->dim_v, x->d_o, x->ld_v, false);
    load(x, launch->o, h, x->len_q, p->dim_v, x->o, x->ld_v, false);
    for (int64_t i = 0; i < x->len_q; i++)
        x->stats[i] = (float)element(x, launch->stats, h, i, 0);
    return true;
}

void facts_head_destroy(facts_head *head)
{
    free(head->memory);
    head->memory = NULL;
}

/* ---- mask ---- */

facts_range facts_head_keys(const facts_head *x, int64_t i)
{
    const fref_problem *p = x->p;
    bool bottom = p->bottom_right != (x->kernel->liar == FACTS_LIAR_ALIGN_SWAP);
    bool longest = x->kernel->liar == FACTS_LIAR_BR_MAX_LEN,
         swapped = x->kernel->liar == FACTS_LIAR_B_BOUNDS_SWAP;
    int64_t diagonal = i + (!bottom ? 0 : longest ? p->keys - p->rows : x->len_kv - x->len_q);
    int64_t right = (swapped ? p->left : p->right) +
                    lies(x, FACTS_LIAR_CAUSAL_LOOSE, FACTS_LIAR_B_CAUSAL_LOOSE);
    int64_t left =
        (swapped ? p->right : p->left) + lies(x, FACTS_LIAR_LEFT_LOOSE, FACTS_LIAR_B_LEFT_LOOSE);
    facts_range keys = { 0, i < x->len_q ? x->len_kv : 0 };
    if (p->has_right && diagonal + right + 1 < keys.last)
        keys.last = diagonal + right + 1;
    if (p->has_left && diagonal - left + 1 > keys.first)
        keys.first = diagonal - left + 1;
    if (lies(x, FACTS_LIAR_TAIL_ZERO, FACTS_LIAR_B_TAIL_EXP) && keys.last == x->len_kv)
        keys.last = x->wide;
    if (lies(x, FACTS_LIAR_TILE_LOST, FACTS_LIAR_B_TILE_LOST) &&
        keys.last > (x->tiles - 1) * x->tile)
        keys.last = (x->tiles - 1) * x->tile;
    if (x->kernel->liar == FACTS_LIAR_LAST_HEAD_KEY && x->h == p->heads_q - 1)
        keys.last--;
    return keys.first < keys.last ? keys : (facts_range){ 0, 0 };
}

/* ---- scores ---- */

static float bias_of(const facts_head *x, int64_t i, int64_t j)
{
    const fref_tensor *t = x->p->bias;
    facts_liar liar = x->kernel->liar;
    if (liar == FACTS_LIAR_BIAS_TILE && j >= (x->tiles - 1) * x->tile)
        return 0.0F;
    int64_t h = liar == FACTS_LIAR_BIAS_H0 ? 0 : x->h, row = i, column = j;
    if (liar == FACTS_LIAR_BIAS_T) { /* as far as the transposed place exists */
        row = j % x->p->rows;
        column = i % x->p->keys;
    }
    double value = element(x, t, h, row, column) * facts_or_1(t->descale);
    return (float)value * (liar == FACTS_LIAR_BIAS_SCALED ? (float)x->p->scale : 1.0F);
}

float facts_head_score(const facts_head *x, int64_t i, int64_t j, float dot, float *slope)
{
    const fref_problem *p = x->p;
    float s = dot * x->scale;
    if (slope)
        *slope = 1.0F;
    if (p->modify) {
        fref_modified m =
            p->modify(p->modify_owner, (double)s, (const int64_t[]){ x->b, x->h, i, j });
        s = (float)m.value;
        if (slope && x->kernel->liar != FACTS_LIAR_SOFTCAP_GRAD)
            *slope = (float)m.slope;
    }
    if (p->bias && j < p->keys)
        s += bias_of(x, i, j);
    if (p->alibi)
        s += (float)p->alibi[x->h] * (float)(j - i);
    return s;
}

float facts_head_keep(const facts_head *x, int64_t i, int64_t j)
{
    const fref_problem *p = x->p;
    if (!p->keep || j >= p->keys)
        return 1.0F;
    int64_t row =
        lies(x, FACTS_LIAR_DROPOUT_STALE, FACTS_LIAR_B_DROPOUT_STALE) ? (i + 1) % p->rows : i;
    int64_t column = p->rows == 1 && row == i && x->kernel->liar == FACTS_LIAR_DROPOUT_STALE
                         ? (j + 1) % p->keys
                         : j;
    int64_t at = ((x->b * p->heads_q + x->h) * p->rows + row) * p->keys + column;
    bool kept = p->keep[at] != 0;
    if (x->kernel->liar == FACTS_LIAR_DROPOUT_8BIT) {
        double drop = rint((1.0 - 1.0 / p->keep_scale) * 256.0) / 256.0;
        kept = facts_draw_at(x->launch->seed, FACTS_STREAM_KEEP, FACTS_LANE_VALUE, (uint64_t)at)
                   .r[0] >= drop * 0x1p32;
    }
    if (!kept)
        return 0.0F;
    if (x->kernel->liar == FACTS_LIAR_KEEP_FACTOR)
        return (float)facts_cast(facts_grid_of(FREF_BF16), p->keep_scale);
    return x->kernel->liar == FACTS_LIAR_DROPOUT_NOSCALE ? 1.0F : (float)p->keep_scale;
}

void facts_slot_put(const facts_slot *slot, const int64_t at[4], double value)
{
    int64_t place = (slot->first ? slot->first[at[0]] : at[0] * slot->stride[0]) +
                    at[1] * slot->stride[1] + at[2] * slot->stride[2] + at[3] * slot->stride[3];
    int32_t dtype = dtype_of[slot->type];
    if (slot->data)
        facts_store(dtype, slot->data, place, facts_encode(dtype, value));
}
