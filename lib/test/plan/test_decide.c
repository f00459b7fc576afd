/* What a decision says of each backend and each engine, which rules it names, what it costs, how
 * long its words live, and how cuDNN's log becomes its reasons. */
#include <pthread.h>
#include <time.h>

#include "core/engine.h"
#include "cudnn/backend/log.h"
#include "cudnn/plan/question.h"
#include "fattn/policy.h"
#include "support/asked.h"

TestSuite(decide, .init = open_context, .fini = close_context);

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

/* ---- answers
 */

Test(decide, the_control_case_is_yes_by_the_hopper_engine_and_then_the_general_one)
{
    const fattn_problem problem = control_problem();
    fattn_decision *decision =
        ask_modes(&problem, FATTN_ASK_A | FATTN_ASK_B | FATTN_ASK_FALLBACK | FATTN_ASK_INSTANT);
    cr_assert(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_NONE);
    cr_expect_eq(fattn_decision_refusal_count(decision), 0);
    cr_assert_eq(fattn_decision_engine_count(decision, FATTN_MODE_A), 2);
    const fattn_engine *first = fattn_decision_engine(decision, FATTN_MODE_A, 0);
    const fattn_engine *second = fattn_decision_engine(decision, FATTN_MODE_A, 1);
    cr_expect_eq(first->index, 2);
    cr_expect_eq(second->index, 1);
    cr_expect_eq(second->config, 1);
    cr_expect_gt(first->knob_count, 0);
    cr_expect_gt(second->knob_count, 0);
    cr_expect_neq(first->numerical_notes & 1u, 0, "tensor cores");
    cr_expect_neq(first->behavior_notes & 1u, 0, "compiled at run time");
    cr_expect_geq(first->workspace_bytes, 0);
    cr_expect_null(fattn_decision_engine(decision, FATTN_MODE_A, 2));
    for (size_t i = 0; i < fattn_decision_engine_count(decision, FATTN_MODE_FALLBACK); i++)
        cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_FALLBACK, i)->mode,
                     FATTN_MODE_FALLBACK);
    cr_assert_eq(fattn_decision_answer_count(decision), 1, "no policy names another backend");
    const fattn_answer *of_cudnn = fattn_decision_answer(decision, 0);
    cr_expect_eq(of_cudnn->backend, FATTN_BACKEND_CUDNN);
    cr_expect_eq(of_cudnn->reason, FATTN_REASON_NONE);
    cr_expect_str_eq(of_cudnn->rule, "");
    cr_expect_null(fattn_decision_answer(decision, 1));
    fattn_decision_destroy(decision);
    decision = ask(&problem);
    cr_expect_eq(fattn_decision_engine_count(decision, FATTN_MODE_FALLBACK), 0, "not asked");
    fattn_decision_destroy(decision);
}

/* In other modes too: they do not decide. */
Test(decide, a_head_dim_of_100_is_no_with_cudnns_own_sentence)
{
    fattn_problem problem = control_problem();
    problem.dim_qk = 100;
    fattn_decision *decision = ask_modes(&problem, FATTN_ASK_A | FATTN_ASK_B | FATTN_ASK_FALLBACK);
    cr_expect_not(fattn_decision_supported(decision));
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_UNSUPPORTED);
    cr_expect_str_eq(fattn_decision_status(decision), "CUDNN_STATUS_NOT_SUPPORTED_SHAPE");
    cr_expect_str_eq(fattn_decision_text(decision),
                     "Embedding dim per head for q and k is not a multiple of 8");
    bool both[3] = { false };
    for (size_t i = 0; i < fattn_decision_refusal_count(decision); i++) {
        const fattn_refusal *refusal = fattn_decision_refusal(decision, i);
        if (refusal->engine == 1 || refusal->engine == 2)
            both[refusal->engine] |= strcmp(refusal->condition, "d_qk % 8 != 0") == 0;
    }
    cr_expect(both[1] && both[2], "every engine tried has its reason");
    fattn_decision_destroy(decision);
}

