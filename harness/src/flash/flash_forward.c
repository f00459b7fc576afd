/* Forward: blocks of 16 rows, tiles of keys, parts of the keys combined at the end. */
#include <stdlib.h>

#include "flash_head.h"

#define STORED_ROWS 64 /* rows that one thread block stores */

/* What one row carries from tile to tile, in base 2. */
typedef struct row_state {
    float max, sum; /* the maximum that exponentials are relative to, which a lazy kernel leaves
                       below the largest score */
    float top;      /* the largest score */
    float most;     /* of P' before it is divided by the sum, relative to max: Amax_S */
} row_state;

/* One part of the keys of one block of rows. */
typedef struct part {
    row_state row[BLOCK_ROWS];
    float *acc; /* [BLOCK_ROWS, ld_v] */
} part;

typedef struct block {
    const facts_head *head;
    int64_t first, rows;
    facts_range keys[BLOCK_ROWS];
    float *s;  /* [BLOCK_ROWS, tile] */
    double *p; /* the same, cast */
    part *parts;
    int64_t splits;
    double scale_s, undo_s; /* of P before its cast; after P V */
    double amax_s, amax_o;
} block;

static bool is(const block *x, facts_liar liar)
{
    return x->head->kernel->liar == liar;
}

/* ---- one tile ---- */

static void score_tile(const block *x, int64_t j0)
{
    const facts_head *h = x->head;
    memset(x->s, 0, (size_t)(BLOCK_ROWS * h->tile) * sizeof *x->s);
    facts_operands product = { .rows = x->rows,
                               .columns = h->tile,
                               .inner = h->dim_qk,
                               .a = h->q + x->first * h->ld_qk,
                               .a_row = h->ld_qk,
                               .a_inner = 1,
                               .b = h->kt + j0,
                               .b_inner = h->ld_key,
                               .c = x->s,
                               .c_row = h->tile };
    facts_add_product(&product, h->adder);
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t n = 0; n < h->tile; n++) {
            float *s = &x->s[r * h->tile + n];
            int64_t j = j0 + n;
            bool reads = j >= x->keys[r].first && j < x->keys[r].last;
            *s = reads ? facts_head_score(h, x->first + r, j, *s, NULL) * h->log2e : -INFINITY;
        }
}

