#include "expect_big.h"

#include <errno.h>
#include <fref/codebook.h>
#include <stdlib.h>
#include <string.h>

#include "case/problem/huge.h"
#include "numbers/dtype.h"
#include "numbers/fill/fill.h"
#include "numbers/fill/places.h"

/* ---- the sample ------------------------------------------------------------------------------------------------------------- */

#define RANDOM_ROWS 64

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct sample {
    int64_t *at, count, most;
} sample;

static void take(sample *s, int64_t row)
{
    if (row >= 0 && row < s->most)
        s->at[s->count++] = row;
}

/* A place where something ends: itself, its neighbours, and the tile that it lies in. */
static void take_edge(sample *s, int64_t edge)
{
    for (int64_t d = -1; d < 2; d++)
        take(s, edge + d);
    take(s, edge / 128 * 128 - 1);
    take(s, edge / 128 * 128);
    take(s, edge / 64 * 64 - 1);
    take(s, edge / 64 * 64);
}

int64_t *facts_big_sample(const facts_problem *p, bool keys, int64_t *count)
{
    static const int64_t first[] = { 0, 1, 63, 64, 65, 127, 128, 129 };
    sample s = { .most = keys ? p->ask.seq_kv : p->ask.seq_q };
    s.at = malloc((size_t)(RANDOM_ROWS + 64 + 7 * p->ask.batch) * sizeof *s.at);
    if (!s.at)
        return NULL;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        take(&s, first[i]);
    take(&s, s.most - 1);
    take_edge(&s, p->ask.seq_kv < p->ask.seq_q ? p->ask.seq_kv : p->ask.seq_q); /* where a top-left diagonal ends */
    take_edge(&s, p->ask.seq_kv < p->ask.seq_q ? p->ask.seq_q - p->ask.seq_kv
                                               : p->ask.seq_kv - p->ask.seq_q); /* and a bottom-right one begins */
    for (int64_t b = 0; b < p->ask.batch && p->has_lengths; b++)
        take_edge(&s, keys ? facts_live_kv(p, b) : facts_live_q(p, b));
    for (int64_t i = 0; i < RANDOM_ROWS; i++) {
        int64_t from = s.most * i / RANDOM_ROWS, to = s.most * (i + 1) / RANDOM_ROWS;
        facts_draw draw = facts_draw_at(p->seed, FACTS_STREAM_ROW, FACTS_LANE_CHOICE, (uint64_t)(2 * i + keys));
        take(&s, from + facts_pick(draw.r[0], (uint32_t)(to > from ? to - from : 1)));
    }
    qsort(s.at, (size_t)s.count, sizeof *s.at, ascending);
    *count = 0;
    for (int64_t i = 0; i < s.count; i++)
        if (*count == 0 || s.at[*count - 1] != s.at[i])
            s.at[(*count)++] = s.at[i];
    return s.at;
}

static bool is_keyed(facts_tensor_id id)
{
    return id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DV;
}

bool facts_big_due(const facts_problem *p, facts_tensor_id id, facts_due *due)
{
    const int64_t *dim = p->tensor[id].dim;
    int64_t count, *at = facts_big_sample(p, is_keyed(id), &count);
    for (int64_t b = 0; at && b < dim[0]; b++) {
        int64_t live = is_keyed(id) ? facts_live_kv(p, b) : facts_live_q(p, b), n = 0;
        for (int64_t s = 0; s < live; s++) {
            while (n < count && at[n] < s)
                n++;
            if (n == count || at[n] != s)
                due[b * dim[2] + s] = FACTS_DUE_NUMBER;
        }
    }
    free(at);
    return at != NULL;
}

/* ---- a sample's answers, put where they belong ----------------------------------------------------------------------------------
 */

/* One array of answers: where the caller has it, and a shorter one with the sample's rows. */
typedef struct part {
    double *whole, **shorter;
    int64_t heads, rows, dim;
    const int64_t *at;
    int64_t count;
} part;

static bool make_part(const part *x, int64_t batch)
{
    *x->shorter = x->whole ? calloc((size_t)(batch * x->heads * x->count * x->dim) + 1, sizeof **x->shorter) : NULL;
    return !x->whole || *x->shorter;
}

static void put_part(const part *x, int64_t batch)
{
    if (!x->whole)
        return;
    for (int64_t bh = 0; bh < batch * x->heads; bh++)
        for (int64_t n = 0; n < x->count; n++)
            memcpy(x->whole + (bh * x->rows + x->at[n]) * x->dim, *x->shorter + (bh * x->count + n) * x->dim,
                   (size_t)x->dim * sizeof *x->whole);
}

static void free_parts(const part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(*parts[i].shorter);
}

