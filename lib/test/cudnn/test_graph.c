/* The order of operations is what engines recognise. Here it is read off through a cuDNN of our own that only writes down what it
 * is told: no library is needed, and every call can be made to fail. */
#include "fattn/score_mod.h"
#include "graph_recorder.h"

/* ---- forward --------------------------------------------------------------------------------------------------------------------
 */

#define SOFTMAX "reduce_max SUB EXP reduce_add LOG ADD DIV"
#define PADDING "GEN_INDEX GEN_INDEX CMP_LT CMP_LT LOGICAL_AND BINARY_SELECT"
#define CAUSAL "GEN_INDEX GEN_INDEX CMP_GE BINARY_SELECT"

Test(forward, computes_the_statistics_even_when_nobody_wants_them)
{
    expect_order(91900, PROBLEM(.pass = FATTN_FORWARD), "matmul MUL " SOFTMAX " matmul");
    expect_order(91900, PROBLEM(.outputs = FATTN_WANT_STATS), "matmul MUL " SOFTMAX " matmul");
}

Test(forward, leaves_the_statistics_out_when_max_and_sum_exp_stand_for_them)
{
    expect_order(91900, PROBLEM(.outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
                 "matmul MUL reduce_max SUB EXP reduce_add DIV matmul");
}

Test(forward, masks_padding_then_the_right_bound_then_the_left)
{
    expect_order(91900, PROBLEM(.padding = 1, .has_right = 1, .has_left = 1, .window_left = 8),
                 "matmul(lengths) MUL " PADDING " " CAUSAL " GEN_INDEX GEN_INDEX ADD CMP_GT BINARY_SELECT " SOFTMAX
                 " matmul(lengths)");
}

Test(forward, shifts_bottom_right_bounds)
{
    expect_order(91900, PROBLEM(.has_right = 1, .align = FATTN_BOTTOM_RIGHT),
                 "matmul MUL GEN_INDEX GEN_INDEX ADD SUB CMP_GE BINARY_SELECT " SOFTMAX " matmul");
    expect_order(91900, PROBLEM(.has_right = 1, .window_right = 3, .align = FATTN_BOTTOM_RIGHT),
                 "matmul MUL GEN_INDEX GEN_INDEX ADD SUB ADD CMP_GE BINARY_SELECT " SOFTMAX " matmul");
    expect_order(91900, PROBLEM(.has_left = 1, .window_left = 3, .align = FATTN_BOTTOM_RIGHT),
                 "matmul MUL GEN_INDEX GEN_INDEX ADD CMP_GT BINARY_SELECT " SOFTMAX " matmul");
    expect_order(91900, PROBLEM(.has_left = 1, .window_left = 3, .align = FATTN_BOTTOM_RIGHT, .padding = 1),
                 "matmul(lengths) MUL " PADDING " GEN_INDEX GEN_INDEX ADD SUB ADD CMP_GT BINARY_SELECT " SOFTMAX
                 " matmul(lengths)");
}

Test(forward, has_a_spelling_in_single_operations)
{
    expect_order(92000, PROBLEM(.spelling = FATTN_SPELLING_SINGLE), "matmul MUL softmax matmul");
    expect_order(92000, PROBLEM(.spelling = FATTN_SPELLING_SINGLE, .has_right = 1, .has_left = 1, .window_left = 8),
                 "matmul MUL band_right band_left softmax matmul");
    expect_order(
        92000,
        PROBLEM(.spelling = FATTN_SPELLING_SINGLE, .has_right = 1, .has_left = 1, .window_left = 8, .align = FATTN_BOTTOM_RIGHT),
        "matmul MUL band_right(lengths) band_left softmax matmul");
    expect_order(92000,
                 PROBLEM(.spelling = FATTN_SPELLING_SINGLE, .has_right = 1, .has_left = 1, .window_left = 8,
                         .align = FATTN_BOTTOM_RIGHT, .padding = 1),
                 "matmul(lengths) MUL " PADDING " band_right(lengths) band_left(lengths) softmax matmul(lengths)");
}

/* ---- backward -------------------------------------------------------------------------------------------------------------------
 */

#define ROW_SUMS "MUL reduce_add MUL"

Test(backward, subtracts_stats_before_it_masks)
{
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .has_right = 1),
                 ROW_SUMS
                 " matmul(lengths) MUL SUB " PADDING " " CAUSAL " EXP"
                 " reshape matmul(lengths) matmul(lengths) SUB MUL MUL reshape matmul(lengths) reshape matmul(lengths) IDENTITY");
}

