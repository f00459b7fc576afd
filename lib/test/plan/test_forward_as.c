/* Plans that are run with other extents and strides: what is refused before anything is launched,
 * and what cuDNN is told. */
#include "cudnn/plan/cudnn_plan.h"
#include "fattn/fattn.h"
#include "support/asked.h"

enum { OVERRIDES_FROM = 92100 };

TestSuite(forward_as, .init = open_context, .fini = close_context);

static fattn_problem largest(void)
{
    fattn_problem p = control_problem();
    p.impl = FATTN_IMPL_UNIFIED, p.padding = 1, p.outputs = FATTN_WANT_STATS;
    return p;
}

static fattn_plan *plan_of(const fattn_problem *p, int32_t override_shapes)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan;
    options.override_shapes = override_shapes;
    cr_assert_eq(fattn_plan_create(&plan, context, p, &options), FATTN_OK, "%s",
                 fattn_last_error());
    return plan;
}

static void expect(const fattn_plan *plan, const fattn_problem *p, fattn_status want,
                   const char *text)
{
    const fattn_tensors tensors = FATTN_TENSORS_INIT;
    const fattn_status st = fattn_forward_as(plan, p, &tensors, NULL);
    cr_expect_eq(st, want, "%s: %s", fattn_status_name(st), fattn_last_error());
    cr_expect(strstr(fattn_last_error(), text) != NULL, "got '%s', want '%s'", fattn_last_error(),
              text);
}

Test(forward_as, a_described_device_runs_nothing_also_with_other_extents)
{
    if (!compiling() || !has(OVERRIDES_FROM))
        return;
    fattn_problem p = largest();
    fattn_plan *plan = plan_of(&p, 1);
    const fattn_problem given = p;
    cr_assert_eq(fattn_problem_resolve(&given, &p), FATTN_OK);
    p.batch = 1, p.seq_q = 100, p.seq_kv = 200;
    expect(plan, &p, FATTN_UNSUPPORTED, "a described device runs nothing");
    fattn_plan_destroy(plan);
}

Test(forward_as, wants_a_plan_that_was_made_for_it)
{
    if (!has(OVERRIDES_FROM))
        return;
    fattn_problem p = largest();
    fattn_plan *plan = plan_of(&p, 0);
    p.seq_q = 100;
    expect(plan, &p, FATTN_BAD_PROBLEM, "was not made with override_shapes");
    fattn_plan_destroy(plan);
}

Test(forward_as, refuses_what_is_larger_or_differs_in_more_than_extents)
{
    if (!has(OVERRIDES_FROM))
        return;
    fattn_problem p = largest();
    fattn_plan *plan = plan_of(&p, 1);
#define REFUSED(status, text, change)                                                              \
    do {                                                                                           \
        p = largest();                                                                             \
        (change);                                                                                  \
        expect(plan, &p, (status), (text));                                                        \
    } while (0)
    REFUSED(FATTN_BAD_PROBLEM, "seq_q: 513 is more than the plan's 512", p.seq_q = 513);
    REFUSED(FATTN_BAD_PROBLEM, "batch: 3 is more", p.batch = 3);
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.heads_q = 4);
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.dim_qk = 64);
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.outputs = 0);
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.has_right = 1);
    REFUSED(FATTN_UNSUPPORTED, "rope", p.rope = 1);
    REFUSED(FATTN_POLICY, "strides: cuDNN keeps the plan's", p.seq_q = 100);
    REFUSED(FATTN_POLICY, "q_strides",
            memcpy(p.q_strides, (int64_t[4]){ 1 << 20, 132, 8 * 132, 1 }, sizeof p.q_strides));
    fattn_plan_destroy(plan);
}

Test(forward_as, only_the_unified_forward_may_be_made_so)
{
    if (!has(OVERRIDES_FROM))
        return;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_problem p = largest();
    fattn_plan *plan;
    options.override_shapes = 1;
    p.impl = FATTN_IMPL_COMPOSITE;
    cr_expect_eq(fattn_plan_create(&plan, context, &p, &options), FATTN_UNSUPPORTED);
    cr_expect(strstr(fattn_last_error(), "override_shapes") != NULL, "%s", fattn_last_error());
    options.override_shapes = 2;
    p = largest();
    cr_expect_eq(fattn_plan_create(&plan, context, &p, &options), FATTN_BAD_PROBLEM);
}

/* ---- what cuDNN is told
 * ------------------------------------------------------------------------------------------------------------
 */

/* A C++ vector as it lies in memory. */
typedef struct vector {
    const void *begin, *end, *limit;
} vector;

static int64_t uids[8], dims[8][4], strides[8][4];
static int64_t uid_count;

static void read_rows(int64_t to[][4], const void *elements)
{
    const vector *all = elements;
    const vector *row = all->begin;
    cr_assert_eq((const char *)all->end - (const char *)all->begin,
                 uid_count * (int64_t)sizeof *row);
    for (int i = 0; i < uid_count; i++) {
        cr_assert_eq((const char *)row[i].end - (const char *)row[i].begin,
                     4 * (int64_t)sizeof(int64_t));
        memcpy(to[i], row[i].begin, sizeof to[i]);
    }
}

static int take(fattn__desc desc, int name, int type, int64_t count, const void *elements)
{
    (void)desc, (void)type;
    if (name == DNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS)
        uid_count = count, memcpy(uids, elements, (size_t)count * sizeof *uids);
    else
        read_rows(name == DNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES ? dims : strides, elements);
    return DNN_STATUS_SUCCESS;
}

Test(overrides, give_each_tensor_of_the_call_its_extents_and_strides)
{
    static fattn__cudnn api;
    static fattn__compiled compiled;
    fattn_problem p = control_problem(), resolved;
    static const fattn__slot slots[] = { FATTN__SLOT_Q, FATTN__SLOT_VALUE, FATTN__SLOT_SEQ_LEN_KV,
                                         FATTN__SLOT_STATS, FATTN__SLOT_SINK };
    p.padding = 1, p.cumulative = FATTN_CUMULATIVE_KV, p.seq_q = 96, p.batch = 3;
    cr_assert_eq(fattn_problem_resolve(&p, &resolved), FATTN_OK);
    api.cudnnBackendSetAttribute = take;
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        compiled.bindings[compiled.binding_count++] =
            (fattn__binding){ .uid = 100 + (int64_t)i, .slot = (int32_t)slots[i] };
    fattn__steps steps = { .api = &api };
    fattn__overrides_give(&steps, NULL, &compiled, &resolved);
    cr_assert_eq(steps.status, DNN_STATUS_SUCCESS);
    cr_assert_eq(uid_count, 3);
    const int64_t want_dims[3][4] = { { 3, 8, 96, 128 }, { 4, 1, 1, 1 }, { 3, 8, 96, 1 } };
    const int64_t want_strides[3][4] = { { 96 * 1024, 128, 1024, 1 },
                                         { 1, 1, 1, 1 },
                                         { 8 * 96, 96, 1, 1 } };
    cr_expect(uids[0] == 100 && uids[1] == 102 && uids[2] == 103);
    cr_expect_eq(memcmp(dims, want_dims, sizeof want_dims), 0);
    cr_expect_eq(memcmp(strides, want_strides, sizeof want_strides), 0);
}
