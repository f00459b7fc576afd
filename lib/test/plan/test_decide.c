#include "core/engine.h"

#include <pthread.h>

#include "cudnn/backend/log.h"
#include "cudnn/plan/question.h"
#include "support/described_h100.h"

static fattn_decision *ask(fattn_context *context, const fattn_problem *problem, uint32_t modes)
{
    fattn_decision *decision;
    fattn_status st = fattn_decide(&decision, context, problem, modes);
    cr_assert(st == FATTN_OK || st == FATTN_BAD_PROBLEM, "%s", fattn_last_error());
    cr_assert_not_null(decision);
    return decision;
}

/* ---- real answers
 * -------------------------------------------------------------------------------------------------------------
 */

Test(decide, the_control_case_is_yes_by_the_hopper_engine_and_then_the_general_one)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
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
    cr_expect_eq(fattn_decision_engine_count(decision, FATTN_MODE_FALLBACK), 0, "not asked");
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(decide, a_head_dim_of_100_is_no_with_cudnns_own_sentence)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.dim_qk = 100;
    fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
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
    fattn_context_destroy(context);
}

Test(decide, a_no_is_followed_by_a_yes)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    for (int i = 0; i < 4; i++) {
        problem.dim_qk = i % 2 != 0 ? 128 : 100;
        fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
        cr_expect_eq(fattn_decision_supported(decision), i % 2 != 0);
        fattn_decision_destroy(decision);
    }
    fattn_context_destroy(context);
}

Test(decide, backward_is_asked_with_its_own_graph)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.pass = FATTN_BACKWARD;
    fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    cr_assert_geq(fattn_decision_engine_count(decision, FATTN_MODE_A), 1);
    /* Until 9.14 the backward engines were 1 to 3, like the forward ones. */
    if (context->api->version >= 91500)
        cr_expect_neq(fattn_decision_engine(decision, FATTN_MODE_A, 0)->index, 2);
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(decide, other_modes_are_recorded_when_asked_and_do_not_decide)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    const uint32_t all = FATTN_ASK_A | FATTN_ASK_B | FATTN_ASK_FALLBACK | FATTN_ASK_INSTANT;
    fattn_decision *decision = ask(context, &problem, all);
    cr_expect(fattn_decision_supported(decision));
    cr_expect_eq(fattn_decision_engine_count(decision, FATTN_MODE_A), 2);
    for (size_t i = 0; i < fattn_decision_engine_count(decision, FATTN_MODE_FALLBACK); i++)
        cr_expect_eq(fattn_decision_engine(decision, FATTN_MODE_FALLBACK, i)->mode,
                     FATTN_MODE_FALLBACK);
    fattn_decision_destroy(decision);
    problem.dim_qk = 100;
    decision = ask(context, &problem, all);
    cr_expect_not(fattn_decision_supported(decision));
    cr_expect_str_eq(fattn_decision_text(decision),
                     "Embedding dim per head for q and k is not a multiple of 8");
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(decide, without_nvrtc_an_old_cudnn_is_inconclusive_and_never_unsupported)
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
    fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_ENVIRONMENT);
    cr_expect_neq(*fattn_decision_remedy(decision), '\0');
    cr_expect_eq(fattn_context_verify(context), FATTN_ENVIRONMENT);
    fattn_plan *plan;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_ENVIRONMENT);
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(decide, a_bad_problem_is_answered_with_its_field)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.batch = -1;
    fattn_decision *decision;
    cr_expect_eq(fattn_decide(&decision, context, &problem, FATTN_ASK_A), FATTN_BAD_PROBLEM);
    cr_assert_not_null(decision);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_BAD_PROBLEM);
    cr_expect_not_null(strstr(fattn_decision_text(decision), "batch"), "%s",
                       fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

Test(decide, a_stride_that_cudnn_gets_wrong_is_refused_by_policy_unless_guards_are_off)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    const int64_t wide[4] = { 512 * 8 * 132 + 4, 132, 8 * 132, 1 };
    memcpy(problem.q_strides, wide, sizeof wide);
    fattn_decision *decision = ask(context, &problem, FATTN_ASK_A);
    cr_expect_eq(fattn_decision_reason(decision), FATTN_REASON_POLICY, "%s",
                 fattn_decision_text(decision));
    cr_expect_not_null(strstr(fattn_decision_text(decision), "q_strides"));
    cr_expect_gt(fattn_decision_engine_count(decision, FATTN_MODE_A), 0,
                 "cuDNN's answer stays visible");
    fattn_decision_destroy(decision);
    problem.guards_off = 1;
    decision = ask(context, &problem, FATTN_ASK_A);
    cr_expect(fattn_decision_supported(decision), "%s", fattn_decision_text(decision));
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}

