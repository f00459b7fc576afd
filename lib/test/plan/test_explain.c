/* Neighbours: found by asking, nearest first, within a budget. */
#include "core/engine.h"
#include "support/asked.h"

TestSuite(explain, .init = open_context, .fini = close_context);

static fattn_neighbour out[FATTN_MAX_NEIGHBOURS];

static size_t explain(fattn_problem p, int budget)
{
    size_t count = 99;
    p = completed(p);
    cr_assert_eq(fattn_explain(context, &p, budget, out, &count), FATTN_OK, "%s",
                 fattn_last_error());
    cr_assert_leq(count, FATTN_MAX_NEIGHBOURS);
    return count;
}

/* Two changes only where one does not help; every neighbour is accepted. */
Test(explain, the_first_neighbour_is_the_nearest)
{
    static const struct {
        const char *change;
        int changes, budget;
        fattn_problem p;
    } rows[] = {
        { "dim_qk 104 instead of 100", 1, 0, { .dim_qk = 100, .dim_v = 104 } },
        { "dim_qk and dim_v 104 instead of 100", 2, 0, { .dim_qk = 100 } },
        { "dim_qk 104, dim_v 64", 2, 60, { .dim_qk = 100, .dim_v = 60 } },
        { "dense strides", 1, 0, { .q_strides = { 512 * 8 * 132 + 4, 132, 8 * 132, 1 } } },
    };
    for (size_t n = 0; n < COUNT(rows); n++) {
        const size_t count = explain(rows[n].p, rows[n].budget);
        cr_assert_gt(count, 0, "%s", rows[n].change);
        cr_expect_str_eq(out[0].change, rows[n].change);
        for (size_t i = 0; i < count && n < 3; i++) {
            cr_expect(i > 0 || out[i].changes == rows[n].changes, "%s", out[i].change);
            expect_answer(out[i].change, out[i].problem, "yes");
        }
        cr_expect(n == 3 || out[0].problem.dim_qk == 104);
    }
}

Test(explain, the_callers_layout_and_budget_are_kept)
{
    const int64_t want[4] = { 8 * 512 * 104, 512 * 104, 104, 1 };
    fattn_problem p = { .dim_qk = 100,
                        .dim_v = 104,
                        .q_strides = { 8 * 512 * 100, 512 * 100, 100, 1 } };
    size_t count = 99;
    cr_assert_gt(explain(p, 0), 0);
    cr_expect_arr_eq(out[0].problem.q_strides, want, sizeof want);
    p = completed((fattn_problem){ .dim_qk = 100, .dim_v = 60 }); /* no single change helps */
    const uint64_t before = fattn__asked(FATTN_FORWARD);
    cr_expect_eq(explain(p, 5), 0);
    cr_expect_leq(fattn__asked(FATTN_FORWARD) - before, 5);
    cr_expect_eq(fattn_explain(context, &p, -1, out, &count), FATTN_BAD_PROBLEM);
    p.batch = -1;
    cr_expect_eq(fattn_explain(context, &p, 0, out, &count), FATTN_BAD_PROBLEM);
    cr_expect_eq(count, 0, "what nobody could compute");
}

Test(explain, what_an_operation_lacks_is_left_out)
{
    static const struct {
        const char *change;
        fattn_problem p;
    } rows[] = {
        { "len_rank 4", { .impl = FATTN_IMPL_UNIFIED, .padding = 1, .len_rank = 1 } },
        { "impl auto", { .impl = FATTN_IMPL_UNIFIED, .dropout_mask = 1 } },
        { "without dropout_mask", { .impl = FATTN_IMPL_UNIFIED, .dropout_mask = 1 } },
        { "without rope", { .impl = FATTN_IMPL_COMPOSITE, .rope = 1 } },
        { "lengths in the place of prefix sums",
          { .impl = FATTN_IMPL_COMPOSITE, .padding = 1, .cumulative = FATTN_CUMULATIVE_Q } },
        { "offsets in elements",
          { .impl = FATTN_IMPL_COMPOSITE, .padding = 1, .ragged_bits = 64, .ragged_tokens = 1 } },
    };
    for (size_t n = 0; n < COUNT(rows); n++) {
        const size_t count = explain(rows[n].p, 0);
        bool found = false;
        for (size_t i = 0; i < count; i++)
            found = found || strcmp(out[i].change, rows[n].change) == 0;
        cr_expect(found, "no neighbour '%s' among %zu, the first '%s'", rows[n].change, count,
                  count > 0 ? out[0].change : "");
    }
}
