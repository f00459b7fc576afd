/* The graphs of 8 bit types, put to a real cuDNN for described devices: which engines recognise
 * them, what cuDNN refuses in which words, and that plans compile. Nobody has run the block-scaled
 * ones here: that takes an sm_100. */
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
TestSuite(fp8_ada, .init = open_ada, .fini = close_context, .timeout = 300);

typedef struct row {
    const char *name, *start; /* of the answer; "compile": in the night, and "always" */
    fattn_problem problem;
} row;

#define ROW(name, start, ...)                                                                      \
    {                                                                                              \
        name, start,                                                                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define BACKWARD .pass = FATTN_BACKWARD
#define PIN BACKWARD, .deterministic = 1, .determinism = FATTN_DETERMINISM_PIN
#define E4M3 .dtype = FATTN_E4M3
#define MX .dtype = FATTN_MXE4M3
#define DEEP .dim_qk = 192, .dim_v = 128

static void expect_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fattn_problem p = rows[i].problem;
        const bool always = strcmp(rows[i].start, "always") == 0;
        if (!always && strcmp(rows[i].start, "compile") != 0) {
            expect_answer(rows[i].name, p, rows[i].start);
            continue;
        }
        p.guards_off = 1;
        if (always && compiling())
            compiled(rows[i].name, p, NULL);
        else
            compile(rows[i].name, p);
    }
}

