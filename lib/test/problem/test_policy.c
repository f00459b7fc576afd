/* The stack of policies: what holds, for whom, and until when. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "fattn/policy.h"
#include "policy/policy_stack.h"

/* A context that is asked about, never used. */
static fattn_context gpu(void)
{
    return (fattn_context){ .kind = FATTN_DEVICE_DESCRIBED,
                            .info = { .cudnn_version = 92000, .sm = 90 } };
}

static fattn_problem resolved(void)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.batch = 2, p.heads_q = 8, p.seq_q = p.seq_kv = 512, p.dim_qk = 128;
    cr_assert_eq(fattn_problem_resolve(&p, &p), FATTN_OK);
    return p;
}

static fattn_policy ordered(fattn_backend first, fattn_backend second)
{
    return (fattn_policy){ .struct_size = sizeof(fattn_policy),
                           .order = { (int32_t)first, (int32_t)second },
                           .order_count = 2 };
}

static int push(const fattn_policy *policy)
{
    int depth = -1;
    cr_assert_eq(fattn_policy_push(policy, &depth), FATTN_OK, "%s", fattn_last_error());
    return depth;
}

static bool order_is(const fattn_context *context, int count, int32_t first, int32_t second)
{
    int32_t order[FATTN_BACKEND_COUNT] = { -1, -1, -1 };
    return fattn__policy_order(context, order) == count && order[0] == first &&
           (count < 2 || order[1] == second);
}

typedef struct hash {
    uint64_t at[2];
} hash;

static hash now(void)
{
    hash h;
    fattn__policy_hash(h.at);
    return h;
}

static bool same(hash a, hash b)
{
    return a.at[0] == b.at[0] && a.at[1] == b.at[1];
}

/* ---- order
 * --------------------------------------------------------------------------------------------------------------------
 */

Test(order, is_cudnn_alone_on_a_gpu_and_the_cpu_alone_on_a_cpu)
{
    const fattn_context g = gpu(), c = { .kind = FATTN_DEVICE_CPU };
    cr_expect(order_is(&g, 1, FATTN_BACKEND_CUDNN, 0));
    cr_expect(order_is(&c, 1, FATTN_BACKEND_CPU, 0));
    const fattn_policy policy = ordered(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN);
    const int depth = push(&policy);
    cr_expect(order_is(&g, 2, FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN));
    cr_expect(order_is(&c, 1, FATTN_BACKEND_CPU, 0),
              "nothing of the policy's is there: the default");
    const fattn_policy inner = ordered(FATTN_BACKEND_CPU, FATTN_BACKEND_CUDNN);
    push(&inner);
    cr_expect(order_is(&g, 1, FATTN_BACKEND_CUDNN, 0),
              "the order above replaces the one below, and a GPU has no cpu backend");
    const fattn_policy silent = FATTN_POLICY_INIT;
    push(&silent);
    cr_expect(order_is(&g, 1, FATTN_BACKEND_CUDNN, 0), "no order: what was below holds");
    fattn_policy_pop(depth);
    cr_expect(order_is(&g, 1, FATTN_BACKEND_CUDNN, 0));
    cr_expect_eq(fattn_policy_depth(), 0);
}

Test(order, that_is_none_is_refused_and_nothing_is_pushed)
{
    fattn_policy policy = ordered(FATTN_BACKEND_MATH, FATTN_BACKEND_MATH);
    cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(fattn_last_error(), "order[1]: backend 1 is named twice");
    policy = ordered((fattn_backend)3, FATTN_BACKEND_MATH);
    cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);
    policy = ordered(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    policy.order_count = 4;
    cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);
    policy.order_count = -1;
    cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);
    policy = (fattn_policy){ .struct_size = sizeof policy, .rule_count = 1 };
    cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_policy_push(NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_policy_depth(), 0);
}

/* ---- rules
 * --------------------------------------------------------------------------------------------------------------------
 */

