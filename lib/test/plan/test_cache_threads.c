/* The cache of plans, asked by many threads at once. */
#include "cached.h"

#include <pthread.h>

#include "core/plan.h"
#include "fattn/cache.h"

#ifdef __SANITIZE_ADDRESS__
enum { THREADS = 8, KEYS = 5, ROUNDS = 1000, DROPPED_EACH = 250 };
#else
enum { THREADS = 8, KEYS = 5, ROUNDS = 4000, DROPPED_EACH = 1000 };
#endif

static void *hammer(void *argument)
{
    fattn_context *context = argument;
    fattn_problem p = small_problem();
    for (int i = 0; i < ROUNDS; i++) {
        p.batch = 1 + i * 7 % KEYS;
        fattn_plan *plan;
        if (fattn_plan_get(&plan, context, &p, NULL) != FATTN_OK || plan->problem.batch != p.batch)
            return "wrong plan";
        if (i % DROPPED_EACH == DROPPED_EACH - 1)
            fattn_cache_drop(context);
        fattn_plan_destroy(plan);
    }
    return NULL;
}

static void run_threads(void *(*body)(void *), void *argument)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, body, argument), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        cr_expect_null(wrong, "%s", (const char *)wrong);
    }
}

Test(cache_threads, threads_that_hammer_few_keys_get_the_right_plans_and_every_question_is_counted)
{
    fattn_context *context = open_cpu();
    limit(3, (size_t)1 << 30);
    run_threads(hammer, context);
    const fattn_cache_counters c = count();
    cr_expect_eq(c.hits + c.misses + c.waits, THREADS * ROUNDS);
    cr_expect_leq(c.entries, 3);
    fattn_context_destroy(context);
    cr_expect_eq(count().bytes, 0);
}

static fattn_plan *built[THREADS];
static _Atomic int next_place;
static pthread_barrier_t together;

static void *build_slowly(void *argument)
{
    const fattn_problem p = control_problem();
    pthread_barrier_wait(&together);
    return fattn_plan_get(&built[next_place++], argument, &p, NULL) == FATTN_OK ? NULL
                                                                                : "not built";
}

Test(cache_threads, many_threads_that_want_one_key_wait_for_one_build)
{
    fattn_context *context = open_h100();
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(build_slowly, context);
    const fattn_cache_counters c = count();
    cr_expect_eq(c.misses, 1);
    cr_expect_eq(c.hits + c.waits, THREADS - 1);
    cr_expect_gt(c.waits, 0);
    cr_expect_gt(c.plan_ms, 0);
    for (int i = 0; i < THREADS; i++) {
        cr_expect_eq(built[i], built[0]);
        fattn_plan_destroy(built[i]);
    }
    fattn_context_destroy(context);
}

static void *fail_together(void *argument)
{
    fattn_problem p = control_problem();
    fattn_plan *plan;
    p.dim_qk = 100;
    pthread_barrier_wait(&together);
    if (fattn_plan_get(&plan, argument, &p, NULL) == FATTN_OK || plan != NULL)
        return "built";
    return strstr(fattn_last_error(), "CUDNN_STATUS") != NULL ? NULL : "another sentence";
}

Test(cache_threads, who_waited_for_a_failure_has_its_sentence_and_nothing_is_kept)
{
    fattn_context *context = open_h100();
    pthread_barrier_init(&together, NULL, THREADS);
    run_threads(fail_together, context);
    const fattn_cache_counters c = count();
    cr_expect_eq(c.misses + c.waits, THREADS);
    cr_expect_eq(c.failures, c.misses);
    cr_expect_eq(c.entries, 0);
    fattn_context_destroy(context);
}