typedef struct worker {
    fattn_context *context;
    int wrong;
} worker;

static void *decide_many(void *argument)
{
    worker *w = argument;
    for (int i = 0; i < 40; i++) {
        fattn_problem problem = control_problem();
        problem.dim_qk = i % 2 != 0 ? 100 : 64;
        fattn_decision *decision = NULL;
        fattn_decide(&decision, w->context, &problem, FATTN_ASK_A);
        bool yes = decision != NULL && fattn_decision_supported(decision);
        w->wrong += yes != (i % 2 == 0) ||
                    (!yes && strstr(fattn_decision_text(decision), "multiple of 8") == NULL);
        fattn_decision_destroy(decision);
    }
    return NULL;
}

Test(decide, two_threads_get_their_own_answers_and_reasons)
{
    fattn_context *context = open_h100();
    worker workers[2] = { { context, 0 }, { context, 0 } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, decide_many, &workers[i]), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    cr_expect_eq(workers[0].wrong + workers[1].wrong, 0);
    fattn_context_destroy(context);
}

/* ---- reading what cuDNN logs
 * --------------------------------------------------------------------------------------------------
 */

/* As 9.20.0 writes it, shortened. */
static const char shape_log[] =
    "CuDNN (v92000 48) function "
    "cudnnBackendGetAttribute_CUDNN_ATTR_ENGINEHEUR_RESULTS_engine_config_support_checks() "
    "called:\n"
    "    Warning: No viable engine configs among (2) heuristics result(s). \n"
    "    === error stack (1/2) ===\n"
    "    engineConfig: type=json; "
    "val={\"engineId\":2,\"smVersion\":900,\"knobChoices\":{\"CUDNN_KNOB_TYPE_KERNEL_CFG\":7}};\n"
    "    Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: q and k differ at: a.at: b at: d_qk % "
    "8 != 0\n"
    "    Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: generate_attention_desc()\n"
    "    === error stack (2/2) ===\n"
    "    engineConfig: type=json; val={\"engineId\":10,\"smVersion\":900};\n"
    "    Warning: CUDNN_STATUS_NOT_SUPPORTED; The matmul should be an entrance node at: true\n"
    "Time: 2026-01-01T00:00:00.0 (0d+0h+0m+0s since start)\n";

Test(log, the_first_warning_after_the_first_engine_is_the_reason)
{
    fattn_decision decision = { 0 };
    int first;
    cr_assert_eq(fattn__log_refusals(&decision, shape_log, &first), FATTN_OK);
    cr_assert_eq(decision.refusal_count, 4);
    cr_assert_eq(first, 1);
    cr_expect_eq(decision.refusals[0].engine, -1);
    cr_expect_eq(decision.refusals[1].engine, 2);
    cr_expect_str_eq(decision.refusals[1].status, "CUDNN_STATUS_NOT_SUPPORTED_SHAPE");
    cr_expect_str_eq(decision.refusals[1].text, "q and k differ at: a.at: b");
    cr_expect_str_eq(decision.refusals[1].condition, "d_qk % 8 != 0");
    cr_expect_str_eq(decision.refusals[2].text, "generate_attention_desc()");
    cr_expect_str_eq(decision.refusals[2].condition, "");
    cr_expect_eq(decision.refusals[3].engine, 10);
    cr_expect_str_eq(decision.refusals[3].text, "The matmul should be an entrance node");
    free(decision.refusals);
    free(decision.refusal_text);
}

