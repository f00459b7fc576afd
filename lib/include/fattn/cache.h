/* cache.h: the process-wide cache of plans.
 *
 * The key is the whole resolved problem (score_mod by structure), the context, the engine and the
 * policy. The cache is bounded in entries and bytes and drops the least recently used plan first.
 * It builds each key once, even if many threads ask for it.
 */
#ifndef FATTN_CACHE_H
#define FATTN_CACHE_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As fattn_plan_create, but shares a plan that exists already. Give it back with fattn_plan_destroy. You keep the plan until then, even if
 * the cache drops it.
 * Threads  any. Threads that ask for one key at once wait for one build, and share its failure too.
 * Returns  as fattn_plan_create. */
fattn_status fattn_plan_get(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options);

typedef struct fattn_cache_limits {
    size_t struct_size;
    size_t entries; /* 0: nothing is kept */
    size_t bytes;   /* host memory of the plans, estimated: of cuDNN's part the size of the plan as
                       text counts */
} fattn_cache_limits;
#define FATTN_CACHE_LIMITS_INIT                                                                    \
    { .struct_size = sizeof(fattn_cache_limits), .entries = 1024, .bytes = (size_t)1 << 30 }
fattn_status
fattn_cache_limit(const fattn_cache_limits *limits); /* drops plans beyond the limits at once */

typedef struct fattn_cache_counters {
    size_t struct_size;
    /* Each request is a hit (the plan existed), a miss (it had to be built) or a wait (another thread was building it). failures: misses
     * whose build failed. evictions: plans that a limit removed; dropped plans do not count. */
    uint64_t hits, misses, evictions, failures, waits;
    uint64_t entries, bytes; /* now */
    double plan_ms;          /* total time of successful builds */
} fattn_cache_counters;
fattn_status fattn_cache_count(fattn_cache_counters *out);
/* Drops every plan of a context (NULL: all). fattn_context_destroy does it for its own. */
void fattn_cache_drop(fattn_context *context);

#ifdef __cplusplus
}
#endif
#endif