Test(decide, the_policys_order_is_followed_and_the_first_yes_decides)
{
    fattn_problem problem = control_problem();
    push_order(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    fattn_decision *decision = ask(&problem);
    cr_assert_eq(fattn_decision_answer_count(decision), 2);
    cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN);
    cr_expect_gt(fattn_decision_engine_count(decision, FATTN_MODE_A), 0);
    fattn_decision_destroy(decision);
    problem.dim_qk = 100;
    decision = ask(&problem);
    cr_assert_eq(fattn_decision_answer_count(decision), 2);
    const fattn_answer *cudnn = fattn_decision_answer(decision, 0),
                       *math = fattn_decision_answer(decision, 1);
    cr_expect_eq(cudnn->backend, FATTN_BACKEND_CUDNN);
    cr_expect_eq(cudnn->reason, FATTN_REASON_UNSUPPORTED);
    cr_expect_not_null(strstr(cudnn->text, "multiple of 8"), "%s", cudnn->text);
    cr_expect_not_null(strstr(cudnn->remedy, "multiple of 8"), "%s", cudnn->remedy);
    cr_expect_eq(math->backend, FATTN_BACKEND_MATH);
    cr_expect_eq(fattn_decision_backend(decision),
                 math->reason == FATTN_REASON_NONE ? FATTN_BACKEND_MATH : FATTN_BACKEND_CUDNN);
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
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
    context = open_cpu();
    const fattn_problem problem = control_problem();
    char name[] = "no cpu here", why[] = "seq_q is";
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = name, rule.why = why, rule.backend = FATTN_BACKEND_CPU;
    rule.holds = has_head_dim_128, rule.say = say_queries;
    push_rule(&rule);
    fattn_decision *decision = ask(&problem);
    fattn_policy_pop(1);
    memset(name, 'x', sizeof name - 1);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY);
    cr_expect_str_eq(fattn_decision_text(decision), "rule no cpu here: seq_q is 512");
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "no cpu here");
    cr_expect_str_neq(fattn_decision_remedy(decision), "");
    fattn_decision *later = ask(&problem);
    cr_expect(fattn_decision_supported(later), "%s", fattn_decision_text(later));
    fattn_decision_destroy(decision);
    fattn_decision_destroy(later);
    close_context();
}

/* ---- engines and guards
 */

static void expect_removed(const fattn_decision *decision, int first, int second)
{
    cr_assert_eq(fattn_decision_engine_count(decision, FATTN_MODE_A), 2);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 0)->removed, first);
    cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_A, 1)->removed, second);
}

Test(decide, a_denied_engine_is_listed_and_not_used_and_a_pinned_one_is_the_only_one)
{
    const fattn_problem problem = control_problem();
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "not the first", rule.engine = 2;
    push_rule(&rule);
    fattn_decision *decision = ask(&problem);
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    expect_removed(decision, 1, 0);
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "not the first");
    fattn_decision_destroy(decision);
    options.engine = 2;
    expect_no_plan(&problem, &options, FATTN_POLICY, "not the first");
    fattn_plan *plan = plan_of(&problem);
    cr_expect_eq(fattn_plan_engine(plan)->index, 1);
    fattn_plan_destroy(plan);
    rule.engine = 1;
    push_rule(&rule);
    decision = ask(&problem);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY, "none is left");
    cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "not the first");
    expect_no_plan(&problem, NULL, FATTN_POLICY, "");
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
    rule.name = "pinned", rule.action = FATTN_PIN;
    push_rule(&rule);
    push_order(FATTN_BACKEND_MATH, FATTN_BACKEND_CUDNN);
    decision = ask(&problem);
    cr_expect_eq(fattn_decision_answer(decision, 0)->reason, FATTN_REASON_POLICY,
                 "a pin of an engine denies the other backends");
    cr_expect_eq(fattn_decision_backend(decision), FATTN_BACKEND_CUDNN);
    expect_removed(decision, 1, 0);
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
}

/* With the builds that crash (9.26.0 to 9.28.0) the first ends the process unless the guard answers
 * before the planner. */
Test(decide, guards_answer_where_they_hold_unless_they_are_off)
{
    fattn_problem problem = control_problem();
    problem.pass = FATTN_BACKWARD;
    problem.batch = problem.heads_q = problem.seq_q = 1, problem.seq_kv = 128, problem.dim_qk = 64;
    const uint64_t before = fattn__asked(FATTN_BACKWARD);
    fattn_decision *decision = ask(&problem);
    const bool guarded = version >= 92600 && version <= 92800;
    cr_expect_eq(fattn_decision_reason(decision) == FATTN_REASON_POLICY, guarded, "%s",
                 fattn_decision_text(decision));
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - before, guarded ? 0 : 1);
    if (guarded) {
        cr_expect_str_eq(fattn_decision_answer(decision, 0)->rule, "bwd-plan-segfault-b1-hq1-sq1");
        expect_no_plan(&problem, NULL, FATTN_POLICY, "");
    }
    fattn_decision_destroy(decision);
    problem = control_problem();
    memcpy(problem.q_strides, (int64_t[4]){ 512 * 8 * 132 + 4, 132, 8 * 132, 1 },
           sizeof problem.q_strides);
    decision = ask(&problem);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY, "%s",
                 fattn_decision_text(decision));
    cr_expect_gt(fattn_decision_engine_count(decision, FATTN_MODE_A), 0,
                 "cuDNN's answer stays visible");
    fattn_decision_destroy(decision);
    problem.guards_off = 1;
    expect_answer("guards off", problem, "yes");
    problem = control_problem(); /* with 9.15 and older it is guarded */
    problem.seq_kv = 500, problem.training = 1, problem.capture = 1;
    expect_answer("captured", problem, "yes");
}

