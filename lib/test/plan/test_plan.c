/* Plans: saved and loaded, chosen by engine and knobs, made by the first backend of a policy's
 * order, what they cover, and run with other extents and strides. */
#include "core/plan.h"

#include "core/context.h"
#include "core/engine.h"
#include "cudnn/plan/cudnn_plan.h"
#include "fattn/device.h"
#include "fattn/policy.h"
#include "support/asked.h"

TestSuite(plan, .init = open_context, .fini = close_context);

/* ---- the file, without cuDNN
 */

static void expect_file(char *bytes, size_t count, fattn_status want)
{
    fattn__plan_header header;
    const char *payload;
    cr_expect_eq(fattn__plan_unpack(&header, &payload, bytes, count), want, "%zu bytes", count);
    if (want != FATTN_OK)
        return;
    cr_expect_eq(header.cudnn_version, 91900);
    cr_expect_eq(header.config.index, 2);
    cr_expect_eq(header.payload_bytes, 7);
    cr_expect_eq(memcmp(payload, "{\"a\":1}", 7), 0);
}

Test(plan_file, what_was_packed_is_unpacked_and_every_change_is_noticed)
{
    size_t count;
    char *bytes;
    fattn__plan_header header = { .cudnn_version = 91900, .sm = 90, .config = { .index = 2 } };
    cr_assert_eq(fattn__plan_pack(&header, "{\"a\":1}", 7, &bytes, &count), FATTN_OK);
    for (size_t n = 0; n < count; n++)
        expect_file(bytes, n, FATTN_BAD_PLAN);
    for (size_t bit = 0; bit < count * 8; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
        expect_file(bytes, count, FATTN_BAD_PLAN);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
    }
    expect_file(bytes, count, FATTN_OK);
    expect_file(NULL, 0, FATTN_BAD_PLAN);
    bytes = realloc(bytes, count + 1);
    bytes[count] = 0;
    expect_file(bytes, count + 1, FATTN_BAD_PLAN);
    free(bytes);
}

/* ---- saved and loaded
 */

static char *saved(const fattn_plan *plan, size_t *count)
{
    char *bytes;
    cr_assert_eq(fattn_plan_save(plan, &bytes, count), FATTN_OK, "%s", fattn_last_error());
    return bytes;
}

/* `words` NULL: it loads. */
static void expect_load(const fattn_problem *problem, const char *bytes, size_t count,
                        const char *words)
{
    fattn_plan *plan;
    const fattn_status st = fattn_plan_load(&plan, context, problem, bytes, count);
    cr_expect_eq(st, words == NULL ? FATTN_OK : FATTN_BAD_PLAN, "%s", fattn_last_error());
    cr_expect_eq(plan == NULL, words != NULL);
    if (words != NULL)
        cr_expect_not_null(strstr(fattn_last_error(), words), "got '%s', want '%s'",
                           fattn_last_error(), words);
    fattn_plan_destroy(plan);
}

/* A changed header has hashes that are right, as another build, device or library would have
 * written it. */