Test(backward, sums_the_gradients_of_shared_heads)
{
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .heads_k = 4, .heads_v = 2),
                 ROW_SUMS
                 " matmul MUL SUB EXP reshape matmul reduce_add matmul SUB MUL MUL reshape matmul reduce_add reshape matmul "
                 "IDENTITY");
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .heads_k = 8, .heads_v = 2),
                 ROW_SUMS
                 " matmul MUL SUB EXP reshape matmul reduce_add matmul SUB MUL MUL reshape matmul reshape matmul IDENTITY");
}

Test(backward, writes_dq_directly_when_it_must_repeat)
{
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .deterministic = 1),
                 ROW_SUMS " matmul MUL SUB EXP reshape matmul matmul SUB MUL MUL reshape matmul reshape matmul");
}

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

/* ---- what is added to the score, and modifies it
 * --------------------------------------------------------------------------------------
 */

Test(forward, adds_the_bias_before_it_masks)
{
    expect_order(91900, PROBLEM(.has_bias = 1, .padding = 1, .has_right = 1),
                 "matmul(lengths) MUL ADD " PADDING " " CAUSAL " " SOFTMAX " matmul(lengths)");
}

Test(backward, sums_up_the_gradient_of_the_bias_before_the_scale_and_writes_dq_directly)
{
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .has_bias = 1),
                 ROW_SUMS " matmul MUL ADD SUB EXP reshape matmul matmul SUB MUL MUL reshape matmul reshape matmul IDENTITY");
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .has_bias = 1, .dbias = 1),
                 ROW_SUMS " matmul MUL ADD SUB EXP reshape matmul matmul SUB MUL reduce_add MUL reshape matmul reshape matmul");
}

/* Builds with a ready modification, whose own part of the graph is `forward` and `gradient`. */
static void expect_mod(fattn_score_mod *mod, const char *forward, const char *gradient)
{
    char want[1024];
    snprintf(want, sizeof want, "matmul MUL %s%sADD " SOFTMAX " matmul", forward, forward[0] != '\0' ? " " : "");
    expect_order(91900, PROBLEM(.score_mod = mod, .has_bias = 1), want);
    snprintf(want, sizeof want,
             ROW_SUMS " matmul MUL %s%sADD SUB EXP reshape matmul matmul SUB MUL %s%sMUL reshape matmul reshape matmul IDENTITY",
             forward, forward[0] != '\0' ? " " : "", gradient, gradient[0] != '\0' ? " " : "");
    expect_order(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod, .has_bias = 1), want);
    fattn_score_mod_destroy(mod);
}

Test(score_mod, stands_between_the_scale_and_the_bias_and_its_gradient_before_the_scale)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    expect_mod(mod, "GEN_INDEX GEN_INDEX CMP_LE BINARY_SELECT", "GEN_INDEX GEN_INDEX CMP_LE BINARY_SELECT");
    cr_assert_eq(fattn_score_mod_temperature(&mod, 2), FATTN_OK);
    expect_mod(mod, "DIV", "DIV");
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
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod)), FATTN_OK, "%s", graph.text);
    cr_expect_not_null(strstr(order, "GEN_INDEX MUL ADD MUL ADD MUL reshape"), "%s", order);
    fattn__graph_release(&graph);
    fattn_score_mod_destroy(mod);
}

/* ---- gradients that we sum
 * ------------------------------------------------------------------------------------------------------------
 */

static void expect_sum(const fattn__graph_sum *sum, fattn__slot slot, int32_t dtype, const int64_t dim[4],
                       const int64_t out_strides[4])
{
    cr_expect_eq(sum->slot, (int32_t)slot);
    cr_expect_eq(sum->out_dtype, dtype);
    cr_expect_eq(memcmp(sum->dim, dim, sizeof sum->dim), 0, "%ld %ld %ld %ld", (long)sum->dim[0], (long)sum->dim[1],
                 (long)sum->dim[2], (long)sum->dim[3]);
    cr_expect_eq(memcmp(sum->out_strides, out_strides, sizeof sum->out_strides), 0);
}