/* A condition that reads its own text. */
static bool has_the_head_dim_of(const char *when, const fattn_problem *p)
{
    return p->dim_qk == atoi(when);
}

static bool is_one_query(const char *when, const fattn_problem *p)
{
    (void)when;
    return p->seq_q == 1;
}

static bool is_forward(const char *when, const fattn_problem *p)
{
    (void)when;
    return p->pass == FATTN_FORWARD;
}

Test(rules, are_added_to_those_below_and_copied)
{
    const fattn_context g = gpu();
    const fattn_problem p = resolved();
    char name[] = "mine", when[] = "128";
    fattn_knob knob = { .type = 40, .value = 2 };
    fattn_rule rules[2] = { FATTN_RULE_INIT, FATTN_RULE_INIT };
    rules[0].name = name, rules[0].when = when, rules[0].holds = has_the_head_dim_of,
    rules[0].engine = 7, rules[0].knobs = &knob, rules[0].knob_count = 1;
    rules[1].name = "no math", rules[1].backend = FATTN_BACKEND_MATH;
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = rules, .rule_count = 2 },
                       empty = FATTN_POLICY_INIT;
    const int depth = push(&policy);
    push(&empty);
    memset(name, 'x', 4);
    memset(when, 'x', 3);
    knob.value = 9;
    memset(rules, 0xff, sizeof rules);
    fattn_engine engine = { .index = 7, .knob_count = 2, .knobs = { { 3, 0, 1 }, { 40, 0, 2 } } };
    const fattn_rule *rule = fattn__policy_removes(&g, &p, FATTN_BACKEND_CUDNN, &engine);
    cr_assert_not_null(rule);
    cr_expect_str_eq(rule->name, "mine");
    engine.knobs[1].value = 3;
    cr_expect_null(fattn__policy_removes(&g, &p, FATTN_BACKEND_CUDNN, &engine), "another knob");
    engine.knobs[1].value = 2, engine.index = 6;
    cr_expect_null(fattn__policy_removes(&g, &p, FATTN_BACKEND_CUDNN, &engine), "another engine");
    cr_expect_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_CUDNN), "only an engine is denied");
    cr_expect_not_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_MATH));
    fattn_policy_pop(depth);
    engine.index = 7;
    cr_expect_null(fattn__policy_removes(&g, &p, FATTN_BACKEND_CUDNN, &engine));
    cr_expect_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_MATH));
}

/* Of an engine: test_decide.c. */
Test(rules, a_pin_of_a_backend_denies_the_others)
{
    const fattn_context g = gpu();
    const fattn_problem p = resolved();
    fattn_rule rule = FATTN_RULE_INIT;
    rule.action = FATTN_PIN, rule.backend = FATTN_BACKEND_MATH;
    push(&(fattn_policy){ .struct_size = sizeof(fattn_policy), .rules = &rule, .rule_count = 1 });
    cr_expect_not_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_CUDNN));
    cr_expect_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_MATH));
    fattn_policy_pop(1);
}

Test(rules, that_cannot_be_read_are_refused_with_name_and_place)
{
    fattn_rule rules[2] = { FATTN_RULE_INIT, FATTN_RULE_INIT };
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = rules, .rule_count = 2 };
#define BAD(change, message)                                                                       \
    do {                                                                                           \
        rules[1] = (fattn_rule)FATTN_RULE_INIT;                                                    \
        rules[1].name = "second";                                                                  \
        change;                                                                                    \
        cr_expect_eq(fattn_policy_push(&policy, NULL), FATTN_BAD_PROBLEM);                         \
        cr_expect(strstr(fattn_last_error(), message) != NULL, "%s", fattn_last_error());          \
        cr_expect_eq(fattn_policy_depth(), 0);                                                     \
    } while (0)
    BAD(rules[1].when = "s.q=1",
        "rule 1 (second): when: a rule with a condition in words needs the function `holds`");
    BAD(rules[1].action = 2, "rule 1 (second): action");
    BAD(rules[1].backend = 3, "backend");
    BAD(rules[1].pass = 2, "pass");
    BAD(rules[1].engine = -2, "engine");
    BAD(rules[1].knob_count = 1, "knobs");
    BAD(rules[1].knob_count = FATTN_MAX_KNOBS + 1, "knobs");
    BAD((rules[1].cudnn_from = 92000, rules[1].cudnn_to = 91000), "not a range");
    BAD((rules[1].sm_from = 100, rules[1].sm_to = 90), "not a range");
    BAD(rules[1].reserved = 1, "reserved");
    BAD((rules[1].unasked = 1, rules[1].engine = 2), "unasked");
    BAD(rules[1].struct_size = 8, "struct_size");
}

