/* The order of operations, where another order computes the same numbers (test_graph_values.c sees
 * no difference): engines recognise a graph by it, and a real cuDNN, asked without a GPU, does not
 * refuse every wrong one. */
#include "fattn/score_mod.h"
#include "graph_recorder.h"

#define SOFTMAX "reduce_max SUB EXP reduce_add LOG ADD DIV"
#define PADDING "GEN_INDEX GEN_INDEX CMP_LT CMP_LT LOGICAL_AND BINARY_SELECT"
#define CAUSAL "GEN_INDEX GEN_INDEX CMP_GE BINARY_SELECT"
#define LEFT "GEN_INDEX GEN_INDEX ADD CMP_GT BINARY_SELECT"
#define GRADIENTS "reshape matmul reshape matmul IDENTITY"
#define FP8_PRODUCT "matmul(lengths) reduce_add MUL MUL MUL reduce_amax"

typedef struct row {
    const char *name, *order;
    fattn_problem problem;
} row;

#define ROW(name, order, ...)                                                                      \
    {                                                                                              \
        name, order,                                                                               \
        {                                                                                          \
            .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, .seq_q = 96,           \
            .seq_kv = 128, .dim_qk = 64, __VA_ARGS__                                               \
        }                                                                                          \
    }
#define BACKWARD .pass = FATTN_BACKWARD

static const row rows[] = {
    ROW("bias, ALiBi, lengths, right bound, left bound",
        "matmul(lengths) MUL ADD GEN_INDEX GEN_INDEX SUB MUL ADD " PADDING " " CAUSAL " " LEFT
        " " SOFTMAX " matmul(lengths)",
        .has_bias = 1, .alibi = 1, .padding = 1, .has_right = 1, .has_left = 1, .window_left = 8),
    ROW("a boolean mask in the place of the bias, pages",
        "paged_load matmul(lengths) MUL BINARY_SELECT " PADDING " " SOFTMAX
        " paged_load matmul(lengths)",
        .has_bias = 1, .bias_dtype = FATTN_BOOL, .padding = 1, .page_size_k = 16, .pages_k = 20,
        .page_size_v = 16, .pages_v = 20),
    ROW("bottom right",
        "matmul MUL GEN_INDEX GEN_INDEX ADD SUB ADD CMP_GE BINARY_SELECT " SOFTMAX " matmul",
        .has_right = 1, .window_right = 3, .align = FATTN_BOTTOM_RIGHT),
    ROW("a sink in maximum and sum",
        "matmul MUL reduce_max MAX SUB EXP SUB EXP reduce_add ADD LOG ADD DIV matmul", .sink = 1),
    ROW("Max and Sum_exp without the logarithm",
        "matmul MUL reduce_max SUB EXP reduce_add DIV matmul",
        .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
    ROW("dropout", "matmul MUL " SOFTMAX " rng MUL MUL matmul", .dropout = 0.5),
    ROW("single operations",
        "matmul(lengths) MUL " PADDING
        " band_right(lengths) band_left(lengths) softmax matmul(lengths)",
        .padding = 1, .has_right = 1, .has_left = 1, .window_left = 8, .align = FATTN_BOTTOM_RIGHT,
        .spelling = FATTN_SPELLING_SINGLE),
    ROW("backward: Stats before the masks, the sums of shared heads",
        "MUL reduce_add MUL matmul(lengths) MUL SUB " PADDING " " CAUSAL
        " EXP reshape matmul(lengths) reduce_add matmul(lengths) SUB MUL MUL reshape "
        "matmul(lengths) reduce_add reshape matmul(lengths) IDENTITY",
        BACKWARD, .padding = 1, .has_right = 1, .heads_k = 2),
    ROW("backward: the gradient of a bias before the scale, dQ without an accumulator",
        "MUL reduce_add MUL matmul MUL ADD SUB EXP reshape matmul matmul SUB MUL reduce_add MUL "
        "reshape matmul reshape matmul",
        BACKWARD, .has_bias = 1, .dbias = 1),
    ROW("backward: dropout, the sink's gradient off the row sums",
        "rng MUL reduce_add SUB EXP MUL reduce_add MUL matmul MUL SUB EXP MUL MUL reshape matmul "
        "matmul MUL SUB MUL MUL "
        "MUL " GRADIENTS,
        BACKWARD, .dropout = 0.5, .sink = 1, .dsink = 1),
    ROW("backward: the caller's factor beside dP",
        "MUL reduce_add MUL matmul MUL SUB EXP MUL MUL reshape matmul matmul MUL MUL SUB MUL "
        "MUL " GRADIENTS,
        BACKWARD, .dropout_mask = 1),
    ROW("8 bits: the largest P after dropout",
        "matmul MUL MUL MUL " SOFTMAX " rng MUL MUL reduce_amax MUL matmul MUL MUL MUL reduce_amax",
        .dtype = FATTN_E4M3, .dropout = 0.25),
    ROW("8 bits, backward: masks before Stats, groups before descales, dQ before dK",
        "MUL reduce_add MUL MUL matmul(lengths) MUL MUL MUL " PADDING " " CAUSAL
        " SUB EXP MUL reshape " FP8_PRODUCT
        " matmul(lengths) MUL MUL SUB MUL MUL reduce_amax MUL reshape matmul(lengths) MUL MUL MUL "
        "reduce_amax reshape " FP8_PRODUCT,
        BACKWARD, .dtype = FATTN_E4M3, .padding = 1, .has_right = 1, .heads_k = 2),
    ROW("block-scaled, backward",
        "block_scale block_scale block_scale block_scale MUL reduce_add matmul MUL SUB EXP reshape "
        "block_scale matmul reduce_add "
        "reduce_amax matmul SUB MUL MUL "
        "block_scale matmul reduce_amax reshape block_scale matmul reduce_add reduce_amax",
        BACKWARD, .dtype = FATTN_MXE4M3, .heads_k = 2),
};

Test(graph_order, is_what_engines_recognise)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(build(92300, rows[i].problem), FATTN_OK, "%s: %s", rows[i].name, graph.text);
        cr_expect_str_eq(order, rows[i].order, "%s:\ngot  %s\nwant %s", rows[i].name, order,
                         rows[i].order);
        fattn__graph_release(&graph);
        cr_expect_eq(alive, 0, "%s: every descriptor is freed", rows[i].name);
    }
}
