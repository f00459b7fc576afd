/* Composite graphs: the library's workspace, the gradients that it sums, constants, refusals, and
 * what is left behind when a call of cuDNN fails. */
#include "fattn/score_mod.h"
#include "graph_recorder.h"

static size_t scratch_of(fattn_problem p)
{
    cr_assert_eq(build(91900, p), FATTN_OK);
    const size_t bytes = graph.scratch_bytes;
    fattn__graph_release(&graph);
    return bytes;
}

Test(backward, keeps_row_sums_and_the_dq_accumulator_in_our_workspace)
{
    const size_t rows = 2 * 8 * 96;
    cr_expect_eq(scratch_of(PROBLEM(.pass = FATTN_BACKWARD)), rows * 4 + rows * 64 * 4);
    cr_expect_eq(scratch_of(PROBLEM(.pass = FATTN_BACKWARD, .deterministic = 1)), rows * 4);
    cr_expect_eq(scratch_of(PROBLEM(.pass = FATTN_FORWARD)), 0);
}

static fattn_value step_of(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    return fattn_record(r, FATTN_MOD_FLOOR, score, 0, 0);
}

/* Without it engines answer "Flash attention bprop needs a matmul to compute dK". */
Test(score_mod, with_a_gradient_of_zero_still_takes_ds_from_dp)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, step_of, NULL, NULL), FATTN_OK);
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod)), FATTN_OK, "%s",
                 graph.text);
    cr_expect_not_null(strstr(order, "GEN_INDEX MUL ADD MUL ADD MUL reshape"), "%s", order);
    fattn__graph_release(&graph);
    fattn_score_mod_destroy(mod);
}

/* Backward engines read a bias of one row wrongly, and right as all rows at stride 0. */
Test(backward, reads_a_bias_of_one_row_as_all_rows)
{
    for (int pass = FATTN_FORWARD; pass <= FATTN_BACKWARD; pass++) {
        cr_assert_eq(build(91900, PROBLEM(.pass = (fattn_pass)pass, .has_bias = 1,
                                          .bias_dim = { 1, 8, 1, 128 })),
                     FATTN_OK, "%s", graph.text);
        cr_expect_eq(tensor_of(FATTN__SLOT_BIAS)->dim[2], pass == FATTN_BACKWARD ? 96 : 1);
        cr_expect(pass == FATTN_FORWARD || tensor_of(FATTN__SLOT_BIAS)->strides[2] == 0);
        fattn__graph_release(&graph);
    }
}

/* ---- gradients that we sum
 * ------------------------------------------------------------------------------------------------------------
 */

static void expect_sum(const fattn__graph_sum *sum, fattn__slot slot, int32_t dtype,
                       const int64_t dim[4], const int64_t out_strides[4])
{
    cr_expect_eq(sum->slot, (int32_t)slot);
    cr_expect_eq(sum->out_dtype, dtype);
    cr_expect_eq(memcmp(sum->dim, dim, sizeof sum->dim), 0, "%ld %ld %ld %ld", (long)sum->dim[0],
                 (long)sum->dim[1], (long)sum->dim[2], (long)sum->dim[3]);
    cr_expect_eq(memcmp(sum->out_strides, out_strides, sizeof sum->out_strides), 0);
}

Test(sums, of_a_broadcast_input_are_made_from_the_gradient_of_every_element)
{
    const int64_t rows = 96 * 8 * 64;
    const fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .q_strides = { 0, 64, 512, 1 },
                                    .dq_strides = { 0, 64, 512, 1 });
    const size_t without = scratch_of(PROBLEM(.pass = FATTN_BACKWARD));
    cr_assert_eq(build(91900, p), FATTN_OK, "%s", graph.text);
    cr_assert_eq(graph.sum_count, 1);
    expect_sum(&graph.sums[0], FATTN__SLOT_DQ, FATTN_BF16, (int64_t[4]){ 2, 8, 96, 64 },
               (int64_t[4]){ 0, 64, 512, 1 });
    cr_expect_eq(graph.scratch_bytes, without + (size_t)(2 * rows * 2),
                 "the scratch is part of the workspace");
    fattn__graph_release(&graph);
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .q_strides = { 0, 64, 512, 1 })),
                 FATTN_OK);
    cr_expect_eq(graph.sum_count, 0, "the gradient of each element is what was asked for");
    fattn__graph_release(&graph);
}

