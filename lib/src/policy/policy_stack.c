#include "policy_stack.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/engine.h"
#include "core/error.h"
#include "core/sized.h"
#include "liars/lies.h"
#include "rules.h"

/* A pushed policy. It belongs to one thread. */
typedef struct frame {
    struct frame *below;
    int depth, order_count;
    int32_t order[FATTN_BACKEND_COUNT];
    fattn__rule_list rules;  /* of this push alone */
    XXH128_hash_t rule_hash; /* of all rules, from the bottom up */
} frame;

static _Thread_local frame *top;

/* ---- life of a frame
 * -------------------------------------------------------------------------------------------------------
 */

/* Frees a frame and returns the one below. */
static frame *drop(frame *f)
{
    frame *below = f->below;
    fattn__rules_free(&f->rules);
    free(f);
    return below;
}

/* A thread that ends with pushed policies frees their memory; nothing else happens at its end. */
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void end_thread(void *left)
{
    for (frame *f = left; f != NULL;)
        f = drop(f);
    top = NULL;
}

static void make_key(void)
{
    has_key = pthread_key_create(&at_thread_end, end_thread) == 0;
}

/* A library that is unmapped must not be called at a later thread's end. */
__attribute__((destructor)) static void drop_key(void)
{
    if (has_key)
        pthread_key_delete(at_thread_end);
    has_key = false;
}

static void set_top(frame *f)
{
    pthread_once(&once, make_key);
    top = f;
    if (has_key)
        pthread_setspecific(at_thread_end, f);
}

/* ---- push and pop
 * ----------------------------------------------------------------------------------------------------------
 */

static fattn_status check_order(const fattn_policy *policy)
{
    if (policy->order_count < 0 || policy->order_count > FATTN_BACKEND_COUNT)
        return fattn__fail(FATTN_BAD_PROBLEM, "order_count: %d is not allowed; want 0 to %d",
                           policy->order_count, FATTN_BACKEND_COUNT);
    for (int i = 0; i < policy->order_count; i++) {
        if (policy->order[i] < 0 || policy->order[i] >= FATTN_BACKEND_COUNT)
            return fattn__fail(FATTN_BAD_PROBLEM, "order[%d]: %d is not a backend", i,
                               policy->order[i]);
        for (int before = 0; before < i; before++) {
            if (policy->order[before] == policy->order[i])
                return fattn__fail(FATTN_BAD_PROBLEM, "order[%d]: backend %d is named twice", i,
                                   policy->order[i]);
        }
    }
    return policy->rule_count == 0 || policy->rules != NULL
               ? FATTN_OK
               : fattn__fail(FATTN_BAD_PROBLEM, "rules: NULL is not allowed");
}

/* The effect of a rule, without its name: two rules with the same effect are the same. */
static XXH128_hash_t hash_rule(const fattn_rule *rule, XXH128_hash_t before)
{
    const struct {
        XXH128_hash_t before, when, knobs;
        bool (*holds)(const char *when, const fattn_problem *resolved);
        int64_t engine;
        int32_t action, backend, pass, knob_count, cudnn_from, cudnn_to, sm_from, sm_to;
    } what = { before,
               rule->when != NULL ? XXH3_128bits(rule->when, strlen(rule->when))
                                  : (XXH128_hash_t){ 0, 0 },
               XXH3_128bits(rule->knobs, (size_t)rule->knob_count * sizeof *rule->knobs),
               rule->holds,
               rule->engine,
               rule->action,
               rule->backend,
               rule->pass,
               rule->knob_count,
               rule->cudnn_from,
               rule->cudnn_to,
               rule->sm_from,
               rule->sm_to };
    return XXH3_128bits(&what, sizeof what);
}

fattn_status fattn_policy_push(const fattn_policy *policy, int *depth)
{
    fattn_policy p = FATTN_POLICY_INIT;
    if (policy == NULL || !fattn__read_sized(&p, sizeof p, policy))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "fattn_policy: struct_size is wrong or an unknown field is set");
    TRY(check_order(&p));
    frame *f = calloc(1, sizeof *f);
    if (f == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a policy");
    fattn_status st = fattn__rules_copy(&f->rules, p.rules, p.rule_count);
    if (st != FATTN_OK) {
        free(f);
        return st;
    }
    f->below = top;
    f->depth = fattn_policy_depth() + 1;
    f->order_count = p.order_count > 0 ? p.order_count : top != NULL ? top->order_count : 0;
    memcpy(f->order, p.order_count > 0 || top == NULL ? p.order : top->order, sizeof f->order);
    f->rule_hash = top != NULL ? top->rule_hash : (XXH128_hash_t){ 0, 0 };
    for (size_t i = 0; i < f->rules.count; i++)
        f->rule_hash = hash_rule(&f->rules.at[i], f->rule_hash);
    set_top(f);
    if (depth != NULL)
        *depth = f->depth;
    return FATTN_OK;
}

