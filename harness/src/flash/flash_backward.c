/* Backward: P recomputed from Stats, block by block of 16 rows over all keys. */
#include <stdlib.h>

#include "flash_head.h"

/* What is summed over query heads of one batch entry, or over all. */
typedef struct sums {
    float *dk, *dv; /* [heads, keys, ld]: of one batch entry */
    float *dbias;
    unsigned char *touched; /* entries of dbias that a row read */
    double amax_dp, amax_dq, amax_dk, amax_dv;
    float *dsink; /* [heads_q] */
} sums;

typedef struct block {
    const facts_head *head;
    sums *sums;
    int64_t first, rows;
    double *p, *ds; /* [BLOCK_ROWS, wide], cast */
    float *s, *dp;  /* [BLOCK_ROWS, wide] */
    float *dq;      /* [rows, ld_qk], of the whole head: in the workspace */
    float *dk, *dv; /* [wide, ld]: of this query head */
    double scale_s, undo_s, scale_dp, undo_dp;
    double descale_do, descale_v;
} block;

static bool is(const block *x, facts_liar liar)
{
    return x->head->kernel->liar == liar;
}

/* ---- entries ---- */

static float delta_of(const block *x, int64_t i)
{
    const facts_head *h = x->head;
    float lane[8] = { 0 };
    const int64_t channels = h->p->dim_v - (is(x, FACTS_LIAR_B_DELTA_TAIL) ? 8 : 0);
    for (int64_t c = 0; c < channels; c++)
        lane[c % 8] =
            (float)((double)lane[c % 8] + h->d_o[i * h->ld_v + c] * h->o[i * h->ld_v + c]);
    float sum =
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
    return (float)((double)sum * (x->descale_do * facts_or_1(h->launch->o->descale)));
}

static void add_bias(const block *x, int64_t i, int64_t j, float dx)
{
    const facts_head *h = x->head;
    const facts_slot *slot = &h->launch->out[FACTS_SLOT_DBIAS];
    const int64_t *dim = slot->dim;
    if (!slot->data || j >= h->p->keys)
        return;
    int64_t b = dim[0] > 1 ? h->b : 0, head = dim[1] > 1 ? h->h : 0, row = dim[2] > 1 ? i : 0,
            key = dim[3] > 1 ? j : 0;
    int64_t at = ((b * dim[1] + head) * dim[2] + row) * dim[3] + key;
    x->sums->touched[at] = 1;
    if (is(x, FACTS_LIAR_DBIAS_BATCH) && h->b + 1 < h->p->batch)
        return;
    x->sums->dbias[at] += is(x, FACTS_LIAR_DBIAS_SCALED) ? dx * h->attn_scale : dx;
}

/* dS as the products take it. */
static double cast_ds(const block *x, double scaled)
{
    const facts_grid in = x->head->in;
    if (is(x, FACTS_LIAR_B_DS_FLOOR))
        return facts_floor(in, scaled);
    return facts_cast(is(x, FACTS_LIAR_B_DS_OTHER_TYPE) ? facts_grid_coarser(in) : in, scaled);
}

/* One entry of P and dS, cast, from its score and dO . v. */
static void make_entry(const block *x, int64_t r, int64_t j, float delta)
{
    const facts_head *h = x->head;
    int64_t i = x->first + r, at = r * h->wide + j;
    float slope, score = facts_head_score(h, i, j, x->s[at], &slope),
                 keep = facts_head_keep(h, i, j);
    float p = exp2f(score * h->log2e - h->stats[i] * h->log2e);
    double kept = (double)(float)((double)(p * keep) * x->scale_s);
    x->p[at] = is(x, FACTS_LIAR_B_P_TRUNC) ? facts_truncate(h->in, kept) : facts_cast(h->in, kept);
    float dp = (float)((double)x->dp[at] * (x->descale_do * x->descale_v)) * keep,
          dx = p * (dp - delta);
    add_bias(x, i, j, dx);
    float ds = dx * slope * (h->kernel->scale_last ? 1.0F : h->attn_scale);
    double size = fabs((double)(is(x, FACTS_LIAR_AMAX_DP_EARLY) ? p * dp * h->attn_scale : ds));
    x->sums->amax_dp =
        fmax(x->sums->amax_dp, size * (h->kernel->scale_last ? (double)h->attn_scale : 1.0));
    x->ds[at] = cast_ds(x, (double)ds * x->scale_dp);
}