Test(plan, one_of_another_build_device_problem_library_or_rule_is_refused)
{
    static const struct {
        fattn__plan_header more;
        const char *text;
    } table[] = {
        { { .cudnn_version = 0 }, NULL },
        { { .cudnn_version = 1 }, "is of cuDNN" },
        { { .build = 1 }, "another build of cuDNN" },
        { { .sm = 10 }, "sm_100" },
        { { .device = 1 }, "another device: NVIDIA H100 80GB HBM3" },
        { { .graph = 1 }, "another way" },
    };
    fattn_problem problem = control_problem(), other = problem;
    fattn_plan *plan = plan_of(&problem);
    const fattn_engine engine = *fattn_plan_engine(plan);
    const size_t workspace = fattn_plan_workspace_bytes(plan);
    size_t count, changed_count;
    cr_expect_eq(engine.index, 2);
    cr_expect_gt(fattn_plan_ms(plan), 0);
    char *bytes = saved(plan, &count), *changed;
    fattn_plan_destroy(plan);
    close_context();
    open_context(); /* a fresh one */
    cr_assert_eq(fattn_plan_load(&plan, context, &problem, bytes, count), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(memcmp(fattn_plan_engine(plan), &engine, sizeof engine), 0);
    cr_expect_eq(fattn_plan_workspace_bytes(plan), workspace);
    fattn_plan_destroy(plan);
    for (size_t i = 0; i < COUNT(table); i++) {
        fattn__plan_header header;
        const char *payload;
        cr_assert_eq(fattn__plan_unpack(&header, &payload, bytes, count), FATTN_OK);
        header.cudnn_version += table[i].more.cudnn_version;
        header.build += table[i].more.build;
        header.sm += table[i].more.sm;
        header.device += table[i].more.device;
        header.graph += table[i].more.graph;
        cr_assert_eq(fattn__plan_pack(&header, payload, (size_t)header.payload_bytes, &changed,
                                      &changed_count),
                     FATTN_OK);
        expect_load(&problem, changed, changed_count, table[i].text);
        fattn_free(changed);
    }
    other.has_right = 1;
    expect_load(&other, bytes, count, "another problem");
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "not this engine", rule.engine = engine.index;
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK, "%s", fattn_last_error());
    expect_load(&problem, bytes, count, "not this engine");
    fattn_policy_pop(1);
    expect_load(&problem, bytes, count - 1, "");
    bytes[count / 2] = (char)(bytes[count / 2] ^ 1);
    expect_load(&problem, bytes, count, "damaged");
    fattn_free(bytes);
}

/* The key under which a plan is kept, as a number of its last digits. */
static unsigned long key_of(const fattn_problem *problem, const fattn_plan_options *options)
{
    char key[33];
    cr_assert_eq(fattn_plan_key(context, problem, options, key), FATTN_OK, "%s",
                 fattn_last_error());
    cr_expect_eq(strlen(key), 32);
    return strtoul(key + 16, NULL, 16);
}

Test(plan, a_key_is_of_all_that_decides_which_plan_it_is)
{
    fattn_problem problem = control_problem(), other = problem;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    const unsigned long key = key_of(&problem, NULL);
    cr_expect_eq(key_of(&problem, &options), key);
    options.config = 0;
    const unsigned long first = key_of(&problem, &options);
    cr_expect_neq(first, key);
    options.engine = 2;
    cr_expect_eq(key_of(&problem, &options), first, "an engine beside a configuration is not read");
    options.config = FATTN_ENGINE_AUTO;
    cr_expect_neq(key_of(&problem, &options), key);
    other.seq_q++;
    cr_expect_neq(key_of(&other, NULL), key);
    other = problem, other.guards_off = 1;
    cr_expect_neq(key_of(&other, NULL), key);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "one", rule.engine = 2, rule.sm_from = rule.sm_to = 100;
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
    cr_expect_eq(key_of(&problem, NULL), key, "a rule of other devices");
    rule.sm_from = rule.sm_to = 90;
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
    cr_expect_neq(key_of(&problem, NULL), key, "a rule that removes an engine here");
    fattn_policy_pop(1);
    cr_expect_eq(key_of(&problem, NULL), key);
    char text[33];
    problem.batch = 0;
    cr_expect_eq(fattn_plan_key(context, &problem, NULL, text), FATTN_BAD_PROBLEM);
}

/* ---- engines by their numbers and knobs, past the heuristics
 */

enum { STAGES = 14, KERNEL_CFG = 24, TILE_CGA_M = 27, STREAM_K = 38, TILE_M = 40, TILE_N = 41 };

/* Ordered accumulation of dQ on Hopper. */
static const fattn_knob ordered[] = {
    { .type = TILE_M, .value = 2 },     { .type = TILE_N, .value = 1 },
    { .type = KERNEL_CFG, .value = 2 }, { .type = STREAM_K, .value = 0 },
    { .type = TILE_CGA_M, .value = 0 }, { .type = STAGES, .value = 4 }
};

static fattn_plan_options pin(int64_t engine, const fattn_knob *knobs, int count)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = engine, options.knobs = knobs, options.knob_count = count;
    return options;
}

static int64_t knob_of(const fattn_engine *engine, int32_t type)
{
    for (int i = 0; i < engine->knob_count; i++)
        if (engine->knobs[i].type == type)
            return engine->knobs[i].value;
    return -1;
}

/* The linker puts it in front of the library's own: another libfattn. */
uint64_t __real_fattn__code_id(void), __wrap_fattn__code_id(void);
static uint64_t other_code;

