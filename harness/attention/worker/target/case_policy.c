#include "case_policy.h"
#include "fattn/policy.h"

#include <stdio.h>
#include <string.h>

static const struct {
    int32_t order[2], count;
} allowed[FACTS_POLICY_COUNT] = {
    [FACTS_POLICY_CUDNN] = { { FATTN_BACKEND_CUDNN }, 1 },
    [FACTS_POLICY_MATH] = { { FATTN_BACKEND_MATH }, 1 },
    [FACTS_POLICY_ANY] = { { FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH }, 2 },
};

bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend)
{
    if (worker->device == FACTS_DEVICE_CPU)
        return backend == FATTN_BACKEND_CPU;
    for (int32_t i = 0; i < allowed[policy].count; i++)
        if (allowed[policy].order[i] == (int32_t)backend)
            return true;
    return false;
}

fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy,
                                facts_error *error)
{
    fattn_policy wanted = FATTN_POLICY_INIT;
    *depth = FACTS_NO_POLICY;
    if (worker->device == FACTS_DEVICE_CPU ||
        policy == FACTS_POLICY_CUDNN) /* the rules without a policy */
        return FATTN_OK;
    memcpy(wanted.order, allowed[policy].order, sizeof allowed[policy].order);
    wanted.order_count = allowed[policy].count;
    const fattn_status status = fattn_policy_push(&wanted, depth);
    if (status != FATTN_OK) {
        *depth = FACTS_NO_POLICY;
        facts_fail(error, "policy: %.350s", fattn_last_error());
    }
    return status;
}

void facts_policy_end(int depth)
{
    if (depth != FACTS_NO_POLICY)
        fattn_policy_pop(depth);
}
