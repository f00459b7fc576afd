#include "naive_reference.h"

#include <stdlib.h>
#include <string.h>

#include "naive_parts.h"

/* Channels of V and K for the rows of O and dQ. */
static void start_lines(naive_answers *out, const data *d, const row *x, int64_t row_index)
{
    const fref_problem *p = &d->problem;
    bool *live = calloc((size_t)p->keys + 1, sizeof *live);
    if (!live)
        abort();
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->keys; j++)
            live[j] |= naive_keeps(p, x->b, i, j);
    const real of_v = naive__channels(&d->v, x->b, x->hv, p->keys, p->dim_v, live),
               of_k = naive__channels(&d->k, x->b, x->hk, p->keys, p->dim_qk, live);
    for (int64_t i = 0; i < p->rows; i++) {
        out->o.line[row_index + i].channels = of_v;
        out->dq.line[row_index + i].channels = of_k;
    }
    free(live);
}

static void one_head(naive_answers *out, const data *d, const fref_rounding *r, int64_t b,
                     int64_t h, real *logits, detail *details, head_entries *e)
{
    const fref_problem *p = &d->problem;
    for (int64_t i = 0; i < p->rows; i++) {
        int64_t index = (b * p->heads_q + h) * p->rows + i;
        row *x = &e->rows[i];
        naive__row_start(x, d, r, b, h, i, logits + i * p->keys, details + i * p->keys);
        if (i == 0)
            start_lines(out, d, x, index);
        naive__forward_row(x, out, index);
        const bool padded = i >= (p->len_q ? p->len_q[b] : p->rows);
        const bool dead = padded || element(&d->stats, b, h, i, 0) == -INFINITY;
        for (int64_t j = 0; dead && j < p->keys; j++)
            x->s[j] = NAN;
        e->live[i] = false;
        for (int64_t j = 0; !dead && j < p->keys; j++)
            e->live[i] |= naive_keeps(p, b, i, j);
        if (dead)
            continue;
        e->backs[i] = naive__back_of(x);
        naive__add_sink(x, &e->backs[i], out);
        for (int64_t j = 0; j < p->keys; j++)
            if (!isnan(x->s[j]))
                e->entries[i * p->keys + j] = naive__entry_of(x, &e->backs[i], j);
        if (x->n > 0)
            naive__dq_row(x, &e->backs[i], e->entries + i * p->keys, out, index);
    }
    naive__add_bias(e, out);
    naive__add_keys(e, out);
}

static void *zeros(int64_t count, size_t size)
{
    void *memory = calloc((size_t)count + 1, size);
    if (!memory)
        abort();
    return memory;
}

static void tensor_create(naive_tensor *t, int64_t lines, int64_t dim, int64_t weights)
{
    t->count = lines * dim;
    t->line_count = lines;
    t->value = zeros(4 * t->count, sizeof *t->value);
    t->size = t->value + t->count;
    t->sigma = t->size + t->count;
    t->bound = t->sigma + t->count;
    t->line = zeros(lines, sizeof *t->line);
    t->weight = zeros(lines * weights, sizeof *t->weight);
}

static void finish_lines(const naive_tensor *t, int64_t dim)
{
    for (int64_t n = 0; n < t->line_count; n++)
        naive__finish_line(&t->line[n], dim);
}

static void start(naive_answers *out, const data *d)
{
    const fref_problem *p = &d->problem;
    const int64_t rows = p->batch * p->heads_q * p->rows, *dim = d->dbias_dim,
                  bias = dim[0] * dim[1] * dim[2] * dim[3];
    tensor_create(&out->o, rows, p->dim_v, 0);
    tensor_create(&out->lse, rows, 1, 0);
    tensor_create(&out->max, rows, 1, 0);
    tensor_create(&out->sum_exp, rows, 1, 0);
    tensor_create(&out->dq, rows, p->dim_qk, 0);
    tensor_create(&out->dk, p->batch * p->heads_k * p->keys, p->dim_qk, p->rows);
    tensor_create(&out->dv, p->batch * p->heads_v * p->keys, p->dim_v, p->rows);
    tensor_create(&out->dsink, p->heads_q, 1, 0);
    tensor_create(&out->dbias, bias, 1, 0);
    memcpy(out->dbias_dim, dim, sizeof out->dbias_dim);
    out->dbias_magnitude = zeros(bias, sizeof *out->dbias_magnitude);
}

void naive_create(naive_answers *out, const data *d, const fref_rounding *r)
{
    const fref_problem *p = &d->problem;
    const int64_t n = p->rows * p->keys;
    *out = (naive_answers){ 0 };
    start(out, d);
    real *logits = zeros(n, sizeof *logits);
    detail *details = zeros(n, sizeof *details);
    head_entries e = { .rows = zeros(p->rows, sizeof *e.rows),
                       .backs = zeros(p->rows, sizeof *e.backs),
                       .entries = zeros(n, sizeof *e.entries),
                       .live = zeros(p->rows, sizeof *e.live) };
    for (int64_t b = 0; b < p->batch; b++)
        for (int64_t h = 0; h < p->heads_q; h++)
            one_head(out, d, r, b, h, logits, details, &e);
    naive__finish_keys(&out->dk, p, r->out, p->dim_qk, or_one(p->scales.scale_dk),
                       r->coherent & FREF_GRADIENT_K, out->amax_dk);
    naive__finish_keys(&out->dv, p, r->out, p->dim_v, or_one(p->scales.scale_dv),
                       r->coherent & FREF_GRADIENT_V, out->amax_dv);
    naive__finish_bias(out, p, r);
    finish_lines(&out->o, p->dim_v);
    finish_lines(&out->dq, p->dim_qk);
    finish_lines(&out->dk, p->dim_qk);
    finish_lines(&out->dv, p->dim_v);
    free(details);
    free(logits);
    free(e.rows);
    free(e.backs);
    free(e.entries);
    free(e.live);
}

void naive_destroy(naive_answers *a)
{
    naive_tensor *const owned[] = { &a->o,  &a->lse, &a->max,   &a->sum_exp, &a->dq,
                                    &a->dk, &a->dv,  &a->dbias, &a->dsink };
    free(a->dbias_magnitude);
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++) {
        free(owned[n]->value);
        free(owned[n]->line);
        free(owned[n]->weight);
    }
}
