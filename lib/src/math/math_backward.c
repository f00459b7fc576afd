#include "math_reduce.h"
#include "math_run.h"

#include <string.h>

#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* A sink's gradient is summed over batch and rows. */
static fattn_status sink(const fattn__math_run *r)
{
    fattn__call call = r->chunk;
    const int64_t rows = (int64_t)call.row_tiles * FATTN__TILE;
    call.row_sink = fattn__math_part_at(r, FATTN__MATH_ROW_SINK);
    TRY(fattn__math_rows(r, FATTN__KERNEL_sink, 1, &call));
    const fattn__sum sum = { .from = call.row_sink,
                             .to = r->t->dsink + r->head,
                             .dim = { r->batches, r->heads, r->rows, 1 },
                             .strides = { r->heads * rows, rows, 1, 1 },
                             .to_strides = { 0, 1, 0, 1 },
                             .dtype = FATTN_F32,
                             .to_dtype = FATTN_F32 };
    return fattn__math_reduce(r->plan->context, &sum, r->batch == 0 && r->row == 0, r->stream);
}

fattn_status fattn__math_backward_rows(fattn__math_run *r)
{
    fattn__call call = r->chunk;
    call.left = r->d_o;
    call.right = r->o;
    call.depth = (int32_t)r->p->dim_v;
    TRY(fattn__math_rows(r, FATTN__KERNEL_dot, 32, &call));
    return r->p->dsink ? sink(r) : FATTN_OK;
}

/* Scores, then probabilities and the gradient of the scaled scores. */
static fattn_status weights(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const bool modified = fattn__math_modified(p);
    fattn__call call = r->chunk;
    call.left = call.queries = r->q;
    call.right = call.keys = r->k;
    call.group = call.key_group = (int32_t)(p->heads_q / p->heads_k);
    call.depth = call.key_depth = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.raw = 1;
    /* One kernel computes both products if one core fits both. */
    call.fused = !modified && p->o_dtype == p->dtype;
    if (!call.fused)
        TRY(fattn__math_product(r, FATTN__KERNEL_scores_bf16, p->dtype, p->dtype, &call));

    call.left = r->d_o;
    call.right = r->v;
    call.group = (int32_t)(p->heads_q / p->heads_v);
    call.depth = (int32_t)p->dim_v;
    call.raw = modified;
    call.extra = !modified && p->dbias ? call.dp : NULL;
    TRY(fattn__math_product(r, FATTN__KERNEL_gradients_bf16, p->o_dtype, p->dtype, &call));
    if (!modified)
        return FATTN_OK;
    TRY(fattn__math_modify(r, FATTN__KERNEL_modify_weights, &r->state->score, &call));
    if (p->score_mod == NULL)
        return FATTN_OK;
    return fattn__math_modify(r, FATTN__KERNEL_modify_gradients, &r->state->gradient, &call);
}

static fattn_status over_keys(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    fattn__call call = r->chunk;
    call.right = r->k;
    call.out = r->dq;
    call.group = (int32_t)(p->heads_q / p->heads_k);
    call.width = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.accumulator = fattn__math_part_at(r, FATTN__MATH_SUM_DQ);
    call.first = r->key == 0;
    call.last = r->key + r->keys >= p->seq_kv;
    return fattn__math_product_keys(r, FATTN__KERNEL_over_keys_bf16_64, p->dtype, p->dtype, &call);
}

/* dK or, with `values`, dV. */
static fattn__row_sum row_sum(const fattn__math_run *r, bool values)
{
    const fattn_problem *p = r->p;
    fattn__row_sum sum = {
        .weights = values ? r->chunk.p : r->chunk.ds,
        .right = values ? r->d_o : r->q,
        .out = values ? r->dv : r->dk,
        .accumulator = fattn__math_part_at(r, values ? FATTN__MATH_SUM_DV : FATTN__MATH_SUM_DK),
        .group = (int32_t)(p->heads_q / (values ? p->heads_v : p->heads_k)),
        .width = (int32_t)(values ? p->dim_v : p->dim_qk),
        .slots = (int32_t)(values ? r->state->chunks.slots_v : r->state->chunks.slots_k),
        .factor = values ? 1.0f : fattn__math_factor(p),
        .scale = values ? NULL : r->chunk.scale,
    };
    const int64_t heads =
        (r->chunk.head0 + r->chunk.heads - 1) / sum.group - r->chunk.head0 / sum.group + 1;
    sum.blocks = (int32_t)(heads * r->chunk.key_tiles);
    return sum;
}

/* One launch if one core fits both: more blocks run at a time. */
static fattn_status over_rows(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    fattn__call call = r->chunk;
    call.first = r->row == 0;
    call.last = r->row + r->rows >= p->seq_q;
    call.row_sums[0] = row_sum(r, true);
    if (p->o_dtype == p->dtype) {
        call.row_sums[1] = row_sum(r, false);
        return fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->dtype,
                                        &call);
    }
    TRY(fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->o_dtype, &call));
    call.row_sums[0] = row_sum(r, false);
    return fattn__math_product_rows(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, p->dtype, &call);
}

fattn_status fattn__math_backward_keys(fattn__math_run *r)
{
    TRY(weights(r));
    if (r->p->dbias || r->p->mod_gradients != 0)
        TRY(fattn__math_added(r));
    TRY(over_keys(r));
    return over_rows(r);
}

/* Sums a gradient of every element to the gradient that was asked for. */
static fattn_status sum_whole(const fattn__math_run *r, fattn__role gradient, fattn__role input,
                              fattn__math_part part, void *to)
{
    fattn__sum sum = { .from = fattn__math_part_at(r, part), .to = to, .dtype = FATTN_F32 };
    if (sum.from == NULL)
        return FATTN_OK;
    const fattn__shape whole = fattn__problem_shape(r->p, input),
                       wanted = fattn__problem_shape(r->p, gradient);
    sum.to_dtype = wanted.dtype;
    memcpy(sum.dim, whole.dim, sizeof sum.dim);
    memcpy(sum.to_strides, wanted.strides, sizeof sum.to_strides);
    fattn__dense_strides(whole.dim, "bhsd", sum.strides);
    fattn__math_pack_sum(&sum, r, gradient);
    return fattn__math_sum(r->plan->context, &sum, r->stream);
}

fattn_status fattn__math_backward_end(fattn__math_run *r)
{
    TRY(sum_whole(r, FATTN__ROLE_DQ, FATTN__ROLE_Q, FATTN__MATH_WHOLE_DQ, r->t->dq));
    TRY(sum_whole(r, FATTN__ROLE_DK, FATTN__ROLE_K, FATTN__MATH_WHOLE_DK, r->t->dk));
    TRY(sum_whole(r, FATTN__ROLE_DV, FATTN__ROLE_V, FATTN__MATH_WHOLE_DV, r->t->dv));
    return fattn__math_added_end(r);
}