Test(sums, of_a_broadcast_input_are_made_from_the_gradient_of_every_element)
{
    const int64_t rows = 96 * 8 * 64;
    const fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .q_strides = { 0, 64, 512, 1 }, .dq_strides = { 0, 64, 512, 1 });
    const size_t without = scratch_of(PROBLEM(.pass = FATTN_BACKWARD));
    cr_assert_eq(build(91900, p), FATTN_OK, "%s", graph.text);
    cr_assert_eq(graph.sum_count, 1);
    expect_sum(&graph.sums[0], FATTN__SLOT_DQ, FATTN_BF16, (int64_t[4]){ 2, 8, 96, 64 }, (int64_t[4]){ 0, 64, 512, 1 });
    cr_expect_eq(graph.scratch_bytes, without + (size_t)(2 * rows * 2), "the scratch is part of the workspace");
    fattn__graph_release(&graph);
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .q_strides = { 0, 64, 512, 1 })), FATTN_OK);
    cr_expect_eq(graph.sum_count, 0, "the gradient of each element is what was asked for");
    fattn__graph_release(&graph);
}

Test(sums, of_ds_are_cudnns_own_where_that_is_known_to_be_right)
{
    static const struct {
        int64_t dim[4];
        int sums;
    } rows[] = { { { 1, 8, 96, 128 }, 0 }, { { 2, 1, 96, 128 }, 0 }, { { 2, 8, 96, 128 }, 0 }, { { 1, 1, 96, 128 }, 1 },
                 { { 1, 1, 1, 128 }, 1 },  { { 2, 8, 1, 128 }, 1 },  { { 1, 8, 96, 1 }, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .has_bias = 1, .dbias = 1);
        memcpy(p.bias_dim, rows[i].dim, sizeof p.bias_dim);
        cr_assert_eq(build(91900, p), FATTN_OK, "%s", graph.text);
        cr_expect_eq(graph.sum_count, rows[i].sums, "row %zu", i);
        fattn__graph_release(&graph);
        cr_assert_eq(build(90900, p), FATTN_OK, "%s", graph.text);
        cr_expect_eq(graph.sum_count, rows[i].sums || rows[i].dim[1] == 1, "row %zu, before 9.10", i);
        fattn__graph_release(&graph);
    }
}

static fattn_value three_tensors(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t slope[4] = { 1, 8, 1, 1 }, column[4] = { 2, 1, 1, 128 }, whole[4] = { 1, 8, 96, 128 };
    (void)user;
    score = fattn_record(r, FATTN_MOD_MUL, score, fattn_record_tensor(r, "slope", FATTN_F32, slope, NULL), 0);
    score = fattn_record(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "column", FATTN_BF16, column, NULL), 0);
    return fattn_record(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "whole", FATTN_F32, whole, NULL), 0);
}

Test(sums, serve_every_tensor_that_is_added_last_from_one_reduction)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, three_tensors, NULL, NULL), FATTN_OK);
    cr_assert_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod, .mod_gradients = 6, .has_bias = 1, .dbias = 1)),
                 FATTN_OK, "%s", graph.text);
    cr_assert_eq(graph.sum_count, 3);
    const int64_t all[4] = { 2, 8, 96, 128 };
    expect_sum(&graph.sums[0], FATTN__SLOT_DBIAS, FATTN_BF16, all, (int64_t[4]){ 0, 96 * 128, 128, 1 });
    expect_sum(&graph.sums[1], FATTN__SLOT_DMOD_1, FATTN_F32, all, (int64_t[4]){ 128, 0, 0, 1 });
    expect_sum(&graph.sums[2], FATTN__SLOT_DMOD_2, FATTN_F32, all, (int64_t[4]){ 0, 96 * 128, 128, 1 });
    cr_expect_eq(graph.sums[0].offset, graph.sums[2].offset);
    fattn__graph_release(&graph);
    cr_expect_eq(build(91900, PROBLEM(.pass = FATTN_BACKWARD, .score_mod = mod, .mod_gradients = 1)), FATTN_UNSUPPORTED);
    cr_expect_not_null(strstr(graph.text, "\"slope\" is not added as the last step"), "%s", graph.text);
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

Test(graph, lengths_that_are_one_for_all_have_stride_0)
{
    for (int broadcast = 0; broadcast <= 1; broadcast++) {
        int zero = 0;
        cr_assert_eq(build(91900, PROBLEM(.padding = 1, .len_broadcast = broadcast)), FATTN_OK);
        for (int i = 0; i < made_count; i++)
            zero += made[i].type == DNN_BACKEND_TENSOR_DESCRIPTOR && made[i].dim[0] == 2 && made[i].dim[1] == 1 &&
                    made[i].strides[0] == 0;
        cr_expect_eq(zero, broadcast ? 2 : 0);
        fattn__graph_release(&graph);
    }
}

