#include "oracle_view.h"

#include "mod.h"
#include "places.h"
#include "scalars.h"

void facts_oracle_problem(fref_problem *out, const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    *out = (fref_problem){
        .batch = ask->batch,
        .heads_q = ask->heads_q,
        .heads_k = ask->heads_k,
        .heads_v = ask->heads_v,
        .rows = ask->seq_q,
        .keys = ask->seq_kv,
        .dim_qk = ask->dim_qk,
        .dim_v = ask->dim_v,
        .scale = facts_oracle_scale(problem),
        .has_left = ask->has_left != 0,
        .has_right = ask->has_right != 0,
        .bottom_right = ask->align == FATTN_BOTTOM_RIGHT,
        .left = ask->window_left,
        .right = ask->window_right,
        .len_q = problem->has_lengths ? problem->len_q : NULL,
        .len_kv = problem->has_lengths ? problem->len_kv : NULL,
    };
}

bool facts_oracle_type(fref_type *out, int32_t dtype)
{
    switch (dtype) {
    case FATTN_BF16:
        *out = FREF_BF16;
        return true;
    case FATTN_F16:
        *out = FREF_F16;
        return true;
    case FATTN_F32:
        *out = FREF_F32;
        return true;
    case FATTN_E4M3:
    case FATTN_MXE4M3:
        *out = FREF_E4M3;
        return true;
    case FATTN_E5M2:
    case FATTN_MXE5M2:
        *out = FREF_E5M2;
        return true;
    default:
        return false;
    }
}

void facts_oracle_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first,
                              int64_t *last)
{
    fref_problem p;
    facts_oracle_problem(&p, problem);
    fref_keys_of_row(&p, b, i, first, last);
    facts_mod_keys_of_row(problem, b, i, first, last);
}

bool facts_oracle_two_keys(const facts_problem *problem)
{
    /* If all keys are equal, all scores of a row are equal. If all values are equal, all dP of a
     * row are equal: dS is zero. */
    if (problem->tensor[FACTS_TENSOR_K].stride[2] == 0 ||
        problem->tensor[FACTS_TENSOR_V].stride[2] == 0)
        return false;
    for (int64_t b = 0; b < problem->ask.batch; b++)
        for (int64_t i = 0; i < facts_live_q(problem, b); i++) {
            int64_t first, last;
            facts_oracle_keys_of_row(problem, b, i, &first, &last);
            if (last - first >= 2)
                return true;
        }
    return false;
}