Test(sums, of_ds_are_cudnns_own_where_that_is_known_to_be_right)
{
    static const struct {
        int64_t dim[4];
        int sums;
    } rows[] = { { { 1, 8, 96, 128 }, 0 }, { { 2, 1, 96, 128 }, 0 }, { { 2, 8, 96, 128 }, 0 },
                 { { 1, 1, 96, 128 }, 1 }, { { 1, 1, 1, 128 }, 1 },  { { 2, 8, 1, 128 }, 1 },
                 { { 1, 8, 96, 1 }, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .has_bias = 1, .dbias = 1);
        memcpy(p.bias_dim, rows[i].dim, sizeof p.bias_dim);
        cr_assert_eq(build(91900, p), FATTN_OK, "%s", graph.text);
        cr_expect_eq(graph.sum_count, rows[i].sums, "row %zu", i);
        fattn__graph_release(&graph);
        cr_assert_eq(build(90900, p), FATTN_OK, "%s", graph.text);
        cr_expect_eq(graph.sum_count, rows[i].sums || rows[i].dim[1] == 1, "row %zu, before 9.10",
                     i);
        fattn__graph_release(&graph);
    }
}

static fattn_value three_tensors(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t slope[4] = { 1, 8, 1, 1 }, column[4] = { 2, 1, 1, 128 },
                  whole[4] = { 1, 8, 96, 128 };
    (void)user;
    score = fattn_record(r, FATTN_MOD_MUL, score,
                         fattn_record_tensor(r, "slope", FATTN_F32, slope, NULL), 0);
    score = fattn_record(r, FATTN_MOD_ADD, score,
                         fattn_record_tensor(r, "column", FATTN_BF16, column, NULL), 0);
    return fattn_record(r, FATTN_MOD_ADD, score,
                        fattn_record_tensor(r, "whole", FATTN_F32, whole, NULL), 0);
}

Test(sums, serve_every_tensor_that_is_added_last_from_one_reduction)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, three_tensors, NULL, NULL), FATTN_OK);
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod, .mod_gradients = 6,
                                      .has_bias = 1, .dbias = 1)),
                 FATTN_OK, "%s", graph.text);
    cr_assert_eq(graph.sum_count, 3);
    const int64_t all[4] = { 2, 8, 96, 128 };
    expect_sum(&graph.sums[0], FATTN__SLOT_DBIAS, FATTN_BF16, all,
               (int64_t[4]){ 0, 96 * 128, 128, 1 });
    expect_sum(&graph.sums[1], FATTN__SLOT_DMOD_1, FATTN_F32, all, (int64_t[4]){ 128, 0, 0, 1 });
    expect_sum(&graph.sums[2], FATTN__SLOT_DMOD_2, FATTN_F32, all,
               (int64_t[4]){ 0, 96 * 128, 128, 1 });
    cr_expect_eq(graph.sums[0].offset, graph.sums[2].offset);
    fattn__graph_release(&graph);
    cr_expect_eq(
        build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod, .mod_gradients = 1)),
        FATTN_UNSUPPORTED);
    cr_expect_not_null(strstr(graph.text, "\"slope\" is not added as the last step"), "%s",
                       graph.text);
    fattn__graph_release(&graph);
    fattn_score_mod_destroy(mod);
}

Test(score_mod, binds_its_tensors_to_the_addresses_of_the_call)
{
    fattn_score_mod *mod;
    int slots[3] = { 0 };
    cr_assert_eq(fattn_score_mod_create(&mod, three_tensors, NULL, NULL), FATTN_OK);
    cr_assert_eq(build(91900, PROBLEM(.score_mod = mod)), FATTN_OK, "%s", graph.text);
    for (int i = 0; i < graph.binding_count; i++)
        for (int k = 0; k < 3; k++)
            slots[k] += graph.bindings[i].slot == FATTN__SLOT_MOD_0 + k;
    for (int k = 0; k < 3; k++)
        cr_expect_eq(slots[k], 1, "tensor %d", k);
    fattn__graph_release(&graph);
    fattn_score_mod_destroy(mod);
}

/* ---- constants
 * -----------------------------------------------------------------------------------------------------------------
 */

/* The by-value constants, in order. */
static int constants(fattn_problem p, int version, fattn__binding *out)
{
    int count = 0;
    cr_assert_eq(build(version, p), FATTN_OK, "%s", graph.text);
    for (int i = 0; i < graph.binding_count; i++)
        if (graph.bindings[i].slot == FATTN__SLOT_VALUE)
            out[count++] = graph.bindings[i];
    fattn__graph_release(&graph);
    return count;
}

