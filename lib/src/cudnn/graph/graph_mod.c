/* A score_mod as pointwise operations on virtual tensors of the score's shape. The recording comes
 * in a normal form in which the first input of every operation is virtual, which is what cuDNN asks
 * for; one operation of the recording is one of the graph. */
#include "cudnn_graph.h"
#include "score_mod/mod_program.h"

/* The state of the translation of one program. */
typedef struct spelling {
    const fattn__chain *c;
    const fattn__mod_program *program;
    fattn__desc score, gradient; /* its inputs */
    bool needed[FATTN__MOD_MAX_NODES];
    fattn__desc at[FATTN__MOD_MAX_NODES]; /* the tensors of the nodes so far */
} spelling;

/* DNN_POINTWISE_ of an operation. */
static int mode_of(int op)
{
    static const int16_t modes[] = {
        [FATTN_MOD_NEG] = DNN_POINTWISE_NEG,
        [FATTN_MOD_ABS] = DNN_POINTWISE_ABS,
        [FATTN_MOD_EXP] = DNN_POINTWISE_EXP,
        [FATTN_MOD_LOG] = DNN_POINTWISE_LOG,
        [FATTN_MOD_TANH] = DNN_POINTWISE_TANH_FWD,
        [FATTN_MOD_SIGMOID] = DNN_POINTWISE_SIGMOID_FWD,
        [FATTN_MOD_ERF] = DNN_POINTWISE_ERF,
        [FATTN_MOD_SIN] = DNN_POINTWISE_SIN,
        [FATTN_MOD_COS] = DNN_POINTWISE_COS,
        [FATTN_MOD_TAN] = DNN_POINTWISE_TAN,
        [FATTN_MOD_SQRT] = DNN_POINTWISE_SQRT,
        [FATTN_MOD_RSQRT] = DNN_POINTWISE_RSQRT,
        [FATTN_MOD_RECIPROCAL] = DNN_POINTWISE_RECIPROCAL,
        [FATTN_MOD_RELU] = DNN_POINTWISE_RELU_FWD,
        [FATTN_MOD_SOFTPLUS] = DNN_POINTWISE_SOFTPLUS_FWD,
        [FATTN_MOD_CEIL] = DNN_POINTWISE_CEIL,
        [FATTN_MOD_FLOOR] = DNN_POINTWISE_FLOOR,
        [FATTN_MOD_ADD] = DNN_POINTWISE_ADD,
        [FATTN_MOD_SUB] = DNN_POINTWISE_SUB,
        [FATTN_MOD_MUL] = DNN_POINTWISE_MUL,
        [FATTN_MOD_DIV] = DNN_POINTWISE_DIV,
        [FATTN_MOD_MAX] = DNN_POINTWISE_MAX,
        [FATTN_MOD_MIN] = DNN_POINTWISE_MIN,
        [FATTN_MOD_POW] = DNN_POINTWISE_POW,
        [FATTN_MOD_MOD] = DNN_POINTWISE_MOD,
        [FATTN_MOD_EQ] = DNN_POINTWISE_CMP_EQ,
        [FATTN_MOD_NE] = DNN_POINTWISE_CMP_NEQ,
        [FATTN_MOD_LT] = DNN_POINTWISE_CMP_LT,
        [FATTN_MOD_LE] = DNN_POINTWISE_CMP_LE,
        [FATTN_MOD_GT] = DNN_POINTWISE_CMP_GT,
        [FATTN_MOD_GE] = DNN_POINTWISE_CMP_GE,
        [FATTN_MOD_AND] = DNN_POINTWISE_LOGICAL_AND,
        [FATTN_MOD_OR] = DNN_POINTWISE_LOGICAL_OR,
        [FATTN_MOD_NOT] = DNN_POINTWISE_LOGICAL_NOT,
        [FATTN_MOD_SELECT] = DNN_POINTWISE_BINARY_SELECT,
    };
    _Static_assert(sizeof modes / sizeof *modes == FATTN_MOD_SELECT + 1,
                   "a mode for every operation");
    return modes[op];
}

static bool is_operation(const fattn__mod_node *node)
{
    return node->op < FATTN__MOD_SCORE;
}

static bool is_condition(const fattn__mod_node *node)
{
    return node->op >= FATTN_MOD_EQ && node->op <= FATTN_MOD_NOT;
}

