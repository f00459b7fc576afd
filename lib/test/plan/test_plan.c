#include "core/plan_file.h"

#include "core/engine.h"
#include "fattn/device.h"
#include "fattn/policy.h"
#include "support/described_h100.h"

/* ---- the file, without cuDNN
 * --------------------------------------------------------------------------------------------------
 */

static char *packed(size_t *count)
{
    char *bytes;
    fattn__plan_header header = { .cudnn_version = 91900, .sm = 90, .config = { .index = 2 } };
    cr_assert_eq(fattn__plan_pack(&header, "{\"a\":1}", 7, &bytes, count), FATTN_OK);
    return bytes;
}

Test(plan_file, what_was_packed_is_unpacked)
{
    size_t count;
    char *bytes = packed(&count);
    fattn__plan_header header;
    const char *payload;
    cr_assert_eq(fattn__plan_unpack(&header, &payload, bytes, count), FATTN_OK);
    cr_expect_eq(header.cudnn_version, 91900);
    cr_expect_eq(header.config.index, 2);
    cr_expect_eq(header.payload_bytes, 7);
    cr_expect_eq(memcmp(payload, "{\"a\":1}", 7), 0);
    free(bytes);
}

Test(plan_file, every_length_but_the_right_one_is_refused)
{
    size_t count;
    char *bytes = packed(&count);
    fattn__plan_header header;
    const char *payload;
    for (size_t n = 0; n < count; n++)
        cr_expect_eq(fattn__plan_unpack(&header, &payload, bytes, n), FATTN_BAD_PLAN, "%zu bytes",
                     n);
    char *longer = realloc(bytes, count + 1);
    longer[count] = 0;
    cr_expect_eq(fattn__plan_unpack(&header, &payload, longer, count + 1), FATTN_BAD_PLAN);
    cr_expect_eq(fattn__plan_unpack(&header, &payload, NULL, 0), FATTN_BAD_PLAN);
    free(longer);
}

Test(plan_file, every_flipped_bit_is_noticed)
{
    size_t count;
    char *bytes = packed(&count);
    fattn__plan_header header;
    const char *payload;
    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        cr_expect_eq(fattn__plan_unpack(&header, &payload, bytes, count), FATTN_BAD_PLAN, "bit %zu",
                     bit);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    cr_expect_eq(fattn__plan_unpack(&header, &payload, bytes, count), FATTN_OK);
    free(bytes);
}

/* ---- with cuDNN
 * ---------------------------------------------------------------------------------------------------------------
 */

static fattn_plan *create(fattn_context *context, const fattn_problem *problem)
{
    fattn_plan *plan;
    fattn_status st = fattn_plan_create(&plan, context, problem, NULL);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    return plan;
}

Test(plan, one_that_was_compiled_for_a_description_is_saved_and_loaded_in_a_fresh_context)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_plan *plan = create(context, &problem);
    const fattn_engine engine = *fattn_plan_engine(plan);
    const size_t workspace = fattn_plan_workspace_bytes(plan);
    cr_expect_eq(engine.index, 2);
    cr_expect_gt(fattn_plan_ms(plan), 0);
    char *bytes;
    size_t count;
    cr_assert_eq(fattn_plan_save(plan, &bytes, &count), FATTN_OK, "%s", fattn_last_error());
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);

    context = open_h100();
    cr_assert_eq(fattn_plan_load(&plan, context, &problem, bytes, count), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(memcmp(fattn_plan_engine(plan), &engine, sizeof engine), 0);
    cr_expect_eq(fattn_plan_workspace_bytes(plan), workspace);
    fattn_plan_destroy(plan);

    fattn_problem other = problem;
    other.has_right = 1;
    cr_expect_eq(fattn_plan_load(&plan, context, &other, bytes, count), FATTN_BAD_PLAN);
    cr_expect_not_null(strstr(fattn_last_error(), "another problem"), "%s", fattn_last_error());
    cr_expect_null(plan);

    bytes[count / 2] = (char)(bytes[count / 2] ^ 1);
    cr_expect_eq(fattn_plan_load(&plan, context, &problem, bytes, count), FATTN_BAD_PLAN);
    cr_expect_not_null(strstr(fattn_last_error(), "damaged"), "%s", fattn_last_error());
    cr_expect_eq(fattn_plan_load(&plan, context, &problem, bytes, count - 1), FATTN_BAD_PLAN);
    fattn_free(bytes);
    fattn_context_destroy(context);
}

/* Loads the plan with a changed header whose hashes are right, as another build, device or library
 * would have written it. */
static fattn_status load_changed(fattn_context *context, const fattn_problem *problem,
                                 const char *bytes, size_t count, const fattn__plan_header *more)
{
    fattn_plan *plan;
    char *changed;
    fattn__plan_header header;
    const char *payload;
    cr_assert_eq(fattn__plan_unpack(&header, &payload, bytes, count), FATTN_OK);
    header.cudnn_version += more->cudnn_version;
    header.build += more->build;
    header.sm += more->sm;
    header.device += more->device;
    header.graph += more->graph;
    cr_assert_eq(fattn__plan_pack(&header, payload, (size_t)header.payload_bytes, &changed, &count),
                 FATTN_OK);
    fattn_status st = fattn_plan_load(&plan, context, problem, changed, count);
    fattn_plan_destroy(plan);
    fattn_free(changed);
    return st;
}

