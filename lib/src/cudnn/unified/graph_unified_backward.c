/* dQ, dK, dV from dO, O and Stats as one operation: the engine owns every intermediate. The score's
 * graph of the forward is replayed; cuDNN has no attribute for a change of dS on the way back. */
#include <string.h>

#include "cudnn/backend/backend_parts.h"
#include "graph_unified.h"
#include "score_mod/mod_program.h"

#define ATTR(name) DNN_ATTR_OPERATION_SDPA_BWD_##name

static const char what[] = "unified backward";

static fattn_status refuse(fattn__graph *g, const char *field, const char *why)
{
    return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                               "%s: the unified backward %s; want impl composite", field, why);
}

/* dS is its own gradient only if a score_mod adds and does nothing else. */
static bool only_adds(const fattn_score_mod *mod)
{
    const fattn__mod_program *gradient = fattn__score_mod_gradient(mod);
    return gradient->at[gradient->result].op == FATTN__MOD_GRADIENT;
}

static fattn_status check_words(fattn__graph *g, const fattn_problem *p)
{
    if (p->dropout_mask)
        return refuse(g, "dropout_mask", "draws its own mask");
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0)
        return refuse(g, "outputs: rng_dump", "does not say what it kept");
    if (p->block_mask || p->unfuse_fma)
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                   "%s: only for the forward; cuDNN has no such backward",
                                   p->block_mask ? "block_mask" : "unfuse_fma");
    if (p->dtype != FATTN_BF16 && p->dtype != FATTN_F16)
        return refuse(g, "dtype", "takes bf16 and f16");
    if (fattn__rope_check(g, p) != FATTN_OK)
        return fattn__graph_status(g);
    if (p->mod_gradients != 0)
        return refuse(g, "mod_gradients", "gives the gradient of a bias alone");
    if (p->score_mod != NULL && !p->guards_off && !only_adds(p->score_mod))
        return refuse(g, "score_mod", "cannot express its gradient");
    return FATTN_OK;
}

static fattn_status begin(fattn__unified *out, fattn__graph *g, const fattn_problem *p)
{
    const fattn__unified_gate gates[] = {
        { p->sink, 92100, "sink" },
        { p->total_q != 0 || p->total_kv != 0, 92100, "total_q, total_kv" },
        { fattn__unified_modifies(p), 92100,
          "sliding windows, bias, ALiBi and score modifications" },
        { p->rope, 92500, "rope" },
        { p->ragged_tokens, 92400, "ragged_tokens: offsets in tokens" },
        { p->cumulative != 0, 92800, "cumulative: prefix sums of lengths" },
        { p->dropout != 0.0, 92800, "dropout" },
        { p->dbias, 92800, "dbias" },
    };
    if (check_words(g, p) != FATTN_OK || fattn__chain_repeat(g, p) != FATTN_OK)
        return fattn__graph_status(g);
    return fattn__unified_begin(out, g, p, DNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, what, gates,
                                sizeof gates / sizeof *gates);
}

static void give_totals(const fattn__unified *u)
{
    const fattn_problem *p = u->chain.problem;
    if (p->total_q != 0)
        fattn__part_set(u->chain.g, u->operation, ATTR(MAX_TOTAL_SEQ_LEN_Q), DNN_TYPE_INT64, 1,
                        &p->total_q);
    if (p->total_kv != 0)
        fattn__part_set(u->chain.g, u->operation, ATTR(MAX_TOTAL_SEQ_LEN_KV), DNN_TYPE_INT64, 1,
                        &p->total_kv);
}

/* cuDNN writes it densely, over all rows and keys, in the type of dQ. Anything else is summed or
 * cast from our own memory. */