/* A tensor that nothing reads is no part of any pattern. */
static void mark_needed(spelling *s)
{
    s->needed[s->program->result] = true;
    for (int i = s->program->result; i >= 0; i--) {
        const fattn__mod_node *node = &s->program->at[i];
        if (!s->needed[i] || !is_operation(node))
            continue;
        const int inputs = fattn__mod_inputs(node->op), at[3] = { node->a, node->b, node->c };
        for (int k = 0; k < inputs; k++)
            s->needed[at[k]] = true;
    }
}

/* Indices are floats: engines refuse to compare an int32 index with a number. */
static fattn__desc index_along(const spelling *s, int axis)
{
    const fattn__desc y = fattn__chain_score(s->c, DNN_DATA_FLOAT);
    fattn__op_pointwise(s->c->g,
                        &(fattn__pointwise){
                            .mode = DNN_POINTWISE_GEN_INDEX, .axis = axis, .x = s->score, .y = y });
    return y;
}

/* Logic uses fp32 arithmetic too: with boolean arithmetic engines accept only comparisons of
 * integers. */
static fattn__desc operation(const spelling *s, const fattn__mod_node *node)
{
    fattn__pointwise op = { .mode = mode_of(node->op), .math = DNN_DATA_FLOAT };
    op.x = s->at[node->a];
    op.b = fattn__mod_inputs(node->op) > 1 ? s->at[node->b] : NULL;
    if (node->op == FATTN_MOD_SELECT)
        op.t = s->at[node->a], op.x = s->at[node->b], op.b = s->at[node->c];
    op.y = fattn__chain_score(s->c, is_condition(node) ? DNN_DATA_BOOLEAN : DNN_DATA_FLOAT);
    fattn__op_pointwise(s->c->g, &op);
    return op.y;
}

static fattn__desc tensor(const spelling *s, int i)
{
    const fattn_mod_tensor *t = fattn_score_mod_tensor(s->c->problem->score_mod, (size_t)i);
    return fattn__chain_beside(s->c, fattn__slot_of_mod((size_t)i), t->dtype, t->dim, t->strides);
}

static fattn__desc node_tensor(const spelling *s, const fattn__mod_node *node)
{
    switch (node->op) {
    case FATTN__MOD_SCORE:
        return s->score;
    case FATTN__MOD_GRADIENT:
        return s->gradient;
    case FATTN__MOD_INDEX:
        return index_along(s, node->a);
    case FATTN__MOD_CONSTANT:
        return fattn__value_f32(s->c->g, node->constant);
    case FATTN__MOD_TENSOR:
        return tensor(s, node->a);
    default:
        return operation(s, node);
    }
}

/* Emits what the result needs and returns it. */
static fattn__desc spell(spelling *s)
{
    const fattn__mod_program *program = s->program;
    for (int i = 0; i <= program->result; i++) {
        if (s->needed[i])
            s->at[i] = node_tensor(s, &program->at[i]);
    }
    return s->at[program->result];
}

fattn__desc fattn__chain_mod(const fattn__chain *c, fattn__desc x)
{
    if (c->problem->score_mod == NULL)
        return x;
    spelling s = { .c = c, .program = fattn__score_mod_program(c->problem->score_mod), .score = x };
    mark_needed(&s);
    return spell(&s);
}

static bool reads_gradient(const spelling *s)
{
    for (int i = 0; i <= s->program->result; i++)
        if (s->needed[i] && s->program->at[i].op == FATTN__MOD_GRADIENT)
            return true;
    return false;
}

/* A step function of the score has the gradient 0. But the pattern needs a dS that comes from dP.
 */
static fattn__desc joined(const spelling *s, fattn__desc result)
{
    const fattn__desc zero = fattn__value_f32(s->c->g, 0.0F);
    const fattn__desc nothing =
        fattn__chain_binary(s->c, DNN_POINTWISE_MUL, s->gradient, zero, DNN_DATA_FLOAT);
    return fattn__chain_binary(s->c, DNN_POINTWISE_ADD, nothing, result, DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_mod_gradient(const fattn__chain *c, fattn__desc x, fattn__desc d_s)
{
    if (c->problem->score_mod == NULL)
        return d_s;
    spelling s = { .c = c,
                   .program = fattn__score_mod_gradient(c->problem->score_mod),
                   .score = x,
                   .gradient = d_s };
    mark_needed(&s);
    const fattn__desc result = spell(&s);
    return reads_gradient(&s) ? result : joined(&s, result);
}
