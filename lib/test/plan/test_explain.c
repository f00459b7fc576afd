/* Neighbours: found by asking, nearest first, within a budget. */
#include "core/engine.h"
#include "support/described_h100.h"

static size_t explain(fattn_context *context, const fattn_problem *problem, int budget,
                      fattn_neighbour *out)
{
    size_t count = 99;
    cr_assert_eq(fattn_explain(context, problem, budget, out, &count), FATTN_OK, "%s",
                 fattn_last_error());
    cr_assert_leq(count, FATTN_MAX_NEIGHBOURS);
    return count;
}

static bool is_accepted(fattn_context *context, const fattn_problem *problem)
{
    fattn_decision *decision;
    cr_assert_eq(fattn_decide(&decision, context, problem, FATTN_ASK_A), FATTN_OK);
    const bool yes = fattn_decision_supported(decision);
    fattn_decision_destroy(decision);
    return yes;
}

Test(explain, a_head_dim_of_100_becomes_104)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.dim_qk = 100, problem.dim_v = 104;
    const size_t count = explain(context, &problem, 0, out);
    cr_assert_gt(count, 0);
    cr_expect_str_eq(out[0].change, "dim_qk 104 instead of 100");
    cr_expect_eq(out[0].changes, 1);
    cr_expect_eq(out[0].problem.dim_qk, 104);
    cr_expect_eq(out[0].problem.dim_v, 104);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(out[i].changes, 1, "one change helps, so two are not tried");
        cr_expect(is_accepted(context, &out[i].problem), "%s", out[i].change);
    }
    fattn_context_destroy(context);
}

Test(explain, equal_head_dims_are_changed_together)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.dim_qk = 100;
    cr_assert_gt(explain(context, &problem, 0, out), 0);
    cr_expect_str_eq(out[0].change, "dim_qk and dim_v 104 instead of 100");
    cr_expect(out[0].changes == 2 && out[0].problem.dim_qk == 104 && out[0].problem.dim_v == 104);
    fattn_context_destroy(context);
}

Test(explain, two_changes_only_where_one_does_not_help)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.dim_qk = 100, problem.dim_v = 60;
    size_t count = explain(context, &problem, 60, out);
    cr_assert_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        cr_expect_eq(out[i].changes, 2, "%s", out[i].change);
        cr_expect(is_accepted(context, &out[i].problem), "%s", out[i].change);
    }
    cr_expect_str_eq(out[0].change, "dim_qk 104 instead of 100, dim_v 64 instead of 60");
    fattn_context_destroy(context);
}

Test(explain, keeps_the_layout_that_the_caller_has)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.dim_qk = 100;
    const int64_t bhsd[4] = { 8 * 512 * 100, 512 * 100, 100, 1 },
                  want[4] = { 8 * 512 * 104, 512 * 104, 104, 1 };
    memcpy(problem.q_strides, bhsd, sizeof bhsd);
    problem.dim_v = 104;
    cr_assert_gt(explain(context, &problem, 0, out), 0);
    cr_expect_arr_eq(out[0].problem.q_strides, want, sizeof want);
    fattn_context_destroy(context);
}

Test(explain, asks_no_more_than_its_budget)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.dim_qk = 100, problem.dim_v = 60; /* no single change helps */
    const uint64_t before = fattn__asked(FATTN_FORWARD);
    cr_expect_eq(explain(context, &problem, 5, out), 0);
    cr_expect_leq(fattn__asked(FATTN_FORWARD) - before, 5);
    size_t count;
    cr_expect_eq(fattn_explain(context, &problem, -1, out, &count), FATTN_BAD_PROBLEM);
    fattn_context_destroy(context);
}

Test(explain, a_guarded_problem_has_a_neighbour_that_no_guard_refuses)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    const int64_t wide[4] = { 512 * 8 * 132 + 4, 132, 8 * 132, 1 };
    memcpy(problem.q_strides, wide, sizeof wide);
    cr_assert_gt(explain(context, &problem, 0, out), 0);
    cr_expect_str_eq(out[0].change, "dense strides");
    fattn_context_destroy(context);
}

Test(explain, what_nobody_could_compute_has_no_neighbours)
{
    fattn_context *context = open_h100();
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    fattn_problem problem = control_problem();
    problem.batch = -1;
    size_t count = 99;
    cr_expect_eq(fattn_explain(context, &problem, 0, out, &count), FATTN_BAD_PROBLEM);
    cr_expect_eq(count, 0);
    fattn_context_destroy(context);
}

static void expect_change(fattn_context *context, const fattn_problem *problem, const char *change)
{
    fattn_neighbour out[FATTN_MAX_NEIGHBOURS];
    const size_t count = explain(context, problem, 0, out);
    bool found = false;
    for (size_t i = 0; i < count; i++)
        found = found || strcmp(out[i].change, change) == 0;
    cr_expect(found, "no neighbour '%s' among %zu, the first '%s'", change, count,
              count > 0 ? out[0].change : "");
}

Test(explain, what_an_operation_lacks_is_left_out)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.impl = FATTN_IMPL_UNIFIED, problem.padding = 1, problem.len_rank = 1;
    expect_change(context, &problem, "len_rank 4");
    problem = control_problem(), problem.impl = FATTN_IMPL_UNIFIED, problem.dropout_mask = 1;
    expect_change(context, &problem, "impl auto");
    expect_change(context, &problem, "without dropout_mask");
    problem = control_problem(), problem.impl = FATTN_IMPL_COMPOSITE, problem.rope = 1;
    expect_change(context, &problem, "without rope");
    problem = control_problem(), problem.impl = FATTN_IMPL_COMPOSITE, problem.padding = 1,
    problem.cumulative = FATTN_CUMULATIVE_Q;
    expect_change(context, &problem, "lengths in the place of prefix sums");
    problem = control_problem(), problem.impl = FATTN_IMPL_COMPOSITE, problem.padding = 1,
    problem.ragged_bits = 64, problem.ragged_tokens = 1;
    expect_change(context, &problem, "offsets in elements");
    fattn_context_destroy(context);
}
