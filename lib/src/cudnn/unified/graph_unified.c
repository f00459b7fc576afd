#include "graph_unified.h"

#include "cudnn/backend/backend_parts.h"

static fattn_status check_gates(fattn__graph *g, const char *what, const fattn__unified_gate *gates,
                                size_t count)
{
    const int version = fattn__graph_version(g);
    for (size_t i = 0; i < count; i++)
        if (gates[i].asked && version < gates[i].from)
            return fattn__graph_refuse(
                g, FATTN_UNSUPPORTED, "%s: the %s has it from cuDNN %d.%d on; this is %d.%d.%d",
                gates[i].what, what, gates[i].from / 10000, gates[i].from / 100 % 100,
                version / 10000, version / 100 % 100, version % 100);
    return FATTN_OK;
}

static fattn_status check_spelling(fattn__graph *g, const fattn_problem *p)
{
    const bool expanded = p->spelling == FATTN_SPELLING_EXPANDED && (p->has_left || p->has_right);
    if (expanded && !p->guards_off)
        return fattn__graph_refuse(g, FATTN_POLICY,
                                   "spelling: cuDNN takes an expanded band inside a unified "
                                   "operation for a bias and is wrong; want auto");
    return FATTN_OK;
}

fattn_status fattn__unified_begin(fattn__unified *out, fattn__graph *g,
                                  const fattn_problem *problem, int type, const char *what,
                                  const fattn__unified_gate *gates, size_t count)
{
    /* The operation writes any choice of outputs: what the expanded softmax cannot is no matter
     * here. */
    fattn_problem any = *problem;
    any.spelling = FATTN_SPELLING_AUTO;
    any.guards_off = 1;
    if (check_gates(g, what, gates, count) != FATTN_OK || check_spelling(g, problem) != FATTN_OK ||
        fattn__chain_begin(&out->chain, g, &any) != FATTN_OK)
        return fattn__graph_status(g);
    fattn__chain *c = &out->chain;
    c->problem = problem;
    c->single = problem->spelling != FATTN_SPELLING_EXPANDED;
    if ((problem->cumulative & FATTN_CUMULATIVE_Q) != 0)
        c->cu_seq_len_q = c->seq_len_q, c->seq_len_q = NULL;
    if ((problem->cumulative & FATTN_CUMULATIVE_KV) != 0)
        c->cu_seq_len_kv = c->seq_len_kv, c->seq_len_kv = NULL;
    out->operation = fattn__part(g, type, what);
    return fattn__graph_status(g);
}

void fattn__unified_give(const fattn__unified *u, int attribute, fattn__desc value)
{
    fattn__part_desc(u->chain.g, u->operation, attribute, value);
}

void fattn__unified_give_role(const fattn__unified *u, int attribute, fattn__role role)
{
    fattn__unified_give(u, attribute, fattn__chain_tensor(&u->chain, role));
}

void fattn__unified_give_scale(const fattn__unified *u, int attribute)
{
    const fattn_problem *p = u->chain.problem;
    static const int64_t one[4] = { 1, 1, 1, 1 };
    fattn__desc scale;
    if (p->scale_in_memory)
        scale = fattn__tensor(u->chain.g, FATTN__SLOT_ATTN_SCALE, DNN_DATA_FLOAT, one, one);
    else
        scale = fattn__value_f32(u->chain.g, (float)p->attn_scale);
    fattn__unified_give(u, attribute, scale);
}

void fattn__unified_give_lengths(const fattn__unified *u, const fattn__unified_lengths *attributes)
{
    const fattn__chain *c = &u->chain;
    fattn__unified_give(u, attributes->seq_len_q, c->seq_len_q);
    fattn__unified_give(u, attributes->seq_len_kv, c->seq_len_kv);
    fattn__unified_give(u, attributes->cu_seq_len_q, c->cu_seq_len_q);
    fattn__unified_give(u, attributes->cu_seq_len_kv, c->cu_seq_len_kv);
}

void fattn__unified_give_dropout(const fattn__unified *u, const fattn__unified_dropout *attributes)
{
    const fattn_problem *p = u->chain.problem;
    static const int64_t one[4] = { 1, 1, 1, 1 };
    const float probability = (float)p->dropout;
    const int type = p->rng_bits == 32 ? DNN_DATA_INT32 : DNN_DATA_INT64;
    if (p->dropout == 0.0)
        return;
    fattn__part_set(u->chain.g, u->operation, attributes->probability, DNN_TYPE_FLOAT, 1,
                    &probability);
    fattn__unified_give(u, attributes->seed,
                        fattn__tensor(u->chain.g, FATTN__SLOT_SEED, type, one, one));
    fattn__unified_give(u, attributes->offset,
                        fattn__tensor(u->chain.g, FATTN__SLOT_OFFSET, type, one, one));
}

/* ---- the score's graph
 * -------------------------------------------------------------------------------------------------------------
 */

bool fattn__unified_modifies(const fattn_problem *p)
{
    return p->score_mod != NULL || p->has_bias || p->alibi || p->has_left || p->has_right;
}

static int64_t uid_of(fattn__graph *g, fattn__desc tensor)
{
    int64_t uid = 0, count = 0;
    if (fattn__graph_status(g) == FATTN_OK &&
        g->api->cudnnBackendGetAttribute(tensor, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1,
                                         &count, &uid) != DNN_STATUS_SUCCESS)
        fattn__graph_refuse(g, FATTN_INTERNAL, "cuDNN does not give the uid of a tensor");
    return uid;
}

/* The operations from `first` on leave the graph and become one of their own. It has no handle. */
static fattn__desc taken_out(fattn__graph *g, int first)
{
    fattn__desc graph = fattn__part(g, DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "the score's graph");
    fattn__part_set(g, graph, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR,
                    g->operation_count - first, &g->operations[first]);
    fattn__part_finalize(g, graph, "the score's graph");
    g->operation_count = first;
    return graph;
}

void fattn__unified_give_subgraph(const fattn__unified *u,
                                  const fattn__unified_subgraph *attributes)
{
    const fattn__chain *c = &u->chain;
    fattn__graph *g = c->g;
    const int first = g->operation_count;
    if (!fattn__unified_modifies(c->problem))
        return;
    const fattn__desc input = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__desc x = fattn__chain_mod(c, input);
    x = fattn__chain_bias(c, x);
    x = fattn__chain_bands(c, x);
    const int64_t input_uid = uid_of(g, input), output_uid = uid_of(g, x);
    fattn__unified_give(u, attributes->graph, taken_out(g, first));
    fattn__part_set(g, u->operation, attributes->input_uid, DNN_TYPE_INT64, 1, &input_uid);
    fattn__part_set(g, u->operation, attributes->output_uid, DNN_TYPE_INT64, 1, &output_uid);
}

fattn_status fattn__unified_end(const fattn__unified *u, const char *what)
{
    fattn__part_append(u->chain.g, u->operation, what);
    return fattn__graph_status(u->chain.g);
}
