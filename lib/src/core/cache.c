/* The process-wide cache of plans. One lock, which is never held while a plan is built or
 * destroyed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fattn/cache.h"
#include "plan.h"
#include "policy/policy_stack.h"
#include "problem/resolved_problem.h"
#include "score_mod/mod_program.h"
#include "sized.h"

/* Everything that distinguishes plans, except the problem. It has no padding. */
typedef struct target {
    uint64_t context; /* its id */
    int64_t engine;
    uint64_t config;
    uint64_t policy[2];
    uint64_t pin; /* hash of the knobs; 0: none */
    uint64_t overrides;
} target;

typedef enum state { BUILDING, READY, FAILED } state;

typedef struct entry {
    struct entry *next; /* of its bucket */
    uint64_t hash;
    fattn_problem problem; /* resolved, with a reference to its score_mod */
    bool linked;
    target target;
    struct entry *newer, *older; /* among the READY ones that are kept */
    int holders;                 /* one for the table, one for the builder, one for each waiter */
    state state;
    bool kept;
    pthread_cond_t built;
    fattn_plan *plan; /* READY: a reference */
    size_t bytes;
    fattn_status status; /* FAILED */
    char why[1024];
} entry;

static struct {
    pthread_mutex_t lock;
    entry **buckets;
    size_t bucket_count; /* a power of 2 */
    size_t linked;
    entry *newest, *oldest;
    fattn_cache_limits limits;
    fattn_cache_counters counters;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER, .limits = FATTN_CACHE_LIMITS_INIT };

/* ---- the table; the lock is held
 * ------------------------------------------------------------------------------------------------
 */

static uint64_t hash_of(const target *t, const fattn_problem *resolved)
{
    struct {
        target target;
        fattn__problem_key key;
    } whole = { *t, fattn__problem_key_of(resolved) };
    return XXH3_64bits(&whole, sizeof whole);
}

static entry *find(const target *t, const fattn_problem *resolved, uint64_t hash)
{
    if (cache.bucket_count == 0)
        return NULL;
    for (entry *e = cache.buckets[hash & (cache.bucket_count - 1)]; e != NULL; e = e->next) {
        if (e->hash == hash && memcmp(&e->target, t, sizeof *t) == 0 &&
            fattn__problem_same(&e->problem, resolved))
            return e;
    }
    return NULL;
}

static bool grow(void)
{
    const size_t count = cache.bucket_count > 0 ? cache.bucket_count * 2 : 256;
    entry **buckets = calloc(count, sizeof(entry *));
    if (buckets == NULL)
        return cache.bucket_count > 0;
    for (size_t i = 0; i < cache.bucket_count; i++) {
        for (entry *e = cache.buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            e->next = buckets[e->hash & (count - 1)];
            buckets[e->hash & (count - 1)] = e;
        }
    }
    free(cache.buckets);
    cache.buckets = buckets;
    cache.bucket_count = count;
    return true;
}

/* False when there is no memory. */
static bool link_entry(entry *e)
{
    if (cache.linked >= cache.bucket_count && !grow())
        return false;
    entry **bucket = &cache.buckets[e->hash & (cache.bucket_count - 1)];
    fattn__score_mod_retain(e->problem.score_mod);
    e->next = *bucket;
    e->linked = true;
    *bucket = e;
    cache.linked++;
    return true;
}

static void unlink_entry(entry *e)
{
    if (!e->linked)
        return;
    entry **at = &cache.buckets[e->hash & (cache.bucket_count - 1)];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    cache.linked--;
    e->linked = false;
    fattn__score_mod_release(e->problem.score_mod);
}

/* ---- least recently used; the lock is held
 * --------------------------------------------------------------------------------------- */

static void leave_list(entry *e)
{
    *(e->newer != NULL ? &e->newer->older : &cache.newest) = e->older;
    *(e->older != NULL ? &e->older->newer : &cache.oldest) = e->newer;
    e->newer = e->older = NULL;
}

static void enter_list(entry *e)
{
    e->newer = NULL;
    e->older = cache.newest;
    *(cache.newest != NULL ? &cache.newest->newer : &cache.oldest) = e;
    cache.newest = e;
}

/* Plans that have left the cache, to be destroyed when the lock is not held. */
typedef struct leaving {
    entry *first; /* linked by `older` */
} leaving;

/* Releases one reference; the last one frees the entry. */
static void let_go(entry *e, leaving *out)
{
    if (--e->holders > 0)
        return;
    e->older = out->first;
    out->first = e;
}

static void drop(entry *e, leaving *out)
{
    unlink_entry(e);
    if (e->kept) {
        leave_list(e);
        cache.counters.entries--;
        cache.counters.bytes -= e->bytes;
        e->kept = false;
    }
    let_go(e, out);
}

static void evict(leaving *out)
{
    while (cache.oldest != NULL && (cache.counters.entries > cache.limits.entries ||
                                    cache.counters.bytes > cache.limits.bytes)) {
        cache.counters.evictions++;
        drop(cache.oldest, out);
    }
}

static void destroy_all(leaving *out)
{
    for (entry *e = out->first, *next; e != NULL; e = next) {
        next = e->older;
        fattn_plan_destroy(e->plan);
        pthread_cond_destroy(&e->built);
        free(e);
    }
}

/* ---- one question
 * -----------------------------------------------------------------------------------------------------------------
 */

typedef struct question {
    target target;
    fattn_context *context;
    fattn_problem problem; /* resolved */
    fattn_plan_options options;
} question;

