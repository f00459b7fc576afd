/* Programs of other releases: every struct of the headers that carries struct_size, smaller and
 * larger than ours. A struct lies in memory of its own size, so that AddressSanitizer sees a read
 * or a write past it. ci/test/test_abi.py holds the lists against the headers. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "fattn/cache.h"
#include "fattn/fattn.h"
#include "fattn/policy.h"

enum { SEQ = 4, DIM = 8, ELEMENTS = SEQ * DIM };

static fattn_problem small(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = 1, p.heads_q = 1, p.heads_k = 1, p.seq_q = p.seq_kv = SEQ,
    p.dim_qk = DIM;
    return p;
}

static fattn_context *open_cpu(void)
{
    fattn_context *context;
    const fattn_context_options options = { .struct_size = sizeof options,
                                            .device_kind = FATTN_DEVICE_CPU,
                                            .threads = 1 };
    cr_assert_eq(fattn_context_create(&context, &options), FATTN_OK, "%s", fattn_last_error());
    return context;
}

static fattn_status give_context_options(const void *given)
{
    fattn_context *context;
    fattn_status st = fattn_context_create(&context, given);
    fattn_context_destroy(context);
    return st;
}

static fattn_status give_problem(const void *given)
{
    fattn_problem out;
    return fattn_problem_resolve(given, &out);
}

static fattn_status plan_and_run(const void *options, const void *tensors)
{
    fattn_context *context = open_cpu();
    const fattn_problem problem = small();
    fattn_plan *plan = NULL;
    fattn_status st = fattn_plan_create(&plan, context, &problem, options);
    if (st == FATTN_OK && tensors != NULL)
        st = fattn_forward(plan, tensors, NULL);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
    return st;
}

static fattn_status give_plan_options(const void *given)
{
    return plan_and_run(given, NULL);
}

static fattn_status give_tensors(const void *given)
{
    return plan_and_run(NULL, given);
}

static fattn_status give_policy(const void *given)
{
    int depth = 0;
    fattn_status st = fattn_policy_push(given, &depth);
    if (st == FATTN_OK)
        fattn_policy_pop(depth);
    return st;
}

/* Two rules beside each other: the array has the caller's stride, not ours. */
static fattn_status give_rule(const void *given)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    const size_t stride = size > 0 && size < SIZE_MAX ? size : sizeof(fattn_rule);
    char *two = malloc(2 * stride);
    cr_assert(two);
    memcpy(two, given, stride);
    memcpy(two + stride, given, stride);
    const fattn_policy policy = { .struct_size = sizeof policy,
                                  .rules = (const fattn_rule *)(void *)two,
                                  .rule_count = 2 };
    fattn_status st = give_policy(&policy);
    free(two);
    return st;
}

static fattn_status give_cache_limits(const void *given)
{
    return fattn_cache_limit(given);
}

/* X(struct, its first field that an older program may lack) */
#define GIVEN(X)                                                                                   \
    X(context_options, ordinal)                                                                    \
    X(problem, attn_scale)                                                                         \
    X(plan_options, knobs)                                                                         \
    X(tensors, bias)                                                                               \
    X(policy, rules)                                                                               \
    X(rule, unasked)                                                                               \
    X(cache_limits, bytes)

/* X(struct, how it is asked for) */
#define FILLED(X)                                                                                  \
    X(context_info, fattn_context_info_get(context, out))                                          \
    X(cache_counters, fattn_cache_count(out))

static float array[4][ELEMENTS], room[1 << 20];

static void make_good(const char *name, void *whole)
{
    if (strcmp(name, "context_options") == 0)
        ((fattn_context_options *)whole)->device_kind = FATTN_DEVICE_CPU;
    if (strcmp(name, "problem") == 0)
        *(fattn_problem *)whole = small();
    if (strcmp(name, "rule") == 0)
        ((fattn_rule *)whole)->name = "a rule", ((fattn_rule *)whole)->why = "a test";
    if (strcmp(name, "tensors") == 0) {
        fattn_tensors *t = whole;
        t->q = array[0], t->k = array[1], t->v = array[2], t->o = array[3], t->workspace = room,
        t->workspace_bytes = sizeof room;
    }
}

/* A struct of `said` bytes whose memory has `held`: our own `known` bytes, or fewer, then `rest`.
 */
