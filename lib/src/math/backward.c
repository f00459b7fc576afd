#include "reduce.h"
#include "run.h"

#include <string.h>

#include "../layout.h"
#include "../problem.h"

fattn_status fattn__math_backward_rows(fattn__math_run *r)
{
    fattn__call call = r->chunk;
    call.left = r->d_o;
    call.right = r->o;
    call.depth = (int32_t)r->p->dim_v;
    return fattn__math_rows(r, FATTN__KERNEL_dot, 32, &call);
}

/* Scores, then probabilities and the gradient of the scaled scores. */
static fattn_status weights(const fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const bool modified = p->score_mod != NULL;
    fattn__call call = r->chunk;
    call.left = call.queries = r->q;
    call.right = call.keys = r->k;
    call.group = call.key_group = (int32_t)(p->heads_q / p->heads_k);
    call.depth = call.key_depth = (int32_t)p->dim_qk;
    call.factor = (float)p->attn_scale;
    call.raw = 1;
    /* One kernel for both products where one core suits both. */
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
    call.factor = (float)p->attn_scale;
    call.accumulator = fattn__math_part_at(r, FATTN__MATH_SUM_DQ);
    call.first = r->key == 0;
    call.last = r->key + r->keys >= p->seq_kv;
    return fattn__math_product_wide(r, FATTN__KERNEL_over_keys_bf16_64, p->dtype, p->dtype, (int64_t)call.heads * call.row_tiles, &call);
}

/* dK or, with `values`, dV. */
static fattn_status over_rows(const fattn__math_run *r, bool values)
{
    const fattn_problem *p = r->p;
    fattn__call call = r->chunk;
    call.p = values ? call.p : call.ds;
    call.right = values ? r->d_o : r->q;
    call.out = values ? r->dv : r->dk;
    call.group = (int32_t)(p->heads_q / (values ? p->heads_v : p->heads_k));
    call.width = (int32_t)(values ? p->dim_v : p->dim_qk);
    call.factor = values ? 1.0f : (float)p->attn_scale;
    call.slots = (int32_t)(values ? r->state->chunks.slots_v : r->state->chunks.slots_k);
    call.accumulator = fattn__math_part_at(r, values ? FATTN__MATH_SUM_DV : FATTN__MATH_SUM_DK);
    call.first = r->row == 0;
    call.last = r->row + r->rows >= p->seq_q;
    const int64_t heads = (call.head0 + call.heads - 1) / call.group - call.head0 / call.group + 1;
    return fattn__math_product_wide(r, FATTN__KERNEL_over_rows_bf16_64, p->dtype, values ? p->o_dtype : p->dtype, heads * call.key_tiles, &call);
}

fattn_status fattn__math_backward_keys(fattn__math_run *r)
{
    TRY(weights(r));
    if (r->p->dbias || r->p->mod_gradients != 0)
        TRY(fattn__math_added(r));
    TRY(over_keys(r));
    TRY(over_rows(r, true));
    return over_rows(r, false);
}

/* A gradient that was written whole becomes the sum that was asked for. */
static fattn_status sum_whole(const fattn__math_run *r, fattn__role gradient, fattn__role input, fattn__math_part part, void *to)
{
    fattn__sum sum = { .from = fattn__math_part_at(r, part), .to = to, .dtype = FATTN_F32 };
    if (sum.from == NULL)
        return FATTN_OK;
    const fattn__shape whole = fattn__problem_shape(r->p, input), wanted = fattn__problem_shape(r->p, gradient);
    sum.to_dtype = wanted.dtype;
    memcpy(sum.dim, whole.dim, sizeof sum.dim);
    memcpy(sum.to_strides, wanted.strides, sizeof sum.to_strides);
    fattn__dense_strides(whole.dim, "bhsd", sum.strides);
    return fattn__math_sum(r->plan->context, &sum, r->stream);
}

fattn_status fattn__math_backward_end(fattn__math_run *r)
{
    TRY(sum_whole(r, FATTN__ROLE_DQ, FATTN__ROLE_Q, FATTN__MATH_WHOLE_DQ, r->t->dq));
    TRY(sum_whole(r, FATTN__ROLE_DK, FATTN__ROLE_K, FATTN__MATH_WHOLE_DK, r->t->dk));
    TRY(sum_whole(r, FATTN__ROLE_DV, FATTN__ROLE_V, FATTN__MATH_WHOLE_DV, r->t->dv));
    return fattn__math_added_end(r);
}
