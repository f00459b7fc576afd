/* What the unified operations are told: the score's graph in its order, and each tensor of a call
 * by the attribute that has its name. */
#include "graph_recorder.h"

static int get(fattn__desc desc, int name, int type, int64_t capacity, int64_t *count, void *out)
{
    (void)name, (void)type, (void)capacity;
    *count = 1;
    *(int64_t *)out = (intptr_t)desc;
    return DNN_STATUS_SUCCESS;
}

static void answer_uids(void)
{
    recorder.cudnnBackendGetAttribute = get;
}

TestSuite(graph_unified, .init = answer_uids);

#define UNIFIED(...) PROBLEM(.impl = FATTN_IMPL_UNIFIED, __VA_ARGS__)
#define BACKWARD .pass = FATTN_BACKWARD

static void expect_graph(int at_version, fattn_problem p, const char *want, int operations)
{
    expect_order(at_version, p, want);
    cr_assert_eq(build(at_version, p), FATTN_OK, "%s", graph.text);
    cr_expect_eq(graph.operation_count, operations);
    fattn__graph_release(&graph);
}

/* Up to 9.20 the operation has an attribute for Stats and no softmax. */
Test(graph_unified, a_score_is_modified_inside_in_the_order_of_the_composite_graph)
{
    expect_graph(92000, UNIFIED(.outputs = FATTN_WANT_STATS), "", 1);
    expect_graph(92800, UNIFIED(.has_right = 1, .has_bias = 1, .alibi = 1, .sink = 1),
                 "softmax ADD GEN_INDEX GEN_INDEX SUB MUL ADD band_right", 1);
    expect_graph(92800,
                 UNIFIED(.has_right = 1, .has_left = 1, .window_left = 9,
                         .align = FATTN_BOTTOM_RIGHT, .padding = 1),
                 "band_right(lengths) band_left(lengths)", 1);
    expect_graph(92800, UNIFIED(BACKWARD, .rope = 1, .has_right = 1, .has_bias = 1, .dbias = 1),
                 "ADD band_right", 3);
}

typedef struct given {
    int type, attribute; /* of an operation */
    fattn__slot slot;
} given;

/* The slot of the tensor that an attribute names; -1: there is none. */
static int slot_of(int type, int name)
{
    for (int i = 0; i < made_count; i++) {
        const setting *value = made[i].type == type ? setting_of(&made[i], name) : NULL;
        if (value == NULL)
            continue;
        const setting *uid =
            setting_of(of((fattn__desc)(intptr_t)value->words[0]), DNN_ATTR_TENSOR_UNIQUE_ID);
        for (int b = 0; b < graph.binding_count; b++)
            if (graph.bindings[b].uid == uid->words[0])
                return graph.bindings[b].slot;
    }
    return -1;
}

static const setting *setting_in(int type, int name)
{
    for (int i = 0; i < made_count; i++)
        if (made[i].type == type && setting_of(&made[i], name) != NULL)
            return setting_of(&made[i], name);
    return NULL;
}

static void expect_given(fattn_problem p, const given *rows, size_t count)
{
    cr_assert_eq(build(92800, p), FATTN_OK, "%s", graph.text);
    for (size_t i = 0; i < count; i++)
        cr_expect_eq(slot_of(rows[i].type, rows[i].attribute), (int)rows[i].slot,
                     "attribute %d has slot %d, not %d", rows[i].attribute,
                     slot_of(rows[i].type, rows[i].attribute), (int)rows[i].slot);
}

