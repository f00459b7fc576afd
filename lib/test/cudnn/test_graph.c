/* Graphs as a recorder sees them: the order of operations, which tensor an attribute names, the
 * layout of scale factors, the library's workspace, the gradients that it sums, refusals, and what
 * is left behind when a call of cuDNN fails. */
#include "fattn/score_mod.h"
#include "graph_recorder.h"

#define BACKWARD .pass = FATTN_BACKWARD
#define UNIFIED .impl = FATTN_IMPL_UNIFIED
#define MX .dtype = FATTN_MXE4M3
#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static void expect_built(const char *name, int version, fattn_problem p)
{
    cr_assert_eq(build(version, p), FATTN_OK, "%s: %s", name, graph.text);
}

/* ---- the order of operations, where another order computes the same numbers and a real cuDNN, asked
 * without a GPU, does not refuse every wrong one
 */

#define PADDING "GEN_INDEX GEN_INDEX CMP_LT CMP_LT LOGICAL_AND BINARY_SELECT"
#define CAUSAL "GEN_INDEX GEN_INDEX CMP_GE BINARY_SELECT"
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

static const row rows[] = {
    ROW("a sink in maximum and sum",
        "matmul MUL reduce_max MAX SUB EXP SUB EXP reduce_add ADD LOG ADD DIV matmul", .sink = 1),
    ROW("Max and Sum_exp without the logarithm",
        "matmul MUL reduce_max SUB EXP reduce_add DIV matmul",
        .outputs = FATTN_WANT_MAX | FATTN_WANT_SUM_EXP),
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
    ROW("8 bits, backward: masks before Stats, groups before descales, dQ before dK",
        "MUL reduce_add MUL MUL matmul(lengths) MUL MUL MUL " PADDING " " CAUSAL
        " SUB EXP MUL reshape " FP8_PRODUCT
        " matmul(lengths) MUL MUL SUB MUL MUL reduce_amax MUL reshape matmul(lengths) MUL MUL MUL "
        "reduce_amax reshape " FP8_PRODUCT,
        BACKWARD, .dtype = FATTN_E4M3, .padding = 1, .has_right = 1, .heads_k = 2),
};

Test(graph_order, is_what_engines_recognise)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        expect_built(rows[i].name, 92800, rows[i].problem);
        cr_expect_str_eq(order, rows[i].order, "%s:\ngot  %s\nwant %s", rows[i].name, order,
                         rows[i].order);
        fattn__graph_release(&graph);
        cr_expect_eq(alive, 0, "%s: every descriptor is freed", rows[i].name);
    }
}

/* ---- each tensor of a call by the attribute that has its name
 */

typedef struct given {
    int type, attribute; /* of an operation */
    fattn__slot slot;
} given;

static const setting *setting_in(int type, int name)
{
    for (int i = 0; i < made_count; i++)
        if (made[i].type == type && setting_of(&made[i], name) != NULL)
            return setting_of(&made[i], name);
    return NULL;
}

/* The slot of the tensor that an attribute names; -1: there is none. */
static int slot_of(int type, int name)
{
    const setting *value = setting_in(type, name),
                  *uid = value == NULL ? NULL
                                       : setting_of(of((fattn__desc)(intptr_t)value->words[0]),
                                                    DNN_ATTR_TENSOR_UNIQUE_ID);
    for (int b = 0; uid != NULL && b < graph.binding_count; b++)
        if (graph.bindings[b].uid == uid->words[0])
            return graph.bindings[b].slot;
    return -1;
}

static void expect_given(fattn_problem p, const given *list, size_t count)
{
    expect_built("given", 92800, p);
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(slot_of(list[i].type, list[i].attribute), (int)list[i].slot,
                     "attribute %d has slot %d, not %d", list[i].attribute,
                     slot_of(list[i].type, list[i].attribute), (int)list[i].slot);
}

