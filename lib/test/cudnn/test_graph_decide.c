/* The graphs, put to a real cuDNN for a described H100: every composite graph of the scope is
 * recognised, by the engines that ran it on a real one, and some are compiled. */
#include "support/asked.h"

TestSuite(graph_decide, .init = open_context, .fini = close_context, .timeout = 300);

typedef struct row {
    const char *name;
    const char *forward; /* NULL: not asked */
    const char *backward;
    fattn_problem problem;
} row;

#define ROW(name, forward, backward, ...)                                                          \
    {                                                                                              \
        name, forward, backward,                                                                   \
        {                                                                                          \
            .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, __VA_ARGS__            \
        }                                                                                          \
    }
#define S512 .seq_q = 512, .seq_kv = 512
#define D128 S512, .dim_qk = 128
#define CROSS .seq_q = 256, .seq_kv = 512, .dim_qk = 128
#define KEYS_OF(stride_b, stride_h, stride_s) { stride_b, stride_h, stride_s, 1 }

static const row rows[] = {
    ROW("plain", "2,1", "6,7", D128),
    ROW("f16", "2,1", "6,7", D128, .dtype = FATTN_F16),
    ROW("f32", "1", NULL, D128, .dtype = FATTN_F32),
    ROW("stats", "2,1", NULL, D128, .outputs = FATTN_WANT_STATS),
    ROW("max and sum_exp", "2,1", NULL, D128, .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
    ROW("scale", "2,1", "6,7", D128, .has_attn_scale = 1, .attn_scale = 0.5),
    ROW("causal", "2,1", "6,7", D128, .has_right = 1),
    ROW("causal_br", "2,1", "6,7", CROSS, .has_right = 1, .align = FATTN_BOTTOM_RIGHT),
    ROW("window 40:0", "2,1", "6,7", D128, .has_right = 1, .has_left = 1, .window_left = 40),
    ROW("window 40:3", "2,1", "6,7", D128, .has_right = 1, .has_left = 1, .window_left = 40,
        .window_right = 3),
    ROW("window 40:inf", "2,1", "6,7", D128, .has_left = 1, .window_left = 40),
    ROW("window inf:3", "2,1", "6,7", D128, .has_right = 1, .window_right = 3),
    ROW("window 40:0 br", "2,1", "6,7", CROSS, .has_right = 1, .has_left = 1, .window_left = 40,
        .align = FATTN_BOTTOM_RIGHT),
    ROW("padding", "2,1", "6,7", D128, .padding = 1),
    ROW("padding causal", "2,1", "6,7", D128, .padding = 1, .has_right = 1),
    ROW("padding causal_br", "2,1", "6,7", CROSS, .padding = 1, .has_right = 1,
        .align = FATTN_BOTTOM_RIGHT),
    ROW("padding window tl", "2,1", "6,7", D128, .padding = 1, .has_right = 1, .has_left = 1,
        .window_left = 40),
    ROW("padding window br", "2,1", "6,7", CROSS, .padding = 1, .has_right = 1, .has_left = 1,
        .window_left = 40, .window_right = 3, .align = FATTN_BOTTOM_RIGHT),
    ROW("grouped", "2,1", "6,7", D128, .heads_k = 2),
    ROW("hk != hv", "2,1", "6,7", D128, .heads_k = 4, .heads_v = 2),
    ROW("only V grouped", "2,1", "6,7", D128, .heads_k = 8, .heads_v = 2),
    ROW("keys broadcast over b", "2,1", "6,7", D128, .k_strides = KEYS_OF(0, 128, 1024),
        .v_strides = KEYS_OF(0, 128, 1024)),
    ROW("keys broadcast over h", "2,1", "6,7", D128, .k_strides = KEYS_OF(512 * 128, 0, 128)),
    ROW("sbhd", "2,1", "6,7", D128, .q_strides = KEYS_OF(1024, 128, 2048),
        .k_strides = KEYS_OF(1024, 128, 2048)),
    ROW("bhsd", "2,1", "6,7", D128, .q_strides = KEYS_OF(8 * 512 * 128, 512 * 128, 128)),
    ROW("bs3hd", "2,1", "6,7", D128, .q_strides = KEYS_OF(512 * 3072, 128, 3072),
        .k_strides = KEYS_OF(512 * 3072, 128, 3072)),
    ROW("d 64", "2,1", "6,7", S512, .dim_qk = 64),
    ROW("d 72", "2,1", "6,7", S512, .dim_qk = 72),
    ROW("d 256", "2,1", "6", S512, .dim_qk = 256),
    ROW("d 192/128", "2,1", "6", S512, .dim_qk = 192, .dim_v = 128),
    ROW("d 512", "1", NULL, S512, .dim_qk = 512),
    ROW("decode", "1", "6,7", .seq_q = 1, .seq_kv = 512, .dim_qk = 128),
    ROW("s 1", "1", "6,7", .seq_q = 1, .seq_kv = 1, .dim_qk = 128),
    ROW("odd lengths", "2,1", "6,7", .seq_q = 100, .seq_kv = 97, .dim_qk = 128),
    ROW("repeating", NULL, "6,7", D128, .deterministic = 1),
    ROW("repeating, grouped, padding, causal", NULL, "6,7", D128, .deterministic = 1, .heads_k = 2,
        .padding = 1, .has_right = 1),
};

static void ask_every_row(fattn_spelling spelling)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_problem p = rows[i].problem;
        p.spelling = spelling;
        if (rows[i].forward != NULL)
            cr_expect_str_eq(answer(p), rows[i].forward, "forward, %s: %s", rows[i].name,
                             answer(p));
        p.pass = FATTN_BACKWARD;
        if (rows[i].backward != NULL)
            cr_expect_str_eq(answer(p), rows[i].backward, "backward, %s: %s", rows[i].name,
                             answer(p));
    }
}