uint64_t __wrap_fattn__code_id(void)
{
    return __real_fattn__code_id() + other_code;
}

Test(plan, a_key_is_of_the_very_libfattn)
{
    const fattn_problem p = control_problem();
    char key[33], other_key[33];
    cr_expect_eq(fattn_plan_key(context, &p, NULL, key), FATTN_OK);
    other_code = 1;
    cr_expect_eq(fattn_plan_key(context, &p, NULL, other_key), FATTN_OK);
    cr_expect_str_neq(key, other_key);
}

/* What the heuristics offer first, named with every knob, and without them; the cache tells knobs
 * apart. */
Test(plan, an_engine_or_a_configuration_can_be_chosen)
{
    const fattn_problem p = control_problem();
    fattn_plan_options options = pin(1, NULL, 0);
    fattn_plan *plan, *plain;
    if (!compiling())
        return;
    plan = plan_with(&p, &options);
    cr_expect_eq(fattn_plan_engine(plan)->index, 1);
    cr_expect_eq(fattn_plan_engine(plan)->config, 1);
    fattn_plan_destroy(plan);
    fattn_decision *decision = ask(&p);
    const fattn_engine *first = fattn_decision_engine(decision, FATTN_MODE_A, 0);
    options = pin(first->index, first->knobs, first->knob_count);
    cr_assert_eq(fattn_plan_get(&plan, context, &p, &options), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(fattn_plan_engine(plan)->index, first->index);
    for (int i = 0; i < first->knob_count; i++)
        cr_expect_eq(knob_of(fattn_plan_engine(plan), first->knobs[i].type), first->knobs[i].value,
                     "%s", fattn_knob_name(first->knobs[i].type));
    options = pin(first->index, NULL, 0);
    cr_assert_eq(fattn_plan_get(&plain, context, &p, &options), FATTN_OK, "%s", fattn_last_error());
    cr_expect_neq(plan, plain);
    fattn_plan_destroy(plan);
    fattn_plan_destroy(plain);
    fattn_decision_destroy(decision);
}

Test(plan, what_cannot_be_decided_or_contradicts_itself_cannot_be_compiled)
{
    const fattn_knob twice[] = { { .type = STAGES, .value = 2 }, { .type = STAGES, .value = 3 } };
    fattn_problem p = control_problem();
    fattn_plan_options bad[] = { pin(FATTN_ENGINE_AUTO, ordered, 6),
                                 pin(6, ordered, -1),
                                 pin(6, ordered, FATTN_MAX_KNOBS + 1),
                                 pin(6, NULL, 1),
                                 pin(6, ordered, 6),
                                 pin(6, twice, 2),
                                 pin(77, NULL, 0),
                                 pin(77, NULL, 0),
                                 pin(9999, ordered, 0) };
    bad[4].config = 0, bad[6].config = -2, bad[7].config = 9;
    for (size_t i = 0; i < COUNT(bad); i++)
        expect_no_plan(&p, &bad[i], i < 7 ? FATTN_BAD_PROBLEM : FATTN_UNSUPPORTED, "");
    cr_expect_gt(strlen(fattn_last_error()), 10, "in cuDNN's words");
    p.dim_qk = 100;
    expect_no_plan(&p, NULL, FATTN_UNSUPPORTED, "multiple of 8");
    p.dim_qk = -1;
    expect_no_plan(&p, NULL, FATTN_BAD_PROBLEM, "dim_qk");
}

/* ---- backends, in the order of a policy
 */

static void push_order(int32_t first, int32_t second)
{
    fattn_policy policy = FATTN_POLICY_INIT;
    policy.order[0] = first, policy.order[1] = second, policy.order_count = 2;
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK, "%s", fattn_last_error());
}

static void open_host(void)
{
    context = open_cpu();
}

TestSuite(cpu_plan, .init = open_host, .fini = close_context);