/* clang-format off */
#define FWD(name, slot)                                                                            \
    { DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_SDPA_FWD_##name, FATTN__SLOT_##slot }
#define BWD(name, slot)                                                                            \
    { DNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_SDPA_BWD_##name, FATTN__SLOT_##slot }
#define ROWS(name, slot)                                                                           \
    { DNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, DNN_ATTR_OPERATION_SOFTMAX_##name, FATTN__SLOT_##slot }

static const given forward[] = {
    FWD(QDESC, Q), FWD(KDESC, K), FWD(VDESC, V), FWD(ODESC, O), FWD(SCALEDESC, ATTN_SCALE),
    FWD(CU_SEQ_LEN_QDESC, SEQ_LEN_Q), FWD(SEQ_LEN_KVDESC, SEQ_LEN_KV),
    FWD(DROPOUT_SEED_DESC, SEED), FWD(DROPOUT_OFFSET_DESC, OFFSET),
    FWD(DROPOUT_RNG_DUMP_DESC, RNG_DUMP), FWD(BLOCK_MASK_DESC, BLOCK_MASK),
    ROWS(STATS_DESC, STATS), ROWS(MAX_DESC, MAX), ROWS(SUM_EXP_DESC, SUM_EXP), ROWS(SINK_DESC, SINK),
};
static const given paged[] = {
    FWD(PAGE_TABLE_KDESC, PAGE_TABLE_K), FWD(PAGE_TABLE_VDESC, PAGE_TABLE_V),
    FWD(SEQ_LEN_QDESC, SEQ_LEN_Q), FWD(CU_SEQ_LEN_KVDESC, SEQ_LEN_KV),
};
static const given narrow[] = {
    FWD(DESCALE_QDESC, DESCALE_Q), FWD(DESCALE_KDESC, DESCALE_K), FWD(DESCALE_VDESC, DESCALE_V),
    FWD(DESCALE_SDESC, DESCALE_S), FWD(SCALE_SDESC, SCALE_S), FWD(SCALE_ODESC, SCALE_O),
    FWD(AMAX_SDESC, AMAX_S), FWD(AMAX_ODESC, AMAX_O),
};
static const given backward[] = {
    BWD(QDESC, Q), BWD(KDESC, K), BWD(VDESC, V), BWD(ODESC, O), BWD(DODDESC, DO),
    BWD(STATSDESC, STATS), BWD(DQDESC, DQ), BWD(DKDESC, DK), BWD(DVDESC, DV), BWD(SINK_DESC, SINK),
    BWD(DSINK_DESC, DSINK), BWD(SCALEDESC, ATTN_SCALE), BWD(SEQ_LEN_QDESC, SEQ_LEN_Q),
    BWD(SEQ_LEN_KVDESC, SEQ_LEN_KV), BWD(DBIAS_DESC, DBIAS), BWD(DROPOUT_SEED_DESC, SEED),
    BWD(DROPOUT_OFFSET_DESC, OFFSET),
};
/* dQ and dK of rotated rows are rotated back, each by its own angles. */
static const given rotated[] = {
    FWD(QDESC, SCRATCH), FWD(KDESC, SCRATCH), FWD(VDESC, V),
    { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_FWD_XDESC, FATTN__SLOT_Q },
    { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC, FATTN__SLOT_ROPE_Q },
};
static const given rotated_back[] = {
    { DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_DXDESC, FATTN__SLOT_DQ },
    { DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC, FATTN__SLOT_ROPE_Q },
};
/* clang-format on */

Test(graph_unified, has_each_tensor_where_it_belongs)
{
    const struct {
        const given *list;
        size_t count;
        fattn_problem p;
    } all[] = {
        { forward, COUNT(forward),
          PROBLEM(UNIFIED, .padding = 1, .cumulative = FATTN_CUMULATIVE_Q, .ragged_bits = 64,
                  .outputs =
                      FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP | FATTN_WANT_RNG_DUMP,
                  .sink = 1, .dropout = 0.1, .scale_in_memory = 1, .block_mask = 1) },
        { paged, COUNT(paged),
          PROBLEM(UNIFIED, .padding = 1, .cumulative = FATTN_CUMULATIVE_KV, .page_size_k = 16,
                  .pages_k = 20, .page_size_v = 16, .pages_v = 20) },
        { narrow, COUNT(narrow), PROBLEM(UNIFIED, .dtype = FATTN_E4M3) },
        { rotated, COUNT(rotated), PROBLEM(UNIFIED, .rope = 1) },
        { rotated_back, COUNT(rotated_back), PROBLEM(UNIFIED, BACKWARD, .rope = 1) },
        { backward, COUNT(backward),
          PROBLEM(UNIFIED, BACKWARD, .padding = 1, .sink = 1, .dsink = 1, .dropout = 0.1,
                  .scale_in_memory = 1, .has_bias = 1, .dbias = 1, .bias_dim = { 2, 8, 96, 128 }) },
    };
    for (size_t i = 0; i < COUNT(all); i++) {
        expect_given(all[i].p, all[i].list, all[i].count);
        fattn__graph_release(&graph);
    }
}

Test(graph_unified, numbers_of_an_operation_are_those_of_the_problem)
{
    const int forwards = DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR;
    float probability = 0;
    expect_built("tokens", 92800,
                 PROBLEM(UNIFIED, .padding = 1, .ragged_tokens = 1, .ragged_bits = 32, .heads_k = 2,
                         .dropout = 0.1));
    memcpy(&probability,
           setting_in(forwards, DNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY)->words,
           sizeof probability);
    cr_expect_float_eq((double)probability, (double)0.1F, 0);
    for (int k = 0; k < 2; k++) { /* an offset in tokens counts rows of its tensor */
        const setting *tensor = setting_in(forwards, k ? DNN_ATTR_OPERATION_SDPA_FWD_KDESC
                                                       : DNN_ATTR_OPERATION_SDPA_FWD_QDESC);
        cr_expect_eq(setting_of(of((fattn__desc)(intptr_t)tensor->words[0]),
                                DNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER)
                         ->words[0],
                     k ? 2 * 64 : 8 * 64);
    }
    fattn__graph_release(&graph);
}

/* ---- scale factors of blocks, in tiles of 128 x 4
 */

typedef struct factor {
    fattn__slot slot;
    int64_t height, width, stride_of_height, stride_of_width;
} factor;

#define FACTOR(name, ...) { FATTN__SLOT_SF_##name, __VA_ARGS__ }

static void expect_factors(int version, fattn_problem p, const factor *factors, size_t count)
{
    expect_built("factors", version, p);
    for (size_t i = 0; i < count; i++) {
        const factor *f = &factors[i];
        const recorded *r = tensor_of(f->slot);
        cr_expect_eq(r->data_type, DNN_DATA_FP8_E8M0);
        cr_expect_eq(r->reordering, DNN_TENSOR_REORDERING_F8_128x4);
        cr_expect(r->dim[2] == f->height && r->dim[3] == f->width &&
                      r->strides[2] == f->stride_of_height && r->strides[3] == f->stride_of_width,
                  "slot %d: %ld x %ld by %ld, %ld", (int)f->slot, (long)r->dim[2], (long)r->dim[3],
                  (long)r->strides[2], (long)r->strides[3]);
    }
}

/* 96 rows, 200 keys, 64 or 192 channels. */
Test(graph_fp8, blocks_lie_along_what_a_product_sums)
{
    static const factor forwards[] = { FACTOR(Q, 128, 4, 4, 1), FACTOR(K, 4, 256, 1, 4),
                                       FACTOR(V, 8, 128, 128, 1) },
                        by_head[] = { FACTOR(Q, 128, 4, 8 * 4, 1) },
                        unified[] = { FACTOR(Q, 128, 4, 4, 1), FACTOR(K, 256, 4, 4, 1),
                                      FACTOR(V, 8, 128, 128, 1) },
                        backwards[] = { FACTOR(Q, 128, 4, 4, 1),
                                        FACTOR(K, 4, 256, 1, 4),
                                        FACTOR(V, 4, 256, 1, 4), /* unlike the forward's */
                                        FACTOR(DO, 128, 4, 4, 1),
                                        FACTOR(Q_T, 4, 128, 2 * 8 * 4 * 128, 1),
                                        FACTOR(K_T, 8, 128, 2 * 8 * 8 * 128, 1),
                                        FACTOR(DO_T, 4, 128, 2 * 8 * 4 * 128, 1) },
                        wide[] = { FACTOR(DO_T, 4, 256, 4 * 128, 1) }; /* the next tile */
    fattn_problem p = PROBLEM(MX);
    p.seq_kv = 200;
    expect_factors(92100, p, forwards, COUNT(forwards));
    cr_expect_eq(tensor_of(FATTN__SLOT_O)->data_type, DNN_DATA_BFLOAT16);
    fattn__graph_release(&graph);
    p.scale_format = FATTN_FORMAT_BSHD;
    expect_factors(92100, p, by_head, COUNT(by_head));
    fattn__graph_release(&graph);
    p.scale_format = 0, p.impl = FATTN_IMPL_UNIFIED;
    expect_factors(92500, p, unified, COUNT(unified));
    fattn__graph_release(&graph);
    p.impl = FATTN_IMPL_AUTO, p.pass = FATTN_BACKWARD, p.do_dtype = FATTN_MXE5M2;
    memcpy(p.q_strides, (int64_t[4]){ 8 * 96 * 64, 96 * 64, 64, 1 }, sizeof p.q_strides);
    expect_factors(92300, p, backwards, COUNT(backwards));
    cr_expect_arr_eq(tensor_of(FATTN__SLOT_Q_T)->strides, p.q_strides, sizeof p.q_strides);
    cr_expect_eq(tensor_of(FATTN__SLOT_DO)->data_type, DNN_DATA_FP8_E5M2);
    cr_expect_eq(tensor_of(FATTN__SLOT_DO_T)->data_type, DNN_DATA_FP8_E5M2);
    cr_expect_eq(tensor_of(FATTN__SLOT_DO_16)->data_type, DNN_DATA_BFLOAT16);
    cr_expect_eq(tensor_of(FATTN__SLOT_DQ)->data_type, DNN_DATA_BFLOAT16);
    fattn__graph_release(&graph);
    expect_factors(92300, PROBLEM(MX, BACKWARD, .dim_v = 192), wide, COUNT(wide));
    fattn__graph_release(&graph);
}

/* ---- workspace and sums
 */

static size_t scratch_of(fattn_problem p)
{
    expect_built("scratch", 92700, p);
    const size_t bytes = graph.scratch_bytes;
    fattn__graph_release(&graph);
    return bytes;
}

Test(graph, row_sums_the_dq_accumulator_and_what_is_summed_lie_in_our_workspace)
{
    const size_t rows_bytes = 2 * 8 * 96 * 4, accumulator = 2 * 8 * 96 * 64 * 4;
    cr_expect_eq(scratch_of(PROBLEM(BACKWARD)), rows_bytes + accumulator);
    cr_expect_eq(scratch_of(PROBLEM(BACKWARD, .deterministic = 1)), rows_bytes);
    cr_expect_eq(scratch_of(PROBLEM(.pass = FATTN_FORWARD)), 0);
    cr_expect_eq(scratch_of(PROBLEM(BACKWARD, .q_strides = { 0, 64, 512, 1 },
                                    .dq_strides = { 0, 64, 512, 1 })),
                 rows_bytes + accumulator + 2 * 96 * 8 * 64 * 2);
    const size_t sums = 10 * 8 * 4, gradient = 20 * 8 * 64 * 2, dq = 10 * 8 * 64 * 4;
    cr_expect_eq(scratch_of(PROBLEM(BACKWARD, .padding = 1, .ragged_bits = 32, .heads_k = 2,
                                    .total_q = 10, .total_kv = 20)),
                 sums + 2 * gradient + dq, "room for the declared tokens");
}

static void expect_sum(const fattn__graph_sum *sum, fattn__slot slot, int32_t dtype,
                       const int64_t dim[4], const int64_t out_strides[4])
{
    cr_expect_eq(sum->slot, (int32_t)slot);
    cr_expect_eq(sum->out_dtype, dtype);
    cr_expect_arr_eq(sum->dim, dim, sizeof sum->dim);
    cr_expect_arr_eq(sum->out_strides, out_strides, sizeof sum->out_strides);
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

static void expect_refusal(int version, fattn_problem p, fattn_status want, const char *words)
{
    cr_expect_eq(build(version, p), want, "%s", words);
    cr_expect_not_null(strstr(graph.text, words), "got '%s', want '%s'", graph.text, words);
    fattn__graph_release(&graph);
    cr_expect_eq(alive, 0, "%s", words);
}

Test(graph, every_tensor_that_is_added_last_is_summed_from_one_reduction)
{
    const int64_t all[4] = { 2, 8, 96, 128 }, one[4] = { 0, 96 * 128, 128, 1 };
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, three_tensors, NULL, NULL), FATTN_OK);
    fattn_problem p =
        PROBLEM(BACKWARD, .score_mod = mod, .mod_gradients = 6, .has_bias = 1, .dbias = 1);
    expect_built("sums", 91900, p);
    cr_assert_eq(graph.sum_count, 3);
    expect_sum(&graph.sums[0], FATTN__SLOT_DBIAS, FATTN_BF16, all, one);
    expect_sum(&graph.sums[1], FATTN__SLOT_DMOD_1, FATTN_F32, all, (int64_t[4]){ 128, 0, 0, 1 });
    expect_sum(&graph.sums[2], FATTN__SLOT_DMOD_2, FATTN_F32, all, one);
    cr_expect_eq(graph.sums[0].offset, graph.sums[2].offset);
    fattn__graph_release(&graph);
    p.mod_gradients = 1;
    expect_refusal(91900, p, FATTN_UNSUPPORTED, "\"slope\" is not added as the last step");
    fattn_score_mod_destroy(mod);
    /* cuDNN writes it densely; what is one for the rows is its sum. */
    expect_built(
        "unified", 92800,
        PROBLEM(UNIFIED, BACKWARD, .has_bias = 1, .dbias = 1, .bias_dim = { 2, 8, 1, 128 }));
    cr_assert_eq(graph.sum_count, 1);
    expect_sum(&graph.sums[0], FATTN__SLOT_DBIAS, FATTN_BF16, all,
               (int64_t[4]){ 8 * 128, 128, 0, 1 });
    fattn__graph_release(&graph);
}

/* ---- what cuDNN gets wrong otherwise
 */

static int bound(fattn__slot slot)
{
    int count = 0;
    for (int i = 0; i < graph.binding_count; i++)
        count += graph.bindings[i].slot == (int32_t)slot;
    return count;
}

static fattn_value step_of(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    return fattn_record(r, FATTN_MOD_FLOOR, score, 0, 0);
}

Test(graph, says_what_cudnn_needs)
{
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, step_of, NULL, NULL), FATTN_OK);
    /* Without it: "Flash attention bprop needs a matmul to compute dK". */
    expect_built("a gradient of zero", 91900, PROBLEM(BACKWARD, .score_mod = mod));
    cr_expect_not_null(strstr(order, "GEN_INDEX MUL ADD MUL ADD MUL reshape"), "%s", order);
    fattn__graph_release(&graph);
    fattn_score_mod_destroy(mod);
    /* A bias of one row is read wrongly, and right as all rows at stride 0. */
    expect_built("a bias of one row", 91900,
                 PROBLEM(BACKWARD, .has_bias = 1, .bias_dim = { 1, 8, 1, 128 }));
    cr_expect(tensor_of(FATTN__SLOT_BIAS)->dim[2] == 96 &&
              tensor_of(FATTN__SLOT_BIAS)->strides[2] == 0);
    fattn__graph_release(&graph);
    /* Without it a launch ends in BAD_PARAM_NULL_POINTER. */
    expect_built(
        "an O of 16 bits", 91900,
        PROBLEM(BACKWARD, .dtype = FATTN_E4M3, .o_dtype = FATTN_BF16, .do_dtype = FATTN_E5M2));
    cr_expect_eq(bound(FATTN__SLOT_DESCALE_O), 1, "a descale of O");
    fattn__graph_release(&graph);
    for (int old = 0; old < 2; old++) { /* infinity only where kernels take it */
        int hides = 0;
        expect_built("a mask", old ? 90900 : 91000, PROBLEM(.has_right = 1));
        for (int i = 0; i < graph.binding_count; i++)
            hides += graph.bindings[i].slot == FATTN__SLOT_VALUE &&
                     graph.bindings[i].value.bits == (old ? 0xff7fffffu : 0xff800000u);
        cr_expect_eq(hides, 1, "-FLT_MAX before 9.10, -infinity since");
        fattn__graph_release(&graph);
    }
}

