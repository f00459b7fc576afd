/* cache.h: the process-wide cache of plans, and refusals that outlive a process.
 *
 * Keyed by the whole resolved problem (score_mod by structure), context, engine and the policy that holds; bounded in entries and bytes, least
 * recently used goes first; one build for each key however many threads ask.
 */
#ifndef FATTN_CACHE_H
#define FATTN_CACHE_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As fattn_plan_create, but a plan that is there already is shared. Give it back with fattn_plan_destroy; it lives on while it is
 * held, also when the cache has dropped it.
 * Threads  any; several that ask for one key at once wait for one build, and share its failure too.
 * Returns  as fattn_plan_create. */
fattn_status fattn_plan_get(fattn_plan **out, fattn_context *context, const fattn_problem *problem, const fattn_plan_options *options);

typedef struct fattn_cache_limits {
    size_t struct_size;
    size_t entries; /* 0: nothing is kept */
    size_t bytes;   /* of what plans hold on the host, as far as it is known (cuDNN does not tell: the plan as text stands for it) */
} fattn_cache_limits;
#define FATTN_CACHE_LIMITS_INIT { .struct_size = sizeof(fattn_cache_limits), .entries = 1024, .bytes = (size_t)1 << 30 }
fattn_status fattn_cache_limit(const fattn_cache_limits *limits); /* drops what is too much now */

typedef struct fattn_cache_counters {
    size_t struct_size;
    /* Every question about a problem that resolves is one of hits, misses and waits: a plan was there, or had to be built, or another
     * thread was building it. failures: builds that failed, of the misses. evictions: what a limit pushed out, not what was dropped. */
    uint64_t hits, misses, evictions, failures, waits;
    uint64_t entries, bytes; /* now */
    double plan_ms;          /* spent building what succeeded, in total */
} fattn_cache_counters;
fattn_status fattn_cache_count(fattn_cache_counters *out);
/* Drops every plan of a context (NULL: all). fattn_context_destroy does it for its own. */
void fattn_cache_drop(fattn_context *context);

/* ---- refusals that the caller keeps --------------------------------------------------------------------------------------------- */

/* Where cuDNN's refusals are kept between processes: for some graphs cuDNN takes a second to say no. Keys are 32 hexadecimal digits, of the
 * build, the device, the graph, and the engine with its knobs: what may be told from the problem alone is not part of the answer and is
 * worked out anew (rules, remedies). cuDNN also reads its own environment variables (CUDNN_LIB_CONFIG, CUDNN_RESCALE_THRESHOLD): a caller
 * who changes them keeps another store for each setting.
 * Only a refusal that speaks of the graph is kept. One that names an error inside of cuDNN, a lack of memory, a driver or a missing library
 * is never given to `keep`, nor is a plan that fails to compile in another way than as not supported. */
typedef struct fattn_refusal_store {
    size_t struct_size;
    void *user;
    /* What lies under the key: *bytes is malloc'ed, and the library frees it. False: nothing. */
    bool (*find)(void *user, const char *key, char **bytes, size_t *count);
    /* Keeps the bytes (0.2 to 30 kB), which are valid during the call. `bytes` NULL: what `find` gave is damaged; it is to be dropped. */
    void (*keep)(void *user, const char *key, const char *bytes, size_t count);
} fattn_refusal_store;
#define FATTN_REFUSAL_STORE_INIT { .struct_size = sizeof(fattn_refusal_store) }

/* From now on fattn_decide and fattn_plan_create look into the store before they ask cuDNN, and give it what cuDNN refuses. Both functions or
 * none; `store` NULL: no store any more.
 * Threads  before the context is used by others. The functions are called from every thread that asks.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM. */
fattn_status fattn_context_keep_refusals(fattn_context *context, const fattn_refusal_store *store);

#ifdef __cplusplus
}
#endif
#endif
