/* What a decision says of each backend, which rules it names, what it costs, and how long its words
 * live. */
#include <pthread.h>
#include <time.h>

#include "core/engine.h"
#include "fattn/policy.h"
#include "support/described_h100.h"

static fattn_decision *ask(fattn_context *context, const fattn_problem *problem)
{
    fattn_decision *decision;
    const fattn_status st = fattn_decide(&decision, context, problem, FATTN_ASK_A);
    cr_assert(st == FATTN_OK || st == FATTN_BAD_PROBLEM, "%s", fattn_last_error());
    cr_assert_not_null(decision);
    return decision;
}

static void push_order(fattn_backend first, fattn_backend second)
{
    const fattn_policy policy = { .struct_size = sizeof policy,
                                  .order = { (int32_t)first, (int32_t)second },
                                  .order_count = 2 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
}

static void push_rule(const fattn_rule *rule)
{
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK, "%s", fattn_last_error());
}

static fattn_context *open_cpu(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    return open_options(&options);
}

/* ---- answers
 * -------------------------------------------------------------------------------------------------------------------
 */

Test(answers, are_of_cudnn_alone_unless_a_policy_names_others)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_decision *decision = ask(context, &problem);
    cr_assert_eq(fattn_decision_answer_count(decision), 1);
    const fattn_answer *answer = fattn_decision_answer(decision, 0);
    cr_expect_eq(answer->backend, FATTN_BACKEND_CUDNN);
    cr_expect_eq(answer->reason, FATTN_REASON_NONE);
    cr_expect_str_eq(answer->rule, "");
    cr_expect_null(fattn_decision_answer(decision, 1));
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(answers, follow_the_policys_order_and_the_first_yes_decides)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    push_order(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    fattn_decision *decision = ask(context, &problem);
    cr_assert_eq(fattn_decision_answer_count(decision), 2);
    cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN);
    cr_expect_gt(fattn_decision_engine_count(decision, FATTN_MODE_A), 0);
    fattn_decision_destroy(decision);
    problem.dim_qk = 100;
    decision = ask(context, &problem);
    cr_assert_eq(fattn_decision_answer_count(decision), 2);
    const fattn_answer *cudnn = fattn_decision_answer(decision, 0),
                       *math = fattn_decision_answer(decision, 1);
    cr_expect_eq(cudnn->backend, FATTN_BACKEND_CUDNN);
    cr_expect_eq(cudnn->reason, FATTN_REASON_UNSUPPORTED);
    cr_expect_not_null(strstr(cudnn->text, "multiple of 8"), "%s", cudnn->text);
    cr_expect_not_null(strstr(cudnn->remedy, "multiple of 8"), "%s", cudnn->remedy);
    cr_expect_eq(math->backend, FATTN_BACKEND_MATH);
    if (math->reason == FATTN_REASON_NONE)
        cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_MATH);
    else
        cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN, "nobody: the first no");
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
    fattn_context_destroy(context);
}

static bool has_head_dim_128(const char *when, const fattn_problem *p)
{
    (void)when;
    return p->dim_qk == 128;
}

static void say_queries(char *out, size_t capacity, const char *why, const fattn_problem *p)
{
    snprintf(out, capacity, "%s %d", why, (int)p->seq_q);
}

Test(answers, name_the_rule_that_denied_a_backend_and_outlive_it)
{
    fattn_context *context = open_cpu();
    fattn_problem problem = control_problem();
    char name[] = "no cpu here", why[] = "seq_q is";
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = name, rule.why = why, rule.backend = FATTN_BACKEND_CPU;
    rule.holds = has_head_dim_128, rule.say = say_queries;
    push_rule(&rule);
    fattn_decision *decision = ask(context, &problem);
    fattn_policy_pop(1);
    memset(name, 'x', sizeof name - 1);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY);
    cr_expect_str_eq(fattn_decision_text(decision), "rule no cpu here: seq_q is 512");
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "no cpu here");
    cr_expect_str_neq(fattn_decision_remedy(decision), "");
    fattn_decision *later = ask(context, &problem);
    cr_expect(fattn_decision_supported(later), "%s", fattn_decision_text(later));
    fattn_decision_destroy(decision);
    fattn_decision_destroy(later);
    fattn_context_destroy(context);
}

/* ---- engines
 * -------------------------------------------------------------------------------------------------------------------
 */

Test(engines, a_denied_one_is_listed_and_not_used)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "not the first", rule.engine = 2;
    push_rule(&rule);
    fattn_decision *decision = ask(context, &problem);
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    cr_assert_eq(fattn_decision_engine_count(decision, FATTN_MODE_A), 2);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 0)->removed, 1);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 1)->removed, 0);
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "not the first");
    fattn_decision_destroy(decision);
    fattn_plan *plan;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = 2;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, &options), FATTN_POLICY);
    cr_expect_not_null(strstr(fattn_last_error(), "not the first"), "%s", fattn_last_error());
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(fattn_plan_engine(plan)->index, 1);
    fattn_plan_destroy(plan);
    rule.engine = 1;
    push_rule(&rule);
    decision = ask(context, &problem);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY, "none is left");
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "not the first");
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_POLICY);
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
    fattn_context_destroy(context);
}

