#include "math_run.h"

fattn_status fattn__math_forward_keys(fattn__math_run *r)
{
    const fattn_problem *p = r->p;
    const bool modified = fattn__math_modified(p);
    fattn__call call = r->chunk;
    call.partial_max = fattn__math_part_at(r, FATTN__MATH_PARTIAL_MAX);
    call.partial_sum = fattn__math_part_at(r, FATTN__MATH_PARTIAL_SUM);
    call.left = r->q;
    call.right = r->k;
    call.group = (int32_t)(p->heads_q / p->heads_k);
    call.depth = (int32_t)p->dim_qk;
    call.factor = fattn__math_factor(p);
    call.raw = modified;
    TRY(fattn__math_product(r, FATTN__KERNEL_scores_bf16, p->dtype, p->dtype, &call));
    if (modified)
        TRY(fattn__math_modify(r, FATTN__KERNEL_modify, &r->state->score, &call));

    call.first = r->key == 0;
    call.last = r->key + r->keys >= p->seq_kv;
    call.base_2 = (p->outputs & FATTN_WANT_STATS_LOG2) != 0;
    call.stats_out =
        (p->outputs & (FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2)) != 0 ? r->t->stats : NULL;
    call.max_out = (p->outputs & FATTN_WANT_MAX) != 0 ? r->t->max : NULL;
    call.sum_exp_out = (p->outputs & FATTN_WANT_SUM_EXP) != 0 ? r->t->sum_exp : NULL;
    TRY(fattn__math_rows(r, FATTN__KERNEL_statistics, 1, &call));

    call.right = r->v;
    call.out = r->o;
    call.group = (int32_t)(p->heads_q / p->heads_v);
    call.width = (int32_t)p->dim_v;
    call.accumulator = fattn__math_part_at(r, FATTN__MATH_SUM_O);
    return fattn__math_product_keys(r, FATTN__KERNEL_output_bf16_64, p->dtype, p->dtype, &call);
}
