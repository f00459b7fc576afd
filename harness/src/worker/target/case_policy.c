#include "case_policy.h"
#include "fattn/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTHING_PUSHED = -1 };

static const struct {
    int32_t order[2], count;
} allowed[FACTS_POLICY_COUNT] = {
    [FACTS_POLICY_CUDNN] = { { FATTN_BACKEND_CUDNN }, 1 },
    [FACTS_POLICY_MATH] = { { FATTN_BACKEND_MATH }, 1 },
    [FACTS_POLICY_ANY] = { { FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH }, 2 },
    [FACTS_POLICY_GUARD] = { { FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH }, 2 },
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

static fattn_status push(int *depth, const fattn_policy *wanted, facts_error *error)
{
    const fattn_status status = fattn_policy_push(wanted, depth);
    if (status != FATTN_OK) {
        *depth = NOTHING_PUSHED;
        facts_fail(error, "policy: %.350s", fattn_last_error());
    }
    return status;
}

fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy,
                                const facts_case *c, facts_error *error)
{
    fattn_policy wanted = FATTN_POLICY_INIT;
    *depth = NOTHING_PUSHED;
    if (worker->device == FACTS_DEVICE_CPU ||
        policy == FACTS_POLICY_CUDNN) /* the rules without a policy */
        return FATTN_OK;
    memcpy(wanted.order, allowed[policy].order, sizeof allowed[policy].order);
    wanted.order_count = allowed[policy].count;
    if (policy != FACTS_POLICY_GUARD)
        return push(depth, &wanted, error);
    if (!worker->errata)
        return (fattn_status)facts_fail_as(FATTN_ENVIRONMENT, error, "%s",
                                           worker->errata_error.text);
    fattn_rule *chosen = calloc(facts_errata_count(worker->errata) + 1, sizeof *chosen);
    if (!chosen)
        return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error, "policy: no memory");
    wanted.rules = chosen;
    wanted.rule_count = facts_errata_choose(worker->errata, c, chosen);
    const fattn_status status = push(depth, &wanted, error); /* copies the rules */
    free(chosen);
    return status;
}

void facts_policy_end(int depth)
{
    if (depth != NOTHING_PUSHED)
        fattn_policy_pop(depth);
}