Test(engines, a_pinned_one_is_the_only_one_used)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "pinned", rule.action = FATTN_PIN, rule.engine = 1;
    push_rule(&rule);
    push_order(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN);
    fattn_decision *decision = ask(context, &problem);
    cr_expect_eq(fattn_decision_answer(decision, 0)->reason, FATTN_REASON_POLICY,
                 "a pin of an engine denies the other backends");
    cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 0)->removed, 1);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 1)->removed, 0);
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
    fattn_context_destroy(context);
}

/* ---- guards
 * --------------------------------------------------------------------------------------------------------------------
 */

/* With the builds that crash (9.26.0 to 9.28.0) this ends the process unless the guard answers
 * first. */
Test(guard, answers_before_a_planner_that_would_crash)
{
    fattn_context *context = open_h100();
    const int32_t version = context->info.cudnn_version;
    fattn_problem problem = control_problem();
    problem.pass = FATTN_BACKWARD;
    problem.batch = problem.heads_q = problem.seq_q = 1, problem.seq_kv = 128, problem.dim_qk = 64;
    const uint64_t before = fattn__asked(FATTN_BACKWARD);
    fattn_decision *decision = ask(context, &problem);
    const bool guarded = version >= 92600 && version <= 92800;
    cr_expect_eq(fattn_decision_reason(decision) == FATTN_REASON_POLICY, guarded, "%s",
                 fattn_decision_text(decision));
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - before, guarded ? 0 : 1);
    if (guarded) {
        fattn_plan *plan;
        cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "bwd-plan-segfault-b1-hq1-sq1");
        cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_POLICY);
    }
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(guard, of_graph_capture_takes_training_in_16_bits_from_old_versions)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.seq_kv = 500, problem.training = 1, problem.capture = 1;
    fattn_decision *decision = ask(context, &problem);
    const bool guarded = context->info.cudnn_version <= 91500;
    cr_expect_eq(fattn_decision_reason(decision) == FATTN_REASON_POLICY, guarded, "%s",
                 fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    problem.guards_off = 1;
    decision = ask(context, &problem);
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

/* ---- refusals
 * ------------------------------------------------------------------------------------------------------------------
 */

static void expect_whole(fattn_context *context, const fattn_problem *problem, fattn_reason reason)
{
    fattn_decision *decision = ask(context, problem);
    cr_expect_eq(fattn_decision_reason(decision), reason, "%d: %s",
                 (int)fattn_decision_reason(decision), fattn_decision_text(decision));
    cr_expect_str_neq(fattn_decision_text(decision), "");
    cr_expect_str_neq(fattn_decision_remedy(decision), "", "%s", fattn_decision_text(decision));
    const fattn_answer *answer = fattn_decision_answer(decision, 0);
    cr_assert_not_null(answer);
    cr_expect_eq(answer->reason, (int32_t)reason);
    cr_expect_str_eq(answer->text, fattn_decision_text(decision));
    cr_expect_str_eq(answer->remedy, fattn_decision_remedy(decision));
    cr_expect_eq(answer->rule[0] != '\0', reason == FATTN_REASON_POLICY);
    fattn_decision_destroy(decision);
}

Test(refusal, has_class_reason_and_remedy)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.heads_q = 0;
    expect_whole(context, &problem, FATTN_REASON_BAD_PROBLEM);
    problem = control_problem(), problem.pass = FATTN_BACKWARD, problem.dtype = FATTN_MXE4M3,
    problem.padding = 1, problem.ragged_bits = 32;
    expect_whole(context, &problem, FATTN_REASON_INTERNAL);
    problem = control_problem(), problem.dim_qk = 100;
    expect_whole(context, &problem, FATTN_REASON_UNSUPPORTED);
    problem = control_problem(), problem.dim_qk = 512, problem.pass = FATTN_BACKWARD;
    expect_whole(context, &problem, FATTN_REASON_UNSUPPORTED);
    problem = control_problem();
    memcpy(problem.q_strides, (int64_t[4]){ 512 * 8 * 132 + 4, 132, 8 * 132, 1 },
           sizeof problem.q_strides);
    expect_whole(context, &problem, FATTN_REASON_POLICY);
    fattn_context_destroy(context);
}

Test(refusal, of_the_environment_has_a_remedy_too)
{
    fattn_context_options options = h100_options();
    options.nvrtc = NULL;
    fattn_context *context = open_options(&options);
    if (context->api->version >=
        FATTN__NVRTC_INSIDE) { /* from 9.21 on cuDNN brings its own; 9.20 shows it */
        fattn_context_destroy(context);
        return;
    }
    fattn_problem problem = control_problem();
    expect_whole(context, &problem, FATTN_REASON_ENVIRONMENT);
    fattn_context_destroy(context);
}

/* ---- what it costs
 * --------------------------------------------------------------------------------------------------------------
 */

/* Of the whole process: another load on the machine does not count. */
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double decide_ms(fattn_context *context, int64_t seq_q)
{
    fattn_problem problem = control_problem();
    problem.seq_q = seq_q;
    const double start = cpu_ms();
    fattn_decision *decision = ask(context, &problem);
    const double ms = cpu_ms() - start;
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    return ms;
}