Test(graph_decide, engines_recognise_every_expanded_graph)
{
    if (!has(91500))
        return;
    ask_every_row(FATTN_SPELLING_EXPANDED);
}

Test(graph_decide, engines_recognise_every_graph_of_single_operations)
{
    if (!has(92000))
        return;
    ask_every_row(FATTN_SPELLING_SINGLE);
}

static void expect_start(fattn_problem p, const char *start)
{
    const char *got = answer(p);
    cr_expect_eq(strncmp(got, start, strlen(start)), 0, "got '%s', want '%s'", got, start);
}

#define PROBLEM(...)                                                                               \
    ((fattn_problem){                                                                              \
        .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, S512, __VA_ARGS__ })

Test(graph_decide, a_refusal_carries_cudnns_own_reason)
{
    expect_start(PROBLEM(.dim_qk = 100),
                 "unsupported: Embedding dim per head for q and k is not a multiple of 8");
    expect_start(PROBLEM(.dim_qk = 264, .pass = FATTN_BACKWARD),
                 "unsupported: Embedding dim per head for q and k");
    expect_start(PROBLEM(.dim_qk = 128, .pass = FATTN_BACKWARD, .dtype = FATTN_F32),
                 "unsupported: ");
}

Test(graph_decide, row_outputs_are_refused_where_they_would_stay_unwritten)
{
    for (uint32_t outputs = 0; outputs < 8; outputs++) {
        const bool expanded = outputs == 0 || outputs == FATTN_WANT_STATS ||
                              outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP);
        fattn_problem p = PROBLEM(.dim_qk = 128, .outputs = outputs);
        expect_start(p, expanded || version >= 92000 ? "2,1" : "policy: outputs: ");
        p.spelling = FATTN_SPELLING_EXPANDED;
        expect_start(p, expanded ? "2,1" : "policy: outputs: ");
        p.spelling = FATTN_SPELLING_SINGLE;
        expect_start(p, version >= 92000 ? "2,1" : "unsupported: spelling single needs cuDNN 9.20");
    }
}

Test(graph_decide, strides_off_16_bytes_are_refused_after_cudnn_said_yes)
{
    fattn_problem p = PROBLEM(.dim_qk = 128, .k_strides = KEYS_OF(512 * 1028, 128, 1028));
    expect_start(p, "policy: rule varlen-misaligned-strides-or-base: k_strides: ");
    p.guards_off = 1;
    expect_start(p, "2,1");
}

Test(graph_decide, what_is_not_implemented_is_internal)
{
    expect_start(PROBLEM(.dim_qk = 128, .pass = FATTN_BACKWARD, .dtype = FATTN_MXE4M3, .padding = 1,
                         .ragged_bits = 32),
                 "internal: not implemented: ragged offsets (mxfp8 backward)");
}