/* ---- tensors and constants ------------------------------------------------------------------------------------------------------
 */

Test(graph, takes_the_callers_strides_as_they_are)
{
    cr_assert_eq(build(91900, PROBLEM(.k_strides = { 0, 64, 128, 1 })), FATTN_OK);
    const int64_t dim[4] = { 2, 8, 64, 128 }, strides[4] = { 0, 64, 1, 128 }; /* K is seen transposed */
    bool found = false;
    for (int i = 0; i < made_count; i++)
        found |= made[i].type == DNN_BACKEND_TENSOR_DESCRIPTOR && memcmp(made[i].dim, dim, sizeof dim) == 0 &&
                 memcmp(made[i].strides, strides, sizeof strides) == 0;
    cr_expect(found);
    fattn__graph_release(&graph);
}

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

Test(graph, folds_the_shift_into_a_float_left_bound)
{
    fattn__binding values[FATTN__MAX_BINDINGS];
    cr_assert_eq(constants(PROBLEM(.has_left = 1, .window_left = 40, .align = FATTN_BOTTOM_RIGHT), 91900, values), 3);
    cr_expect_eq(values[1].value.f32, 40.0f - 128.0f + 96.0f);
    cr_assert_eq(constants(PROBLEM(.has_left = 1, .window_left = 40), 91900, values), 3);
    cr_expect_eq(values[1].value.f32, 40.0f);
    cr_assert_eq(constants(PROBLEM(.has_left = 1, .window_left = 40, .align = FATTN_BOTTOM_RIGHT, .padding = 1), 91900, values), 4);
    cr_expect_eq(values[2].value.i32, 40, "with lengths the shift differs between batch entries");
}

Test(graph, gives_equal_problems_equal_uids)
{
    static fattn__binding first[FATTN__MAX_BINDINGS];
    const fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .has_right = 1, .align = FATTN_BOTTOM_RIGHT);
    cr_assert_eq(build(91900, p), FATTN_OK);
    const int count = graph.binding_count;
    memcpy(first, graph.bindings, sizeof first);
    fattn__graph_release(&graph);
    cr_assert_eq(build(91900, p), FATTN_OK);
    cr_assert_eq(graph.binding_count, count);
    for (int i = 0; i < count; i++) {
        cr_expect_eq(graph.bindings[i].uid, first[i].uid);
        cr_expect_eq(graph.bindings[i].slot, first[i].slot);
    }
    fattn__graph_release(&graph);
}

/* ---- refusals -------------------------------------------------------------------------------------------------------------------
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
        const bool written = outputs == 0 || outputs == FATTN_WANT_STATS || outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP);
        const fattn_status want = written ? FATTN_OK : FATTN_POLICY;
        cr_expect_eq(build(91900, PROBLEM(.outputs = outputs)), want);
        fattn__graph_release(&graph);
        cr_expect_eq(build(92000, PROBLEM(.outputs = outputs, .spelling = FATTN_SPELLING_EXPANDED)), want);
        fattn__graph_release(&graph);
        cr_expect_eq(build(91900, PROBLEM(.outputs = outputs, .guards_off = 1)), FATTN_OK, "guards off: asked as it is");
        fattn__graph_release(&graph);
    }
}

Test(spelling, auto_is_single_only_where_expanded_would_leave_something_unwritten)
{
    expect_order(92000, PROBLEM(.outputs = FATTN_WANT_STATS), "matmul MUL " SOFTMAX " matmul");
    expect_order(92000, PROBLEM(.outputs = FATTN_WANT_STATS | FATTN_WANT_MAX, .has_right = 1),
                 "matmul MUL band_right softmax matmul");
}

Test(refusal, of_a_length_that_a_band_cannot_hold)
{
    fattn_problem p = PROBLEM(.has_right = 1, .align = FATTN_BOTTOM_RIGHT);
    p.seq_kv = (int64_t)1 << 33;
    expect_refusal(91900, p, FATTN_UNSUPPORTED, "seq_kv: 8589934592 does not fit the int32 of a band");
}

Test(failure, of_any_call_is_kept_and_nothing_leaks)
{
    const fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .padding = 1, .has_right = 1, .heads_k = 2);
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