static void make_entries(const block *x)
{
    const facts_head *h = x->head;
    for (int64_t r = 0; r < x->rows; r++) {
        int64_t i = x->first + r;
        facts_range keys = facts_head_keys(h, i);
        bool dead = keys.first == keys.last || h->stats[i] == -INFINITY;
        memset(x->p + r * h->wide, 0, (size_t)h->wide * sizeof *x->p);
        memset(x->ds + r * h->wide, 0, (size_t)h->wide * sizeof *x->ds);
        if (i >= h->len_q)
            continue;
        float delta = is(x, FACTS_LIAR_B_NO_DELTA) ? 0.0F : delta_of(x, i);
        if (h->p->sink && h->stats[i] > -INFINITY)
            x->sums->dsink[h->h] -= exp2f((h->p->sink[h->h] - h->stats[i]) * h->log2e) * delta;
        for (int64_t j = keys.first; !dead && j < keys.last; j++)
            make_entry(x, r, j, delta);
    }
}

/* ---- products ---- */

static void add_scores(const block *x, const double *rows, int64_t ld, int64_t inner,
                       const double *keys, float *to)
{
    const facts_head *h = x->head;
    memset(to, 0, (size_t)(BLOCK_ROWS * h->wide) * sizeof *to);
    facts_add_product(&(facts_operands){ .rows = x->rows,
                                         .columns = h->wide,
                                         .inner = inner,
                                         .a = rows + x->first * ld,
                                         .a_row = ld,
                                         .a_inner = 1,
                                         .b = keys,
                                         .b_inner = h->ld_key,
                                         .c = to,
                                         .c_row = h->wide },
                      h->adder);
}

static void add_dq(const block *x)
{
    const facts_head *h = x->head;
    float *dq = x->dq + x->first * h->ld_qk;
    for (int64_t n = 0; n < h->tiles; n++) {
        int64_t tile = h->kernel->reversed ? h->tiles - 1 - n : n;
        facts_operands product = { .rows = x->rows,
                                   .columns = h->ld_qk,
                                   .inner = h->tile,
                                   .a = x->ds + tile * h->tile,
                                   .a_row = h->wide,
                                   .a_inner = 1,
                                   .b = h->k + tile * h->tile * h->ld_qk,
                                   .b_inner = h->ld_qk,
                                   .c = dq,
                                   .c_row = h->ld_qk };
        facts_add_product(&product, h->adder);
        if (tile == 0 && is(x, FACTS_LIAR_B_DQ_TWICE))
            facts_add_product(&product, h->adder);
        for (int64_t k = 0; is(x, FACTS_LIAR_B_DQ_NARROW) && k < x->rows * h->ld_qk; k++)
            dq[k] = (float)facts_cast(h->in, (double)dq[k]);
    }
}

/* What the block's rows add to a gradient of keys: entries^T rows. */
static void add_keys(const block *x, const double *entries, const double *rows, int64_t ld,
                     float *to)
{
    const facts_head *h = x->head;
    facts_add_product(&(facts_operands){ .rows = h->wide,
                                         .columns = ld,
                                         .inner = x->rows,
                                         .a = entries,
                                         .a_row = 1,
                                         .a_inner = h->wide,
                                         .b = rows + x->first * ld,
                                         .b_inner = ld,
                                         .c = to,
                                         .c_row = ld },
                      h->adder);
}

/* ---- a head ---- */

/* A query head's part of dK or dV joins its group's sum; cast before where there is a group. */
static void join_group(const block *x, const float *part, float *sum, int64_t ld, int64_t group,
                       double undo)
{
    const facts_head *h = x->head;
    bool cast = group > 1 && !h->kernel->partials_fp32 && !facts_is_narrow(h->launch->type);
    if (is(x, FACTS_LIAR_B_GQA_LAST) && (h->h + 1) % group != 0)
        return;
    for (int64_t n = 0; n < h->p->keys * ld; n++) {
        double value = (double)(float)((double)part[n] * undo);
        sum[n] += (float)(cast ? facts_cast(h->in, value) : value);
        if (is(x, FACTS_LIAR_B_GROUP_NARROW))
            sum[n] = (float)facts_cast(h->in, (double)sum[n]);
    }
}

