/* The order of operations of packed, paged, biased and dropped composite graphs, read off as in test_graph.c. */
#include "graph_recorder.h"

#define SOFTMAX "reduce_max SUB EXP reduce_add LOG ADD DIV"
#define PADDING "GEN_INDEX GEN_INDEX CMP_LT CMP_LT LOGICAL_AND BINARY_SELECT"

Test(forward, adds_alibi_after_the_bias)
{
    expect_order(91900, PROBLEM(.alibi = 1, .has_bias = 1), "matmul MUL ADD GEN_INDEX GEN_INDEX SUB MUL ADD " SOFTMAX " matmul");
}

Test(forward, selects_by_a_boolean_mask_in_the_place_of_the_bias)
{
    expect_order(91900, PROBLEM(.has_bias = 1, .bias_dtype = FATTN_BOOL, .padding = 1),
                 "matmul(lengths) MUL BINARY_SELECT " PADDING " " SOFTMAX " matmul(lengths)");
}

Test(forward, joins_the_sink_to_maximum_and_sum)
{
    expect_order(91900, PROBLEM(.sink = 1, .outputs = FATTN_WANT_STATS),
                 "matmul MUL reduce_max MAX SUB EXP SUB EXP reduce_add ADD LOG ADD DIV matmul");
    expect_order(92000, PROBLEM(.sink = 1, .spelling = FATTN_SPELLING_SINGLE), "matmul MUL softmax matmul");
}

Test(forward, drops_after_the_softmax)
{
    expect_order(91900, PROBLEM(.dropout = 0.5), "matmul MUL " SOFTMAX " rng MUL MUL matmul");
    expect_order(91900, PROBLEM(.dropout_mask = 1), "matmul MUL " SOFTMAX " MUL MUL matmul");
}

Test(forward, gathers_each_side_before_its_product)
{
    expect_order(91900, PROBLEM(.padding = 1, .page_size_k = 16, .pages_k = 20, .page_size_v = 16, .pages_v = 20),
                 "paged_load matmul(lengths) MUL " PADDING " " SOFTMAX " paged_load matmul(lengths)");
    expect_order(91900, PROBLEM(.padding = 1, .page_size_v = 16, .pages_v = 20),
                 "matmul(lengths) MUL " PADDING " " SOFTMAX " paged_load matmul(lengths)");
}

#define BACKWARD(...) PROBLEM(.pass = FATTN_BACKWARD, __VA_ARGS__)
#define GRADIENTS "reshape matmul reshape matmul IDENTITY"

Test(backward, reads_the_gradient_of_the_sink_off_the_row_sums)
{
    expect_order(91900, BACKWARD(.sink = 1, .dsink = 1),
                 "MUL reduce_add SUB EXP MUL reduce_add MUL matmul MUL SUB EXP reshape matmul matmul SUB MUL MUL " GRADIENTS);
    expect_order(91900, BACKWARD(.sink = 1), "MUL reduce_add MUL matmul MUL SUB EXP reshape matmul matmul SUB MUL MUL " GRADIENTS);
}

Test(backward, drops_p_and_its_gradient_by_one_mask)
{
    expect_order(91900, BACKWARD(.dropout = 0.5),
                 "rng MUL reduce_add MUL matmul MUL SUB EXP MUL MUL reshape matmul matmul MUL SUB MUL MUL MUL " GRADIENTS);
    /* The caller's: its factor is multiplied with dP, not with what is left of D. */
    expect_order(91900, BACKWARD(.dropout_mask = 1),
                 "MUL reduce_add MUL matmul MUL SUB EXP MUL MUL reshape matmul matmul MUL MUL SUB MUL MUL " GRADIENTS);
}

Test(backward, keeps_room_for_the_declared_tokens)
{
    fattn_problem p = BACKWARD(.padding = 1, .ragged_bits = 32, .heads_k = 2);
    cr_assert_eq(build(92700, p), FATTN_OK, "%s", graph.text);
    const size_t whole = graph.scratch_bytes;
    fattn__graph_release(&graph);
    p.total_q = 10, p.total_kv = 20;
    cr_assert_eq(build(92700, p), FATTN_OK, "%s", graph.text);
    const size_t sums = 10 * 8 * 4, gradient = 20 * 8 * 64 * 2, accumulator = 10 * 8 * 64 * 4;
    cr_expect_eq(graph.scratch_bytes, sums + 2 * gradient + accumulator, "got %zu", graph.scratch_bytes);
    cr_expect_lt(graph.scratch_bytes, whole);
    fattn__graph_release(&graph);
}

Test(refusal, of_a_packed_gradient_that_would_be_summed)
{
    fattn_problem p = BACKWARD(.padding = 1, .ragged_bits = 32, .k_strides = { 1, 0, 64, 1 }, .dk_strides = { 1, 0, 64, 1 });
    cr_expect_eq(build(92700, p), FATTN_UNSUPPORTED);
    cr_expect_not_null(strstr(graph.text, "dk_strides: a packed gradient is not summed"), "%s", graph.text);
    fattn__graph_release(&graph);
}