Test(log, the_last_error_string_reads_as_the_log_does)
{
    fattn_decision decision = { 0 };
    int first;
    cr_assert_eq(
        fattn__log_refusals(&decision,
                            "{\"engineId\":7,\"smVersion\":900}\n"
                            "Warning: CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING; "
                            "Reason: Could not open libnvrtc "
                            "at: this->libnvrtc == nullptr\n",
                            &first),
        FATTN_OK);
    cr_assert_eq(first, 0);
    cr_expect_eq(decision.refusals[0].engine, 7);
    cr_expect_str_eq(decision.refusals[0].condition, "this->libnvrtc == nullptr");
    free(decision.refusals);
    free(decision.refusal_text);
}

Test(log, nothing_in_it_is_no_refusal)
{
    static const char *const texts[] = {
        "", "\n\n", "Time: now\n", "{\"engineId\":2}\n", "Warning", "engineConfig: \"engineId\":"
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fattn_decision decision = { 0 };
        int first;
        cr_assert_eq(fattn__log_refusals(&decision, texts[i], &first), FATTN_OK);
        cr_expect_eq(first, -1, "%s", texts[i]);
        cr_expect_eq(decision.refusal_count, 0);
        free(decision.refusals);
        free(decision.refusal_text);
    }
}

Test(log, statuses_that_speak_of_the_machine_are_the_environment)
{
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"),
                 FATTN_REASON_ENVIRONMENT);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH"),
                 FATTN_REASON_UNSUPPORTED);
    cr_expect_eq(fattn__reason_of("CUDNN_STATUS_NOT_SUPPORTED_SHAPE"), FATTN_REASON_UNSUPPORTED);
    cr_expect_eq(fattn__reason_of(""), FATTN_REASON_UNSUPPORTED);
}

static const char message[] = "one\0two\0";

static void *log_elsewhere(void *unused)
{
    fattn__log_callback(2, NULL, NULL, message);
    return unused;
}

Test(log, buffers_belong_to_their_thread)
{
    fattn__log_buffer buffer;
    pthread_t thread;
    fattn__log_open(&buffer);
    cr_assert_eq(pthread_create(&thread, NULL, log_elsewhere, NULL), 0);
    cr_assert_eq(pthread_join(thread, NULL), 0);
    fattn__log_close(&buffer);
    cr_expect_null(buffer.text);
    fattn__log_free(&buffer);
}

Test(log, buffers_nest)
{
    fattn__log_buffer outer, inner;
    fattn__log_callback(2, NULL, NULL, message);
    fattn__log_open(&outer);
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

/* ---- names
 * --------------------------------------------------------------------------------------------------------------------
 */

Test(names, numbers_are_given_cudnns_words)
{
    cr_expect_str_eq(fattn_knob_name(40), "TILE_M");
    cr_expect_str_eq(fattn_knob_name(0), "SPLIT_K");
    cr_expect_str_eq(fattn_knob_name(44), "INPUT_TMA_ENABLE");
    cr_expect_str_eq(fattn_knob_name(-1), "?");
    cr_expect_str_eq(fattn_numerical_note_name(0), "TENSOR_CORE");
    cr_expect_str_eq(fattn_numerical_note_name(31), "?");
    cr_expect_str_eq(fattn_behavior_note_name(0), "RUNTIME_COMPILATION");
    cr_expect_str_eq(fattn_status_name(FATTN_BAD_PLAN), "bad_plan");
    cr_expect_str_eq(fattn_status_name((fattn_status)99), "?");
}
