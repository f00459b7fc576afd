/* The bias, ALiBi and a boolean mask as parts of the graph, and the gradients of what is added to
 * the score. A gradient is a sum of dS, before the attention scale. cuDNN can sum dS over b or h,
 * into bf16 or f16, row major, and once per graph. In every other case a kernel of this library
 * sums cuDNN's dS: for a bias that is broadcast in s, for tensors of a score_mod, and for several
 * gradients at once. */
#include <math.h>
#include <string.h>

#include "cudnn_graph.h"
#include "score_mod/mod_program.h"

/* slope * (col - row). */
static fattn__desc add_alibi(const fattn__chain *c, fattn__desc x)
{
    const fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_INT32);
    const fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_INT32);
    const fattn__desc distance = fattn__chain_score(c, DNN_DATA_INT32);
    fattn__op_pointwise(
        c->g,
        &(fattn__pointwise){
            .mode = DNN_POINTWISE_SUB, .math = DNN_DATA_INT32, .x = col, .b = row, .y = distance });
    const fattn__desc slopes = fattn__chain_small(c, FATTN__AUXILIARY_ALIBI_SLOPES);
    const fattn__desc added =
        fattn__chain_binary(c, DNN_POINTWISE_MUL, distance, slopes, DNN_DATA_FLOAT);
    return fattn__chain_binary(c, DNN_POINTWISE_ADD, x, added, DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_bias(const fattn__chain *c, fattn__desc x)
{
    if (c->problem->has_bias) {
        const fattn__shape shape = fattn__problem_shape(c->problem, FATTN__ROLE_BIAS);
        const fattn__desc bias =
            fattn__chain_beside(c, FATTN__SLOT_BIAS, shape.dtype, shape.dim, shape.strides);
        x = shape.dtype == FATTN_BOOL
                ? fattn__chain_keep(c, bias, x)
                : fattn__chain_binary(c, DNN_POINTWISE_ADD, x, bias, DNN_DATA_FLOAT);
    }
    return c->problem->alibi ? add_alibi(c, x) : x;
}

/* The outputs that need a sum of dS. */
typedef struct wishes {
    int count;
    fattn__graph_sum at[1 + FATTN_MOD_MAX_TENSORS];
    int64_t dim[4]; /* the smallest tensor that holds the sums of all of them */
} wishes;

static void wish(wishes *w, fattn__slot slot, int32_t dtype, const int64_t dim[4],
                 const int64_t strides[4])
{
    fattn__graph_sum *sum = &w->at[w->count++];
    *sum = (fattn__graph_sum){ .slot = (int32_t)slot, .out_dtype = dtype };
    for (int axis = 0; axis < 4; axis++) {
        sum->out_strides[axis] = dim[axis] > 1 ? strides[axis] : 0;
        w->dim[axis] = dim[axis] > w->dim[axis] ? dim[axis] : w->dim[axis];
    }
}

/* dS itself, or `dS where it is not 0, otherwise 0`, which is the same. */
static bool is_gradient(const fattn__mod_program *program, int place)
{
    const fattn__mod_node *node = &program->at[place];
    if (node->op != FATTN_MOD_SELECT)
        return node->op == FATTN__MOD_GRADIENT;
    const fattn__mod_node *condition = &program->at[node->a], *zero = &program->at[node->c];
    return condition->op == FATTN_MOD_NE && program->at[condition->a].op == FATTN__MOD_GRADIENT &&
           program->at[node->b].op == FATTN__MOD_GRADIENT && condition->b == node->c &&
           zero->op == FATTN__MOD_CONSTANT && fpclassify(zero->constant) == FP_ZERO;
}

/* Only what the score_mod adds as its last step has dS itself as its gradient. */
static void wish_mod(const fattn__chain *c, wishes *w, size_t i)
{
    const fattn_score_mod *mod = c->problem->score_mod;
    const fattn__mod_program *gradient = fattn__score_mod_gradient(mod);
    const fattn_mod_tensor *tensor = fattn_score_mod_tensor(mod, i);
    const int place = gradient->tensor_results[i];
    if (place < 0)
        fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                            "mod_gradients: the score does not depend on tensor \"%s\"",
                            tensor->name);
    else if (!is_gradient(gradient, place))
        fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                            "mod_gradients: tensor \"%s\" is not added as the last step; cuDNN's "
                            "backward reduces the gradient of a bias alone",
                            tensor->name);
    wish(w, (fattn__slot)((size_t)FATTN__SLOT_DMOD_0 + i), FATTN_F32, tensor->dim, tensor->strides);
}

/* Shapes that ran and were right: */
static bool is_reducible(const fattn__chain *c, const int64_t dim[4])
{
    const fattn_problem *p = c->problem;
    const bool over_heads = dim[0] == p->batch && fattn__graph_version(c->g) >= 91000;
    return dim[2] == p->seq_q && dim[3] == p->seq_kv && (over_heads || dim[1] == p->heads_q);
}

/* One tensor in the library's workspace, from which every output is summed. */
static fattn__desc shared_sum(const fattn__chain *c, wishes *w)
{
    const fattn_problem *p = c->problem;
    fattn__graph_sum source = { .dtype = p->dbias ? p->bias_dtype : p->dtype };
    memcpy(source.dim, w->dim, sizeof source.dim);
    source.dim[2] = p->seq_q;
    source.dim[3] = p->seq_kv;
    if (!is_reducible(c, source.dim))
        source.dim[1] = p->heads_q;
    fattn__dense_strides(source.dim, "bhsd", source.strides);
    const fattn__desc out =
        fattn__scratch(c->g, fattn__data_type(source.dtype), source.dim, source.strides);
    if (out == NULL)
        return NULL;
    source.offset = c->g->bindings[c->g->binding_count - 1].offset;
    for (int i = 0; i < w->count; i++) {
        fattn__graph_sum sum = source;
        sum.slot = w->at[i].slot;
        sum.out_dtype = w->at[i].out_dtype;
        memcpy(sum.out_strides, w->at[i].out_strides, sizeof sum.out_strides);
        fattn__sum_later(c->g, &sum);
    }
    return out;
}

void fattn__chain_added_gradients(const fattn__chain *c, fattn__desc d_s)
{
    const fattn_problem *p = c->problem;
    const fattn__shape dbias = fattn__problem_shape(p, FATTN__ROLE_DBIAS);
    wishes w = { .dim = { 1, 1, 1, 1 } };
    if (p->dbias)
        wish(&w, FATTN__SLOT_DBIAS, dbias.dtype, dbias.dim, dbias.strides);
    for (size_t i = 0; i < FATTN_MOD_MAX_TENSORS; i++) {
        if ((p->mod_gradients >> i & 1) != 0)
            wish_mod(c, &w, i);
    }
    if (w.count == 0 || fattn__graph_status(c->g) != FATTN_OK)
        return;
    const bool direct = w.count == 1 && p->dbias && is_reducible(c, dbias.dim);
    const fattn__desc out = direct ? fattn__chain_tensor(c, FATTN__ROLE_DBIAS) : shared_sum(c, &w);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, d_s, out);
}