#define FWD(name, slot)                                                                            \
    { DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_SDPA_FWD_##name,               \
      FATTN__SLOT_##slot }
#define BWD(name, slot)                                                                            \
    { DNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_SDPA_BWD_##name,               \
      FATTN__SLOT_##slot }
#define SOFTMAX(name, slot)                                                                        \
    { DNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, DNN_ATTR_OPERATION_SOFTMAX_##name##_DESC,          \
      FATTN__SLOT_##slot }
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void expect_probability(int type, int attribute, float want)
{
    float probability = 0;
    memcpy(&probability, setting_in(type, attribute)->words, sizeof probability);
    cr_expect_float_eq((double)probability, (double)want, 0);
}

Test(graph_unified, the_forward_has_each_tensor_where_it_belongs)
{
    static const given all[] = { FWD(QDESC, Q),
                                 FWD(KDESC, K),
                                 FWD(VDESC, V),
                                 FWD(ODESC, O),
                                 FWD(SCALEDESC, ATTN_SCALE),
                                 FWD(CU_SEQ_LEN_QDESC, SEQ_LEN_Q),
                                 FWD(SEQ_LEN_KVDESC, SEQ_LEN_KV),
                                 FWD(DROPOUT_SEED_DESC, SEED),
                                 FWD(DROPOUT_OFFSET_DESC, OFFSET),
                                 FWD(DROPOUT_RNG_DUMP_DESC, RNG_DUMP),
                                 FWD(BLOCK_MASK_DESC, BLOCK_MASK),
                                 SOFTMAX(STATS, STATS),
                                 SOFTMAX(MAX, MAX),
                                 SOFTMAX(SUM_EXP, SUM_EXP),
                                 SOFTMAX(SINK, SINK) };
    static const given paged[] = { FWD(PAGE_TABLE_KDESC, PAGE_TABLE_K),
                                   FWD(PAGE_TABLE_VDESC, PAGE_TABLE_V),
                                   FWD(SEQ_LEN_QDESC, SEQ_LEN_Q),
                                   FWD(CU_SEQ_LEN_KVDESC, SEQ_LEN_KV) };
    static const given narrow[] = { FWD(DESCALE_QDESC, DESCALE_Q), FWD(DESCALE_KDESC, DESCALE_K),
                                    FWD(DESCALE_VDESC, DESCALE_V), FWD(DESCALE_SDESC, DESCALE_S),
                                    FWD(SCALE_SDESC, SCALE_S),     FWD(SCALE_ODESC, SCALE_O),
                                    FWD(AMAX_SDESC, AMAX_S),       FWD(AMAX_ODESC, AMAX_O) };
    static const given rotated[] = { FWD(QDESC, SCRATCH), FWD(KDESC, SCRATCH), FWD(VDESC, V) };
    expect_given(UNIFIED(.padding = 1, .cumulative = FATTN_CUMULATIVE_Q, .ragged_bits = 64,
                         .outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP |
                                    FATTN_WANT_RNG_DUMP,
                         .sink = 1, .dropout = 0.1, .scale_in_memory = 1, .block_mask = 1),
                 all, COUNT(all));
    expect_probability(DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                       DNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, 0.1F);
    fattn__graph_release(&graph);
    expect_given(UNIFIED(.padding = 1, .cumulative = FATTN_CUMULATIVE_KV, .page_size_k = 16,
                         .pages_k = 20, .page_size_v = 16, .pages_v = 20),
                 paged, COUNT(paged));
    fattn__graph_release(&graph);
    expect_given(UNIFIED(.dtype = FATTN_E4M3), narrow, COUNT(narrow));
    fattn__graph_release(&graph);
    expect_given(UNIFIED(.rope = 1), rotated, COUNT(rotated));
    fattn__graph_release(&graph);
}

Test(graph_unified, the_backward_has_each_tensor_where_it_belongs)
{
    static const given all[] = { BWD(QDESC, Q),
                                 BWD(KDESC, K),
                                 BWD(VDESC, V),
                                 BWD(ODESC, O),
                                 BWD(DODDESC, DO),
                                 BWD(STATSDESC, STATS),
                                 BWD(DQDESC, DQ),
                                 BWD(DKDESC, DK),
                                 BWD(DVDESC, DV),
                                 BWD(SINK_DESC, SINK),
                                 BWD(DSINK_DESC, DSINK),
                                 BWD(SCALEDESC, ATTN_SCALE),
                                 BWD(SEQ_LEN_QDESC, SEQ_LEN_Q),
                                 BWD(SEQ_LEN_KVDESC, SEQ_LEN_KV),
                                 BWD(DBIAS_DESC, DBIAS),
                                 BWD(DROPOUT_SEED_DESC, SEED),
                                 BWD(DROPOUT_OFFSET_DESC, OFFSET) };
    expect_given(UNIFIED(BACKWARD, .padding = 1, .sink = 1, .dsink = 1, .dropout = 0.1,
                         .scale_in_memory = 1, .has_bias = 1, .dbias = 1,
                         .bias_dim = { 2, 8, 96, 128 }),
                 all, COUNT(all));
    fattn__graph_release(&graph);
}

Test(graph_unified, an_offset_in_tokens_counts_rows_of_its_tensor)
{
    cr_assert_eq(
        build(92800, UNIFIED(.padding = 1, .ragged_tokens = 1, .ragged_bits = 32, .heads_k = 2)),
        FATTN_OK, "%s", graph.text);
    static const struct {
        int attribute;
        int64_t row;
    } tensors[] = { { DNN_ATTR_OPERATION_SDPA_FWD_QDESC, 8 * 64 },
                    { DNN_ATTR_OPERATION_SDPA_FWD_KDESC, 2 * 64 } };
    for (size_t i = 0; i < COUNT(tensors); i++) {
        const recorded *tensor =
            of((fattn__desc)(intptr_t)setting_in(DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                                                 tensors[i].attribute)
                   ->words[0]);
        cr_expect_eq(setting_of(tensor, DNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER)->words[0],
                     tensors[i].row);
    }
    fattn__graph_release(&graph);
}

/* cuDNN writes it densely; what is one for the batch is its sum, of the type of dQ. */
Test(graph_unified, a_gradient_of_a_bias_that_cudnn_does_not_write_is_summed)
{
    cr_assert_eq(
        build(92800, UNIFIED(BACKWARD, .has_bias = 1, .dbias = 1, .bias_dim = { 2, 8, 1, 128 })),
        FATTN_OK, "%s", graph.text);
    cr_assert_eq(graph.sum_count, 1);
    cr_expect_arr_eq(graph.sums[0].dim, ((int64_t[4]){ 2, 8, 96, 128 }), sizeof(int64_t[4]));
    cr_expect_arr_eq(graph.sums[0].strides, ((int64_t[4]){ 8 * 96 * 128, 96 * 128, 128, 1 }),
                     sizeof(int64_t[4]));
    cr_expect_arr_eq(graph.sums[0].out_strides, ((int64_t[4]){ 8 * 128, 128, 0, 1 }),
                     sizeof(int64_t[4]));
    fattn__graph_release(&graph);
}

/* dQ and dK of rotated rows are rotated back, each by its own angles. */
Test(graph_unified, rotations_have_the_angles_of_their_rows)
{
    static const given rows[][2] = {
        { { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_FWD_XDESC,
            FATTN__SLOT_Q },
          { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC,
            FATTN__SLOT_ROPE_Q } },
        { { DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_DXDESC,
            FATTN__SLOT_DQ },
          { DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC,
            FATTN__SLOT_ROPE_Q } }
    };
    for (int pass = 0; pass < 2; pass++) {
        expect_given(UNIFIED(.pass = pass ? FATTN_BACKWARD : FATTN_FORWARD, .rope = 1), rows[pass],
                     2);
        fattn__graph_release(&graph);
    }
}
