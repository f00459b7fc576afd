/* The graphs of 8 bit types: the layout of their scale factors, what they refuse, and what is left
 * behind when a call of cuDNN fails. */
#include "graph_recorder.h"

#define FP8(...) PROBLEM(.dtype = FATTN_E4M3, __VA_ARGS__)
#define MX(...) PROBLEM(.dtype = FATTN_MXE4M3, __VA_ARGS__)
#define BACKWARD .pass = FATTN_BACKWARD

/* How often a number of the call is a tensor of the graph. */
static int bound(fattn__slot slot)
{
    int count = 0;
    for (int i = 0; i < graph.binding_count; i++)
        count += graph.bindings[i].slot == (int32_t)slot;
    return count;
}

static fattn_problem of_200_keys(fattn_problem p)
{
    p.seq_kv = 200;
    return p;
}

static void expect_refusal_of(int of_version, fattn_problem p, fattn_status status,
                              const char *start)
{
    cr_expect_eq(build(of_version, p), status, "%s", graph.text);
    cr_expect_eq(strncmp(graph.text, start, strlen(start)), 0, "got '%s', want '%s'", graph.text,
                 start);
    fattn__graph_release(&graph);
}

static void expect_refusal(fattn_problem p, fattn_status status, const char *start)
{
    expect_refusal_of(92800, p, status, start);
}

/* ---- e4m3 and e5m2
 */

/* Without it a launch ends in BAD_PARAM_NULL_POINTER. */
Test(fp8_backward, an_o_of_16_bits_has_a_descale_too)
{
    for (int32_t type = FATTN_BF16; type <= FATTN_F16; type++) {
        cr_assert_eq(build(91900, FP8(BACKWARD, .o_dtype = type, .do_dtype = FATTN_E5M2)), FATTN_OK,
                     "%s", graph.text);
        cr_expect_eq(bound(fattn__slot_of_auxiliary(FATTN__AUXILIARY_DESCALE_O)), 1);
        fattn__graph_release(&graph);
    }
}

static int tensors_of_type(int32_t type)
{
    int count = 0;
    for (int i = 0; i < made_count; i++)
        count += made[i].type == DNN_BACKEND_TENSOR_DESCRIPTOR &&
                 made[i].data_type == fattn__data_type(type);
    return count;
}

Test(mx_backward, both_quantisations_of_d_o_have_its_type)
{
    cr_assert_eq(build(92300, MX(BACKWARD, .do_dtype = FATTN_MXE5M2)), FATTN_OK, "%s", graph.text);
    cr_expect_eq(tensor_of(FATTN__SLOT_DO)->data_type, fattn__data_type(FATTN_MXE5M2));
    cr_expect_eq(tensor_of(FATTN__SLOT_DO_T)->data_type, fattn__data_type(FATTN_MXE5M2));
    cr_expect_eq(tensor_of(FATTN__SLOT_DO_16)->data_type, DNN_DATA_BFLOAT16);
    cr_expect_eq(tensors_of_type(FATTN_MXE5M2), 2);
    fattn__graph_release(&graph);
}

Test(fp8_backward, refuses_sums_that_nobody_would_take_the_magnitude_of)
{
    expect_refusal(FP8(BACKWARD, .k_strides = { 0, 64, 512, 1 }, .dk_strides = { 0, 64, 512, 1 }),
                   FATTN_UNSUPPORTED, "dk_strides: ");
    expect_refusal(FP8(BACKWARD, .has_bias = 1, .bias_dtype = FATTN_BF16, .dbias = 1),
                   FATTN_UNSUPPORTED, "dbias: ");
}

/* ---- block-scaled types
 */

static void expect_factors(fattn__slot slot, int64_t height, int64_t width,
                           int64_t stride_of_height, int64_t stride_of_width)
{
    const recorded *r = tensor_of(slot);
    cr_expect_eq(r->data_type, DNN_DATA_FP8_E8M0);
    cr_expect_eq(r->reordering, DNN_TENSOR_REORDERING_F8_128x4);
    cr_expect(r->dim[2] == height && r->dim[3] == width, "%ld x %ld", (long)r->dim[2],
              (long)r->dim[3]);
    cr_expect(r->strides[2] == stride_of_height && r->strides[3] == stride_of_width, "%ld, %ld",
              (long)r->strides[2], (long)r->strides[3]);
}