static fattn_status ask(question *q, fattn_context *context, const fattn_problem *problem,
                        const fattn_plan_options *options)
{
    if (problem == NULL || context == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: NULL is not allowed",
                           problem == NULL ? "problem" : "context");
    TRY(fattn__plan_options_read(&q->options, options));
    TRY(fattn_problem_resolve(problem, &q->problem));
    q->context = context;
    q->target = (target){ .context = context->id,
                          .engine = q->options.engine,
                          .config = (uint64_t)(int64_t)q->options.config };
    if (q->options.config != FATTN_ENGINE_AUTO)
        q->target.engine = FATTN_ENGINE_AUTO; /* not read then */
    q->target.overrides = (uint64_t)q->options.override_shapes;
    if (q->options.knobs != NULL)
        q->target.pin = XXH3_64bits(q->options.knobs,
                                    (size_t)q->options.knob_count * sizeof *q->options.knobs) |
                        1u;
    fattn__policy_hash(q->target.policy);
    return FATTN_OK;
}

/* The entry exists: returns its plan, after its builder is done. */
static fattn_status share(fattn_plan **out, entry *e, leaving *left)
{
    if (e->state == READY) {
        cache.counters.hits++;
        leave_list(e);
        enter_list(e);
        *out = fattn__plan_retain(e->plan);
        return FATTN_OK;
    }
    cache.counters.waits++;
    e->holders++;
    while (e->state == BUILDING)
        pthread_cond_wait(&e->built, &cache.lock);
    fattn_status st = e->state == READY ? FATTN_OK : fattn__fail(e->status, "%s", e->why);
    if (st == FATTN_OK)
        *out = fattn__plan_retain(e->plan);
    let_go(e, left);
    return st;
}

/* Stores the built plan in the entry, and keeps the entry if there is room. */
static void publish(entry *e, fattn_plan *plan, fattn_status st, leaving *left)
{
    e->state = st == FATTN_OK ? READY : FAILED;
    e->status = st;
    if (st == FATTN_OK) {
        e->plan = fattn__plan_retain(plan);
        e->bytes = sizeof *e + plan->host_bytes;
        cache.counters.plan_ms += plan->ms;
    } else {
        snprintf(e->why, sizeof e->why, "%s", fattn_last_error());
        cache.counters.failures++;
    }
    pthread_cond_broadcast(&e->built);
    const bool dropped = !e->linked; /* while it was being built */
    if (!dropped && st == FATTN_OK && cache.limits.entries > 0 && e->bytes <= cache.limits.bytes) {
        e->kept = true;
        enter_list(e);
        cache.counters.entries++;
        cache.counters.bytes += e->bytes;
        evict(left);
    } else if (!dropped) {
        drop(e, left);
    }
    let_go(e, left);
}

static fattn_status build(fattn_plan **out, entry *e, const question *q)
{
    leaving left = { 0 };
    fattn_status st = fattn__plan_build(out, q->context, &q->problem, &q->options);
    pthread_mutex_lock(&cache.lock);
    publish(e, *out, st, &left);
    pthread_mutex_unlock(&cache.lock);
    destroy_all(&left);
    return st;
}

/* An entry that is being built; NULL: no memory. */
static entry *announce(const question *q, uint64_t hash)
{
    entry *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->target = q->target;
    e->problem = q->problem;
    e->hash = hash;
    e->holders = 2;
    if (!link_entry(e)) {
        free(e);
        return NULL;
    }
    pthread_cond_init(&e->built, NULL);
    return e;
}

fattn_status fattn_plan_get(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options)
{
    NEED(out);
    question q;
    leaving left = { 0 };
    *out = NULL;
    NEED(context);
    fattn_status st = ask(&q, context, problem, options);
    if (st != FATTN_OK)
        return st;
    const uint64_t hash = hash_of(&q.target, &q.problem);
    pthread_mutex_lock(&cache.lock);
    entry *e = find(&q.target, &q.problem, hash);
    const bool mine = e == NULL;
    if (mine) {
        cache.counters.misses++;
        e = announce(&q, hash);
    } else {
        st = share(out, e, &left);
    }
    pthread_mutex_unlock(&cache.lock);
    destroy_all(&left);
    if (!mine)
        return st;
    if (e == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for an entry of the cache");
    return build(out, e, &q);
}

/* ---- the whole
 * --------------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_cache_limit(const fattn_cache_limits *limits)
{
    fattn_cache_limits l = FATTN_CACHE_LIMITS_INIT;
    leaving left = { 0 };
    if (limits == NULL || !fattn__read_sized(&l, sizeof l, limits))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_cache_limits: struct_size is wrong or an unknown field is set");
    pthread_mutex_lock(&cache.lock);
    cache.limits = l;
    evict(&left);
    pthread_mutex_unlock(&cache.lock);
    destroy_all(&left);
    return FATTN_OK;
}

fattn_status fattn_cache_count(fattn_cache_counters *out)
{
    const size_t size = out != NULL ? out->struct_size : 0;
    if (size <= sizeof out->struct_size)
        return fattn__fail(FATTN_BAD_PROBLEM, "fattn_cache_counters: struct_size is not set");
    pthread_mutex_lock(&cache.lock);
    memcpy(out, &cache.counters, size < sizeof *out ? size : sizeof *out);
    pthread_mutex_unlock(&cache.lock);
    out->struct_size = size;
    return FATTN_OK;
}

void fattn_cache_drop(fattn_context *context)
{
    leaving left = { 0 };
    pthread_mutex_lock(&cache.lock);
    for (size_t i = 0; i < cache.bucket_count; i++) {
        for (entry *e = cache.buckets[i], *next; e != NULL; e = next) {
            next = e->next;
            if (context == NULL || e->target.context == context->id)
                drop(e, &left);
        }
    }
    pthread_mutex_unlock(&cache.lock);
    destroy_all(&left);
}