Test(cpu_plan, backends_that_the_device_lacks_are_passed_over_and_there_are_no_knobs)
{
    const fattn_problem p = control_problem();
    fattn_plan_options options = pin(0, ordered, 6);
    char *bytes;
    size_t count;
    push_order(FATTN_BACKEND_MATH, FATTN_BACKEND_CPU);
    fattn_plan *plan = plan_of(&p);
    cr_expect_eq(fattn_plan_backend(plan), FATTN_BACKEND_CPU);
    cr_expect_eq(fattn_plan_save(plan, &bytes, &count), FATTN_UNSUPPORTED);
    cr_expect_null(bytes);
    fattn_plan_destroy(plan);
    expect_no_plan(&p, &options, FATTN_UNSUPPORTED, "");
    options = pin(FATTN_ENGINE_AUTO, NULL, 0), options.override_shapes = 1;
    expect_no_plan(&p, &options, FATTN_UNSUPPORTED, "");
    fattn_policy_pop(1);
}

/* ---- what a plan covers
 */

/* X(what, covered, change of a forward problem) */
/* clang-format off */
#define CHANGE_LIST(X)                                                                         \
    X("capture", true, p.capture = 1) X("grad_dtype", true, p.grad_dtype = FATTN_F16)          \
    X("training with stats", true, p.training = 1)                                             \
    X("spelled out", true, p.heads_k = p.heads_q)                                              \
    X("a gradient's layout", true, memcpy(p.dq_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, \
      32))                                                                                     \
    X("dO's layout", true, memcpy(p.do_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, 32))    \
    X("batch", false, p.batch = 3) X("seq_q", false, p.seq_q = 511)                            \
    X("one row", false, p.seq_q = 1) X("seq_kv", false, p.seq_kv = 511)                        \
    X("O's layout", false, memcpy(p.o_strides, (int64_t[4]){ 524288, 65536, 128, 1 }, 32))     \
    X("deterministic", false, p.deterministic = 1) X("right", false, p.has_right = 1)          \
    X("guards_off", false, p.guards_off = 1) X("padding", false, p.padding = 1)                \
    X("pass", false, (p.pass = FATTN_BACKWARD, p.outputs = 0))                                 \
    X("outputs", false, p.outputs = 0)                                                         \
    X("scale", false, (p.has_attn_scale = 1, p.attn_scale = 1)) X("bad", false, p.heads_q = 0)
/* clang-format on */

Test(cpu_plan, covers_what_differs_in_nothing_that_it_bakes_in)
{
    fattn_problem first = control_problem(), p;
    first.outputs = FATTN_WANT_STATS;
    fattn_plan *plan = plan_of(&first);
#define EXPECT(what, covered, change)                                                              \
    p = first;                                                                                     \
    (void)(change);                                                                                \
    cr_expect_eq(fattn_plan_covers(plan, &p), covered, what);
    CHANGE_LIST(EXPECT)
#undef EXPECT
    fattn_plan_destroy(plan);
    first.deterministic = 1;
    plan = plan_of(&first);
    p = first;
    p.deterministic = 0;
    cr_expect(fattn_plan_covers(plan, &p), "what repeats may be used where nobody asked for it");
    fattn_plan_destroy(plan);
}

static fattn_status sleepless(void *count, struct CUstream_st *stream)
{
    (void)stream;
    ++*(int *)count;
    return FATTN_OK;
}

