/* The old narrow entry keeps its meaning: what it cannot say is derived. */
#include "engine.h"
#include "target.h"

static int ask(fattn_context *context, int training, fattn_dtype dtype, fattn_format format, int64_t dim_qk, const char **message)
{
    return fattn_backend_v1(context, training, dtype, format, 8, 2, 512, 512, dim_qk, dim_qk, -1, 0, 0, 0, message);
}

/* The regression that this entry is kept for: a new field, the format of the output, was left unset by the wrapper of the old call,
 * and what was supported was refused from one day to the next. */
Test(backend_v1, formats_that_were_never_said_are_derived)
{
    fattn_context *context = open_h100();
    const fattn_format formats[] = { FATTN_FORMAT_UNSET, FATTN_FORMAT_BSHD, FATTN_FORMAT_SBHD, FATTN_FORMAT_BHSD };
    const fattn_dtype dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_DTYPE_DEFAULT };
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            for (int training = 0; training < 2; training++) {
                const char *message = NULL;
                cr_expect_eq(ask(context, training, dtypes[d], formats[f], 128, &message), FATTN_BACKEND_CUDNN, "format %d: %s",
                             (int)formats[f], message);
                cr_expect_str_eq(message, "");
            }
        }
    }
    fattn_context_destroy(context);
}

/* The old entry and the whole question answer alike. */
Test(backend_v1, answers_as_fattn_decide_does)
{
    fattn_context *context = open_h100();
    for (int64_t dim = 60; dim <= 288; dim += 12) {
        for (int pass = 0; pass < 2; pass++) {
            fattn_problem problem = FATTN_PROBLEM_INIT;
            problem.pass = pass;
            problem.batch = 1, problem.heads_q = 8, problem.heads_k = problem.heads_v = 2;
            problem.seq_q = problem.seq_kv = 512, problem.dim_qk = dim;
            problem.has_right = 1, problem.training = pass;
            fattn_decision *decision;
            cr_assert_eq(fattn_decide(&decision, context, &problem, FATTN_ASK_A), FATTN_OK);
            const char *message;
            const bool yes = ask(context, pass, FATTN_BF16, FATTN_FORMAT_BSHD, dim, &message) >= 0;
            if (pass == FATTN_FORWARD || !yes)
                cr_expect_eq(yes, fattn_decision_supported(decision), "d %d: %s", (int)dim, message);
            if (!yes)
                cr_expect_not_null(strstr(message, fattn_decision_text(decision)), "d %d: %s", (int)dim, message);
            fattn_decision_destroy(decision);
        }
    }
    fattn_context_destroy(context);
}

Test(backend_v1, training_asks_the_backward_and_only_training_does)
{
    fattn_context *context = open_h100();
    uint64_t forward = fattn__asked(FATTN_FORWARD), backward = fattn__asked(FATTN_BACKWARD);
    ask(context, 0, FATTN_BF16, FATTN_FORMAT_BSHD, 128, NULL);
    cr_expect_eq(fattn__asked(FATTN_FORWARD) - forward, 1);
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - backward, 0);
    ask(context, 1, FATTN_BF16, FATTN_FORMAT_BSHD, 128, NULL);
    cr_expect_eq(fattn__asked(FATTN_FORWARD) - forward, 2);
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - backward, 1);
    ask(context, 1, FATTN_BF16, FATTN_FORMAT_BSHD, 100, NULL);
    cr_expect_eq(fattn__asked(FATTN_BACKWARD) - backward, 1, "a forward that is refused needs no backward");
    fattn_context_destroy(context);
}

Test(backend_v1, says_why_not)
{
    fattn_context *context = open_h100();
    const char *message = NULL;
    cr_expect_eq(ask(context, 0, FATTN_BF16, FATTN_FORMAT_BSHD, 100, &message), -1);
    cr_expect_str_eq(message,
                     "forward: CUDNN_STATUS_NOT_SUPPORTED_SHAPE: Embedding dim per head for q and k is not a multiple of 8");
    cr_expect_eq(message, fattn_last_error());
    cr_expect_eq(ask(context, 0, FATTN_BF16, (fattn_format)7, 128, &message), -1);
    cr_expect_str_eq(message, "format: 7 is not allowed; want 0 (unset) to 3 (bhsd)");
    cr_expect_eq(ask(context, 0, FATTN_BF16, FATTN_FORMAT_SBHD, -8, &message), -1);
    cr_expect_eq(strncmp(message, "dim_qk: -8 is not allowed", 25), 0, "%s", message);
    cr_expect_eq(fattn_backend_v1(context, 0, FATTN_BF16, FATTN_FORMAT_BSHD, 8, 3, 512, 512, 64, 64, -1, -1, 0, 0, &message), -1);
    cr_expect_eq(strncmp(message, "heads_q: 8 is not a multiple of heads_k, 3", 30), 0, "%s", message);
    fattn_context_destroy(context);
}

Test(backend_v1, capture_reaches_the_guards)
{
    fattn_context *context = open_h100();
    const char *message;
    const int backend = fattn_backend_v1(context, 1, FATTN_BF16, FATTN_FORMAT_SBHD, 8, 8, 512, 500, 64, 64, -1, -1, 0, 1, &message);
    cr_expect_eq(backend, context->info.cudnn_version <= 91500 ? -1 : FATTN_BACKEND_CUDNN, "%s", message);
    cr_expect_eq(fattn_backend_v1(context, 1, FATTN_BF16, FATTN_FORMAT_SBHD, 8, 8, 512, 512, 64, 64, -1, -1, 0, 1, &message),
                 FATTN_BACKEND_CUDNN, "%s", message);
    fattn_context_destroy(context);
}