/* ---- refusals
 */

static void expect_whole(const fattn_problem *problem, fattn_reason reason, const char *word)
{
    fattn_decision *decision = ask(problem);
    cr_expect_eq(fattn_decision_reason(decision), reason, "%d: %s",
                 (int)fattn_decision_reason(decision), fattn_decision_text(decision));
    cr_expect_not_null(strstr(fattn_decision_text(decision), word), "%s: %s", word,
                       fattn_decision_text(decision));
    cr_expect_str_neq(fattn_decision_remedy(decision), "", "%s", fattn_decision_text(decision));
    const fattn_answer *first = fattn_decision_answer(decision, 0);
    cr_assert_not_null(first);
    cr_expect_eq(first->reason, (int32_t)reason);
    cr_expect_str_eq(first->text, fattn_decision_text(decision));
    cr_expect_str_eq(first->remedy, fattn_decision_remedy(decision));
    cr_expect_eq(first->rule[0] != '\0', reason == FATTN_REASON_POLICY);
    fattn_decision_destroy(decision);
}

Test(decide, a_refusal_has_class_reason_and_remedy)
{
    const struct {
        const char *word;
        fattn_reason reason;
        fattn_problem p;
    } rows[] = {
        { "batch", FATTN_REASON_BAD_PROBLEM, { .batch = -1 } },
        { "not implemented",
          FATTN_REASON_INTERNAL,
          { .pass = FATTN_BACKWARD, .dtype = FATTN_MXE4M3, .padding = 1, .ragged_bits = 32 } },
        { "multiple of 8", FATTN_REASON_UNSUPPORTED, { .dim_qk = 100 } },
        { " ", FATTN_REASON_UNSUPPORTED, { .dim_qk = 512, .pass = FATTN_BACKWARD } },
        { "q_strides",
          FATTN_REASON_POLICY,
          { .q_strides = { 512 * 8 * 132 + 4, 132, 8 * 132, 1 } } },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const fattn_problem p = completed(rows[i].p);
        expect_whole(&p, rows[i].reason, rows[i].word);
    }
    fattn_decision *decision;
    const fattn_problem bad = completed(rows[0].p);
    cr_expect_eq(fattn_decide(&decision, context, &bad, FATTN_ASK_A), FATTN_BAD_PROBLEM);
    fattn_decision_destroy(decision);
}

Test(environment, an_nvrtc_that_is_too_old_for_the_gpu_is_named)
{
    static const struct {
        const char *device;
        int version;
        const char *says;
    } rows[] = {
        { "sm100-spec", 12060, "NVRTC 12.6 cannot compile for sm_100: NVRTC 12.8 or newer can" },
        { "sm121-spec", 12080, "NVRTC 12.8 cannot compile for sm_121: NVRTC 12.9 or newer can" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_context_options options = h100_options();
        options.device_json = read_device(rows[i].device);
        context = open_options(&options);
        if (context->api->version < FATTN__NVRTC_INSIDE) {
            cr_expect_eq(fattn_context_verify(context), FATTN_OK, "%s", fattn_last_error());
            ((fattn__cudnn *)(uintptr_t)context->api)->nvrtc.version = rows[i].version;
            cr_expect_eq(fattn_context_verify(context), FATTN_ENVIRONMENT);
            cr_expect_str_eq(fattn_last_error(), rows[i].says);
            ((fattn__cudnn *)(uintptr_t)context->api)->nvrtc.version = 13000;
        }
        close_context();
    }
}

/* ---- what it costs
 */

/* Of the whole process: another load on the machine does not count. */
static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* A plan is a decision and a compilation. */
Test(decide, compiles_nothing_and_asks_once)
{
    fattn_problem problem = control_problem();
    const uint64_t forward = fattn__asked(FATTN_FORWARD), backward = fattn__asked(FATTN_BACKWARD);
    problem.training = 1;
    fattn_decision_destroy(ask(&problem)); /* maps the engines */
    cr_expect_eq(fattn__asked(FATTN_FORWARD) - forward, 1);
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - backward, 0);
    if (!compiling()) /* instrumented code has other costs */
        return;
    double least = 1e9;
    for (problem.seq_q = 300; problem.seq_q < 308; problem.seq_q++) {
        const double start = cpu_ms();
        fattn_decision_destroy(ask(&problem));
        const double ms = cpu_ms() - start;
        least = ms < least ? ms : least;
    }
    const double start = cpu_ms();
    fattn_plan *plan = plan_of(&problem);
    cr_expect_lt(least * 4, cpu_ms() - start, "a decision took %.1f ms of the processor", least);
    fattn_plan_destroy(plan);
}

