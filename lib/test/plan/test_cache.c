#include "cached.h"

#include "core/context.h"
#include "core/plan.h"
#include "fattn/cache.h"
#include "fattn/policy.h"
#include "fattn/score_mod.h"

static fattn_context *context;

static void open_context(void)
{
    context = open_cpu();
}

static void close_context(void)
{
    fattn_context_destroy(context);
}

TestSuite(cache, .init = open_context, .fini = close_context);

/* ---- the key
 * ----------------------------------------------------------------------------------------------------------------------
 */

Test(cache, equal_problems_in_other_words_share_a_plan)
{
    fattn_problem p = small_problem(), resolved, old = small_problem();
    cr_assert_eq(fattn_problem_resolve(&p, &resolved), FATTN_OK);
    old.struct_size = offsetof(fattn_problem, bias_dim);
    fattn_plan *plans[3] = { get(context, &p), get(context, &resolved), get(context, &old) };
    cr_expect_eq(plans[0], plans[1]);
    cr_expect_eq(plans[0], plans[2]);
    cr_expect_eq(count().misses, 1);
    cr_expect_eq(count().entries, 1);
    for (int i = 0; i < 3; i++)
        fattn_plan_destroy(plans[i]);
}

Test(cache, bad_problems_and_options_are_refused_as_by_create_and_not_counted)
{
    fattn_problem p = small_problem();
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan = (fattn_plan *)&p;
    options.engine = -2;
    cr_expect_eq(fattn_plan_get(&plan, context, &p, &options), FATTN_BAD_PROBLEM);
    cr_expect_null(plan);
    p.batch = 0;
    cr_expect_eq(fattn_plan_get(&plan, context, &p, NULL), FATTN_BAD_PROBLEM);
    cr_expect_not_null(strstr(fattn_last_error(), "batch"), "%s", fattn_last_error());
    p.struct_size = offsetof(fattn_problem, score_mod) + 4; /* half of an address */
    memset((void *)&p.score_mod, 0x5a, sizeof p.score_mod);
    cr_expect_eq(fattn_plan_get(&plan, context, &p, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_plan_get(&plan, context, NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(count().misses, 0);
}

Test(cache, engines_contexts_and_policies_have_plans_of_their_own)
{
    fattn_context *other = open_cpu();
    fattn_problem p = small_problem();
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plans[4];
    options.engine = 0;
    plans[0] = get(context, &p);
    plans[1] = get(other, &p);
    cr_assert_eq(fattn_plan_get(&plans[2], context, &p, &options), FATTN_OK);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "never cudnn";
    rule.why = "a test";
    fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    int depth;
    cr_assert_eq(fattn_policy_push(&policy, &depth), FATTN_OK, "%s", fattn_last_error());
    plans[3] = get(context, &p);
    fattn_policy_pop(depth);
    cr_expect_eq(count().misses, 4);
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < i; j++)
            cr_expect_neq(plans[i], plans[j], "%d and %d", i, j);
        fattn_plan_destroy(plans[i]);
    }
    fattn_context_destroy(other);
}

Test(cache, what_a_policy_denies_is_refused_although_the_plan_is_there)
{
    fattn_problem p = small_problem();
    touch(context, &p);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "no cpu";
    rule.why = "a test";
    rule.backend = FATTN_BACKEND_CPU;
    fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    int depth;
    fattn_plan *plan;
    cr_assert_eq(fattn_policy_push(&policy, &depth), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(fattn_plan_get(&plan, context, &p, NULL), FATTN_POLICY);
    cr_expect_not_null(strstr(fattn_last_error(), "no cpu"), "%s", fattn_last_error());
    cr_expect_eq(count().failures, 1);
    fattn_policy_pop(depth);
    touch(context, &p);
    cr_expect_eq(count().hits, 1);
}

/* ---- identity of what addresses do not identify
 * ------------------------------------------------------------------------------------ */

Test(cache, a_context_at_a_freed_contexts_address_is_another_context)
{
    fattn_problem p = small_problem();
    uintptr_t address = 0;
    bool reused = false;
    for (int i = 0; i < 64; i++) {
        fattn_context *fresh = open_cpu();
        reused = reused || (uintptr_t)fresh == address;
        address = (uintptr_t)fresh;
        fattn_plan *plan = get(fresh, &p);
        cr_expect_eq(plan->context, fresh);
        fattn_plan_destroy(plan);
        cr_expect_eq(count().entries, 1);
        fattn_context_destroy(fresh);
        cr_expect_eq(count().entries, 0, "a context's plans go with it");
    }
    cr_expect_eq(count().hits, 0);
    cr_expect_eq(count().misses, 64);
#ifndef __SANITIZE_ADDRESS__ /* which keeps freed memory away */
    cr_expect(reused, "no address was used twice: the test shows nothing");
#endif
}

static fattn_value times(fattn_recorder *recorder, fattn_value score, void *user)
{
    return fattn_record(recorder, FATTN_MOD_MUL, score,
                        fattn_record_constant(recorder, *(double *)user), 0);
}

static fattn_score_mod *times_of(double factor)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, times, NULL, &factor), FATTN_OK, "%s",
                 fattn_last_error());
    return mod;
}

