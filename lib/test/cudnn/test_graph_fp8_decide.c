/* The graphs of 8 bit types, put to a real cuDNN for a described H100 and a described sm_100: which
 * engines recognise them, what cuDNN refuses in which words, and that plans compile. Nobody has run
 * the block-scaled ones here: that takes an sm_100. */
#include "support/asked.h"

static void open_blackwell(void)
{
    context = open_described("sm100-spec", &version);
}

static void open_ada(void)
{
    context = open_described("sm89-spec", &version);
}

TestSuite(fp8_hopper, .init = open_context, .fini = close_context, .timeout = 300);
TestSuite(fp8_blackwell, .init = open_blackwell, .fini = close_context, .timeout = 300);
TestSuite(mx_blackwell, .init = open_blackwell, .fini = close_context, .timeout = 300);
TestSuite(mx_hopper, .init = open_context, .fini = close_context, .timeout = 300);
TestSuite(fp8_ada, .init = open_ada, .fini = close_context, .timeout = 300);

static void expect_start(const char *name, fattn_problem p, const char *start)
{
    const char *got = answer(p);
    cr_expect_eq(strncmp(got, start, strlen(start)), 0, "%s: got '%s', want '%s'", name, got,
                 start);
}

/* In the night; by day it is recognised. */
static void compile_unguarded(const char *name, fattn_problem p)
{
    p.guards_off = 1;
    compile(name, p);
}

static void compile_always(const char *name, fattn_problem p)
{
    p.guards_off = 1;
    if (compiling())
        compiled(name, p, NULL);
}

typedef struct row {
    const char *name;
    fattn_problem problem;
} row;

#define PROBLEM(...)                                                                               \
    ((fattn_problem){ .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, __VA_ARGS__ })
#define ROW(name, ...)                                                                             \
    {                                                                                              \
        name,                                                                                      \
        {                                                                                          \
            .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, __VA_ARGS__            \
        }                                                                                          \
    }
#define S512 .seq_q = 512, .seq_kv = 512
#define D128 S512, .dim_qk = 128
#define CROSS .seq_q = 256, .seq_kv = 512, .dim_qk = 128
#define BACKWARD .pass = FATTN_BACKWARD
#define PIN BACKWARD, .deterministic = 1, .determinism = FATTN_DETERMINISM_PIN
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

/* What both passes and both devices take; some of it is known to be wrong, so guards are off. */
static const row both[] = {
    ROW("plain", D128),
    ROW("causal", D128, .has_right = 1),
    ROW("causal, bottom right", CROSS, .has_right = 1, .align = FATTN_BOTTOM_RIGHT),
    ROW("window", D128, .has_right = 1, .has_left = 1, .window_left = 40),
    ROW("grouped", D128, .heads_k = 2),
    ROW("hk != hv", D128, .heads_k = 4, .heads_v = 2),
    ROW("padding", D128, .padding = 1),
    ROW("padding, causal, bottom right", D128, .padding = 1, .has_right = 1,
        .align = FATTN_BOTTOM_RIGHT),
    ROW("packed", D128, .padding = 1, .ragged_bits = 32),
    ROW("odd lengths", .seq_q = 100, .seq_kv = 97, .dim_qk = 128),
    ROW("sink", D128, .sink = 1),
    ROW("dropout", D128, .dropout = 0.25),
    ROW("a mask of the caller", D128, .dropout_mask = 1),
    ROW("scale in memory", D128, .scale_in_memory = 1),
    ROW("bias", D128, .has_bias = 1),
    ROW("alibi", D128, .alibi = 1, .has_right = 1),
};