Test(graph, refuses_what_it_cannot_say)
{
    fattn_problem far = PROBLEM(.has_right = 1, .align = FATTN_BOTTOM_RIGHT);
    far.seq_kv = (int64_t)1 << 33;
    expect_refusal(91900, far, FATTN_UNSUPPORTED,
                   "seq_kv: 8589934592 does not fit the int32 of a band");
    expect_refusal(91900, PROBLEM(.spelling = FATTN_SPELLING_SINGLE), FATTN_UNSUPPORTED,
                   "spelling single needs cuDNN 9.20; this is 9.19.0");
    expect_refusal(91900, PROBLEM(.outputs = FATTN_WANT_MAX), FATTN_POLICY, "outputs: ");
    expect_refusal(92700,
                   PROBLEM(BACKWARD, .padding = 1, .ragged_bits = 32, .k_strides = { 1, 0, 64, 1 },
                           .dk_strides = { 1, 0, 64, 1 }),
                   FATTN_UNSUPPORTED, "dk_strides: a packed gradient is not summed");
    expect_refusal(92800,
                   PROBLEM(BACKWARD, .dtype = FATTN_E4M3, .k_strides = { 0, 64, 512, 1 },
                           .dk_strides = { 0, 64, 512, 1 }),
                   FATTN_UNSUPPORTED, "dk_strides: ");
    expect_refusal(
        92800,
        PROBLEM(BACKWARD, .dtype = FATTN_E4M3, .has_bias = 1, .bias_dtype = FATTN_BF16, .dbias = 1),
        FATTN_UNSUPPORTED, "dbias: ");
}