#define SLOT(name) fattn__slot_of_auxiliary(FATTN__AUXILIARY_##name)

/* 96 rows, 200 keys, 64 channels: tiles of 128 x 4 factors. */
Test(mx_forward, factors_are_padded_to_tiles)
{
    cr_assert_eq(build(92100, of_200_keys(MX(.pass = FATTN_FORWARD))), FATTN_OK, "%s", graph.text);
    expect_factors(SLOT(SF_Q), 128, 4, 4, 1);
    expect_factors(SLOT(SF_K), 4, 256, 1, 4);   /* transposed, as K */
    expect_factors(SLOT(SF_V), 8, 128, 128, 1); /* along the keys */
    cr_expect_eq(tensor_of(FATTN__SLOT_O)->data_type, DNN_DATA_BFLOAT16);
    fattn__graph_release(&graph);
}

Test(mx_forward, factors_may_lie_as_rows_of_heads)
{
    cr_assert_eq(build(92100, MX(.scale_format = FATTN_FORMAT_BSHD)), FATTN_OK, "%s", graph.text);
    expect_factors(SLOT(SF_Q), 128, 4, 8 * 4, 1);
    cr_expect_eq(tensor_of(SLOT(SF_Q))->strides[1], 4);
    fattn__graph_release(&graph);
    cr_assert_eq(build(92100, MX(.scale_format = FATTN_FORMAT_SBHD)), FATTN_OK, "%s", graph.text);
    expect_factors(SLOT(SF_Q), 128, 4, 2 * 8 * 4, 1);
    cr_expect_eq(tensor_of(SLOT(SF_Q))->strides[0], 8 * 4);
    fattn__graph_release(&graph);
}

Test(mx_backward, blocks_lie_along_what_a_product_sums)
{
    cr_assert_eq(build(92100, of_200_keys(MX(BACKWARD))), FATTN_OK, "%s", graph.text);
    expect_factors(SLOT(SF_Q), 128, 4, 4, 1);
    expect_factors(SLOT(SF_K), 4, 256, 1, 4);
    expect_factors(SLOT(SF_V), 4, 256, 1, 4); /* along the channels, unlike the forward's */
    expect_factors(SLOT(SF_DO), 128, 4, 4, 1);
    expect_factors(SLOT(SF_Q_T), 4, 128, 2 * 8 * 4 * 128, 1);
    expect_factors(SLOT(SF_K_T), 8, 128, 2 * 8 * 8 * 128, 1);
    expect_factors(SLOT(SF_DO_T), 4, 128, 2 * 8 * 4 * 128, 1);
    cr_expect_eq(tensor_of(FATTN__SLOT_DO)->data_type, DNN_DATA_FP8_E4M3);
    cr_expect_eq(tensor_of(SLOT(DO_T))->data_type, DNN_DATA_FP8_E4M3);
    cr_expect_eq(tensor_of(SLOT(DO_16))->data_type, DNN_DATA_BFLOAT16);
    cr_expect_eq(tensor_of(FATTN__SLOT_DQ)->data_type, DNN_DATA_BFLOAT16);
    fattn__graph_release(&graph);
}

/* 192 channels: two tiles. */
Test(mx_backward, a_stride_of_a_second_quantisation_goes_to_the_next_tile)
{
    cr_assert_eq(build(92300, MX(BACKWARD, .dim_v = 192)), FATTN_OK, "%s", graph.text);
    expect_factors(SLOT(SF_DO_T), 4, 256, 4 * 128, 1);
    fattn__graph_release(&graph);
}