Test(plan, one_of_another_build_device_or_library_is_refused)
{
    static const struct {
        fattn__plan_header more;
        const char *text;
    } table[] = {
        { { .cudnn_version = 1 }, "is of cuDNN" },
        { { .build = 1 }, "another build of cuDNN" },
        { { .sm = 10 }, "sm_100" },
        { { .device = 1 }, "another device: NVIDIA H100 80GB HBM3" },
        { { .graph = 1 }, "another way" },
    };
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_plan *plan = create(context, &problem);
    char *bytes;
    size_t count;
    cr_assert_eq(fattn_plan_save(plan, &bytes, &count), FATTN_OK);
    fattn_plan_destroy(plan);
    cr_expect_eq(load_changed(context, &problem, bytes, count, &(fattn__plan_header){ .sm = 0 }),
                 FATTN_OK, "%s", fattn_last_error());
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cr_expect_eq(load_changed(context, &problem, bytes, count, &table[i].more), FATTN_BAD_PLAN);
        cr_expect_not_null(strstr(fattn_last_error(), table[i].text), "%s", fattn_last_error());
    }
    fattn_free(bytes);
    fattn_context_destroy(context);
}

Test(plan, one_whose_engine_a_rule_removes_is_refused)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_plan *plan = create(context, &problem);
    fattn_rule rule = FATTN_RULE_INIT;
    char *bytes;
    size_t count;
    cr_assert_eq(fattn_plan_save(plan, &bytes, &count), FATTN_OK, "%s", fattn_last_error());
    rule.name = "not this engine", rule.engine = fattn_plan_engine(plan)->index;
    fattn_plan_destroy(plan);
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(fattn_plan_load(&plan, context, &problem, bytes, count), FATTN_BAD_PLAN);
    cr_expect_not_null(strstr(fattn_last_error(), "not this engine"), "%s", fattn_last_error());
    fattn_policy_pop(1);
    cr_assert_eq(fattn_plan_load(&plan, context, &problem, bytes, count), FATTN_OK, "%s",
                 fattn_last_error());
    fattn_plan_destroy(plan);
    fattn_free(bytes);
    fattn_context_destroy(context);
}

/* The key under which a plan is kept, as a number of its last digits. */
static unsigned long key_of(fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options)
{
    char key[33];
    cr_assert_eq(fattn_plan_key(context, problem, options, key), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(strlen(key), 32);
    return strtoul(key + 16, NULL, 16);
}

Test(plan, a_key_is_of_all_that_decides_which_plan_it_is)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem(), other = problem;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    const unsigned long key = key_of(context, &problem, NULL);
    cr_expect_eq(key_of(context, &problem, &options), key);
    options.config = 0;
    const unsigned long first = key_of(context, &problem, &options);
    cr_expect_neq(first, key);
    options.engine = 2;
    cr_expect_eq(key_of(context, &problem, &options), first,
                 "an engine beside a configuration is not read");
    options.config = FATTN_ENGINE_AUTO;
    cr_expect_neq(key_of(context, &problem, &options), key);
    other.seq_q++;
    cr_expect_neq(key_of(context, &other, NULL), key);
    other = problem, other.guards_off = 1;
    cr_expect_neq(key_of(context, &other, NULL), key);

    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "one", rule.engine = 2, rule.sm_from = rule.sm_to = 100;
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
    cr_expect_eq(key_of(context, &problem, NULL), key, "a rule of other devices");
    rule.sm_from = rule.sm_to = 90;
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
    cr_expect_neq(key_of(context, &problem, NULL), key, "a rule that removes an engine here");
    fattn_policy_pop(1);
    cr_expect_eq(key_of(context, &problem, NULL), key);
    char text[33];
    problem.batch = 0;
    cr_expect_eq(fattn_plan_key(context, &problem, NULL, text), FATTN_BAD_PROBLEM);
    fattn_context_destroy(context);
}

Test(plan, an_engine_or_a_configuration_can_be_chosen)
{
    if (!compiling())
        return;
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_plan *plan;
    options.engine = 1;
    cr_assert_eq(fattn_plan_create(&plan, context, &problem, &options), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(fattn_plan_engine(plan)->index, 1);
    cr_expect_eq(fattn_plan_engine(plan)->config, 1);
    fattn_plan_destroy(plan);
    options.engine = 77;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, &options), FATTN_UNSUPPORTED);
    options.config = 9;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, &options), FATTN_UNSUPPORTED);
    options.config = -2;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, &options), FATTN_BAD_PROBLEM);
    cr_expect_null(plan);
    fattn_context_destroy(context);
}

Test(plan, what_cannot_be_decided_cannot_be_compiled)
{
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    fattn_plan *plan;
    problem.dim_qk = 100;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_UNSUPPORTED);
    cr_expect_not_null(strstr(fattn_last_error(), "multiple of 8"), "%s", fattn_last_error());
    problem.dim_qk = -1;
    cr_expect_eq(fattn_plan_create(&plan, context, &problem, NULL), FATTN_BAD_PROBLEM);
    fattn_context_destroy(context);
}