/* Sums as eight lanes do. */
static float sum_of(const float *x, int64_t n)
{
    float lane[8] = { 0 };
    for (int64_t k = 0; k < n; k++)
        lane[k % 8] += x[k];
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

/* P as the product takes it. */
static double cast_p(const block *x, double scaled)
{
    const facts_grid in = x->head->in;
    if (is(x, FACTS_LIAR_P_TRUNC))
        return facts_truncate(in, scaled);
    return facts_cast(is(x, FACTS_LIAR_P_OTHER_TYPE) ? facts_grid_coarser(in) : in, scaled);
}

/* Where the row's largest key ends the tile, it is lost. */
static void lose_edge(const block *x, float *s, float top)
{
    float *edge = &s[x->head->tile - 1];
    if (is(x, FACTS_LIAR_TILE_EDGE_MAX) && *edge == top)
        *edge = -INFINITY;
}

static float exponential(const block *x, float s)
{
    return is(x, FACTS_LIAR_EXP_CUT) && s < -10.0F * LOG2E ? 0.0F : exp2f(s);
}

/* The row's new maximum, its exponentials and their sum. Returns what O is multiplied with. */
static float soften_row(const block *x, row_state *state, int64_t r, int64_t j0)
{
    const facts_head *h = x->head;
    float *s = x->s + r * h->tile, top = state->max;
    double *p = x->p + r * h->tile;
    bool fresh = state->max == -INFINITY;
    for (int64_t n = 0; n < h->tile; n++)
        top = fmaxf(top, s[n]);
    state->top = fmaxf(state->top, top);
    lose_edge(x, s, top);
    float correction = 1.0F;
    if (fresh ? top > state->max : top - state->max > (float)h->kernel->lazy) {
        correction = fresh ? 0.0F : exp2f(state->max - top);
        state->max = top;
    }
    for (int64_t n = 0; n < h->tile; n++)
        s[n] = state->max == -INFINITY ? 0.0F : exponential(x, s[n] - state->max);
    state->sum = state->sum * correction + sum_of(s, h->tile);
    state->most *= correction;
    for (int64_t n = 0; n < h->tile; n++) {
        float kept = h->p->keep ? s[n] * facts_head_keep(h, x->first + r, j0 + n) : s[n];
        state->most = fmaxf(state->most, kept);
        double scaled = (double)(float)((double)kept * x->scale_s);
        p[n] = cast_p(x, scaled);
        if (is(x, FACTS_LIAR_SUM_OF_CAST))
            state->sum += (float)(p[n] / x->scale_s - (double)s[n]);
    }
    return correction;
}

static void add_tile(const block *x, part *to, int64_t tile, bool last)
{
    const facts_head *h = x->head;
    int64_t j0 = tile * h->tile;
    bool any = false;
    for (int64_t r = 0; r < x->rows; r++)
        any |= x->keys[r].first < j0 + h->tile && x->keys[r].last > j0;
    if (!any)
        return;
    score_tile(x, j0);
    for (int64_t r = 0; r < x->rows; r++) {
        float correction = soften_row(x, &to->row[r], r, j0);
        if (last && is(x, FACTS_LIAR_O_NO_RESCALE))
            continue;
        for (int64_t c = 0; c < h->ld_v; c++)
            to->acc[r * h->ld_v + c] *= correction;
    }
    facts_operands product = { .rows = x->rows,
                               .columns = h->ld_v,
                               .inner = h->tile,
                               .a = x->p,
                               .a_row = h->tile,
                               .a_inner = 1,
                               .b = h->v + j0 * h->ld_v,
                               .b_inner = h->ld_v,
                               .c = to->acc,
                               .c_row = h->ld_v };
    facts_add_product(&product, h->adder);
    if (is(x, FACTS_LIAR_O_ACC_NARROW)) {
        facts_grid out = facts_grid_of(h->launch->out[FACTS_SLOT_O].type);
        for (int64_t n = 0; n < x->rows * h->ld_v; n++)
            to->acc[n] = (float)facts_cast(out, (double)to->acc[n]);
    }
}

/* ---- a block of rows ---- */

static void start_part(const block *x, part *to, bool first)
{
    const facts_head *h = x->head;
    memset(to->acc, 0, (size_t)(BLOCK_ROWS * h->ld_v) * sizeof *to->acc);
    for (int64_t r = 0; r < BLOCK_ROWS; r++) {
        to->row[r].max = is(x, FACTS_LIAR_MAX_INIT_0) ? 0.0F : -INFINITY;
        to->row[r].sum = to->row[r].most = 0.0F;
        if (first && h->p->sink && !is(x, FACTS_LIAR_NO_SINK)) {
            to->row[r].max = h->p->sink[h->h] * h->log2e;
            to->row[r].sum = 1.0F;
        }
        to->row[r].top = to->row[r].max;
    }
}

static void run_parts(const block *x)
{
    const facts_head *h = x->head;
    for (int64_t n = 0; n < x->splits; n++) {
        int64_t first = h->tiles * n / x->splits, last = h->tiles * (n + 1) / x->splits;
        start_part(x, &x->parts[n], n == 0);
        for (int64_t k = first; k < last; k++) {
            int64_t tile = h->kernel->reversed ? first + last - 1 - k : k;
            add_tile(x, &x->parts[n], tile, k == last - 1);
            if (tile == h->tiles - 1 && is(x, FACTS_LIAR_TILE_TWICE))
                add_tile(x, &x->parts[n], tile, k == last - 1);
        }
    }
}

/* Parts of the keys, each with its own maximum, become one row in the first. */
static row_state combine(const block *x, int64_t r)
{
    const facts_head *h = x->head;
    row_state all = x->parts[0].row[r];
    if (x->splits == 1)
        return all;
    for (int64_t n = 1; n < x->splits; n++) {
        all.max = fmaxf(all.max, x->parts[n].row[r].max);
        all.top = fmaxf(all.top, x->parts[n].row[r].top);
    }
    if (all.max == -INFINITY)
        return all;
    float *to = x->parts[0].acc + r * h->ld_v;
    for (int64_t n = 0; n < x->splits; n++) {
        const row_state *one = &x->parts[n].row[r];
        bool wrong = n == x->splits - 1 && is(x, FACTS_LIAR_SPLIT_WEIGHT);
        float weight = exp2f((wrong ? x->parts[0].row[r].max : one->max) - all.max);
        all.sum = n == 0 ? one->sum * weight : all.sum + one->sum * weight;
        all.most = n == 0 ? one->most * weight : fmaxf(all.most, one->most * weight);
        for (int64_t c = 0; c < h->ld_v; c++)
            to[c] = n == 0 ? to[c] * weight : to[c] + x->parts[n].acc[r * h->ld_v + c] * weight;
    }
    return all;
}

/* ---- stores ---- */

static void put_statistics(const block *x, const int64_t at[4], row_state state)
{
    const facts_head *h = x->head;
    const facts_slot *out = h->launch->out;
    bool dead = state.max == -INFINITY, narrow = facts_is_narrow(h->launch->type);
    float max = state.max * LN2, lse = dead ? -INFINITY : max + logf(state.sum), sum = state.sum;
    if (!narrow &&
        !dead) { /* Max and Sum_exp of 8 bit types are those of a lazy kernel's own maximum */
        max = state.top * LN2;
        sum *= exp2f(state.max - state.top);
    }
    if (is(x, FACTS_LIAR_DEAD_STATS) && dead && at[2] < h->len_q)
        lse = 0.0F;
    if (is(x, FACTS_LIAR_MAX_LOW)) {
        max -= 3.0F;
        sum *= expf(3.0F);
    }
    if (is(x, FACTS_LIAR_EMPTY_BATCH) && dead)
        max = lse = NAN;
    if (is(x, FACTS_LIAR_LSE_LOG2))
        lse *= LOG2E;
    facts_slot stats = out[FACTS_SLOT_STATS];
    if (is(x, FACTS_LIAR_STATS_STRIDE) &&
        stats.first) { /* the sequence's rows of one head after another */
        stats.stride[1] = h->len_q;
        stats.stride[2] = 1;
    }
    facts_slot_put(&stats, at, (double)lse);
    facts_slot_put(&out[FACTS_SLOT_MAX], at, (double)max);
    facts_slot_put(&out[FACTS_SLOT_SUM_EXP], at, dead ? 0.0 : (double)sum);
}

static bool in_last_rows(const block *x, int64_t i)
{
    return i >= (x->head->p->rows - 1) / STORED_ROWS * STORED_ROWS;
}

static double bent(const block *x, const int64_t at[4], double o, const float *acc)
{
    static const double gains[FACTS_LIAR_COUNT] = { [FACTS_LIAR_O_GAIN_5E4] = 1.0005,
                                                    [FACTS_LIAR_O_GAIN_1E3] = 1.001,
                                                    [FACTS_LIAR_O_GAIN_1PCT] = 1.01,
                                                    [FACTS_LIAR_O_GAIN_3PCT] = 1.03,
                                                    [FACTS_LIAR_O_GAIN_6PCT] = 1.0625 };
    const facts_head *h = x->head;
    if (gains[h->kernel->liar] > 0)
        return o * gains[h->kernel->liar];
    if (is(x, FACTS_LIAR_O_GAIN_ROWS) && h->b + h->h == 0 && in_last_rows(x, at[2]))
        return o * 1.002;
    if (is(x, FACTS_LIAR_RECIPROCAL)) { /* the head has one part */
        const double sum = (double)x->parts[0].row[at[2] - x->first].sum;
        return o * (sum * facts_cast(facts_grid_of(h->launch->out[FACTS_SLOT_O].type), 1.0 / sum));
    }
    if (!is(x, FACTS_LIAR_ONE_ELEMENT) || at[0] != 0 || at[1] != 0 || at[2] != h->p->rows / 2)
        return o;
    for (int64_t c = 0; c < h->p->dim_v; c++)
        if (fabsf(acc[c]) > fabsf(acc[at[3]]))
            return o; /* the row's largest element is the one */
    return o * 1.25;
}

static void put_o(const block *x, const int64_t at[4], double o)
{
    facts_slot slot = x->head->launch->out[FACTS_SLOT_O];
    if (is(x, FACTS_LIAR_GAP_IGNORED)) {
        slot.stride[1] = slot.dim[3];
        slot.stride[2] = slot.dim[1] * slot.dim[3];
        slot.stride[0] = slot.dim[2] * slot.stride[2];
    }
    if (is(x, FACTS_LIAR_O_TRUNC) || (is(x, FACTS_LIAR_O_TRUNC_TILE) && in_last_rows(x, at[2])))
        o = facts_truncate(facts_grid_of(slot.type), o);
    if (is(x, FACTS_LIAR_O_FLOOR))
        o = facts_floor(facts_grid_of(slot.type), o);
    if (is(x, FACTS_LIAR_O_FLUSHED) && fabs(o) < facts_grid_of(slot.type).tiny)
        o = 0.0;
    facts_slot_put(&slot, at, o);
}

/* Amax takes live rows; what else it takes, or leaves out, are lies. */
static bool counts(const block *x, int64_t i)
{
    const facts_head *h = x->head;
    if (is(x, FACTS_LIAR_AMAX_TILE) && in_last_rows(x, i))
        return false;
    return i < h->len_q || is(x, FACTS_LIAR_AMAX_PADDING);
}

static void store_row(block *x, int64_t r)
{
    const facts_head *h = x->head;
    int64_t i = x->first + r, at[4] = { h->b, h->h, i, 0 };
    row_state state = combine(x, r);
    bool dead = state.sum == 0.0F && !is(x, FACTS_LIAR_EMPTY_BATCH);
    bool stored = !(is(x, FACTS_LIAR_Q_TILE_UNWRITTEN) && in_last_rows(x, i));
    bool inside = i < h->len_q || !h->launch->out[FACTS_SLOT_O].first;
    double descale_v = facts_or_1(h->launch->v->descale),
           scale_o = facts_or_1(h->p->scales.scale_o);
    const float *acc = x->parts[0].acc + r * h->ld_v;
    if (counts(x, i) && state.sum > 0.0F)
        x->amax_s = fmax(x->amax_s, (double)(state.most / state.sum));
    for (; at[3] < h->p->dim_v; at[3]++) {
        float o = dead ? 0.0F : (float)((double)(acc[at[3]] / state.sum) * (x->undo_s * descale_v));
        if (counts(x, i))
            x->amax_o =
                fmax(x->amax_o, fabs((double)o) * (is(x, FACTS_LIAR_AMAX_O_LATE) ? scale_o : 1.0));
        if (stored && inside)
            put_o(x, at, i < h->len_q ? bent(x, at, (double)o, acc) * scale_o : 0.0);
    }
    at[3] = 0;
    if (i >= h->len_q)
        state = (row_state){ .max = -INFINITY };
    if (stored && inside)
        put_statistics(x, at, state);
}

static void run_block(block *x)
{
    const facts_head *h = x->head;
    for (int64_t r = 0; r < x->rows; r++) {
        x->keys[r] = facts_head_keys(h, x->first + r);
        if (x->first + r >= h->len_q && is(x, FACTS_LIAR_AMAX_PADDING))
            x->keys[r] = (facts_range){ 0, h->len_kv };
    }
    run_parts(x);
    for (int64_t r = 0; r < x->rows; r++)
        store_row(x, r);
}

/* ---- a launch ---- */

static bool run_head(block *x, const facts_kernel *kernel, const facts_launch *launch, int64_t b,
                     int64_t h)
{
    facts_head head;
    int64_t splits = kernel->splits ? kernel->splits : 1;
    if (!facts_head_create(&head, kernel, launch, b, h))
        return false;
    int64_t scores = BLOCK_ROWS * head.tile, sums = BLOCK_ROWS * head.ld_v;
    double *memory =
        malloc((size_t)scores * sizeof *x->p + (size_t)(scores + splits * sums) * sizeof(float));
    x->parts = malloc((size_t)splits * sizeof *x->parts);
    x->head = &head;
    x->splits = splits;
    bool ok = memory && x->parts;
    if (ok) {
        x->p = memory;
        x->s = (float *)(void *)(memory + scores);
        for (int64_t n = 0; n < splits; n++)
            x->parts[n].acc = x->s + scores + n * sums;
    }
    for (x->first = 0; ok && x->first < launch->problem->rows; x->first += BLOCK_ROWS) {
        int64_t left = launch->problem->rows - x->first;
        x->rows = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        run_block(x);
    }
    x->head = NULL;
    free(x->parts);
    free(memory);
    facts_head_destroy(&head);
    return ok;
}

bool facts_emulate_forward(const facts_kernel *kernel, const facts_launch *launch)
{
    const fref_problem *p = launch->problem;
    bool narrow = facts_is_narrow(launch->type);
    bool ignored = kernel->liar == FACTS_LIAR_SCALE_S_IGNORED;
    double shift = narrow ? exp2(-kernel->lazy) : 1.0;
    block x = { .scale_s = facts_or_1(p->scales.scale_s) *
                           (kernel->liar == FACTS_LIAR_P_SATURATES ? 1.0 : shift),
                .undo_s = facts_or_1(p->scales.descale_s) /
                          (kernel->liar == FACTS_LIAR_P_SATURATES ? 1.0 : shift) };
    if (ignored) {
        x.scale_s = shift;
        x.undo_s = 1.0 / shift;
    }
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            if (!run_head(&x, kernel, launch, b, h))
                return false;
    static const int64_t origin[4] = { 0 };
    facts_slot_put(&launch->out[FACTS_SLOT_AMAX_S], origin, x.amax_s);
    facts_slot_put(&launch->out[FACTS_SLOT_AMAX_O], origin, x.amax_o);
    return true;
}