static int sampled_forward(const facts_problem *p, const fref_problem *asked, const fref_tensor t[FACTS_TENSOR_COUNT],
                           const fref_rounding *rounding, const fref_forward_out *out)
{
    fref_problem sampled = *asked;
    fref_forward_out s = { 0 };
    int64_t count, *at = facts_big_sample(p, false, &count), h = p->ask.heads_q, rows = p->ask.seq_q, dv = p->ask.dim_v;
    const part parts[] = {
        { out->o, &s.o, h, rows, dv, at, count },
        { out->o_sigma, &s.o_sigma, h, rows, dv, at, count },
        { out->o_bound, &s.o_bound, h, rows, dv, at, count },
        { out->lse, &s.lse, h, rows, 1, at, count },
        { out->lse_tau, &s.lse_tau, h, rows, 1, at, count },
        { out->max, &s.max, h, rows, 1, at, count },
        { out->max_tau, &s.max_tau, h, rows, 1, at, count },
        { out->sum_exp, &s.sum_exp, h, rows, 1, at, count },
        { out->o_nu, &s.o_nu, h, rows, 1, at, count },
        { out->o_neff, &s.o_neff, h, rows, 1, at, count },
    };
    const size_t n = sizeof parts / sizeof *parts;
    bool ok = at != NULL;
    for (size_t i = 0; i < n; i++)
        ok = ok && make_part(&parts[i], p->ask.batch);
    sampled.row_sample = at;
    sampled.row_count = count;
    int status = ok ? fref_forward(&sampled, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V], rounding, &s) : ENOMEM;
    for (size_t i = 0; status == 0 && i < n; i++)
        put_part(&parts[i], p->ask.batch);
    free_parts(parts, n);
    free(at);
    return status;
}

static int sampled_backward(const facts_problem *p, const fref_problem *asked, const fref_tensor t[FACTS_TENSOR_COUNT],
                            const fref_rounding *rounding, const fref_backward_out *out)
{
    fref_problem sampled = *asked;
    fref_backward_out s = { 0 };
    int64_t rows, keys, *row = facts_big_sample(p, false, &rows), *key = facts_big_sample(p, true, &keys);
    const fattn_problem *ask = &p->ask;
    const part dq = { .heads = ask->heads_q, .rows = ask->seq_q, .dim = ask->dim_qk, .at = row, .count = rows };
    const part dk = { .heads = ask->heads_k, .rows = ask->seq_kv, .dim = ask->dim_qk, .at = key, .count = keys };
    const part dv = { .heads = ask->heads_v, .rows = ask->seq_kv, .dim = ask->dim_v, .at = key, .count = keys };
    part parts[] = { dq, dq, dq, dq, dq, dk, dk, dk, dk, dk, dv, dv, dv, dv, dv };
    double *const whole[] = { out->dq, out->dq_sigma, out->dq_bound, out->dq_nu, out->dq_neff,
                              out->dk, out->dk_sigma, out->dk_bound, out->dk_nu, out->dk_neff,
                              out->dv, out->dv_sigma, out->dv_bound, out->dv_nu, out->dv_neff };
    double **const shorter[] = { &s.dq,    &s.dq_sigma, &s.dq_bound, &s.dq_nu,    &s.dq_neff,  &s.dk,    &s.dk_sigma, &s.dk_bound,
                                 &s.dk_nu, &s.dk_neff,  &s.dv,       &s.dv_sigma, &s.dv_bound, &s.dv_nu, &s.dv_neff };
    const size_t n = sizeof parts / sizeof *parts;
    bool ok = row && key;
    for (size_t i = 0; i < n; i++) {
        parts[i].whole = whole[i];
        parts[i].shorter = shorter[i];
        parts[i].dim = i % 5 < 3 ? parts[i].dim : 1; /* nu and neff: one for each row */
        ok = ok && make_part(&parts[i], ask->batch);
    }
    sampled.row_sample = row;
    sampled.row_count = rows;
    sampled.key_sample = key;
    sampled.key_count = keys;
    int status = ok ? fref_backward(&sampled, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V], &t[FACTS_TENSOR_O],
                                    &t[FACTS_TENSOR_STATS], &t[FACTS_TENSOR_DO], rounding, &s)
                    : ENOMEM;
    for (size_t i = 0; status == 0 && i < n; i++)
        put_part(&parts[i], ask->batch);
    free_parts(parts, n);
    free(row);
    free(key);
    return status;
}

/* ---- codebooks ------------------------------------------------------------------------------------------------------------------
 */

/* The codes of rows and keys, and the vectors that they stand for, as they lie in memory: read back from the first row that has
 * each. */