Test(cpu_plan, runs_after_its_context_and_time_is_the_mean_over_the_repeats)
{
    static float memory[8][64] __attribute__((aligned(16)));
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = problem.heads_q = 1;
    problem.seq_q = problem.seq_kv = problem.dim_qk = 8;
    problem.dtype = FATTN_F32;
    fattn_plan *plan = plan_of(&problem);
    int count = 0;
    double us = -1;
    cr_expect_eq(fattn_stream_time(context, NULL, sleepless, &count, 5, &us), FATTN_OK);
    cr_expect(count == 5 && us >= 0 && us < 1e6);
    cr_expect_eq(fattn_stream_time(context, NULL, sleepless, &count, 0, &us), FATTN_BAD_PROBLEM);
    close_context();
    open_host();
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

/* ---- other extents and strides: what is refused before anything is launched, and what cuDNN is told
 */

static fattn_problem largest(void)
{
    fattn_problem p = control_problem();
    p.impl = FATTN_IMPL_UNIFIED, p.padding = 1, p.outputs = FATTN_WANT_STATS;
    return p;
}

static void expect_as(const fattn_plan *plan, const fattn_problem *p, fattn_status want,
                      const char *text)
{
    const fattn_tensors tensors = FATTN_TENSORS_INIT;
    const fattn_status st = fattn_forward_as(plan, p, &tensors, NULL);
    cr_expect_eq(st, want, "%s: %s", fattn_status_name(st), fattn_last_error());
    cr_expect(strstr(fattn_last_error(), text) != NULL, "got '%s', want '%s'", fattn_last_error(),
              text);
}

Test(plan, forward_as_refuses_what_is_larger_or_differs_in_more_than_extents)
{
    if (!has(92100))
        return;
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    fattn_problem p = largest();
    fattn_plan *plan = plan_of(&p);
    p.seq_q = 100;
    expect_as(plan, &p, FATTN_BAD_PROBLEM, "was not made with override_shapes");
    fattn_plan_destroy(plan);
    p = largest(), p.impl = FATTN_IMPL_COMPOSITE, options.override_shapes = 1;
    expect_no_plan(&p, &options, FATTN_UNSUPPORTED, "override_shapes");
    p = largest(), options.override_shapes = 2;
    expect_no_plan(&p, &options, FATTN_BAD_PROBLEM, "");
    options.override_shapes = 1;
    plan = plan_with(&p, &options);
#define REFUSED(status, text, change)                                                              \
    p = largest();                                                                                 \
    (change);                                                                                      \
    expect_as(plan, &p, (status), (text));
    REFUSED(FATTN_BAD_PROBLEM, "seq_q: 513 is more than the plan's 512", p.seq_q = 513)
    REFUSED(FATTN_BAD_PROBLEM, "batch: 3 is more", p.batch = 3)
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.heads_q = 4)
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.dim_qk = 64)
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.outputs = 0)
    REFUSED(FATTN_BAD_PROBLEM, "differs from the plan's", p.has_right = 1)
    REFUSED(FATTN_UNSUPPORTED, "rope", p.rope = 1)
    REFUSED(FATTN_POLICY, "strides: cuDNN keeps the plan's", p.seq_q = 100)
    REFUSED(FATTN_POLICY, "q_strides",
            memcpy(p.q_strides, (int64_t[4]){ 1 << 20, 132, 8 * 132, 1 }, sizeof p.q_strides))
    const fattn_problem given = largest();
    cr_assert_eq(fattn_problem_resolve(&given, &p), FATTN_OK);
    p.batch = 1, p.seq_q = 100, p.seq_kv = 200;
    expect_as(plan, &p, FATTN_UNSUPPORTED, "a described device runs nothing");
    fattn_plan_destroy(plan);
}

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
    static fattn__compiled plan;
    fattn_problem p = control_problem(), resolved;
    static const fattn__slot slots[] = { FATTN__SLOT_Q, FATTN__SLOT_VALUE, FATTN__SLOT_SEQ_LEN_KV,
                                         FATTN__SLOT_STATS, FATTN__SLOT_SINK };
    p.padding = 1, p.cumulative = FATTN_CUMULATIVE_KV, p.seq_q = 96, p.batch = 3;
    cr_assert_eq(fattn_problem_resolve(&p, &resolved), FATTN_OK);
    api.cudnnBackendSetAttribute = take;
    for (size_t i = 0; i < COUNT(slots); i++)
        plan.bindings[plan.binding_count++] =
            (fattn__binding){ .uid = 100 + (int64_t)i, .slot = (int32_t)slots[i] };
    fattn__steps steps = { .api = &api };
    fattn__overrides_give(&steps, NULL, &plan, &resolved);
    cr_assert_eq(steps.status, DNN_STATUS_SUCCESS);
    cr_assert_eq(uid_count, 3);
    const int64_t want_dims[3][4] = { { 3, 8, 96, 128 }, { 4, 1, 1, 1 }, { 3, 8, 96, 1 } };
    const int64_t want_strides[3][4] = { { 96 * 1024, 128, 1024, 1 },
                                         { 1, 1, 1, 1 },
                                         { 8 * 96, 96, 1, 1 } };
    cr_expect(uids[0] == 100 && uids[1] == 102 && uids[2] == 103);
    cr_expect_arr_eq(dims, want_dims, sizeof want_dims);
    cr_expect_arr_eq(strides, want_strides, sizeof want_strides);
}
