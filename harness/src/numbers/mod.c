#include "mod.h"

#include <math.h>

#define NO_BOUND (INT64_C(1) << 24) /* beyond every index that fp32 tells apart */

static int64_t count_of(double parameter)
{
    return isinf(parameter) ? NO_BOUND : (int64_t)parameter;
}

fattn_status facts_mod_create(fattn_score_mod **out, const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    const double *parameter = problem->mod_parameter;
    const facts_tensor *a = &problem->tensor[FACTS_TENSOR_MOD_A];
    *out = NULL;
    switch (problem->mod) {
    case FACTS_MOD_CAUSAL:
        return fattn_score_mod_causal(out);
    case FACTS_MOD_WINDOW:
        return fattn_score_mod_window(out, count_of(parameter[0]), count_of(parameter[1]));
    case FACTS_MOD_SOFTCAP:
        return fattn_score_mod_softcap(out, parameter[0]);
    case FACTS_MOD_TEMPERATURE:
        return fattn_score_mod_temperature(out, parameter[0]);
    case FACTS_MOD_PREFIX_LM:
        return fattn_score_mod_prefix_lm(out, count_of(parameter[0]));
    case FACTS_MOD_POST_SCALE_BIAS:
        return fattn_score_mod_post_scale_bias(out, (fattn_dtype)a->dtype, a->dim, a->stride);
    case FACTS_MOD_RELPOS:
        return fattn_score_mod_relative_position(out, ask->heads_q);
    case FACTS_MOD_DOCUMENT:
        return fattn_score_mod_document(out, ask->batch, ask->seq_q, ask->seq_kv);
    default:
        return FATTN_OK;
    }
}
