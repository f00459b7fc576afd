/* For suites of the cache of plans: its counters and limits, and a small problem for the cpu
 * backend. */
#ifndef FATTN_TEST_CACHED_H
#define FATTN_TEST_CACHED_H

#include "fattn/cache.h"

#include <string.h>

#include "support/described_h100.h"

static inline fattn_cache_counters count(void)
{
    fattn_cache_counters counters = { .struct_size = sizeof counters };
    cr_assert_eq(fattn_cache_count(&counters), FATTN_OK);
    return counters;
}

static inline void limit(size_t entries, size_t bytes)
{
    fattn_cache_limits limits = FATTN_CACHE_LIMITS_INIT;
    limits.entries = entries;
    limits.bytes = bytes;
    cr_assert_eq(fattn_cache_limit(&limits), FATTN_OK);
}

static inline fattn_plan *get(fattn_context *context, const fattn_problem *problem)
{
    fattn_plan *plan;
    fattn_status st = fattn_plan_get(&plan, context, problem, NULL);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    return plan;
}

static inline void touch(fattn_context *context, const fattn_problem *problem)
{
    fattn_plan_destroy(get(context, problem));
}

static inline fattn_problem small_problem(void)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = 2;
    problem.heads_q = 4;
    problem.seq_q = problem.seq_kv = 8;
    problem.dim_qk = 16;
    problem.dtype = FATTN_F32;
    return problem;
}

#endif