static void give_dbias(const fattn__unified *u)
{
    const fattn_problem *p = u->chain.problem;
    if (!p->dbias)
        return;
    const fattn__shape out = fattn__problem_shape(p, FATTN__ROLE_DBIAS),
                       dq = fattn__problem_shape(p, FATTN__ROLE_DQ);
    fattn__graph_sum sum = { .slot = FATTN__SLOT_DBIAS,
                             .dtype = dq.dtype,
                             .out_dtype = out.dtype,
                             .offset = u->chain.g->scratch_bytes };
    memcpy(sum.dim, (int64_t[4]){ out.dim[0], out.dim[1], p->seq_q, p->seq_kv }, sizeof sum.dim);
    fattn__dense_strides(sum.dim, "bhsd", sum.strides);
    bool direct = out.dtype == dq.dtype;
    for (int axis = 0; axis < 4; axis++) {
        direct = direct && out.dim[axis] == sum.dim[axis] &&
                 (out.dim[axis] == 1 || out.strides[axis] == sum.strides[axis]);
        sum.out_strides[axis] = out.dim[axis] > 1 ? out.strides[axis] : 0;
    }
    if (direct) {
        fattn__unified_give_role(u, ATTR(DBIAS_DESC), FATTN__ROLE_DBIAS);
        return;
    }
    fattn__unified_give(
        u, ATTR(DBIAS_DESC),
        fattn__scratch(u->chain.g, fattn__data_type(sum.dtype), sum.dim, sum.strides));
    fattn__sum_later(u->chain.g, &sum);
}

static void give_sink(const fattn__unified *u)
{
    const fattn_problem *p = u->chain.problem;
    if (p->sink)
        fattn__unified_give(u, ATTR(SINK_DESC),
                            fattn__chain_small(&u->chain, FATTN__AUXILIARY_SINK));
    if (p->dsink)
        fattn__unified_give(u, ATTR(DSINK_DESC),
                            fattn__chain_small(&u->chain, FATTN__AUXILIARY_DSINK));
}

fattn_status fattn__build_unified_backward(fattn__graph *g, const fattn_problem *problem)
{
    static const fattn__unified_lengths lengths = { ATTR(SEQ_LEN_QDESC), ATTR(SEQ_LEN_KVDESC),
                                                    ATTR(CU_SEQ_LEN_QDESC),
                                                    ATTR(CU_SEQ_LEN_KVDESC) };
    static const fattn__unified_subgraph subgraph = { ATTR(SUBGRAPH), ATTR(SUBGRAPH_INPUT_UID),
                                                      ATTR(SUBGRAPH_OUTPUT_UID) };
    static const fattn__unified_dropout dropout = { ATTR(DROPOUT_PROBABILITY),
                                                    ATTR(DROPOUT_SEED_DESC),
                                                    ATTR(DROPOUT_OFFSET_DESC) };
    static const struct {
        int attribute;
        fattn__role role;
    } inputs[] = { { ATTR(VDESC), FATTN__ROLE_V },
                   { ATTR(ODESC), FATTN__ROLE_O },
                   { ATTR(DODDESC), FATTN__ROLE_DO },
                   { ATTR(STATSDESC), FATTN__ROLE_STATS } };
    fattn__unified u;
    if (begin(&u, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    fattn__unified_give(&u, ATTR(QDESC), fattn__rope_rotated(&u.chain, FATTN__ROLE_Q));
    fattn__unified_give(&u, ATTR(KDESC), fattn__rope_rotated(&u.chain, FATTN__ROLE_K));
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        fattn__unified_give_role(&u, inputs[i].attribute, inputs[i].role);
    const fattn__desc dq = fattn__rope_gradient(&u.chain, FATTN__ROLE_DQ, FATTN__ROLE_Q);
    const fattn__desc dk = fattn__rope_gradient(&u.chain, FATTN__ROLE_DK, FATTN__ROLE_K);
    fattn__unified_give(&u, ATTR(DQDESC), dq);
    fattn__unified_give(&u, ATTR(DKDESC), dk);
    fattn__unified_give(&u, ATTR(DVDESC),
                        fattn__chain_gradient(&u.chain, FATTN__ROLE_DV, FATTN__ROLE_V));
    fattn__unified_give(&u, ATTR(SCALEDESC), fattn__chain_scale(&u.chain));
    fattn__unified_give_lengths(&u, &lengths);
    give_sink(&u);
    give_totals(&u);
    fattn__unified_give_subgraph(&u, &subgraph);
    fattn__unified_give_dropout(&u, &dropout);
    give_dbias(&u);
    fattn__unified_end(&u, what);
    fattn__rope_back(&u.chain, dq, FATTN__ROLE_DQ, FATTN__ROLE_Q);
    fattn__rope_back(&u.chain, dk, FATTN__ROLE_DK, FATTN__ROLE_K);
    return fattn__graph_status(g);
}