static void put_dq(const block *x)
{
    const facts_head *h = x->head;
    const facts_slot *slot = &h->launch->out[FACTS_SLOT_DQ];
    double undo = x->undo_dp * facts_or_1(h->launch->k->descale) *
                  (h->kernel->scale_last ? (double)h->attn_scale : 1.0);
    if (is(x, FACTS_LIAR_B_DQ_NOSCALE))
        undo /= (double)h->attn_scale;
    const int64_t rows =
        slot->first ? h->len_q : h->p->rows; /* ragged: behind them lies another sequence */
    for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < h->p->dim_qk; c++) {
            double value = (double)(float)((double)x->dq[i * h->ld_qk + c] * undo);
            x->sums->amax_dq = fmax(x->sums->amax_dq, fabs(value));
            facts_slot_put(slot, (const int64_t[]){ h->b, h->h, i, c },
                           value * facts_or_1(h->p->scales.scale_dq));
        }
}

static void run_head(block *x)
{
    const facts_head *h = x->head;
    const fref_problem *p = h->p;
    double undo_dk = x->undo_dp * facts_or_1(h->launch->q->descale) *
                     (h->kernel->scale_last ? (double)h->attn_scale : 1.0);
    memset(x->dk, 0, (size_t)(h->wide * h->ld_qk) * sizeof *x->dk);
    memset(x->dv, 0, (size_t)(h->wide * h->ld_v) * sizeof *x->dv);
    if (!is(x, FACTS_LIAR_WORKSPACE_DIRTY) || h->b + h->h > 0)
        memset(x->dq, 0, (size_t)(p->rows * h->ld_qk) * sizeof *x->dq);
    for (x->first = 0; x->first < p->rows; x->first += BLOCK_ROWS) {
        x->rows = p->rows - x->first < BLOCK_ROWS ? p->rows - x->first : BLOCK_ROWS;
        add_scores(x, h->q, h->ld_qk, h->dim_qk, h->kt, x->s);
        add_scores(x, h->d_o, h->ld_v, p->dim_v, h->vt, x->dp);
        make_entries(x);
        add_dq(x);
        if (is(x, FACTS_LIAR_B_LAST_ROW_DK) && h->b + h->h == 0 && x->first + x->rows == p->rows)
            memset(x->ds + (x->rows - 1) * h->wide, 0, (size_t)h->wide * sizeof *x->ds);
        add_keys(x, x->ds, h->q, h->ld_qk, x->dk);
        add_keys(x, x->p, h->d_o, h->ld_v, x->dv);
    }
    put_dq(x);
    join_group(x, x->dk, x->sums->dk + h->hk * p->keys * h->ld_qk, h->ld_qk,
               p->heads_q / p->heads_k, undo_dk);
    join_group(x, x->dv, x->sums->dv + h->hv * p->keys * h->ld_v, h->ld_v, p->heads_q / p->heads_v,
               x->undo_s * x->descale_do);
}

static bool create_block(block *x, const facts_head *h)
{
    size_t entries = (size_t)(BLOCK_ROWS * h->wide),
           keys = (size_t)(h->wide * (h->ld_qk + h->ld_v));
    x->p = malloc(2 * entries * sizeof *x->p + (2 * entries + keys) * sizeof *x->s);
    if (!x->p)
        return false;
    x->ds = x->p + entries;
    x->s = (float *)(void *)(x->ds + entries);
    x->dp = x->s + entries;
    x->dk = x->dp + entries;
    x->dv = x->dk + h->wide * h->ld_qk;
    x->head = h;
    return true;
}

static bool backward_head(sums *all, const facts_kernel *kernel, const facts_launch *launch,
                          int64_t b, int64_t h)
{
    const fref_scales *scales = &launch->problem->scales;
    facts_head head;
    if (!facts_head_create(&head, kernel, launch, b, h))
        return false;
    block x = { .sums = all,
                .dq = (float *)(void *)launch->workspace,
                .scale_s = facts_or_1(scales->scale_s),
                .undo_s = facts_or_1(scales->descale_s),
                .scale_dp = facts_or_1(scales->scale_dp),
                .undo_dp = facts_or_1(scales->descale_dp),
                .descale_do = facts_or_1(launch->d_o->descale),
                .descale_v = facts_or_1(launch->v->descale) };
    bool ok = create_block(&x, &head);
    if (ok)
        run_head(&x);
    free(x.p);
    facts_head_destroy(&head);
    return ok;
}

/* ---- a launch ---- */

/* A gradient of a key before its cast, bent. */
static double bent(facts_liar liar, const facts_slot *slot, double value)
{
    const facts_grid out = facts_grid_of(slot->type);
    switch (liar) {
    case FACTS_LIAR_B_DK_GAIN_5E4:
        return value * 1.0005;
    case FACTS_LIAR_B_DK_GAIN_3PCT:
        return value * 1.03;
    case FACTS_LIAR_B_DV_FLOOR:
        return facts_floor(out, value);
    default:
        return value;
    }
}