Test(plan, backward_has_a_private_workspace_in_front_of_the_engines)
{
    if (!compiling())
        return;
    fattn_context *context = open_h100();
    fattn_problem problem = control_problem();
    problem.pass = FATTN_BACKWARD;
    fattn_plan *plan = create(context, &problem);
    const size_t dq_accum = 2u * 8 * 512 * 128 * 4, softmax_sum = 2u * 8 * 512 * 4;
    cr_expect_geq(fattn_plan_workspace_bytes(plan), dq_accum + softmax_sum);
    cr_expect_lt(fattn_plan_workspace_bytes(plan), dq_accum + softmax_sum + 65536);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

/* ---- calls are checked before anything is launched; the cpu needs no build for that
 * --------------------------------------------
 */

static fattn_context *open_cpu(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    return open_options(&options);
}

static fattn_problem small_problem(void)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.dtype = FATTN_F32;
    problem.batch = 1;
    problem.heads_q = 1;
    problem.seq_q = problem.seq_kv = 4;
    problem.dim_qk = 8;
    return problem;
}

Test(call, bad_addresses_are_named_and_nothing_is_launched)
{
    fattn_context *context = open_cpu();
    fattn_problem problem = small_problem();
    problem.outputs = FATTN_WANT_STATS;
    fattn_plan *plan = create(context, &problem);
    _Alignas(256) static float q[32], k[32], v[32], o[36], stats[4];
    _Alignas(256) static char workspace[1 << 20];
    cr_assert_leq(fattn_plan_workspace_bytes(plan), sizeof workspace);
    o[0] = 7;
    fattn_tensors good = FATTN_TENSORS_INIT, bad;
    good.q = q, good.k = k, good.v = v, good.o = o, good.stats = stats;
    good.workspace = workspace, good.workspace_bytes = sizeof workspace;

    bad = good, bad.k = NULL;
    cr_expect_eq(fattn_forward(plan, &bad, NULL), FATTN_BAD_PROBLEM);
    cr_expect_str_eq(fattn_last_error(), "k is NULL");
    bad = good, bad.stats = NULL;
    cr_expect_eq(fattn_forward(plan, &bad, NULL), FATTN_BAD_PROBLEM);
    bad = good, bad.o = o + 1;
    cr_expect_eq(fattn_forward(plan, &bad, NULL), FATTN_BAD_PROBLEM);
    cr_expect_not_null(strstr(fattn_last_error(), "16 bytes"), "%s", fattn_last_error());
    bad = good, bad.workspace_bytes = fattn_plan_workspace_bytes(plan) - 1;
    cr_expect_eq(fattn_forward(plan, &bad, NULL), FATTN_BAD_PROBLEM);
    bad = good, bad.struct_size = 0;
    cr_expect_eq(fattn_forward(plan, &bad, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_forward(plan, NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_backward(plan, &good, NULL), FATTN_BAD_PROBLEM, "a forward plan");
    cr_expect_eq(o[0], 7, "nothing was launched");
    cr_expect_eq(fattn_forward(plan, &good, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(o[0], 0);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

Test(call, a_plan_covers_its_own_problem_and_no_other)
{
    fattn_context *context = open_cpu();
    fattn_problem problem = small_problem(), other;
    fattn_plan *plan = create(context, &problem);
    cr_expect(fattn_plan_covers(plan, &problem));
    other = problem, other.capture = 1;
    cr_expect(fattn_plan_covers(plan, &other), "no graph bakes in how it is launched");
    other = problem, other.heads_k = 1;
    cr_expect(fattn_plan_covers(plan, &other), "spelled out, but the same");
    other = problem, other.seq_q = 1;
    cr_expect_not(fattn_plan_covers(plan, &other));
    other = problem, other.has_right = 1;
    cr_expect_not(fattn_plan_covers(plan, &other));
    other = problem, other.batch = 0;
    cr_expect_not(fattn_plan_covers(plan, &other));
    char *bytes;
    size_t count;
    cr_expect_eq(fattn_plan_save(plan, &bytes, &count), FATTN_UNSUPPORTED);
    cr_expect_null(bytes);
    fattn_plan_destroy(plan);
    fattn_context_destroy(context);
}

static fattn_status sleepless(void *count, struct CUstream_st *stream)
{
    (void)stream;
    ++*(int *)count;
    return FATTN_OK;
}

Test(call, time_is_the_mean_over_the_repeats)
{
    fattn_context *context = open_cpu();
    int count = 0;
    double us = -1;
    cr_expect_eq(fattn_stream_time(context, NULL, sleepless, &count, 5, &us), FATTN_OK);
    cr_expect_eq(count, 5);
    cr_expect(us >= 0 && us < 1e6);
    cr_expect_eq(fattn_stream_time(context, NULL, sleepless, &count, 0, &us), FATTN_BAD_PROBLEM);
    fattn_context_destroy(context);
}
