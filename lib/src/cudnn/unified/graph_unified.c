#include "graph_unified.h"

#include "cudnn/backend/backend_parts.h"
#include "cudnn/graph/graph_fp8.h"
#include "problem/layout.h"

/* The attributes of the unified forward for 8-bit types, from 9.25. E8M0 scale factors make it
 * block-scaled. */

#define ATTR(name) DNN_ATTR_OPERATION_SDPA_FWD_##name

typedef struct given {
    int attribute;
    fattn__auxiliary which;
} given;

static void give_numbers(const fattn__unified *u)
{
    static const given table[] = {
        { ATTR(DESCALE_QDESC), FATTN__AUXILIARY_DESCALE_Q },
        { ATTR(DESCALE_KDESC), FATTN__AUXILIARY_DESCALE_K },
        { ATTR(DESCALE_VDESC), FATTN__AUXILIARY_DESCALE_V },
        { ATTR(DESCALE_SDESC), FATTN__AUXILIARY_DESCALE_S },
        { ATTR(SCALE_SDESC), FATTN__AUXILIARY_SCALE_S },
        { ATTR(SCALE_ODESC), FATTN__AUXILIARY_SCALE_O },
        { ATTR(AMAX_SDESC), FATTN__AUXILIARY_AMAX_S },
        { ATTR(AMAX_ODESC), FATTN__AUXILIARY_AMAX_O },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        /* A scale of O is asked for even where O is not scaled. */
        const bool is_given = fattn__auxiliary_bytes(u->chain.problem, table[i].which) > 0;
        const fattn__desc number = is_given ? fattn__chain_small(&u->chain, table[i].which)
                                            : fattn__value_f32(u->chain.g, 1.0F);
        fattn__unified_give(u, table[i].attribute, number);
    }
}

/* K is not transposed here, nor are its factors. */
static void give_factors(const fattn__unified *u)
{
    static const struct {
        int attribute;
        fattn__mx_operand operand;
    } table[] = {
        { ATTR(DESCALE_QDESC), { .factors = FATTN__AUXILIARY_SF_Q, .role = FATTN__ROLE_Q } },
        { ATTR(DESCALE_KDESC), { .factors = FATTN__AUXILIARY_SF_K, .role = FATTN__ROLE_K } },
        { ATTR(DESCALE_VDESC),
          { .factors = FATTN__AUXILIARY_SF_V, .role = FATTN__ROLE_V, .along_rows = true } },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const fattn__desc factors = fattn__mx_factors(&u->chain, &table[i].operand);
        fattn__unified_give(u, table[i].attribute, factors);
    }
    fattn__unified_give(u, ATTR(AMAX_ODESC),
                        fattn__chain_small(&u->chain, FATTN__AUXILIARY_AMAX_O));
}

void fattn__unified_give_scales(const fattn__unified *u)
{
    const int32_t dtype = u->chain.problem->dtype;
    if (fattn__dtype_is_fp8(dtype))
        give_numbers(u);
    if (fattn__dtype_is_mx(dtype))
        give_factors(u);
}

/* Attributes of the operation and of its gradient, which differ by number alone. */
typedef struct rotation {
    int type, x, y, angles, scale, dim;
    const char *what;
} rotation;

static const rotation forward = { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR,
                                  DNN_ATTR_OPERATION_ROPE_FWD_XDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_YDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE,
                                  DNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM,
                                  "rotary embedding" };
static const rotation backward = {
    DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_DYDESC,
    DNN_ATTR_OPERATION_ROPE_BWD_DXDESC,        DNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC,
    DNN_ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE,  DNN_ATTR_OPERATION_ROPE_BWD_ROPE_DIM,
    "gradient of the rotary embedding"
};

fattn_status fattn__rope_check(fattn__graph *g, const fattn_problem *p)
{
    const uint32_t rotated = FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_DQ | FATTN_RAGGED_DK;
    if (!p->rope)
        return FATTN_OK;
    if (p->ragged_bits != 0 && (p->ragged & rotated) != 0)
        return fattn__graph_refuse(
            g, FATTN_UNSUPPORTED,
            "rope: a row of a ragged tensor is not a position; Q and K must not be ragged");
    if (p->page_size_k != 0)
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                   "rope: a row of a page is not a position; page only V, or "
                                   "rotate K before you store it");
    return FATTN_OK;
}

static void rotate(const fattn__chain *c, const rotation *r, fattn__desc x, fattn__desc y,
                   fattn__role input)
{
    const fattn_problem *p = c->problem;
    const bool q = input == FATTN__ROLE_Q;
    const int64_t rows = q ? p->seq_q : p->seq_kv, lanes = p->rope_dim;
    const float scale = 1.0F;
    const fattn__desc angles =
        fattn__tensor(c->g, q ? FATTN__SLOT_ROPE_Q : FATTN__SLOT_ROPE_K, DNN_DATA_FLOAT,
                      (int64_t[4]){ rows, 1, 1, lanes }, (int64_t[4]){ lanes, lanes, lanes, 1 });
    fattn__desc operation = fattn__part(c->g, r->type, r->what);
    fattn__part_desc(c->g, operation, r->x, x);
    fattn__part_desc(c->g, operation, r->angles, angles);
    fattn__part_desc(c->g, operation, r->y, y);
    fattn__part_set(c->g, operation, r->scale, DNN_TYPE_FLOAT, 1, &scale);
    fattn__part_set(c->g, operation, r->dim, DNN_TYPE_INT64, 1, &lanes);
    fattn__part_append(c->g, operation, r->what);
}

/* Dense, in the order b,s,h,d. */
static fattn__desc room_for(const fattn__chain *c, fattn__role input)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, input);
    int64_t strides[4];
    fattn__dense_strides(shape.dim, "bshd", strides);
    return fattn__scratch(c->g, fattn__data_type(shape.dtype), shape.dim, strides);
}

fattn__desc fattn__rope_rotated(const fattn__chain *c, fattn__role role)
{
    if (!c->problem->rope)
        return fattn__chain_tensor(c, role);
    if (c->problem->pass == FATTN_BACKWARD)
        return room_for(c, role);
    const fattn__desc x = fattn__chain_tensor(c, role);
    const fattn__desc y = room_for(c, role);
    rotate(c, &forward, x, y, role);
    return y;
}

fattn__desc fattn__rope_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input)
{
    return c->problem->rope ? room_for(c, input) : fattn__chain_gradient(c, gradient, input);
}

void fattn__rope_back(const fattn__chain *c, fattn__desc from, fattn__role gradient,
                      fattn__role input)
{
    if (!c->problem->rope)
        return;
    const fattn__desc to = fattn__chain_gradient(c, gradient, input);
    rotate(c, &backward, from, to, input);
}

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
