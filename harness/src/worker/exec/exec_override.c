/* A plan for a larger shape: one batch entry, some rows and some keys more than the case, and dense
 * strides. */
#include <string.h>

#include "exec_ways.h"

#define MORE 128 /* rows and keys; a multiple of every tile */

static fattn_problem larger(const fattn_problem *ask)
{
    fattn_problem out = *ask;
    int64_t *const strides[] = { out.q_strides, out.k_strides,     out.v_strides,
                                 out.o_strides, out.stats_strides, out.bias_strides };
    for (size_t i = 0; i < sizeof strides / sizeof *strides; i++)
        memset(strides[i], 0, 4 * sizeof *strides[i]);
    out.impl = FATTN_IMPL_UNIFIED;
    out.batch++;
    out.seq_q += MORE;
    out.seq_kv += MORE;
    if (out.has_bias) {
        out.bias_dim[0] += out.bias_dim[0] > 1;
        out.bias_dim[2] += out.bias_dim[2] > 1 ? MORE : 0;
        out.bias_dim[3] += out.bias_dim[3] > 1 ? MORE : 0;
    }
    return out;
}

static bool run(facts_runs *r, const fattn_plan *plan, const fattn_problem *as)
{
    if (fattn_plan_workspace_bytes(plan) > r->memory->workspace_bytes &&
        !facts_runs_check(r, facts_memory_workspace(r->memory, fattn_plan_workspace_bytes(plan)),
                          NULL))
        return false;
    r->call = facts_call_now(r);
    facts_call call = r->call;
    call.plan = plan;
    call.as = as;
    return facts_runs_once(r, &call, FACTS_PATTERN_B);
}

void facts_exec_overridden(facts_runs *r)
{
    const fattn_problem wide = larger(&r->problem->ask);
    fattn_problem as = r->problem->ask;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan = NULL;
    as.impl = FATTN_IMPL_UNIFIED;
    options.override_shapes = 1;
    options.engine = r->problem->engine >= 0 ? r->problem->engine : FATTN_ENGINE_AUTO;
    options.knobs = r->problem->knob_count > 0 ? r->problem->knob : NULL;
    options.knob_count = r->problem->knob_count;
    if (facts_runs_check(r, fattn_plan_create(&plan, r->worker->context, &wide, &options),
                         "a plan of a larger shape")) {
        r->out->ran = *fattn_plan_engine(plan);
        r->out->ran_other = true;
        if (run(r, plan, &as))
            facts_runs_judge_all(r, "by a plan of a larger shape");
    }
    if (!r->worker->lost)
        fattn_plan_destroy(plan);
}