static const row forward_dims[] = {
    ROW("d 64", S512, .dim_qk = 64),
    ROW("d 80", S512, .dim_qk = 80),
    ROW("d 192/128", S512, .dim_qk = 192, .dim_v = 128),
    ROW("d 256", S512, .dim_qk = 256),
    ROW("max and sum_exp", D128, .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
};

static void expect_both(int32_t dtype, int32_t spelling, const char *forward, const char *backward)
{
    for (size_t i = 0; i < COUNT(both); i++) {
        fattn_problem p = both[i].problem;
        p.dtype = dtype, p.spelling = spelling, p.guards_off = 1;
        cr_expect_str_eq(answer(p), forward, "forward, %s: %s", both[i].name, answer(p));
        p.pass = FATTN_BACKWARD;
        cr_expect_str_eq(answer(p), backward, "backward, %s: %s", both[i].name, answer(p));
    }
}

static void expect_dims(int32_t dtype, const char *forward)
{
    for (size_t i = 0; i < COUNT(forward_dims); i++) {
        fattn_problem p = forward_dims[i].problem;
        p.dtype = dtype, p.guards_off = 1;
        cr_expect_str_eq(answer(p), forward, "%s: %s", forward_dims[i].name, answer(p));
    }
}

/* ---- e4m3 and e5m2
 */

Test(fp8_hopper, engines_recognise_every_graph)
{
    if (!has(91500))
        return;
    for (int32_t dtype = FATTN_E4M3; dtype <= FATTN_E5M2; dtype++) {
        expect_both(dtype, FATTN_SPELLING_EXPANDED, "2", "6");
        if (version >= 92000)
            expect_both(dtype, FATTN_SPELLING_SINGLE, "2", "6");
        expect_dims(dtype, "2");
    }
}

Test(fp8_hopper, delayed_and_current_scaling_are_one_graph)
{
    expect_start("delayed", PROBLEM(D128, .dtype = FATTN_E4M3, .scaling = FATTN_SCALING_DELAYED),
                 "2");
    expect_start("current", PROBLEM(D128, .dtype = FATTN_E4M3, .scaling = FATTN_SCALING_CURRENT),
                 "2");
}

Test(fp8_hopper, refusals_are_cudnns_own)
{
    const char *output = "unsupported: FP8 input with F16 output is only supported on Blackwell";
    expect_start("bf16 O", PROBLEM(D128, .dtype = FATTN_E4M3, .o_dtype = FATTN_BF16), output);
    expect_start("bf16 gradients",
                 PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .grad_dtype = FATTN_BF16), output);
    expect_start("d 64", PROBLEM(S512, BACKWARD, .dim_qk = 64, .dtype = FATTN_E4M3),
                 "unsupported: Only D=128 for BPROP fp8 FMHA");
    expect_start("d 72", PROBLEM(S512, .dim_qk = 72, .dtype = FATTN_E4M3),
                 "unsupported: Embedding dim per head for q and k is not a multiple of 16");
    expect_start("pin", PROBLEM(D128, PIN, .dtype = FATTN_E4M3),
                 "unsupported: deterministic: no pin of an engine is known");
}

Test(fp8_hopper, plans_compile)
{
    if (!has(91300))
        return;
    compile_always("forward", PROBLEM(D128, .dtype = FATTN_E4M3, .has_right = 1, .heads_k = 2,
                                      .outputs = FATTN_WANT_STATS));
    compile_unguarded("forward, padding",
                      PROBLEM(S512, .dim_qk = 64, .dtype = FATTN_E5M2, .padding = 1));
    compile_unguarded("forward, dropout", PROBLEM(D128, .dtype = FATTN_E4M3, .dropout_mask = 1));
    compile_unguarded("forward, packed",
                      PROBLEM(D128, .dtype = FATTN_E4M3, .padding = 1, .ragged_bits = 32));
    compile_always("backward",
                   PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .has_right = 1, .heads_k = 2));
    compile_unguarded("backward, padding",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .padding = 1));
    compile_unguarded("backward, sink",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .sink = 1, .dsink = 1));
    compile_unguarded("backward, dropout",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .dropout = 0.25));
    compile_unguarded("backward, types of TransformerEngine",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .grad_dtype = FATTN_E5M2,
                              .do_dtype = FATTN_E5M2));
    compile_unguarded("backward, O of 16 bits",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .o_dtype = FATTN_BF16,
                              .do_dtype = FATTN_E5M2));
}

Test(fp8_blackwell, engines_recognise_every_graph)
{
    if (!has(91500))
        return;
    for (int32_t dtype = FATTN_E4M3; dtype <= FATTN_E5M2; dtype++) {
        expect_both(dtype, FATTN_SPELLING_EXPANDED, "3", "5");
        expect_dims(dtype, "3");
        expect_start("bf16 O", PROBLEM(D128, .dtype = dtype, .o_dtype = FATTN_BF16), "3");
        expect_start("f16 gradients",
                     PROBLEM(D128, BACKWARD, .dtype = dtype, .grad_dtype = FATTN_F16), "5");
        expect_start("d 64", PROBLEM(S512, BACKWARD, .dim_qk = 64, .dtype = dtype), "5");
        expect_start("decode", PROBLEM(.seq_q = 1, .seq_kv = 512, .dim_qk = 128, .dtype = dtype),
                     "3");
    }
}