/* ---- words
 */

static fattn_status fail_with(int seq_q)
{
    fattn_problem problem = control_problem(), out;
    problem.seq_q = seq_q;
    return fattn_problem_resolve(&problem, &out);
}

Test(words, of_the_last_error_live_until_this_threads_next_failure)
{
    const char *const want = "seq_q: -17 is not allowed; want 1 or more";
    const fattn_problem good = control_problem();
    cr_assert_eq(fail_with(-17), FATTN_BAD_PROBLEM);
    const char *sentence = fattn_last_error();
    cr_expect_str_eq(sentence, want);
    context = open_cpu();
    fattn_decision_destroy(ask(&good));
    cr_expect_eq(fattn_last_error(), sentence);
    cr_expect_str_eq(sentence, want, "what succeeds does not touch it");
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "outer", rule.engine = -2;
    const fattn_policy bad = { .struct_size = sizeof bad, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&bad, NULL), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(fattn_last_error(),
                     "rule 0 (outer): engine: want FATTN_ANY or an engine's number");
    fattn_problem problem = good; /* a decision's words live with it */
    problem.seq_q = -17;
    fattn_decision *one = ask(&problem);
    problem.seq_q = -18;
    fattn_decision *other = ask(&problem);
    cr_expect_str_eq(fattn_decision_text(one), want);
    cr_expect_str_eq(fattn_decision_text(other), "seq_q: -18 is not allowed; want 1 or more");
    fattn_decision_destroy(one);
    fattn_decision_destroy(other);
    close_context();
}

static pthread_barrier_t both_failed;

static void *talk(void *argument)
{
    int seq_q = *(int *)argument, *wrong = argument;
    char want[96];
    *wrong = 0;
    snprintf(want, sizeof want, "seq_q: %d is not allowed; want 1 or more", seq_q);
    for (int i = 0; i < 200; i++) {
        *wrong += fail_with(seq_q) != FATTN_BAD_PROBLEM;
        const char *sentence = fattn_last_error();
        pthread_barrier_wait(&both_failed);
        *wrong += strcmp(sentence, want) != 0 || strcmp(fattn_last_error(), want) != 0;
        pthread_barrier_wait(&both_failed);
    }
    return NULL;
}

Test(words, of_two_threads_do_not_meet)
{
    pthread_t threads[2];
    int talkers[2] = { -1, -22 };
    pthread_barrier_init(&both_failed, NULL, 2);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, talk, &talkers[i]), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    cr_expect_eq(talkers[0] + talkers[1], 0);
}

/* ---- reading what cuDNN logs
 */

static void expect_log(const char *text, int first, size_t count, const fattn_refusal *want)
{
    fattn_decision decision = { 0 };
    int got;
    cr_assert_eq(fattn__log_refusals(&decision, text, &got), FATTN_OK);
    cr_assert_eq(decision.refusal_count, count, "%s", text);
    cr_expect_eq(got, first, "%s", text);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(decision.refusals[i].engine, want[i].engine);
        cr_expect_str_eq(decision.refusals[i].status, want[i].status);
        cr_expect_str_eq(decision.refusals[i].text, want[i].text);
        cr_expect_str_eq(decision.refusals[i].condition, want[i].condition);
    }
    free(decision.refusals);
    free(decision.refusal_text);
}

