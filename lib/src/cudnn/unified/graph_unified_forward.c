/* O = softmax(subgraph(scale * Q K^T)) V as one operation. */
#include "cudnn/backend/backend_parts.h"
#include "graph_unified.h"

#define ATTR(name) DNN_ATTR_OPERATION_SDPA_FWD_##name

static const char what[] = "unified forward";

/* From this version on the softmax describes itself; before it there are natural Stats or none. */
enum { SOFTMAX_FROM = 92100 };

static bool wants(const fattn_problem *p, uint32_t outputs)
{
    return (p->outputs & outputs) != 0;
}

static bool is_paged(const fattn_problem *p)
{
    return p->page_size_k != 0 || p->page_size_v != 0;
}

static fattn_status begin(fattn__unified *out, fattn__graph *g, const fattn_problem *p)
{
    const fattn__unified_gate gates[] = {
        { p->block_mask, 91400, "block_mask" },
        { is_paged(p), 91500, "page_size: pages" },
        { p->padding && p->cumulative == 0, 91500, "padding: lengths" },
        { wants(p, FATTN_WANT_MAX | FATTN_WANT_SUM_EXP), SOFTMAX_FROM, "outputs: max and sum_exp" },
        { p->sink, SOFTMAX_FROM, "sink" },
        { fattn__unified_modifies(p), SOFTMAX_FROM,
          "sliding windows, bias, ALiBi and score modifications" },
        { p->dropout != 0.0, SOFTMAX_FROM, "dropout" },
        { p->unfuse_fma, 92200, "unfuse_fma" },
        { p->cumulative != 0, 92400, "cumulative: prefix sums of lengths" },
        { p->rope, 92400, "rope" },
        { p->ragged_tokens, 92400, "ragged_tokens: offsets in tokens" },
        { p->dtype >= FATTN_E4M3, 92500, "dtype: 8 bits" },
        { wants(p, FATTN_WANT_STATS_LOG2), 92700, "outputs: stats in base 2" },
    };
    if (fattn__rope_check(g, p) != FATTN_OK)
        return fattn__graph_status(g);
    if (p->dropout_mask)
        return fattn__graph_refuse(
            g, FATTN_UNSUPPORTED,
            "dropout_mask: the unified forward draws its own mask; want impl composite");
    return fattn__unified_begin(out, g, p, DNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, what, gates,
                                sizeof gates / sizeof *gates);
}

/* The pool of pages of K or V in the place of the tensor, and which pages an entry has. */
static void give_pages(const fattn__unified *u, fattn__role role, int tensor, int table)
{
    const fattn__chain *c = &u->chain;
    const fattn_problem *p = c->problem;
    const bool k = role == FATTN__ROLE_K;
    const fattn__shape shape = fattn__problem_shape(p, role);
    const int64_t length = k ? p->table_k : p->table_v;
    const int64_t pool[4] = { k ? p->pages_k : p->pages_v, shape.dim[1],
                              fattn__problem_page(p, role), shape.dim[3] };
    fattn__traits traits = { .offsets = NULL };

    fattn__unified_give(u, tensor,
                        fattn__tensor(c->g, k ? FATTN__SLOT_K : FATTN__SLOT_V,
                                      fattn__data_type(shape.dtype), pool, shape.strides));
    if (p->packed_table)
        traits.offsets = fattn__chain_vector(
            c, k ? FATTN__AUXILIARY_TABLE_OFFSETS_K : FATTN__AUXILIARY_TABLE_OFFSETS_V,
            p->ragged_bits);
    fattn__unified_give(u, table,
                        fattn__tensor_with(c->g,
                                           k ? FATTN__SLOT_PAGE_TABLE_K : FATTN__SLOT_PAGE_TABLE_V,
                                           DNN_DATA_INT32, (int64_t[4]){ p->batch, 1, length, 1 },
                                           (int64_t[4]){ length, length, 1, 1 }, &traits));
}

static void give_keys(const fattn__unified *u, fattn__role role, int tensor, int table)
{
    if (fattn__problem_page(u->chain.problem, role) != 0)
        give_pages(u, role, tensor, table);
    else
        fattn__unified_give(u, tensor,
                            role == FATTN__ROLE_K ? fattn__rope_rotated(&u->chain, role)
                                                  : fattn__chain_tensor(&u->chain, role));
}

static void give_block_mask(const fattn__unified *u)
{
    const fattn_problem *p = u->chain.problem;
    const int64_t rows = (p->seq_q + 127) / 128, bytes = ((p->seq_kv + 127) / 128 + 7) / 8;
    if (!p->block_mask)
        return;
    fattn__unified_give(
        u, ATTR(BLOCK_MASK_DESC),
        fattn__tensor(u->chain.g, FATTN__SLOT_BLOCK_MASK, DNN_DATA_UINT8,
                      (int64_t[4]){ p->batch, p->heads_q, rows, bytes },
                      (int64_t[4]){ p->heads_q * rows * bytes, rows * bytes, bytes, 1 }));
}

