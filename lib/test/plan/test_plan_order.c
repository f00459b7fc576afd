/* Which backend a plan is made by, and what it covers. */
#include <string.h>

#include "core/context.h"
#include "core/plan.h"
#include "fattn/policy.h"
#include "support/described_h100.h"

static fattn_context *open_cpu(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    return open_options(&options);
}

static int push_order(int32_t first, int32_t second)
{
    fattn_policy policy = FATTN_POLICY_INIT;
    int depth;
    policy.order[0] = first;
    policy.order[1] = second;
    policy.order_count = 2;
    cr_assert_eq(fattn_policy_push(&policy, &depth), FATTN_OK, "%s", fattn_last_error());
    return depth;
}

Test(plan_order, backends_that_the_device_lacks_are_passed_over)
{
    fattn_context *context = open_cpu();
    const fattn_problem problem = control_problem();
    const int depth = push_order(FATTN_BACKEND_MATH, FATTN_BACKEND_CPU);
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(fattn_plan_backend(plan), FATTN_BACKEND_CPU);
    fattn_policy_pop(depth);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

Test(plan_order, what_cudnn_refuses_goes_to_the_next_and_when_all_refuse_cudnns_words_are_kept)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.dim_qk = 100;
    fattn_plan *plan;
    const int depth = push_order(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    const fattn_status st = fattn_plan_create(&plan, context, &problem, NULL);
    if (st == FATTN_OK)
        cr_expect_eq(fattn_plan_backend(plan), FATTN_BACKEND_MATH);
    else
        cr_expect(st == FATTN_UNSUPPORTED && strstr(fattn_last_error(), "CUDNN_STATUS") != NULL,
                  "%d %s", st, fattn_last_error());
    fattn_policy_pop(depth);
    fattn_plan_destroy(plan);
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_UNSUPPORTED,
                 "math needs a policy that allows it");
    fattn_context_destroy(context);
}

Test(plan_order, the_first_that_can_computes)
{
    fattn_context *context = open_h100();
    const fattn_problem problem = control_problem();
    const int depth = push_order(FATTN_BACKEND_CUDNN, FATTN_BACKEND_MATH);
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(fattn_plan_backend(plan), FATTN_BACKEND_CUDNN);
    fattn_policy_pop(depth);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

/* X(what, covered, change of a forward problem) */
/* clang-format off */
#define CHANGE_LIST(X)                                                                         \
    X("capture", true, p.capture = 1) X("grad_dtype", true, p.grad_dtype = FATTN_F16)          \
    X("training with stats", true, p.training = 1)                                             \
    X("a gradient's layout", true, memcpy(p.dq_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, \
      32))                                                                                     \
    X("dO's layout", true, memcpy(p.do_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, 32))    \
    X("batch", false, p.batch = 3) X("seq_q", false, p.seq_q = 511)                            \
    X("one row", false, p.seq_q = 1) X("seq_kv", false, p.seq_kv = 511)                        \
    X("O's layout", false, memcpy(p.o_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, 32))     \
    X("deterministic", false, p.deterministic = 1)                                             \
    X("guards_off", false, p.guards_off = 1) X("padding", false, p.padding = 1)                \
    X("pass", false, (p.pass = FATTN_BACKWARD, p.outputs = 0))                                 \
    X("outputs", false, p.outputs = 0)                                                         \
    X("scale", false, (p.has_attn_scale = 1, p.attn_scale = 1)) X("bad", false, p.heads_q = 0)
/* clang-format on */

Test(plan_order, a_plan_covers_what_differs_in_nothing_that_it_bakes_in)
{
    fattn_context *context = open_cpu();
    fattn_problem first = control_problem();
    first.outputs = FATTN_WANT_STATS;
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &first, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    fattn_problem p;
#define EXPECT(what, covered, change)                                                              \
    p = first;                                                                                     \
    (void)(change);                                                                                \
    cr_expect_eq(fattn_plan_covers(plan, &p), covered, what);
    CHANGE_LIST(EXPECT)
#undef EXPECT
    fattn_plan_destroy(plan);
    first.deterministic = 1;
    cr_assert_eq(fattn_plan_create(&plan, context, &first, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    p = first;
    p.deterministic = 0;
    cr_expect(fattn_plan_covers(plan, &p), "what repeats may be used where nobody asked for it");
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

Test(plan_order, a_plan_outlives_its_context_and_runs)
{
    static float memory[8][64] __attribute__((aligned(16)));
    fattn_context *context = open_cpu();
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = problem.heads_q = 1;
    problem.seq_q = problem.seq_kv = problem.dim_qk = 8;
    problem.dtype = FATTN_F32;
    fattn_plan *plan;
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    fattn_context_destroy(context);
    for (int i = 0; i < 64; i++)
        memory[2][i] = 3;
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.q = memory[0], t.k = memory[1], t.v = memory[2], t.o = memory[3];
    t.workspace_bytes = fattn_plan_workspace_bytes(plan);
    t.workspace = aligned_alloc(64, (t.workspace_bytes + 63) / 64 * 64);
    cr_expect_eq(fattn_forward(plan, &t, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(memory[3][63], 3.0f);
    free(t.workspace);
    fattn_plan_destroy(plan);
}