static void put_keys(const facts_launch *launch, facts_liar liar, facts_slot_id id, int64_t b,
                     const float *sum, double scale, double *amax)
{
    const bool is_its = (id == FACTS_SLOT_DV) == (liar == FACTS_LIAR_B_DV_FLOOR);
    const facts_slot *slot = &launch->out[id];
    const int64_t ld = (slot->dim[3] + 7) / 8 * 8,
                  live = launch->problem->len_kv ? launch->problem->len_kv[b] : slot->dim[2],
                  keys = slot->first ? live : slot->dim[2];
    for (int64_t h = 0; h < slot->dim[1]; h++)
        for (int64_t j = 0; j < keys; j++)
            for (int64_t c = 0; c < slot->dim[3]; c++) {
                const int64_t from =
                    liar == FACTS_LIAR_B_PADDED_DK && id == FACTS_SLOT_DK && j >= live ? live - 1
                                                                                       : j;
                double value = (double)sum[(h * slot->dim[2] + from) * ld + c];
                *amax = fmax(*amax, fabs(value));
                value *= facts_or_1(scale);
                facts_slot_put(slot, (const int64_t[]){ b, h, j, c },
                               is_its ? bent(liar, slot, value) : value);
            }
}

static void put_totals(const facts_launch *launch, const facts_kernel *kernel, const sums *all)
{
    const facts_slot *dbias = &launch->out[FACTS_SLOT_DBIAS];
    const int64_t *dim = dbias->dim;
    for (int64_t n = 0; dbias->data && n < dim[0] * dim[1] * dim[2] * dim[3]; n++) {
        int64_t at[4] = { n / (dim[1] * dim[2] * dim[3]), n / (dim[2] * dim[3]) % dim[1],
                          n / dim[3] % dim[2], n % dim[3] };
        if (kernel->liar != FACTS_LIAR_DBIAS_MASKED || all->touched[n])
            facts_slot_put(dbias, at, (double)all->dbias[n]);
    }
    for (int64_t h = 0; launch->problem->sink && h < launch->problem->heads_q; h++)
        facts_slot_put(&launch->out[FACTS_SLOT_DSINK], (const int64_t[]){ 0, h, 0, 0 },
                       (double)all->dsink[h]);
    const double amax[] = { all->amax_dp, all->amax_dq, all->amax_dk, all->amax_dv };
    for (int n = 0; n < 4; n++)
        facts_slot_put(&launch->out[FACTS_SLOT_AMAX_DP + n], (const int64_t[4]){ 0 }, amax[n]);
}

size_t facts_emulation_workspace(const fref_problem *problem)
{
    return (size_t)(problem->rows * ((problem->dim_qk + 7) / 8 * 8)) * sizeof(float);
}

bool facts_emulate_backward(const facts_kernel *kernel, const facts_launch *launch)
{
    const fref_problem *p = launch->problem;
    const int64_t *dim = launch->out[FACTS_SLOT_DBIAS].dim;
    size_t dk = (size_t)(p->heads_k * p->keys * ((p->dim_qk + 7) / 8 * 8));
    size_t dv = (size_t)(p->heads_v * p->keys * ((p->dim_v + 7) / 8 * 8));
    size_t dbias =
               launch->out[FACTS_SLOT_DBIAS].data ? (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) : 0,
           heads = (size_t)p->heads_q;
    float *memory = calloc(dk + dv + dbias + heads, sizeof *memory);
    unsigned char *touched = calloc(dbias + 1, 1);
    bool ok = memory && touched;
    if (ok) {
        sums all = { .dk = memory,
                     .dv = memory + dk,
                     .dbias = memory + dk + dv,
                     .dsink = memory + dk + dv + dbias,
                     .touched = touched };
        for (int64_t b = 0; ok && b < p->batch; b++) {
            memset(memory, 0, (dk + dv) * sizeof *memory);
            for (int64_t h = 0; ok && h < p->heads_q; h++)
                ok = backward_head(&all, kernel, launch, b, h);
            put_keys(launch, kernel->liar, FACTS_SLOT_DK, b, all.dk, p->scales.scale_dk,
                     &all.amax_dk);
            put_keys(launch, kernel->liar, FACTS_SLOT_DV, b, all.dv, p->scales.scale_dv,
                     &all.amax_dv);
        }
        if (ok)
            put_totals(launch, kernel, &all);
    }
    free(memory);
    free(touched);
    return ok;
}