Test(mx_backward, second_quantisations_lie_as_the_first)
{
    cr_assert_eq(build(92100, MX(BACKWARD, .q_strides = { 8 * 96 * 64, 96 * 64, 64, 1 })), FATTN_OK,
                 "%s", graph.text);
    cr_expect_arr_eq(tensor_of(SLOT(Q_T))->strides, ((int64_t[4]){ 8 * 96 * 64, 96 * 64, 64, 1 }),
                     sizeof(int64_t[4]));
    fattn__graph_release(&graph);
}

/* ---- the unified forward
 */

Test(unified_fp8, block_scaled_keys_and_their_factors_are_not_transposed)
{
    cr_assert_eq(build(92500, of_200_keys(MX(.impl = FATTN_IMPL_UNIFIED))), FATTN_OK, "%s",
                 graph.text);
    expect_factors(SLOT(SF_Q), 128, 4, 4, 1);
    expect_factors(SLOT(SF_K), 256, 4, 4, 1);
    expect_factors(SLOT(SF_V), 8, 128, 128, 1);
    cr_expect_eq(bound(SLOT(AMAX_O)), 1);
    cr_expect_eq(bound(SLOT(DESCALE_S)) + bound(SLOT(SCALE_S)) + bound(SLOT(AMAX_S)), 0);
    fattn__graph_release(&graph);
}

/* ---- what the caller gives
 */

static fattn_problem resolved(fattn_problem p)
{
    fattn_problem r;
    cr_assert_eq(fattn_problem_resolve(&p, &r), FATTN_OK, "%s", fattn_last_error());
    return r;
}

Test(fp8_problem, biases_and_masks_have_16_bits)
{
    for (int32_t dtype = FATTN_E4M3; dtype <= FATTN_MXE5M2; dtype++) {
        const fattn_problem p = resolved(PROBLEM(.dtype = dtype, .has_bias = 1, .dropout_mask = 1));
        cr_expect_eq(p.bias_dtype, FATTN_BF16);
        cr_expect_eq(fattn__auxiliary_bytes(&p, FATTN__AUXILIARY_DROPOUT_MASK),
                     2 * 8 * 96 * 128 * 2);
        cr_assert_eq(build(92100, p), FATTN_OK, "%s", graph.text);
        cr_expect_eq(tensor_of(FATTN__SLOT_BIAS)->data_type, DNN_DATA_BFLOAT16);
        cr_expect_eq(tensor_of(SLOT(DROPOUT_MASK))->data_type, DNN_DATA_BFLOAT16);
        fattn__graph_release(&graph);
    }
}

Test(fp8_problem, second_quantisations_take_the_span_of_the_first)
{
    const int64_t gap = 3 * 8 * 64;
    const fattn_problem p = resolved(MX(BACKWARD, .q_strides = { 96 * gap, 64, gap, 1 }));
    cr_expect_eq(fattn__auxiliary_bytes(&p, FATTN__AUXILIARY_Q_T), 2 * 96 * gap - gap + 8 * 64);
    cr_expect_eq(fattn__auxiliary_bytes(&p, FATTN__AUXILIARY_K_T), 2 * 8 * 128 * 64);
    cr_expect_eq(fattn__auxiliary_bytes(&p, FATTN__AUXILIARY_DO_16), 2 * 8 * 96 * 64 * 2);
}

/* ---- what a graph owns
 */

Test(fp8_graph, every_call_may_fail_and_nothing_is_left_behind)
{
    const fattn_problem problems[] = { FP8(.padding = 1, .has_right = 1, .dropout = 0.25),
                                       FP8(BACKWARD, .heads_k = 2, .sink = 1, .dsink = 1),
                                       MX(.sink = 1), MX(BACKWARD, .heads_k = 2) };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        failing_call = 0;
        cr_assert_eq(build(92100, problems[i]), FATTN_OK, "%s", graph.text);
        fattn__graph_release(&graph);
        const int all = calls;
        for (failing_call = 1; failing_call <= all; failing_call += 7) {
            cr_expect_neq(build(92100, problems[i]), FATTN_OK, "problem %zu, call %d", i,
                          failing_call);
            fattn__graph_release(&graph);
            cr_expect_eq(alive, 0, "problem %zu, call %d", i, failing_call);
        }
    }
}