Test(cache, a_recording_that_is_freed_is_never_taken_for_the_next_one)
{
    for (int i = 0; i < 64; i++) {
        fattn_problem p = small_problem();
        fattn_score_mod *mod = times_of(i + 2);
        p.score_mod = mod;
        fattn_plan *plan = get(context, &p);
        fattn_score_mod_destroy(mod); /* the plan has its own reference, and so has the cache */
        cr_expect(fattn_score_mod_same(plan->problem.score_mod, plan->problem.score_mod));
        fattn_plan_destroy(plan);
    }
    cr_expect_eq(count().misses, 64);
    cr_expect_eq(count().hits, 0);
}

/* ---- bounds
 * --------------------------------------------------------------------------------------------------------------------------
 */

Test(cache, the_least_recently_used_goes_first)
{
    fattn_problem p[4];
    limit(3, (size_t)1 << 30);
    for (int i = 0; i < 4; i++) {
        p[i] = small_problem();
        p[i].batch = i + 1;
    }
    for (int i = 0; i < 3; i++)
        touch(context, &p[i]);
    touch(context, &p[0]); /* so that 1 is the oldest */
    touch(context, &p[3]);
    cr_expect_eq(count().evictions, 1);
    cr_expect_eq(count().entries, 3);
    const fattn_cache_counters before = count();
    touch(context, &p[0]);
    touch(context, &p[2]);
    touch(context, &p[3]);
    cr_expect_eq(count().hits - before.hits, 3);
    touch(context, &p[1]);
    cr_expect_eq(count().misses - before.misses, 1);
}

Test(cache, a_lower_limit_drops_what_is_too_much_now)
{
    fattn_problem p = small_problem();
    for (int i = 1; i <= 10; i++) {
        p.batch = i;
        touch(context, &p);
    }
    const fattn_cache_counters ten = count();
    cr_expect_eq(ten.entries, 10);
    cr_expect_eq(ten.bytes % 10, 0);
    limit(1024, ten.bytes / 10 * 4);
    cr_expect_eq(count().entries, 4);
    cr_expect_eq(count().bytes, ten.bytes / 10 * 4);
    cr_expect_eq(count().evictions, 6);
    limit(1, (size_t)1 << 30);
    cr_expect_eq(count().entries, 1);
    touch(context, &p);
    cr_expect_eq(count().hits, 1, "the newest stayed");
}

Test(cache, with_limit_0_nothing_is_kept_and_plans_still_work)
{
    fattn_problem p = small_problem();
    const size_t limits[2][2] = { { 0, (size_t)1 << 30 }, { 1024, 0 } };
    for (int i = 0; i < 2; i++) {
        limit(limits[i][0], limits[i][1]);
        fattn_plan *one = get(context, &p), *other = get(context, &p);
        cr_expect_neq(one, other);
        cr_expect_eq(one->references, 1);
        cr_expect_eq(count().entries, 0);
        cr_expect_eq(count().bytes, 0);
        fattn_plan_destroy(one);
        fattn_plan_destroy(other);
    }
    cr_expect_eq(count().misses, 4);
    cr_expect_eq(count().evictions, 0);
}

Test(cache, a_plan_lives_while_it_is_held_though_the_cache_has_dropped_it)
{
    fattn_problem p = small_problem();
    fattn_plan *plan = get(context, &p);
    cr_expect_eq(plan->references, 2);
    fattn_cache_drop(NULL);
    cr_expect_eq(plan->references, 1);
    cr_expect_eq(count().entries, 0);
    cr_expect_eq(count().evictions, 0);
    cr_expect(fattn_plan_covers(plan, &p));
    fattn_plan *newer = get(context, &p);
    cr_expect_neq(plan, newer);
    fattn_plan_destroy(plan);
    fattn_plan_destroy(newer);
}

Test(cache, dropping_one_contexts_plans_leaves_the_others)
{
    fattn_context *other = open_cpu();
    fattn_problem p = small_problem();
    for (int i = 1; i <= 100; i++) {
        p.batch = i;
        touch(context, &p);
        touch(other, &p);
    }
    fattn_cache_drop(context);
    cr_expect_eq(count().entries, 100);
    const uint64_t hits = count().hits;
    for (int i = 1; i <= 100; i++) {
        p.batch = i;
        touch(other, &p);
    }
    cr_expect_eq(count().hits - hits, 100);
    fattn_context_destroy(other);
    cr_expect_eq(count().entries, 0);
    cr_expect_eq(count().bytes, 0);
}