Test(rules, an_unasked_one_comes_first_and_guards_can_be_off)
{
    fattn_context g = gpu();
    g.info.cudnn_version = 92700;
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = FATTN_BACKWARD, p.batch = p.heads_q = p.seq_q = 1, p.seq_kv = 128, p.dim_qk = 64;
    cr_assert_eq(fattn_problem_resolve(&p, &p), FATTN_OK);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "mine";
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    push(&policy);
    const fattn_rule *first = fattn__policy_denies(&g, &p, FATTN_BACKEND_CUDNN);
    cr_assert_not_null(first);
    cr_expect(first->unasked, "%s", first->name);
    p.guards_off = 1;
    first = fattn__policy_denies(&g, &p, FATTN_BACKEND_CUDNN);
    cr_assert_not_null(first);
    cr_expect_str_eq(first->name, "mine", "a caller's rule is no guard");
    fattn_policy_pop(1);
    cr_expect_null(fattn__policy_denies(&g, &p, FATTN_BACKEND_CUDNN));
}

/* ---- push and pop
 * --------------------------------------------------------------------------------------------------------------
 */

Test(pop, of_a_depth_that_is_not_held_does_nothing)
{
    const fattn_policy policy = ordered(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN);
    fattn_policy_pop(1);
    fattn_policy_pop(0);
    fattn_policy_pop(-5);
    const int one = push(&policy), two = push(&policy), three = push(&policy);
    cr_expect_eq(one, 1);
    cr_expect_eq(three, 3);
    fattn_policy_pop(4);
    fattn_policy_pop(0);
    fattn_policy_pop(-1);
    cr_expect_eq(fattn_policy_depth(), 3);
    fattn_policy_pop(two);
    cr_expect_eq(fattn_policy_depth(), 1, "what was pushed since and forgotten went too");
    fattn_policy_pop(three);
    fattn_policy_pop(two);
    cr_expect_eq(fattn_policy_depth(), 1);
    fattn_policy_pop(one);
    cr_expect_eq(fattn_policy_depth(), 0);
}

/* ---- hash
 * ----------------------------------------------------------------------------------------------------------------------
 */

static hash hash_with(const fattn_policy *policy)
{
    push(policy);
    const hash h = now();
    fattn_policy_pop(1);
    return h;
}