/* The pin reaches what the heuristics do not offer. */
Test(fp8_blackwell, a_pin_is_taken_only_when_it_is_asked)
{
    if (!has(91900))
        return;
    const fattn_problem deep =
        PROBLEM(S512, BACKWARD, .dim_qk = 192, .dim_v = 128, .dtype = FATTN_E4M3);
    const fattn_problem pinned =
        PROBLEM(S512, PIN, .dim_qk = 192, .dim_v = 128, .dtype = FATTN_E4M3);
    expect_start("192/128", deep, "unsupported: ");
    expect_start("192/128, pinned", pinned, "5");
    compile_unguarded("192/128, pinned", pinned);
    compile_unguarded("bf16 gradients, pinned", PROBLEM(D128, PIN, .dtype = FATTN_E4M3,
                                                        .grad_dtype = FATTN_BF16, .heads_k = 2));
}

Test(fp8_blackwell, plans_compile)
{
    if (!has(91300))
        return;
    compile_unguarded("bf16 O",
                      PROBLEM(D128, .dtype = FATTN_E4M3, .o_dtype = FATTN_BF16, .has_right = 1));
    compile_unguarded("sink", PROBLEM(D128, .dtype = FATTN_E4M3, .sink = 1, .padding = 1));
    compile_unguarded("bf16 gradients",
                      PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .grad_dtype = FATTN_BF16));
    compile_unguarded(
        "packed", PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3, .padding = 1, .ragged_bits = 32));
}

Test(fp8_ada, has_none)
{
    expect_start("forward", PROBLEM(D128, .dtype = FATTN_E4M3),
                 "unsupported: MHA only supports FP16/BF16 I/O for selected engine config");
    expect_start("backward", PROBLEM(D128, BACKWARD, .dtype = FATTN_E4M3),
                 "unsupported: FP8 Flash Attention is not supported for sm_80");
}

/* ---- block-scaled types
 */

Test(mx_blackwell, forward_is_recognised_and_compiles)
{
    if (!has(92100))
        return;
    for (int32_t dtype = FATTN_MXE4M3; dtype <= FATTN_MXE5M2; dtype++) {
        for (size_t i = 0; i < COUNT(both); i++) {
            fattn_problem p = both[i].problem;
            p.dtype = dtype;
            cr_expect_str_eq(answer(p), "3", "%s: %s", both[i].name, answer(p));
        }
    }
    compile_unguarded("plain", PROBLEM(D128, .dtype = FATTN_MXE4M3, .outputs = FATTN_WANT_STATS));
    compile_unguarded("grouped, causal, f16, odd lengths",
                      PROBLEM(.seq_q = 100, .seq_kv = 97, .dim_qk = 128, .dtype = FATTN_MXE5M2,
                              .o_dtype = FATTN_F16, .heads_k = 2, .has_right = 1));
    compile_unguarded("factors in another order",
                      PROBLEM(D128, .dtype = FATTN_MXE4M3, .scale_format = FATTN_FORMAT_SBHD));
}

Test(mx_blackwell, backward_compiles_with_its_pin)
{
    if (!has(92300))
        return;
    const char *short_type =
        "unsupported: Data type for Q tensor should be half / bf16 / e4m3 / e5m2";
    expect_start("e4m3", PROBLEM(D128, PIN, .dtype = FATTN_MXE4M3), "5");
    expect_start("e5m2", PROBLEM(D128, PIN, .dtype = FATTN_MXE5M2), short_type);
    compile_unguarded("grouped, causal, padding, f16 gradients",
                      PROBLEM(D128, PIN, .dtype = FATTN_MXE4M3, .heads_k = 2, .has_right = 1,
                              .padding = 1, .grad_dtype = FATTN_F16));
    compile_unguarded("192/128, sink", PROBLEM(S512, PIN, .dim_qk = 192, .dim_v = 128,
                                               .dtype = FATTN_MXE4M3, .sink = 1, .dsink = 1));
}

Test(mx_blackwell, older_versions_refuse_in_their_own_words)
{
    if (version >= 92100)
        return;
    expect_start("forward", PROBLEM(D128, .dtype = FATTN_MXE4M3), "unsupported: ");
    expect_start("backward", PROBLEM(D128, BACKWARD, .dtype = FATTN_MXE4M3), "unsupported: ");
}

/* A decision is not a plan: nothing of ours hides it. */
Test(mx_hopper, what_is_offered_is_answered_yes)
{
    if (!has(92500))
        return;
    expect_start("forward", PROBLEM(D128, .dtype = FATTN_MXE4M3), "2");
    expect_start("backward", PROBLEM(D128, BACKWARD, .dtype = FATTN_MXE4M3), "6");
}