void fattn_policy_pop(int depth)
{
    while (depth >= 1 && top != NULL && top->depth >= depth && !FATTN__LIE(POLICY_LEAK))
        set_top(drop(top));
}

int fattn_policy_depth(void)
{
    return top != NULL ? top->depth : 0;
}

/* ---- asked
 * -----------------------------------------------------------------------------------------------------------------
 */

int fattn__policy_order(const fattn_context *context, int32_t out[FATTN_BACKEND_COUNT])
{
    const bool on_cpu = context->kind == FATTN_DEVICE_CPU;
    int count = 0;
    for (int i = 0; top != NULL && i < top->order_count; i++) {
        if (on_cpu == (top->order[i] == FATTN_BACKEND_CPU))
            out[count++] = top->order[i];
    }
    if (count == 0)
        out[count++] = on_cpu ? FATTN_BACKEND_CPU : FATTN_BACKEND_CUDNN;
    return count;
}

typedef struct target {
    const fattn_context *context;
    const fattn_problem *problem;
    fattn_backend backend;
    const fattn_engine *engine; /* NULL: the backend as a whole is asked about */
} target;

/* Does a rule that holds refuse? */
static bool says_no(const fattn_rule *rule, const target *t)
{
    const bool whole = rule->engine == FATTN_ANY && rule->knob_count == 0,
               same = rule->backend == (int32_t)t->backend;
    if (t->engine == NULL)
        return rule->action == FATTN_DENY ? same && whole : !same;
    if (!same || whole)
        return false;
    return fattn__rule_means(rule, t->engine) == (rule->action == FATTN_DENY);
}

static const fattn_rule *find(const fattn_rule *rules, size_t count, const target *t,
                              const fattn_rule *so_far)
{
    const fattn_context_info *info = &t->context->info;
    for (size_t i = 0; i < count; i++) {
        const bool better = so_far == NULL || (rules[i].unasked && !so_far->unasked);
        if (better && says_no(&rules[i], t) &&
            fattn__rule_holds(&rules[i], t->problem, info->cudnn_version, info->sm))
            so_far = &rules[i];
    }
    return so_far;
}

static const fattn_rule *first_no(const target *t)
{
    const fattn_rule *found = NULL;
    for (const frame *f = top; f != NULL; f = f->below)
        found = find(f->rules.at, f->rules.count, t, found);
    for (size_t i = 0; i < fattn_guard_count() && !t->problem->guards_off; i++)
        found = find(fattn_guard_at(i), 1, t, found);
    return found;
}

const fattn_rule *fattn__policy_denies(const fattn_context *context, const fattn_problem *problem,
                                       fattn_backend backend)
{
    return first_no(&(target){ context, problem, backend, NULL });
}

const fattn_rule *fattn__policy_removes(const fattn_context *context, const fattn_problem *problem,
                                        fattn_backend backend, const fattn_engine *engine)
{
    return first_no(&(target){ context, problem, backend, engine });
}

static uint64_t mix_choice(uint64_t hash, const fattn_rule *rules, size_t count, const target *t)
{
    const fattn_context_info *info = &t->context->info;
    for (size_t i = 0; i < count; i++) {
        const fattn_rule *rule = &rules[i];
        if (rule->backend != (int32_t)t->backend ||
            !fattn__rule_holds(rule, t->problem, info->cudnn_version, info->sm))
            continue;
        const int64_t what[] = { rule->engine, rule->action };
        hash = XXH3_64bits_withSeed(what, sizeof what, hash);
        hash =
            XXH3_64bits_withSeed(rule->knobs, (size_t)rule->knob_count * sizeof *rule->knobs, hash);
    }
    return hash;
}

uint64_t fattn__policy_choice(const fattn_context *context, const fattn_problem *problem)
{
    const target t = { context, problem, FATTN_BACKEND_CUDNN, NULL };
    int32_t order[FATTN_BACKEND_COUNT] = { -1, -1, -1 };
    fattn__policy_order(context, order);
    uint64_t hash = XXH3_64bits(order, sizeof order);
    for (const frame *f = top; f != NULL; f = f->below)
        hash = mix_choice(hash, f->rules.at, f->rules.count, &t);
    for (size_t i = 0; i < fattn_guard_count() && !problem->guards_off; i++)
        hash = mix_choice(hash, fattn_guard_at(i), 1, &t);
    return hash;
}

void fattn__policy_hash(uint64_t out[2])
{
    out[0] = out[1] = 0;
    if (top == NULL)
        return;
    const XXH128_hash_t rules = top->rule_hash;
    uint64_t order = 0;
    for (int i = 0; i < top->order_count; i++)
        order = order * 4 + (uint64_t)top->order[i] + 1;
    out[0] = rules.low64 ^ order;
    out[1] = rules.high64 ^ order * 0x9e3779b97f4a7c15u;
}