Test(graph_decide, what_the_composite_graph_cannot_say_is_unsupported_by_its_name)
{
    fattn_problem p = PROBLEM(.dim_qk = 128, .impl = FATTN_IMPL_COMPOSITE, .padding = 1);
    p.cumulative = FATTN_CUMULATIVE_Q;
    expect_start(p, "unsupported: cumulative: ");
    p.cumulative = 0, p.ragged_bits = 32, p.ragged_tokens = 1;
    expect_start(p, "unsupported: ragged_tokens: ");
    p.ragged_bits = p.ragged_tokens = 0, p.block_mask = 1;
    expect_start(p, "unsupported: block_mask: ");
    p.block_mask = 0, p.unfuse_fma = 1;
    expect_start(p, "unsupported: unfuse_fma: ");
}

/* The workspace of a plan by this engine. */
static size_t compiled_by(const char *name, fattn_problem p, int64_t engine)
{
    fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    options.engine = engine;
    fattn_plan *plan = NULL;
    const fattn_status st = fattn_plan_create(&plan, context, &p, &options);
    cr_assert_eq(st, FATTN_OK, "%s, engine %ld: %s", name, (long)engine, fattn_last_error());
    cr_expect_eq(fattn_plan_engine(plan)->index, engine, "%s", name);
    const size_t bytes = fattn_plan_workspace_bytes(plan);
    fattn_plan_destroy(plan);
    return bytes;
}

static void compile_by(const char *name, fattn_problem p, int64_t engine)
{
    if (compiling())
        compiled_by(name, p, engine);
}

/* In the night. */
static void compile_also_by(const char *name, fattn_problem p, int64_t engine)
{
    if (compiling_all())
        compiled_by(name, p, engine);
}

Test(graph_decide, forward_plans_compile)
{
    if (!has(91500))
        return;
    compile_also_by("causal", PROBLEM(.dim_qk = 128, .has_right = 1), 2);
    compile_also_by("f32", PROBLEM(.dim_qk = 128, .dtype = FATTN_F32), 1);
    for (int64_t engine = 1; engine <= 2; engine++)
        compile_by("grouped, padding, window br",
                   PROBLEM(.dim_qk = 64, .heads_k = 4, .heads_v = 2, .padding = 1, .has_right = 1,
                           .has_left = 1, .window_left = 40, .align = FATTN_BOTTOM_RIGHT,
                           .outputs = FATTN_WANT_STATS),
                   engine);
}

Test(graph_decide, backward_plans_compile)
{
    if (!has(91500))
        return;
    for (int64_t engine = 6; engine <= 7; engine++)
        compile_by("grouped, padding, causal_br",
                   PROBLEM(.pass = FATTN_BACKWARD, .dim_qk = 64, .heads_k = 4, .heads_v = 2,
                           .padding = 1, .has_right = 1, .align = FATTN_BOTTOM_RIGHT),
                   engine);
    if (!compiling_all())
        return;
    const size_t scores = 2 * 8 * 512 * 512, accumulator = 2 * 8 * 512 * 128 * 4;
    cr_expect_geq(compiled_by("plain", PROBLEM(.pass = FATTN_BACKWARD, .dim_qk = 128), 6),
                  accumulator);
    cr_expect_geq(compiled_by("repeating",
                              PROBLEM(.pass = FATTN_BACKWARD, .dim_qk = 128, .deterministic = 1),
                              6),
                  2 * scores, "the form that repeats keeps dP: its memory is quadratic");
}

/* Max or Sum_exp together with padding is offered from 9.20 on and engine 2 cannot be compiled for
 * it; not asked here. */
Test(graph_decide, plans_of_single_operations_compile)
{
    if (!has(92000))
        return;
    fattn_problem p = PROBLEM(.dim_qk = 128, .has_right = 1, .has_left = 1, .window_left = 40,
                              .align = FATTN_BOTTOM_RIGHT, .spelling = FATTN_SPELLING_SINGLE);
    p.outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP;
    compile_by("every output", p, 2);
    p.outputs = FATTN_WANT_STATS;
    p.padding = 1;
    compile_also_by("padding", p, 2);
    p.pass = FATTN_BACKWARD;
    compile_also_by("backward", p, 6);
}