Test(graph, masks_with_infinity_only_where_kernels_take_it)
{
    fattn__binding values[FATTN__MAX_BINDINGS];
    cr_assert_eq(constants(PROBLEM(.has_right = 1), 91000, values), 2);
    cr_expect_eq(values[1].value.f32, -(float)INFINITY);
    cr_assert_eq(constants(PROBLEM(.has_right = 1), 90900, values), 2);
    cr_expect_eq(values[1].value.bits, 0xff7fffffu, "-FLT_MAX");
}

/* ---- refusals
 * -------------------------------------------------------------------------------------------------------------------
 */

static void expect_refusal(int version, fattn_problem p, fattn_status want, const char *sentence)
{
    cr_expect_eq(build(version, p), want, "%s", sentence);
    cr_expect_eq(strncmp(graph.text, sentence, strlen(sentence)), 0, "%s", graph.text);
    fattn__graph_release(&graph);
    cr_expect_eq(alive, 0);
}

Test(refusal, of_single_operations_below_9_20)
{
    expect_refusal(91900, PROBLEM(.spelling = FATTN_SPELLING_SINGLE), FATTN_UNSUPPORTED,
                   "spelling single needs cuDNN 9.20; this is 9.19.0");
}

Test(refusal, of_row_outputs_that_the_expanded_softmax_leaves_unwritten)
{
    for (uint32_t outputs = 0; outputs < 8; outputs++) {
        const bool written = outputs == 0 || outputs == FATTN_WANT_STATS ||
                             outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP);
        const fattn_status want = written ? FATTN_OK : FATTN_POLICY;
        cr_expect_eq(build(91900, PROBLEM(.outputs = outputs)), want);
        fattn__graph_release(&graph);
        cr_expect_eq(build(92000, PROBLEM(.outputs = outputs, .spelling = FATTN_SPELLING_EXPANDED)),
                     want);
        fattn__graph_release(&graph);
        cr_expect_eq(build(91900, PROBLEM(.outputs = outputs, .guards_off = 1)), FATTN_OK,
                     "guards off: asked as it is");
        fattn__graph_release(&graph);
    }
}

Test(refusal, of_a_length_that_a_band_cannot_hold)
{
    fattn_problem p = PROBLEM(.has_right = 1, .align = FATTN_BOTTOM_RIGHT);
    p.seq_kv = (int64_t)1 << 33;
    expect_refusal(91900, p, FATTN_UNSUPPORTED,
                   "seq_kv: 8589934592 does not fit the int32 of a band");
}

Test(failure, of_any_call_is_kept_and_nothing_leaks)
{
    const fattn_problem p =
        PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .has_right = 1, .heads_k = 2);
    cr_assert_eq(build(91900, p), FATTN_OK);
    const int total = calls;
    fattn__graph_release(&graph);
    for (failing_call = 1; failing_call <= total; failing_call++) {
        cr_expect_eq(build(91900, p), FATTN_UNSUPPORTED, "call %d", failing_call);
        cr_expect_eq(calls, failing_call, "nothing is asked after the first failure");
        cr_expect_eq(graph.cudnn_status, DNN_STATUS_BAD_PARAM);
        cr_expect_null(graph.operation_graph);
        fattn__graph_release(&graph);
        cr_expect_eq(alive, 0, "call %d leaks", failing_call);
    }
    failing_call = 0;
}

Test(backward, keeps_room_for_the_declared_tokens)
{
    fattn_problem p =
        PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .ragged_bits = 32, .heads_k = 2);
    cr_assert_eq(build(92700, p), FATTN_OK, "%s", graph.text);
    const size_t whole = graph.scratch_bytes;
    fattn__graph_release(&graph);
    p.total_q = 10, p.total_kv = 20;
    cr_assert_eq(build(92700, p), FATTN_OK, "%s", graph.text);
    const size_t sums = 10 * 8 * 4, gradient = 20 * 8 * 64 * 2, accumulator = 10 * 8 * 64 * 4;
    cr_expect_eq(graph.scratch_bytes, sums + 2 * gradient + accumulator, "got %zu",
                 graph.scratch_bytes);
    cr_expect_lt(graph.scratch_bytes, whole);
    fattn__graph_release(&graph);
}

Test(refusal, of_a_packed_gradient_that_would_be_summed)
{
    fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .ragged_bits = 32,
                              .k_strides = { 1, 0, 64, 1 }, .dk_strides = { 1, 0, 64, 1 });
    cr_expect_eq(build(92700, p), FATTN_UNSUPPORTED);
    cr_expect_not_null(strstr(graph.text, "dk_strides: a packed gradient is not summed"), "%s",
                       graph.text);
    fattn__graph_release(&graph);
}
