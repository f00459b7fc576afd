/* What the unified operations are told: the score's graph in its order, and everything of the call that they bind. */
#include "graph_recorder.h"

static int get(fattn__desc desc, int name, int type, int64_t capacity, int64_t *count, void *out)
{
    (void)name, (void)type, (void)capacity;
    *count = 1;
    *(int64_t *)out = (intptr_t)desc;
    return DNN_STATUS_SUCCESS;
}

static bool binds(fattn__slot slot)
{
    for (int i = 0; i < graph.binding_count; i++)
        if (graph.bindings[i].slot == (int32_t)slot)
            return true;
    return false;
}

#define UNIFIED(...)                                                                                                               \
    ((fattn_problem){ .struct_size = sizeof(fattn_problem),                                                                        \
                      .impl = FATTN_IMPL_UNIFIED,                                                                                  \
                      .batch = 2,                                                                                                  \
                      .heads_q = 8,                                                                                                \
                      .seq_q = 512,                                                                                                \
                      .seq_kv = 512,                                                                                               \
                      .dim_qk = 128,                                                                                               \
                      __VA_ARGS__ })

static void expect_graph(int at_version, fattn_problem p, const char *want, int operations)
{
    recorder.cudnnBackendGetAttribute = get;
    expect_order(at_version, p, want);
    cr_assert_eq(build(at_version, p), FATTN_OK, "%s", graph.text);
    cr_expect_eq(graph.operation_count, operations);
    fattn__graph_release(&graph);
    cr_expect_eq(alive, 0);
}

Test(graph_unified, a_score_is_modified_inside_in_the_order_of_the_composite_graph)
{
    expect_graph(92800, UNIFIED(), "", 1);
    expect_graph(92800, UNIFIED(.outputs = FATTN_WANT_STATS), "softmax", 1);
    expect_graph(92000, UNIFIED(.outputs = FATTN_WANT_STATS), "", 1);
    expect_graph(92800, UNIFIED(.has_right = 1), "band_right", 1);
    expect_graph(92800, UNIFIED(.has_right = 1, .has_left = 1, .window_left = 9, .align = FATTN_BOTTOM_RIGHT, .padding = 1),
                 "band_right(lengths) band_left(lengths)", 1);
    expect_graph(92800, UNIFIED(.has_right = 1, .has_bias = 1, .alibi = 1, .sink = 1),
                 "softmax ADD GEN_INDEX GEN_INDEX SUB MUL ADD band_right", 1);
    expect_graph(92800, UNIFIED(.pass = FATTN_BACKWARD, .has_right = 1, .has_bias = 1, .dbias = 1), "ADD band_right", 1);
    expect_graph(92800, UNIFIED(.rope = 1), "", 3);
    expect_graph(92800, UNIFIED(.pass = FATTN_BACKWARD, .rope = 1), "", 3);
}

Test(graph_unified, everything_of_a_call_is_bound)
{
    recorder.cudnnBackendGetAttribute = get;
    cr_assert_eq(build(92800, UNIFIED(.padding = 1, .cumulative = FATTN_CUMULATIVE_Q, .ragged_bits = 64,
                                      .outputs = FATTN_WANT_STATS | FATTN_WANT_MAX, .sink = 1, .alibi = 1, .dropout = 0.1,
                                      .scale_in_memory = 1, .block_mask = 1)),
                 FATTN_OK, "%s", graph.text);
    static const fattn__slot slots[] = { FATTN__SLOT_Q,
                                         FATTN__SLOT_K,
                                         FATTN__SLOT_V,
                                         FATTN__SLOT_O,
                                         FATTN__SLOT_STATS,
                                         FATTN__SLOT_MAX,
                                         FATTN__SLOT_SEQ_LEN_Q,
                                         FATTN__SLOT_SEQ_LEN_KV,
                                         FATTN__SLOT_Q_OFFSETS,
                                         FATTN__SLOT_K_OFFSETS,
                                         FATTN__SLOT_V_OFFSETS,
                                         FATTN__SLOT_O_OFFSETS,
                                         FATTN__SLOT_SINK,
                                         FATTN__SLOT_STATS_OFFSETS,
                                         FATTN__SLOT_ALIBI_SLOPES,
                                         FATTN__SLOT_SEED,
                                         FATTN__SLOT_OFFSET,
                                         FATTN__SLOT_ATTN_SCALE,
                                         FATTN__SLOT_BLOCK_MASK };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        cr_expect(binds(slots[i]), "slot %d", (int)slots[i]);
    cr_expect_not(binds(FATTN__SLOT_SUM_EXP));
    cr_expect_not(binds(FATTN__SLOT_RNG_DUMP));
    fattn__graph_release(&graph);
}