/* A plan is a decision and a compilation. */
Test(cost, deciding_compiles_nothing)
{
    if (!compiling()) /* instrumented code has other costs */
        return;
    fattn_context *context = open_h100();
    decide_ms(context, 256); /* maps the engines */
    double least = 1e9;
    for (int64_t seq_q = 300; seq_q < 308; seq_q++) {
        const double ms = decide_ms(context, seq_q);
        least = ms < least ? ms : least;
    }
    fattn_problem problem = control_problem();
    fattn_plan *plan;
    const double start = cpu_ms();
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    const double plan_ms = cpu_ms() - start;
    cr_expect_lt(least * 4, plan_ms, "a decision took %.1f ms of the processor, a plan %.1f", least,
                 plan_ms);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

Test(cost, one_question_of_one_pass)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    const uint64_t forward = fattn__asked(FATTN_FORWARD), backward = fattn__asked(FATTN_BACKWARD);
    problem.training = 1;
    fattn_decision_destroy(ask(context, &problem));
    cr_expect_eq(fattn__asked(FATTN_FORWARD) - forward, 1);
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - backward, 0,
                 "the forward path never asks the backward");
    fattn_context_destroy(context);
}

/* ---- words
 * ---------------------------------------------------------------------------------------------------------------------
 */

Test(words, of_the_last_error_live_until_this_threads_next_failure)
{
    fattn_problem problem = control_problem(), out;
    problem.batch = -3;
    cr_assert_eq(fattn_problem_resolve(&problem, &out), FATTN_BAD_PROBLEM);
    const char *sentence = fattn_last_error();
    char kept[256];
    snprintf(kept, sizeof kept, "%s", sentence);
    fattn_problem good = control_problem();
    cr_assert_eq(fattn_problem_resolve(&good, &out), FATTN_OK);
    fattn_context *context = open_cpu();
    fattn_decision_destroy(ask(context, &good));
    cr_expect_eq(fattn_policy_depth(), 0);
    cr_expect_str_eq(sentence, kept, "what succeeds does not touch it");
    cr_expect_eq(fattn_last_error(), sentence);
    problem.batch = -4;
    cr_assert_eq(fattn_problem_resolve(&problem, &out), FATTN_BAD_PROBLEM);
    cr_expect_str_neq(fattn_last_error(), kept);
    fattn_context_destroy(context);
}

static fattn_status fail_inside(void *argument)
{
    fattn_problem problem = control_problem(), out;
    problem.seq_q = *(int *)argument;
    return fattn_problem_resolve(&problem, &out);
}

Test(words, of_a_nested_failure_reach_the_caller)
{
    const fattn_policy policy = FATTN_POLICY_INIT;
    int seq_q = -17;
    cr_assert_eq(fattn_policy_with(&policy, fail_inside, &seq_q), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(fattn_last_error(), "seq_q: -17 is not allowed; want 1 or more");
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "outer", rule.engine = -2;
    const fattn_policy bad = { .struct_size = sizeof bad, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_with(&bad, fail_inside, &seq_q), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(fattn_last_error(),
                     "rule 0 (outer): engine: want FATTN_ANY or an engine's number");
}

typedef struct talker {
    pthread_barrier_t *barrier;
    int seq_q;
    int wrong;
} talker;

static void *talk(void *argument)
{
    talker *t = argument;
    char want[96];
    snprintf(want, sizeof want, "seq_q: %d is not allowed; want 1 or more", t->seq_q);
    for (int i = 0; i < 200; i++) {
        t->wrong += fail_inside(&t->seq_q) != FATTN_BAD_PROBLEM;
        const char *sentence = fattn_last_error();
        pthread_barrier_wait(t->barrier); /* the other has failed as well */
        t->wrong += strcmp(sentence, want) != 0 || strcmp(fattn_last_error(), want) != 0;
        pthread_barrier_wait(t->barrier);
    }
    return NULL;
}

Test(words, of_two_threads_do_not_meet)
{
    pthread_barrier_t barrier;
    pthread_t threads[2];
    talker talkers[2] = { { &barrier, -1, 0 }, { &barrier, -22, 0 } };
    pthread_barrier_init(&barrier, NULL, 2);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    cr_expect_eq(talkers[0].wrong + talkers[1].wrong, 0);
    pthread_barrier_destroy(&barrier);
}

Test(words, of_a_decision_live_with_it)
{
    fattn_context *context = open_cpu();
    fattn_problem problem = control_problem();
    problem.seq_q = -17;
    fattn_decision *one = ask(context, &problem);
    problem.seq_q = -18;
    fattn_decision *other = ask(context, &problem);
    cr_expect_str_eq(fattn_decision_text(one), "seq_q: -17 is not allowed; want 1 or more");
    cr_expect_str_eq(fattn_decision_text(other), "seq_q: -18 is not allowed; want 1 or more");
    fattn_decision_destroy(one);
    fattn_decision_destroy(other);
    fattn_context_destroy(context);
}