static fattn_status give(fattn_status (*to)(const void *), const void *whole, size_t known,
                         size_t said, size_t held, int rest)
{
    char *bytes = malloc(held);
    cr_assert(bytes);
    memset(bytes, 0, held);
    memcpy(bytes, whole, held < known ? held : known);
    memcpy(bytes, &said, sizeof said);
    if (rest)
        bytes[held - 1] = 1;
    fattn_status st = to(bytes);
    free(bytes);
    return st;
}

#define TEST_GIVEN(name, newest)                                                                   \
    Test(struct_size, name##_of_other_releases)                                                    \
    {                                                                                              \
        const size_t known = sizeof(fattn_##name), older = offsetof(fattn_##name, newest);         \
        fattn_##name whole = name##_init;                                                          \
        make_good(#name, &whole);                                                                  \
        cr_expect_eq(give(give_##name, &whole, known, known, known, 0), FATTN_OK, "%s",            \
                     fattn_last_error());                                                          \
        for (size_t size = older; size < known; size += 8)                                         \
            cr_expect_eq(give(give_##name, &whole, known, size, size, 0), FATTN_OK,                \
                         "%zu bytes: %s", size, fattn_last_error());                               \
        for (size_t size = known + 8; size <= known + 64; size += 8) {                             \
            cr_expect_eq(give(give_##name, &whole, known, size, size, 0), FATTN_OK,                \
                         "%zu bytes: %s", size, fattn_last_error());                               \
            cr_expect_eq(give(give_##name, &whole, known, size, size, 1), FATTN_BAD_PROBLEM,       \
                         "%zu bytes, the last is set", size);                                      \
            cr_expect(strstr(fattn_last_error(), "struct_size"), "%s", fattn_last_error());        \
        }                                                                                          \
        cr_expect_eq(give(give_##name, &whole, known, 0, known, 0), FATTN_BAD_PROBLEM, "no size"); \
        cr_expect_eq(give(give_##name, &whole, known, SIZE_MAX, known, 0), FATTN_BAD_PROBLEM,      \
                     "never set");                                                                 \
    }

static const fattn_context_options context_options_init = FATTN_CONTEXT_OPTIONS_INIT;
static const fattn_problem problem_init = FATTN_PROBLEM_INIT;
static const fattn_plan_options plan_options_init = FATTN_PLAN_OPTIONS_INIT;
static const fattn_tensors tensors_init = FATTN_TENSORS_INIT;
static const fattn_policy policy_init = FATTN_POLICY_INIT;
static const fattn_rule rule_init = FATTN_RULE_INIT;
static const fattn_cache_limits cache_limits_init = FATTN_CACHE_LIMITS_INIT;
GIVEN(TEST_GIVEN)

/* What is filled ends where the caller's struct ends, or ours; the rest of a newer caller's keeps
 * its own values. */
#define TEST_FILLED(name, ask)                                                                     \
    Test(struct_size, name##_of_other_releases)                                                    \
    {                                                                                              \
        fattn_context *context = open_cpu();                                                       \
        fattn_##name want = { .struct_size = sizeof want }, *out = &want;                          \
        cr_assert_eq(ask, FATTN_OK);                                                               \
        for (size_t size = 16; size <= sizeof want + 64; size += 8) {                              \
            char *bytes = malloc(size);                                                            \
            cr_assert(bytes);                                                                      \
            memset(bytes, 0x5a, size);                                                             \
            memcpy(bytes, &size, sizeof size);                                                     \
            out = (fattn_##name *)(void *)bytes;                                                   \
            cr_expect_eq(ask, FATTN_OK, "%zu bytes: %s", size, fattn_last_error());                \
            cr_expect_eq(memcmp(bytes, &size, sizeof size), 0);                                    \
            const size_t filled = size < sizeof want ? size : sizeof want;                         \
            cr_expect_eq(                                                                          \
                memcmp(bytes + sizeof size, (char *)&want + sizeof size, filled - sizeof size), 0, \
                "%zu bytes", size);                                                                \
            for (size_t i = filled; i < size; i++)                                                 \
                cr_expect_eq(bytes[i], 0x5a, "byte %zu of %zu", i, size);                          \
            free(bytes);                                                                           \
        }                                                                                          \
        want.struct_size = 0, out = &want;                                                         \
        cr_expect_eq(ask, FATTN_BAD_PROBLEM);                                                      \
        fattn_context_destroy(context);                                                            \
    }
FILLED(TEST_FILLED)