typedef struct book {
    uint8_t *code;  /* [batch, heads, s] */
    float *vector;  /* [batch, heads, FACTS_CODES, dim] */
    fref_tensor as; /* the vectors, for the reference */
} book;

static void free_book(book *x)
{
    free(x->code);
    free(x->vector);
}

static void read_head(book *out, const facts_problem *p, facts_tensor_id id, const fref_tensor *from, int64_t b, int64_t h)
{
    const facts_tensor *t = &p->tensor[id];
    int64_t heads = t->dim[1], rows = t->dim[2], dim = t->dim[3], head = b * heads + h;
    bool have[FACTS_CODES] = { false };
    for (int64_t s = 0; s < rows; s++) {
        /* Where a stride is 0 the place holds what belongs to its first index. */
        int32_t code = facts_code_of(p, id, t->stride[0] ? b : 0, t->stride[1] ? h : 0, t->stride[2] ? s : 0);
        out->code[head * rows + s] = (uint8_t)code;
        if (have[code])
            continue;
        have[code] = true;
        for (int64_t c = 0; c < dim; c++) {
            int64_t place = b * from->stride[0] + h * from->stride[1] + s * from->stride[2] + c * from->stride[3];
            out->vector[(head * FACTS_CODES + code) * dim + c] =
                (float)facts_decode(t->dtype, facts_load(t->dtype, from->data, place));
        }
    }
}

static bool make_book(book *out, const facts_problem *p, facts_tensor_id id, const fref_tensor *from)
{
    const int64_t *dim = p->tensor[id].dim, heads = dim[0] * dim[1];
    *out = (book){ .code = malloc((size_t)(heads * dim[2]) + 1),
                   .vector = calloc((size_t)(heads * FACTS_CODES * dim[3]) + 1, sizeof *out->vector) };
    if (!out->code || !out->vector)
        return false;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < heads; n++)
        read_head(out, p, id, from, n / dim[1], n % dim[1]);
    out->as = (fref_tensor){ .data = out->vector,
                             .type = FREF_F32,
                             .stride = { dim[1] * FACTS_CODES * dim[3], FACTS_CODES * dim[3], dim[3], 1 },
                             .descale = from->descale };
    return true;
}

static int coded(const facts_problem *p, const fref_problem *asked, const fref_tensor t[FACTS_TENSOR_COUNT],
                 const fref_rounding *rounding, const fref_forward_out *forward, const fref_backward_out *backward)
{
    book rho, kappa = { 0 };
    bool ok = make_book(&rho, p, FACTS_TENSOR_Q, &t[FACTS_TENSOR_Q]) && make_book(&kappa, p, FACTS_TENSOR_K, &t[FACTS_TENSOR_K]);
    const int64_t *q = p->tensor[FACTS_TENSOR_Q].dim, *k = p->tensor[FACTS_TENSOR_K].dim;
    const fref_codes codes = { .count = FACTS_CODES,
                               .a = rho.code,
                               .b = kappa.code,
                               .stride_a = { q[1] * q[2], q[2] },
                               .stride_b = { k[1] * k[2], k[2] },
                               .rho = &rho.as,
                               .kappa = &kappa.as };
    int status = ok ? fref_codebook(asked, &codes, &t[FACTS_TENSOR_V], backward ? &t[FACTS_TENSOR_O] : NULL,
                                    backward ? &t[FACTS_TENSOR_STATS] : NULL, backward ? &t[FACTS_TENSOR_DO] : NULL, rounding,
                                    forward, backward)
                    : ENOMEM;
    free_book(&rho);
    free_book(&kappa);
    return status;
}

/* ---- which
 * ----------------------------------------------------------------------------------------------------------------------- */

int facts_big_forward(const facts_problem *p, const fref_problem *asked, const fref_tensor t[FACTS_TENSOR_COUNT],
                      const fref_rounding *rounding, const fref_forward_out *out)
{
    if (facts_is_coded(p))
        return coded(p, asked, t, rounding, out, NULL);
    if (facts_is_huge(p))
        return sampled_forward(p, asked, t, rounding, out);
    return fref_forward(asked, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V], rounding, out);
}

int facts_big_backward(const facts_problem *p, const fref_problem *asked, const fref_tensor t[FACTS_TENSOR_COUNT],
                       const fref_rounding *rounding, const fref_backward_out *out)
{
    if (facts_is_coded(p))
        return coded(p, asked, t, rounding, NULL, out);
    if (facts_is_huge(p))
        return sampled_backward(p, asked, t, rounding, out);
    return fref_backward(asked, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V], &t[FACTS_TENSOR_O],
                         &t[FACTS_TENSOR_STATS], &t[FACTS_TENSOR_DO], rounding, out);
}