/* Stats, Max and Sum_exp have one layout, and one tensor of offsets. */
static fattn__desc row_output(const fattn__unified *u, uint32_t outputs, fattn__slot slot)
{
    const fattn__shape shape = fattn__problem_shape(u->chain.problem, FATTN__ROLE_STATS);
    const fattn__traits traits = fattn__chain_traits(&u->chain, FATTN__ROLE_STATS);
    if (!wants(u->chain.problem, outputs))
        return NULL;
    return fattn__tensor_with(u->chain.g, slot, fattn__data_type(shape.dtype), shape.dim,
                              shape.strides, &traits);
}

/* The probabilities have no other use for the softmax than their shape: both of its tensors are
 * virtual. */
static void give_softmax(const fattn__unified *u)
{
    const fattn__chain *c = &u->chain;
    const fattn_problem *p = c->problem;
    const fattn__desc stats =
        row_output(u, FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2, FATTN__SLOT_STATS);
    const fattn__desc max = row_output(u, FATTN_WANT_MAX, FATTN__SLOT_MAX);
    const fattn__desc sum_exp = row_output(u, FATTN_WANT_SUM_EXP, FATTN__SLOT_SUM_EXP);
    fattn__softmax op = {
        .stats = stats, .max = max, .sum_exp = sum_exp, .log2 = wants(p, FATTN_WANT_STATS_LOG2)
    };
    if (stats == NULL && max == NULL && sum_exp == NULL && !p->sink)
        return;
    if (fattn__graph_version(c->g) < SOFTMAX_FROM) {
        fattn__unified_give(u, ATTR(STATSDESC), stats);
        return;
    }
    op.sink = p->sink ? fattn__chain_small(c, FATTN__AUXILIARY_SINK) : NULL;
    op.x = fattn__chain_score(c, DNN_DATA_FLOAT);
    op.y = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__unified_give(u, ATTR(SOFTMAX_DESC), fattn__softmax_desc(c->g, &op));
}

static void give_dropout(const fattn__unified *u)
{
    const fattn_problem *p = u->chain.problem;
    fattn__unified_give_dropout(u,
                                &(fattn__unified_dropout){ .probability = ATTR(DROPOUT_PROBABILITY),
                                                           .seed = ATTR(DROPOUT_SEED_DESC),
                                                           .offset = ATTR(DROPOUT_OFFSET_DESC) });
    if (wants(p, FATTN_WANT_RNG_DUMP))
        fattn__unified_give(u, ATTR(DROPOUT_RNG_DUMP_DESC),
                            fattn__tensor(u->chain.g, FATTN__SLOT_RNG_DUMP, DNN_DATA_FLOAT,
                                          (int64_t[4]){ p->batch, p->heads_q, p->seq_q, p->seq_kv },
                                          (int64_t[4]){ p->heads_q * p->seq_q * p->seq_kv,
                                                        p->seq_q * p->seq_kv, p->seq_kv, 1 }));
}

fattn_status fattn__build_unified_forward(fattn__graph *g, const fattn_problem *problem)
{
    static const fattn__unified_lengths lengths = { ATTR(SEQ_LEN_QDESC), ATTR(SEQ_LEN_KVDESC),
                                                    ATTR(CU_SEQ_LEN_QDESC),
                                                    ATTR(CU_SEQ_LEN_KVDESC) };
    static const fattn__unified_subgraph subgraph = { ATTR(SUBGRAPH), ATTR(SUBGRAPH_INPUT_UID),
                                                      ATTR(SUBGRAPH_OUTPUT_UID) };
    const bool unfused = true;
    fattn__unified u;
    if (begin(&u, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    fattn__unified_give(&u, ATTR(QDESC), fattn__rope_rotated(&u.chain, FATTN__ROLE_Q));
    give_keys(&u, FATTN__ROLE_K, ATTR(KDESC), ATTR(PAGE_TABLE_KDESC));
    give_keys(&u, FATTN__ROLE_V, ATTR(VDESC), ATTR(PAGE_TABLE_VDESC));
    fattn__unified_give_role(&u, ATTR(ODESC), FATTN__ROLE_O);
    fattn__unified_give(&u, ATTR(SCALEDESC), fattn__chain_scale(&u.chain));
    fattn__unified_give_lengths(&u, &lengths);
    give_block_mask(&u);
    give_softmax(&u);
    fattn__unified_give_subgraph(&u, &subgraph);
    give_dropout(&u);
    fattn__unified_give_scales(&u);
    if (problem->unfuse_fma)
        fattn__part_set(g, u.operation, ATTR(UNFUSE_FMA), DNN_TYPE_BOOLEAN, 1, &unfused);
    return fattn__unified_end(&u, what);
}