/* As 9.20.0 writes it, shortened; its last error string; nothing. */
Test(log, the_first_warning_after_the_first_engine_is_the_reason)
{
    static const char shape_log[] =
        "CuDNN (v92000 48) function "
        "cudnnBackendGetAttribute_CUDNN_ATTR_ENGINEHEUR_RESULTS_engine_config_support_checks() "
        "called:\n"
        "    Warning: No viable engine configs among (2) heuristics result(s). \n"
        "    === error stack (1/2) ===\n"
        "    engineConfig: type=json; "
        "val={\"engineId\":2,\"smVersion\":900,\"knobChoices\":{\"CUDNN_KNOB_TYPE_KERNEL_CFG\":7}};"
        "\n"
        "    Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: q and k differ at: a.at: b at: "
        "d_qk % 8 != 0\n"
        "    Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: generate_attention_desc()\n"
        "    === error stack (2/2) ===\n"
        "    engineConfig: type=json; val={\"engineId\":10,\"smVersion\":900};\n"
        "    Warning: CUDNN_STATUS_NOT_SUPPORTED; The matmul should be an entrance node at: true\n"
        "Time: 2026-01-01T00:00:00.0 (0d+0h+0m+0s since start)\n";
    const fattn_refusal shape[] = {
        { .engine = -1,
          .status = "",
          .text = "No viable engine configs among (2) heuristics result(s). ",
          .condition = "" },
        { .engine = 2,
          .status = "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
          .text = "q and k differ at: a.at: b",
          .condition = "d_qk % 8 != 0" },
        { .engine = 2,
          .status = "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
          .text = "generate_attention_desc()",
          .condition = "" },
        { .engine = 10,
          .status = "CUDNN_STATUS_NOT_SUPPORTED",
          .text = "The matmul should be an entrance node",
          .condition = "true" },
    };
    const fattn_refusal nvrtc = { .engine = 7,
                                  .status =
                                      "CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
                                  .text = "Could not open libnvrtc",
                                  .condition = "this->libnvrtc == nullptr" };
    static const char *const nothing[] = {
        "", "\n\n", "Time: now\n", "{\"engineId\":2}\n", "Warning", "engineConfig: \"engineId\":"
    };
    expect_log(shape_log, 1, 4, shape);
    expect_log("{\"engineId\":7,\"smVersion\":900}\n"
               "Warning: CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING; Reason: Could "
               "not open libnvrtc at: this->libnvrtc == nullptr\n",
               0, 1, &nvrtc);
    for (size_t i = 0; i < COUNT(nothing); i++)
        expect_log(nothing[i], -1, 0, NULL);
}

Test(log, statuses_that_speak_of_the_machine_are_the_environment)
{
    static const char *const machine[] = { "NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
                                           "NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER",
                                           "EXECUTION_FAILED_CUDA_DRIVER",
                                           "SUBLIBRARY_LOADING_FAILED",
                                           "INTERNAL_ERROR_COMPILATION_FAILED",
                                           "INTERNAL_ERROR_HOST_ALLOCATION_FAILED" },
                             *const problem[] = { "NOT_SUPPORTED_ARCH_MISMATCH",
                                                  "NOT_SUPPORTED_SHAPE" };
    char status[96];
    for (size_t i = 0; i < COUNT(machine) + COUNT(problem); i++) {
        const bool speaks = i < COUNT(machine);
        snprintf(status, sizeof status, "CUDNN_STATUS_%s",
                 speaks ? machine[i] : problem[i - COUNT(machine)]);
        cr_expect_eq(fattn__reason_of(status),
                     speaks ? FATTN_REASON_ENVIRONMENT : FATTN_REASON_UNSUPPORTED, "%s", status);
    }
    cr_expect_eq(fattn__reason_of(""), FATTN_REASON_UNSUPPORTED);
}

static const char message[] = "one\0two\0";

static void *log_elsewhere(void *unused)
{
    fattn__log_callback(2, NULL, NULL, message);
    return unused;
}

Test(log, buffers_nest_and_belong_to_their_thread)
{
    fattn__log_buffer outer, inner;
    pthread_t thread;
    fattn__log_callback(2, NULL, NULL, message);
    fattn__log_open(&outer);
    cr_assert_eq(pthread_create(&thread, NULL, log_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    fattn__log_open(&inner);
    fattn__log_callback(2, NULL, NULL, message);
    fattn__log_close(&inner);
    fattn__log_close(&outer);
    fattn__log_callback(2, NULL, NULL, message);
    cr_expect_str_eq(inner.text, "one\ntwo\n");
    cr_expect_null(outer.text);
    fattn__log_free(&inner);
    fattn__log_free(&outer);
}

Test(names, numbers_are_given_cudnns_words)
{
    cr_expect_str_eq(fattn_knob_name(40), "TILE_M");
    cr_expect_str_eq(fattn_knob_name(-1), "?");
    cr_expect_str_eq(fattn_numerical_note_name(0), "TENSOR_CORE");
    cr_expect_str_eq(fattn_numerical_note_name(31), "?");
    cr_expect_str_eq(fattn_behavior_note_name(0), "RUNTIME_COMPILATION");
    cr_expect_str_eq(fattn_status_name(FATTN_BAD_PLAN), "bad_plan");
    cr_expect_str_eq(fattn_status_name((fattn_status)99), "?");
}