Test(graph, a_call_that_fails_is_kept_and_nothing_leaks)
{
    const fattn_problem problems[] = {
        PROBLEM(BACKWARD, .padding = 1, .has_right = 1, .heads_k = 2),
        PROBLEM(.dtype = FATTN_E4M3, .padding = 1, .has_right = 1, .dropout = 0.25),
        PROBLEM(BACKWARD, .dtype = FATTN_E4M3, .heads_k = 2, .sink = 1, .dsink = 1),
        PROBLEM(MX, .sink = 1), PROBLEM(MX, BACKWARD, .heads_k = 2)
    };
    for (size_t i = 0; i < COUNT(problems); i++) {
        failing_call = 0;
        expect_built("no failure", 92100, problems[i]);
        fattn__graph_release(&graph);
        const int all = calls;
        for (failing_call = 1; failing_call <= all; failing_call += i == 0 ? 1 : 7) {
            cr_expect_eq(build(92100, problems[i]), FATTN_UNSUPPORTED, "%zu, call %d", i,
                         failing_call);
            cr_expect_eq(calls, failing_call, "nothing is asked after the first failure");
            cr_expect_eq(graph.cudnn_status, DNN_STATUS_BAD_PARAM);
            cr_expect_null(graph.operation_graph);
            fattn__graph_release(&graph);
            cr_expect_eq(alive, 0, "problem %zu, call %d leaks", i, failing_call);
        }
    }
}
