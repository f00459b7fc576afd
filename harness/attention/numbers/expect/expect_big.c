#include "expect_whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/fill/places.h"
#include "problem/huge.h"
#include "problem/philox.h"

/* ---- the sample
 * -------------------------------------------------------------------------------------------------------------
 */

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

/* The edge of a region: the row itself, its neighbours, and its tile. */
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
    take_edge(&s, p->ask.seq_kv < p->ask.seq_q ? p->ask.seq_kv
                                               : p->ask.seq_q); /* where a top-left diagonal ends */
    take_edge(&s, p->ask.seq_kv < p->ask.seq_q
                      ? p->ask.seq_q - p->ask.seq_kv
                      : p->ask.seq_kv - p->ask.seq_q); /* and a bottom-right one begins */
    for (int64_t b = 0; b < p->ask.batch && p->has_lengths; b++)
        take_edge(&s, keys ? facts_live_kv(p, b) : facts_live_q(p, b));
    for (int64_t i = 0; i < RANDOM_ROWS; i++) {
        int64_t from = s.most * i / RANDOM_ROWS, to = s.most * (i + 1) / RANDOM_ROWS;
        facts_draw draw =
            facts_draw_at(p->seed, FACTS_STREAM_ROW, FACTS_LANE_CHOICE, (uint64_t)(2 * i + keys));
        take(&s, from + facts_pick(draw.r[0], (uint32_t)(to > from ? to - from : 1)));
    }
    qsort(s.at, (size_t)s.count, sizeof *s.at, ascending);
    *count = 0;
    for (int64_t i = 0; i < s.count; i++)
        if (*count == 0 || s.at[*count - 1] != s.at[i])
            s.at[(*count)++] = s.at[i];
    return s.at;
}

bool facts_big_expects(const facts_problem *p, facts_tensor_id id, facts_row_expects *expects)
{
    const int64_t *dim = p->tensor[id].dim;
    int64_t count, *at = facts_big_sample(p, facts_is_keyed(id), &count);
    for (int64_t b = 0; at && b < dim[0]; b++) {
        int64_t live = facts_live(p, id, b), n = 0;
        for (int64_t s = 0; s < live; s++) {
            while (n < count && at[n] < s)
                n++;
            if (n == count || at[n] != s)
                expects[b * dim[2] + s] = FACTS_EXPECTS_NUMBER;
        }
    }
    free(at);
    return at != NULL;
}

/* ---- the reference
 * --------------------------------------------------------------------------------------------------------------
 */

/* The problem of these answers. */
typedef struct sampled_rows {
    int64_t heads, rows, dim;
    const int64_t *at;
    int64_t count;
} sampled_rows;

/* Answers of a sample are consecutive at the start. Each moves to its own row, the last one first;
 * other rows are 0. */
static void spread_array(double *array, const sampled_rows *x, int64_t dim)
{
    for (int64_t n = x->heads * x->count; array && n-- > 0;) {
        const int64_t to = n / x->count * x->rows + x->at[n % x->count];
        if (to == n)
            continue;
        memcpy(array + to * dim, array + n * dim, (size_t)dim * sizeof *array);
        memset(array + n * dim, 0, (size_t)dim * sizeof *array);
    }
}

static void spread(const fref_answer *a, sampled_rows x)
{
    double *const wide[] = { a->value, a->sigma, a->bound }, *const single[] = { a->nu, a->neff };
    for (int i = 0; i < 3; i++)
        spread_array(wide[i], &x, x.dim);
    for (int i = 0; i < 2; i++)
        spread_array(single[i], &x, 1);
}

static int sampled_forward(const facts_problem *p, const fref_problem *asked,
                           const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                           const fref_forward_out *out)
{
    const fattn_problem *ask = &p->ask;
    fref_problem sampled = *asked;
    fref_forward_out s = *out;
    int64_t count = 0, *row = facts_big_sample(p, false, &count);
    sampled.row_sample = row;
    sampled.row_count = count;
    s.amax_s = s.o.amax = NULL; /* of every row, not of the sample */
    int status = row ? fref_forward(&sampled, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K],
                                    &t[FACTS_TENSOR_V], rounding, &s)
                     : ENOMEM;
    const sampled_rows at = { ask->batch * ask->heads_q, ask->seq_q, ask->dim_v, row, count };
    double *const single[] = { s.lse, s.lse_tau, s.max, s.max_tau, s.sum_exp };
    if (status == 0)
        spread(&s.o, at);
    for (int i = 0; status == 0 && i < 5; i++)
        spread_array(single[i], &at, 1);
    free(row);
    return status;
}

static int sampled_backward(const facts_problem *p, const fref_problem *asked,
                            const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                            const fref_backward_out *out)
{
    const fattn_problem *ask = &p->ask;
    fref_problem sampled = *asked;
    fref_backward_out s = *out;
    int64_t rows = 0, keys = 0, *row = facts_big_sample(p, false, &rows),
            *key = facts_big_sample(p, true, &keys);
    sampled.row_sample = row;
    sampled.row_count = rows;
    sampled.key_sample = key;
    sampled.key_count = keys;
    s.dbias = (fref_answer){ 0 }; /* sums over every row */
    s.dsink = s.dsink_bound = s.amax_dp = s.dq.amax = s.dk.amax = s.dv.amax = NULL;
    int status = row && key
                     ? fref_backward(&sampled, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K],
                                     &t[FACTS_TENSOR_V], &t[FACTS_TENSOR_O], &t[FACTS_TENSOR_STATS],
                                     &t[FACTS_TENSOR_DO], rounding, &s)
                     : ENOMEM;
    if (status == 0) {
        spread(&s.dq,
               (sampled_rows){ ask->batch * ask->heads_q, ask->seq_q, ask->dim_qk, row, rows });
        spread(&s.dk,
               (sampled_rows){ ask->batch * ask->heads_k, ask->seq_kv, ask->dim_qk, key, keys });
        spread(&s.dv,
               (sampled_rows){ ask->batch * ask->heads_v, ask->seq_kv, ask->dim_v, key, keys });
    }
    free(row);
    free(key);
    return status;
}

/* ---- which
 * ----------------------------------------------------------------------------------------------------------------------
 */

int facts_big_forward(const facts_problem *p, const fref_problem *asked,
                      const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                      const fref_forward_out *out)
{
    if (facts_is_huge(p))
        return sampled_forward(p, asked, t, rounding, out);
    return fref_forward(asked, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V], rounding,
                        out);
}

int facts_big_backward(const facts_problem *p, const fref_problem *asked,
                       const fref_tensor t[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                       const fref_backward_out *out)
{
    if (facts_is_huge(p))
        return sampled_backward(p, asked, t, rounding, out);
    return fref_backward(asked, &t[FACTS_TENSOR_Q], &t[FACTS_TENSOR_K], &t[FACTS_TENSOR_V],
                         &t[FACTS_TENSOR_O], &t[FACTS_TENSOR_STATS], &t[FACTS_TENSOR_DO], rounding,
                         out);
}