Test(hash, is_of_what_holds_and_not_of_how_it_came_to_hold)
{
    const hash nothing = now();
    const fattn_policy empty = FATTN_POLICY_INIT,
                       order = ordered(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN),
                       other_way = ordered(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    fattn_policy first_alone = order, last_alone = other_way;
    first_alone.order_count = last_alone.order_count = 1;
    const hash of_order = hash_with(&order);
    cr_expect(same(hash_with(&empty), nothing));
    cr_expect_not(same(of_order, nothing));
    cr_expect_not(same(hash_with(&other_way), of_order));
    cr_expect_not(same(hash_with(&first_alone), of_order));
    cr_expect_not(same(hash_with(&last_alone), of_order));
    fattn_rule rules[2] = { FATTN_RULE_INIT, FATTN_RULE_INIT };
    rules[0].name = "a", rules[0].engine = 7;
    rules[1].name = "b", rules[1].when = "s.q=1", rules[1].holds = is_one_query;
    const fattn_policy both = { .struct_size = sizeof both, .rules = rules, .rule_count = 2 },
                       one = { .struct_size = sizeof one, .rules = rules, .rule_count = 1 },
                       other = { .struct_size = sizeof other, .rules = rules + 1, .rule_count = 1 };
    const hash together = hash_with(&both), alone = hash_with(&one), asks = hash_with(&other);
    cr_expect_not(same(alone, together));
    push(&one);
    cr_expect(same(hash_with(&other), together), "two pushes of one rule are one push of two");
    fattn_policy_pop(1);
    rules[0].name = "another name", rules[0].why = "and a reason";
    cr_expect(same(hash_with(&one), alone), "names do nothing");
    rules[1].holds = is_forward;
    cr_expect_not(same(hash_with(&other), asks), "the same words, another function");
#define DIFFERS(change)                                                                            \
    {                                                                                              \
        const fattn_rule kept = rules[0];                                                          \
        change;                                                                                    \
        cr_expect_not(same(hash_with(&one), alone), #change);                                      \
        rules[0] = kept;                                                                           \
    }
    const fattn_knob knob = { .type = 40, .value = 2 };
    DIFFERS(rules[0].engine = 6)
    DIFFERS(rules[0].action = FATTN_PIN)
    DIFFERS(rules[0].backend = FATTN_BACKEND_MATH)
    DIFFERS(rules[0].pass = FATTN_FORWARD)
    DIFFERS(rules[0].holds = is_one_query)
    DIFFERS((rules[0].when = "s.q=1", rules[0].holds = is_one_query))
    DIFFERS(rules[0].cudnn_from = 91000)
    DIFFERS(rules[0].cudnn_to = 91000)
    DIFFERS(rules[0].sm_from = 90)
    DIFFERS(rules[0].sm_to = 90)
    DIFFERS((rules[0].knobs = &knob, rules[0].knob_count = 1))
}

/* ---- threads
 * -------------------------------------------------------------------------------------------------------------------
 */

typedef struct meeting {
    pthread_barrier_t barrier;
    int wrong;
} meeting;

static void *other_thread(void *argument)
{
    meeting *m = argument;
    const fattn_context g = gpu();
    pthread_barrier_wait(&m->barrier); /* the first thread has pushed */
    m->wrong += fattn_policy_depth() != 0 || !order_is(&g, 1, FATTN_BACKEND_CUDNN, 0);
    const fattn_policy policy = ordered(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    push(&policy);
    push(&policy);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "left behind";
    const fattn_policy with_rule = { .struct_size = sizeof with_rule,
                                     .rules = &rule,
                                     .rule_count = 1 };
    push(&with_rule); /* never popped: the thread's end takes it */
    pthread_barrier_wait(&m->barrier);
    pthread_barrier_wait(&m->barrier);
    m->wrong += fattn_policy_depth() != 3;
    return NULL;
}

Test(threads, never_see_each_others_policies)
{
    meeting m = { .wrong = 0 };
    const fattn_context g = gpu();
    const fattn_policy policy = ordered(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN);
    pthread_t thread;
    pthread_barrier_init(&m.barrier, NULL, 2);
    cr_assert_eq(pthread_create(&thread, NULL, other_thread, &m), 0);
    const int depth = push(&policy);
    pthread_barrier_wait(&m.barrier);
    pthread_barrier_wait(&m.barrier); /* the other one has pushed */
    cr_expect_eq(fattn_policy_depth(), 1);
    cr_expect(order_is(&g, 2, FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN));
    fattn_policy_pop(depth);
    pthread_barrier_wait(&m.barrier);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    cr_expect_eq(m.wrong, 0);
    pthread_barrier_destroy(&m.barrier);
}