/* What both passes and both devices take; some of it is known to be wrong, so guards are off. */
static const row both[] = {
    ROW("plain", "", .alibi = 0),
    ROW("causal, bottom right", "", .seq_q = 256, .has_right = 1, .align = FATTN_BOTTOM_RIGHT),
    ROW("window", "", .has_right = 1, .has_left = 1, .window_left = 40),
    ROW("grouped", "", .heads_k = 2),
    ROW("hk != hv", "", .heads_k = 4, .heads_v = 2),
    ROW("padding, causal_br", "", .padding = 1, .has_right = 1, .align = FATTN_BOTTOM_RIGHT),
    ROW("odd lengths", "", .seq_q = 100, .seq_kv = 97),
    ROW("sink", "", .sink = 1),
    ROW("dropout", "", .dropout = 0.25),
    ROW("a mask of the caller", "", .dropout_mask = 1),
    ROW("scale in memory", "", .scale_in_memory = 1),
    ROW("bias", "", .has_bias = 1),
    ROW("alibi", "", .alibi = 1, .has_right = 1),
    ROW("d 80", "forward", .dim_qk = 80),
    ROW("max and sum_exp", "forward", .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
};

/* `backward` NULL: not asked. */
static void expect_both(int32_t dtype, int32_t spelling, const char *forward, const char *backward)
{
    for (size_t i = 0; i < COUNT(both); i++) {
        fattn_problem p = both[i].problem;
        p.dtype = dtype, p.spelling = spelling, p.guards_off = backward != NULL;
        if ((backward == NULL && *both[i].start != '\0') || is_for_newer(answer(p)))
            continue;
        cr_expect_str_eq(answer(p), forward, "forward, %s: %s", both[i].name, answer(p));
        p.pass = FATTN_BACKWARD;
        if (backward != NULL && *both[i].start == '\0')
            cr_expect_str_eq(answer(p), backward, "backward, %s: %s", both[i].name, answer(p));
    }
}

Test(fp8_hopper, engines_recognise_every_graph_and_refuse_in_cudnns_words)
{
    static const row rows[] = {
        ROW("delayed", "2", E4M3, .scaling = FATTN_SCALING_DELAYED),
        ROW("current", "2", E4M3, .scaling = FATTN_SCALING_CURRENT),
        ROW("bf16 O", "unsupported: FP8 input with F16 output is only supported on Blackwell", E4M3,
            .o_dtype = FATTN_BF16),
        ROW("bf16 gradients",
            "unsupported: FP8 input with F16 output is only supported on Blackwell", E4M3, BACKWARD,
            .grad_dtype = FATTN_BF16),
        ROW("d 64", "unsupported: Only D=128 for BPROP fp8 FMHA", E4M3, BACKWARD, .dim_qk = 64),
        ROW("d 72", "unsupported: Embedding dim per head for q and k is not a multiple of 16", E4M3,
            .dim_qk = 72),
        ROW("pin", "unsupported: deterministic: no pin of an engine is known", E4M3, PIN),
        ROW("forward", "always", E4M3, .has_right = 1, .heads_k = 2, .outputs = FATTN_WANT_STATS),
        ROW("forward, padding", "compile", .dtype = FATTN_E5M2, .padding = 1, .dim_qk = 64),
        ROW("forward, dropout", "compile", E4M3, .dropout_mask = 1),
        ROW("forward, packed", "compile", E4M3, .padding = 1, .ragged_bits = 32),
        ROW("backward", "always", E4M3, BACKWARD, .has_right = 1, .heads_k = 2),
        ROW("backward, padding", "compile", E4M3, BACKWARD, .padding = 1),
        ROW("backward, sink", "compile", E4M3, BACKWARD, .sink = 1, .dsink = 1),
        ROW("backward, dropout", "compile", E4M3, BACKWARD, .dropout = 0.25),
        ROW("backward, types of TransformerEngine", "compile", E4M3, BACKWARD,
            .grad_dtype = FATTN_E5M2, .do_dtype = FATTN_E5M2),
        ROW("backward, O of 16 bits", "compile", E4M3, BACKWARD, .o_dtype = FATTN_BF16,
            .do_dtype = FATTN_E5M2),
    };
    for (int32_t dtype = FATTN_E4M3; dtype <= FATTN_E5M2; dtype++) {
        expect_both(dtype, FATTN_SPELLING_EXPANDED, "2", "6");
        expect_both(dtype, FATTN_SPELLING_SINGLE, "2", "6");
    }
    expect_rows(rows, COUNT(rows));
    if (version >= 92500) { /* a decision is not a plan: nothing of ours hides it */
        expect_answer("block-scaled", (fattn_problem){ MX }, "2");
        expect_answer("block-scaled", (fattn_problem){ MX, BACKWARD }, "6");
    }
}

Test(fp8_blackwell, engines_recognise_every_graph)
{
    static const row rows[] = {
        ROW("bf16 O", "3", E4M3, .o_dtype = FATTN_BF16),
        ROW("bf16 O, e5m2", "3", .dtype = FATTN_E5M2, .o_dtype = FATTN_BF16),
        ROW("f16 gradients", "5", E4M3, BACKWARD, .grad_dtype = FATTN_F16),
        ROW("d 64", "5", E4M3, BACKWARD, .dim_qk = 64),
        ROW("decode", "3", E4M3, .seq_q = 1),
        ROW("192/128: the pin reaches what is not offered", "unsupported: ", E4M3, BACKWARD, DEEP),
        ROW("192/128, pinned", "5", E4M3, PIN, DEEP),
        ROW("192/128, pinned", "compile", E4M3, PIN, DEEP),
        ROW("bf16 gradients, pinned", "compile", E4M3, PIN, .grad_dtype = FATTN_BF16, .heads_k = 2),
        ROW("bf16 O", "compile", E4M3, .o_dtype = FATTN_BF16, .has_right = 1),
        ROW("sink", "compile", E4M3, .sink = 1, .padding = 1),
        ROW("bf16 gradients", "compile", E4M3, BACKWARD, .grad_dtype = FATTN_BF16),
        ROW("packed", "compile", E4M3, BACKWARD, .padding = 1, .ragged_bits = 32),
    };
    for (int32_t dtype = FATTN_E4M3; dtype <= FATTN_E5M2; dtype++)
        expect_both(dtype, FATTN_SPELLING_EXPANDED, "3", "5");
    expect_rows(rows, COUNT(rows));
}

Test(fp8_blackwell, block_scaled_graphs_are_recognised_from_their_versions_on)
{
    static const row older[] = { ROW("forward", "unsupported: ", MX),
                                 ROW("backward", "unsupported: ", MX, BACKWARD) };
    static const row forward[] = {
        ROW("plain", "compile", MX, .outputs = FATTN_WANT_STATS),
        ROW("grouped, causal, f16, odd lengths", "compile", .dtype = FATTN_MXE5M2, .seq_q = 100,
            .seq_kv = 97, .o_dtype = FATTN_F16, .heads_k = 2, .has_right = 1),
        ROW("factors in another order", "compile", MX, .scale_format = FATTN_FORMAT_SBHD),
    };
    static const row backward[] = {
        ROW("e4m3", "5", MX, PIN),
        ROW("e5m2", "unsupported: Data type for Q tensor should be half / bf16 / e4m3 / e5m2", PIN,
            .dtype = FATTN_MXE5M2),
        ROW("grouped, causal, padding, f16 gradients", "compile", MX, PIN, .heads_k = 2,
            .has_right = 1, .padding = 1, .grad_dtype = FATTN_F16),
        ROW("192/128, sink", "compile", MX, PIN, DEEP, .sink = 1, .dsink = 1),
    };
    if (version < 92100) {
        expect_rows(older, COUNT(older));
        return;
    }
    expect_both(FATTN_MXE4M3, FATTN_SPELLING_AUTO, "3", NULL);
    expect_both(FATTN_MXE5M2, FATTN_SPELLING_AUTO, "3", NULL);
    expect_rows(forward, COUNT(forward));
    if (has(92300))
        expect_rows(backward, COUNT(backward));
}

Test(fp8_ada, has_none)
{
    static const row rows[] = {
        ROW("forward", "unsupported: MHA only supports FP16/BF16 I/O for selected engine config",
            E4M3),
        ROW("backward", "unsupported: FP8 Flash Attention is not supported for sm_80", E4M3,
            BACKWARD),
    };
    expect_rows(rows, COUNT(rows));
}
