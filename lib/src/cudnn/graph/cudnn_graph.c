#include "cudnn_graph.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "score_mod/mod_program.h"

enum { LOG2_FROM = 92700, SINGLE_FROM = 92000 };

static const uint32_t row_outputs =
    FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2 | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP;

/* The outputs beside O that the expanded spelling is known to write. cuDNN accepts and runs other
 * choices, but does not write Max and Sum_exp. With a sink, no engine writes the pair. */
static bool expanded_writes(const fattn_problem *p)
{
    const uint32_t outputs = p->outputs & row_outputs;
    return outputs == 0 || outputs == FATTN_WANT_STATS ||
           (outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP) && !p->sink);
}

static fattn_status choose_spelling(fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    const int version = fattn__graph_version(c->g);
    const bool has_single = version >= SINGLE_FROM, is_auto = p->spelling == FATTN_SPELLING_AUTO;
    const int major = version / 10000, minor = version / 100 % 100, patch = version % 100;

    c->single =
        p->spelling == FATTN_SPELLING_SINGLE || (is_auto && has_single && !expanded_writes(p));
    if ((p->outputs & FATTN_WANT_STATS_LOG2) != 0 && version < LOG2_FROM)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "outputs: stats in base 2 need cuDNN 9.27; this is %d.%d.%d",
                                   major, minor, patch);
    if ((p->outputs & FATTN_WANT_STATS_LOG2) != 0 && !c->single)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "outputs: stats in base 2 are an attribute of the single "
                                   "softmax; want spelling single or auto");
    if (c->single && !has_single)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "spelling single needs cuDNN 9.20; this is %d.%d.%d", major,
                                   minor, patch);
    if (!c->single && !expanded_writes(p) && !p->guards_off)
        return fattn__graph_refuse(c->g, FATTN_POLICY,
                                   "outputs: the expanded softmax writes either stats, or max and "
                                   "sum_exp%s; spelling single writes any of them "
                                   "from cuDNN 9.20 (this is %d.%d.%d)",
                                   p->sink ? " and without a sink" : "", major, minor, patch);
    return FATTN_OK;
}

static fattn__desc lengths(const fattn__chain *c, fattn__slot slot, uint32_t cumulative)
{
    const fattn_problem *p = c->problem;
    const fattn__traits traits = { .rank = p->len_rank };
    const int64_t count = p->batch + ((p->cumulative & cumulative) != 0);
    return fattn__tensor_with(c->g, slot, DNN_DATA_INT32, (int64_t[4]){ count, 1, 1, 1 },
                              (int64_t[4]){ p->len_broadcast ? 0 : 1, 1, 1, 1 }, &traits);
}

fattn__desc fattn__chain_vector(const fattn__chain *c, fattn__auxiliary which, int bits)
{
    const int64_t bytes = fattn__auxiliary_bytes(c->problem, which), width = bits == 64 ? 8 : 4;
    if (bytes == 0)
        return NULL;
    return fattn__tensor(c->g, fattn__slot_of_auxiliary(which),
                         bits == 64 ? DNN_DATA_INT64 : DNN_DATA_INT32,
                         (int64_t[4]){ bytes / width, 1, 1, 1 }, (int64_t[4]){ 1, 1, 1, 1 });
}

fattn__desc fattn__chain_small(const fattn__chain *c, fattn__auxiliary which)
{
    const int64_t heads = fattn__auxiliary_bytes(c->problem, which) / (int64_t)sizeof(float);
    return fattn__tensor(c->g, fattn__slot_of_auxiliary(which), DNN_DATA_FLOAT,
                         (int64_t[4]){ 1, heads, 1, 1 }, (int64_t[4]){ heads, 1, 1, 1 });
}

fattn_status fattn__chain_begin(fattn__chain *out, fattn__graph *g, const fattn_problem *problem)
{
    *out = (fattn__chain){ .g = g, .problem = problem, .type = fattn__data_type(problem->dtype) };
    if (choose_spelling(out) == FATTN_OK && problem->padding) {
        out->seq_len_q = lengths(out, FATTN__SLOT_SEQ_LEN_Q, FATTN_CUMULATIVE_Q);
        out->seq_len_kv = lengths(out, FATTN__SLOT_SEQ_LEN_KV, FATTN_CUMULATIVE_KV);
        for (int which = 0; which < FATTN_RAGGED_TENSORS; which++)
            out->offsets[which] = fattn__chain_vector(
                out, (fattn__auxiliary)((int)FATTN__AUXILIARY_Q_OFFSETS + which),
                problem->ragged_bits);
    }
    return fattn__graph_status(g);
}

static fattn__slot slot_of(fattn__role role)
{
#define AS_SLOT(symbol, name) [FATTN__ROLE_##symbol] = FATTN__SLOT_##symbol,
    static const fattn__slot table[FATTN__ROLE_COUNT] = { FATTN__ROLE_LIST(AS_SLOT) };
#undef AS_SLOT
    return table[role];
}

fattn__traits fattn__chain_traits(const fattn__chain *c, fattn__role role)
{
    fattn__traits traits = { .offsets = NULL };
    if (!fattn__problem_ragged(c->problem, role))
        return traits;
    traits.offsets = c->offsets[role];
    traits.multiplier =
        c->problem->ragged_tokens ? fattn__problem_shape(c->problem, role).strides[2] : 0;
    return traits;
}

fattn__desc fattn__chain_tensor(const fattn__chain *c, fattn__role role)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, role);
    const fattn__traits traits = fattn__chain_traits(c, role);
    return fattn__tensor_with(c->g, slot_of(role), fattn__data_type(shape.dtype), shape.dim,
                              shape.strides, &traits);
}

/* A tensor with one row for all queries (extent 1 in s_q): the backward of every tested version
 * (9.14.0, 9.19.0, 9.27.0 on an H100) reads it wrongly, the forward correctly. Both read the same
 * memory correctly as all rows at stride 0. With the guards off the tensor is passed on unchanged.
 */
static fattn__desc fattn__chain_beside(const fattn__chain *c, fattn__slot slot, int32_t dtype,
                                       const int64_t dim[4], const int64_t strides[4])
{
    const fattn_problem *p = c->problem;
    const bool widened = p->pass == FATTN_BACKWARD && !p->guards_off && dim[2] == 1;
    const int64_t rows = widened ? p->seq_q : dim[2], step = widened ? 0 : strides[2];
    return fattn__tensor(c->g, slot, fattn__data_type(dtype),
                         (int64_t[4]){ dim[0], dim[1], rows, dim[3] },
                         (int64_t[4]){ strides[0], strides[1], step, strides[3] });
}

fattn__desc fattn__chain_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input)
{
    if (!fattn__problem_sums(c->problem, gradient, NULL))
        return fattn__chain_tensor(c, gradient);
    const fattn__shape out = fattn__problem_shape(c->problem, gradient),
                       full = fattn__problem_shape(c->problem, input);
    if (fattn__problem_ragged(c->problem, gradient) || fattn__problem_ragged(c->problem, input))
        fattn__graph_refuse(
            c->g, FATTN_UNSUPPORTED,
            "%s_strides: a packed gradient is not summed over what its input broadcasts",
            fattn__role_name(gradient));
    fattn__graph_sum sum = { .slot = (int32_t)slot_of(gradient),
                             .dtype = out.dtype,
                             .out_dtype = out.dtype,
                             .offset = c->g->scratch_bytes };
    memcpy(sum.dim, full.dim, sizeof sum.dim);
    memcpy(sum.out_strides, out.strides, sizeof sum.out_strides);
    fattn__dense_strides(sum.dim, "bshd", sum.strides);
    const fattn__desc each =
        fattn__scratch(c->g, fattn__data_type(sum.dtype), sum.dim, sum.strides);
    fattn__sum_later(c->g, &sum);
    return each;
}

fattn__desc fattn__chain_transposed(const fattn__chain *c, fattn__role role)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, role);
    const int64_t dim[4] = { shape.dim[0], shape.dim[1], shape.dim[3], shape.dim[2] };
    const int64_t strides[4] = { shape.strides[0], shape.strides[1], shape.strides[3],
                                 shape.strides[2] };
    const fattn__traits traits = fattn__chain_traits(c, role);
    return fattn__tensor_with(c->g, slot_of(role), fattn__data_type(shape.dtype), dim, strides,
                              &traits);
}

fattn__desc fattn__chain_score(const fattn__chain *c, int type)
{
    const fattn_problem *p = c->problem;
    return fattn__virtual(c->g, type, (int64_t[4]){ p->batch, p->heads_q, p->seq_q, p->seq_kv },
                          NULL);
}

fattn__desc fattn__chain_row(const fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    return fattn__virtual(c->g, DNN_DATA_FLOAT, (int64_t[4]){ p->batch, p->heads_q, p->seq_q, 1 },
                          NULL);
}

fattn__desc fattn__chain_unary(const fattn__chain *c, int mode, fattn__desc x, int type)
{
    return fattn__chain_binary(c, mode, x, NULL, type);
}

fattn__desc fattn__chain_binary(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                int type)
{
    const fattn__desc y = fattn__chain_score(c, type);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = mode, .x = x, .b = b, .y = y });
    return y;
}

fattn__desc fattn__chain_of_rows(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                 fattn__desc y)
{
    const fattn__desc out = y != NULL ? y : fattn__chain_row(c);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = mode, .x = x, .b = b, .y = out });
    return out;
}

fattn__desc fattn__chain_row_sums(const fattn__chain *c, fattn__desc d_o, fattn__desc o)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, FATTN__ROLE_O);
    const fattn__desc product = fattn__virtual(c->g, DNN_DATA_FLOAT, shape.dim, NULL);
    fattn__chain_of_rows(c, DNN_POINTWISE_MUL, d_o, o, product);
    const fattn__desc sum = fattn__chain_row(c);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, product, sum);
    return sum;
}

fattn__desc fattn__chain_turned_back(const fattn__chain *c, fattn__desc k_transposed)
{
    const fattn__shape key = fattn__problem_shape(c->problem, FATTN__ROLE_K);
    const fattn__traits packing = fattn__chain_traits(c, FATTN__ROLE_K);
    const fattn__desc k = fattn__virtual_with(c->g, c->type, key.dim, key.strides, &packing);
    fattn__op_reshape(c->g, k_transposed, k);
    return k;
}

fattn__desc fattn__chain_scale(const fattn__chain *c)
{
    return c->problem->scale_in_memory ? fattn__chain_small(c, FATTN__AUXILIARY_ATTN_SCALE)
                                       : fattn__value_f32(c->g, (float)c->problem->attn_scale);
}

fattn__desc fattn__chain_scaled(const fattn__chain *c, fattn__desc x)
{
    return fattn__chain_binary(c, DNN_POINTWISE_MUL, x, fattn__chain_scale(c), DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_product(const fattn__chain *c, fattn__desc a, fattn__desc b_transposed)
{
    const fattn__desc product = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_matmul(
        c->g, &(fattn__matmul){
                  .a = a, .b = b_transposed, .c = product, .m = c->seq_len_q, .n = c->seq_len_kv });
    return product;
}

fattn__desc fattn__chain_masked(const fattn__chain *c, fattn__desc x)
{
    x = fattn__chain_mod(c, x);
    x = fattn__chain_bias(c, x);
    x = fattn__chain_padding(c, x);
    return fattn__chain_bands(c, x);
}

/* Masks: padding, and the two bounds of the diagonal band in both spellings. row is the query's
 * index, col the key's. */

/* Below 9.10 the kernels cannot take an infinite constant. */
static fattn__desc masked_value(const fattn__chain *c)
{
    return fattn__value_f32(c->g, fattn__graph_version(c->g) >= 91000 ? -INFINITY : -FLT_MAX);
}

fattn__desc fattn__chain_index(const fattn__chain *c, fattn__desc x, int axis, int math)
{
    const fattn__desc y = fattn__chain_score(c, DNN_DATA_INT32);
    fattn__op_pointwise(
        c->g, &(fattn__pointwise){
                  .mode = DNN_POINTWISE_GEN_INDEX, .math = math, .axis = axis, .x = x, .y = y });
    return y;
}

/* Computed in this type, and of it. */
static fattn__desc typed(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b, int type)
{
    const fattn__desc y = fattn__chain_score(c, type);
    fattn__op_pointwise(c->g,
                        &(fattn__pointwise){ .mode = mode, .math = type, .x = x, .b = b, .y = y });
    return y;
}

static fattn__desc predicate(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b)
{
    return typed(c, mode, x, b, DNN_DATA_BOOLEAN);
}

fattn__desc fattn__chain_keep(const fattn__chain *c, fattn__desc keep, fattn__desc x)
{
    const fattn__desc masked = masked_value(c), y = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_pointwise(
        c->g, &(fattn__pointwise){
                  .mode = DNN_POINTWISE_BINARY_SELECT, .x = x, .b = masked, .t = keep, .y = y });
    return y;
}

fattn__desc fattn__chain_padding(const fattn__chain *c, fattn__desc x)
{
    if (!c->problem->padding)
        return x;
    const fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_INT32);
    const fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_INT32);
    const fattn__desc row_lives = predicate(c, DNN_POINTWISE_CMP_LT, row, c->seq_len_q);
    const fattn__desc col_lives = predicate(c, DNN_POINTWISE_CMP_LT, col, c->seq_len_kv);
    const fattn__desc both_live = predicate(c, DNN_POINTWISE_LOGICAL_AND, row_lives, col_lives);
    return fattn__chain_keep(c, both_live, x);
}

static fattn__desc int_value(const fattn__chain *c, const char *field, int64_t value)
{
    if (value < INT32_MIN || value > INT32_MAX)
        fattn__graph_refuse(c->g, FATTN_UNSUPPORTED, "%s: %lld does not fit the int32 of a band",
                            field, (long long)value);
    return fattn__value_i32(c->g, (int32_t)value);
}

static fattn__desc length_q(const fattn__chain *c)
{
    return c->seq_len_q != NULL ? c->seq_len_q : int_value(c, "seq_q", c->problem->seq_q);
}

static fattn__desc length_kv(const fattn__chain *c)
{
    return c->seq_len_kv != NULL ? c->seq_len_kv : int_value(c, "seq_kv", c->problem->seq_kv);
}

static bool is_bottom_right(const fattn__chain *c)
{
    return c->problem->align == FATTN_BOTTOM_RIGHT;
}

/* Only with lengths does the shift differ between batch entries; otherwise it is folded into the
 * left bound. */
static bool has_varying_shift(const fattn__chain *c)
{
    return is_bottom_right(c) && c->problem->padding;
}

/* The engines recognise a constant left bound by its type, float. */
static fattn__desc folded_left(const fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    const int64_t shift = is_bottom_right(c) ? p->seq_kv - p->seq_q : 0;
    return fattn__value_f32(c->g, (float)(p->window_left - shift));
}

/* Keeps row + shift + right >= col. */
static fattn__desc expanded_right(const fattn__chain *c, fattn__desc x)
{
    fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_FLOAT);
    const fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_FLOAT);
    if (is_bottom_right(c)) {
        const fattn__desc kv = length_kv(c);
        row = typed(c, DNN_POINTWISE_ADD, row, kv, DNN_DATA_INT32);
        const fattn__desc q = length_q(c);
        row = typed(c, DNN_POINTWISE_SUB, row, q, DNN_DATA_INT32);
    }
    if (c->problem->window_right != 0) {
        const fattn__desc right = int_value(c, "window_right", c->problem->window_right);
        row = typed(c, DNN_POINTWISE_ADD, row, right, DNN_DATA_INT32);
    }
    const fattn__desc keep = predicate(c, DNN_POINTWISE_CMP_GE, row, col);
    return fattn__chain_keep(c, keep, x);
}

/* Keeps col + left - shift > row. */
static fattn__desc expanded_left(const fattn__chain *c, fattn__desc x)
{
    const fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_FLOAT);
    fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_FLOAT);
    if (has_varying_shift(c)) {
        const fattn__desc left = int_value(c, "window_left", c->problem->window_left);
        col = typed(c, DNN_POINTWISE_ADD, col, left, DNN_DATA_INT32);
        col = typed(c, DNN_POINTWISE_SUB, col, c->seq_len_kv, DNN_DATA_INT32);
        col = typed(c, DNN_POINTWISE_ADD, col, c->seq_len_q, DNN_DATA_INT32);
    } else {
        const fattn__desc left = folded_left(c);
        col = typed(c, DNN_POINTWISE_ADD, col, left, DNN_DATA_FLOAT);
    }
    const fattn__desc keep = predicate(c, DNN_POINTWISE_CMP_GT, col, row);
    return fattn__chain_keep(c, keep, x);
}

static void give_lengths(const fattn__chain *c, fattn__band *op)
{
    op->cu_seq_len_q = c->cu_seq_len_q;
    op->cu_seq_len_kv = c->cu_seq_len_kv;
    op->seq_len_q = c->cu_seq_len_q != NULL ? NULL : length_q(c);
    op->seq_len_kv = c->cu_seq_len_kv != NULL ? NULL : length_kv(c);
}

/* A right bound of 0 is not set: that is how plain causal is recognised. */
static fattn__desc single_right(const fattn__chain *c, fattn__desc x)
{
    fattn__band op = { .x = x, .compare = DNN_POINTWISE_CMP_GE };
    op.fill = masked_value(c);
    if (c->problem->window_right != 0)
        op.right = int_value(c, "window_right", c->problem->window_right);
    if (is_bottom_right(c))
        give_lengths(c, &op);
    op.y = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_band(c->g, &op);
    return op.y;
}

static fattn__desc single_left(const fattn__chain *c, fattn__desc x)
{
    fattn__band op = { .x = x, .compare = DNN_POINTWISE_CMP_GT };
    op.fill = masked_value(c);
    if (has_varying_shift(c)) {
        op.left = int_value(c, "window_left", c->problem->window_left);
        give_lengths(c, &op);
    } else {
        op.left = folded_left(c);
    }
    op.y = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_band(c->g, &op);
    return op.y;
}

fattn__desc fattn__chain_bands(const fattn__chain *c, fattn__desc x)
{
    if (c->problem->has_right)
        x = c->single ? single_right(c, x) : expanded_right(c, x);
    if (c->problem->has_left)
        x = c->single ? single_left(c, x) : expanded_left(c, x);
    return x;
}

/* The bias, ALiBi and a boolean mask as parts of the graph, and the gradients of what is added to
 * the score. A gradient is a sum of dS, before the attention scale. cuDNN can sum dS over b or h,
 * into bf16 or f16, row major, and once per graph. In every other case a kernel of this library
 * sums cuDNN's dS: for a bias that is broadcast in s, for tensors of a score_mod, and for several
 * gradients at once. */

/* slope * (col - row). */
static fattn__desc add_alibi(const fattn__chain *c, fattn__desc x)
{
    const fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_INT32);
    const fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_INT32);
    const fattn__desc distance = typed(c, DNN_POINTWISE_SUB, col, row, DNN_DATA_INT32);
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

/* A score_mod as pointwise operations on virtual tensors of the score's shape. The recording comes
 * in a normal form in which the first input of every operation is virtual, which is what cuDNN asks
 * for; one operation of the recording is one of the graph. */

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

/* The softmax over the keys of a row, as one operation (from 9.20) or spelled out. */

static bool wants(const fattn__chain *c, uint32_t output)
{
    return (c->problem->outputs & output) != 0;
}

/* Stats, Max and Sum_exp have one layout. Only Stats may be asked for in another type. */
static fattn__desc row_output(const fattn__chain *c, fattn__slot slot)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, FATTN__ROLE_STATS);
    const fattn__traits traits = fattn__chain_traits(c, FATTN__ROLE_STATS);
    const int type = slot == FATTN__SLOT_STATS ? fattn__data_type(shape.dtype) : DNN_DATA_FLOAT;
    return fattn__tensor_with(c->g, slot, type, shape.dim, shape.strides, &traits);
}

static fattn__desc row_wanted(const fattn__chain *c, uint32_t output, fattn__slot slot)
{
    return wants(c, output) ? row_output(c, slot) : fattn__chain_row(c);
}

static fattn__desc single(const fattn__chain *c, fattn__desc x, int type)
{
    fattn__softmax op = { .x = x, .log2 = wants(c, FATTN_WANT_STATS_LOG2) };
    op.stats = wants(c, FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2) ? row_output(c, FATTN__SLOT_STATS)
                                                                  : NULL;
    op.max = wants(c, FATTN_WANT_MAX) ? row_output(c, FATTN__SLOT_MAX) : NULL;
    op.sum_exp = wants(c, FATTN_WANT_SUM_EXP) ? row_output(c, FATTN__SLOT_SUM_EXP) : NULL;
    op.sink = c->problem->sink ? fattn__chain_small(c, FATTN__AUXILIARY_SINK) : NULL;
    op.y = fattn__chain_score(c, type);
    fattn__op_softmax(c->g, &op);
    return op.y;
}

/* stats = max + log(sum). The pair is part of the pattern even when nobody wants stats, unless max
 * and sum_exp stand for them. */
static void add_stats(const fattn__chain *c, fattn__desc max, fattn__desc sum)
{
    if (!wants(c, FATTN_WANT_STATS) && (wants(c, FATTN_WANT_MAX) || wants(c, FATTN_WANT_SUM_EXP)))
        return;
    const fattn__desc log = fattn__chain_of_rows(c, DNN_POINTWISE_LOG, sum, NULL, NULL);
    const fattn__desc stats = row_wanted(c, FATTN_WANT_STATS, FATTN__SLOT_STATS);
    fattn__chain_of_rows(c, DNN_POINTWISE_ADD, max, log, stats);
}

/* The largest score of a row, or the sum, joined with the part of the sink if there is one. */
static fattn__desc row_value(const fattn__chain *c, fattn__desc x, fattn__desc of_sink,
                             bool largest)
{
    const uint32_t output = largest ? FATTN_WANT_MAX : FATTN_WANT_SUM_EXP;
    const fattn__slot slot = largest ? FATTN__SLOT_MAX : FATTN__SLOT_SUM_EXP;
    const fattn__desc of_scores =
        of_sink != NULL ? fattn__chain_row(c) : row_wanted(c, output, slot);
    fattn__op_reduce(c->g, largest ? DNN_REDUCE_TENSOR_MAX : DNN_REDUCE_TENSOR_ADD, x, of_scores);
    if (of_sink == NULL)
        return of_scores;
    const fattn__desc joined = row_wanted(c, output, slot);
    return fattn__chain_of_rows(c, largest ? DNN_POINTWISE_MAX : DNN_POINTWISE_ADD, of_scores,
                                of_sink, joined);
}

/* exp(sink - max): what the sink adds to the sum of a row. */
static fattn__desc sink_term(const fattn__chain *c, fattn__desc sink, fattn__desc max)
{
    const fattn__desc below_max = fattn__chain_of_rows(c, DNN_POINTWISE_SUB, sink, max, NULL);
    return fattn__chain_of_rows(c, DNN_POINTWISE_EXP, below_max, NULL, NULL);
}

static fattn__desc expanded(const fattn__chain *c, fattn__desc x, int type)
{
    const fattn__desc sink = c->problem->sink ? fattn__chain_small(c, FATTN__AUXILIARY_SINK) : NULL;
    const fattn__desc max = row_value(c, x, sink, true);
    const fattn__desc below_max = fattn__chain_binary(c, DNN_POINTWISE_SUB, x, max, DNN_DATA_FLOAT);
    const fattn__desc exp = fattn__chain_unary(c, DNN_POINTWISE_EXP, below_max, DNN_DATA_FLOAT);
    const fattn__desc term = sink != NULL ? sink_term(c, sink, max) : NULL;
    const fattn__desc sum = row_value(c, exp, term, false);
    add_stats(c, max, sum);
    return fattn__chain_binary(c, DNN_POINTWISE_DIV, exp, sum, type);
}

fattn__desc fattn__chain_softmax(const fattn__chain *c, fattn__desc x, int type)
{
    return c->single ? single(c, x, type) : expanded(c, x, type);
}

/* Dropout of P: by cuDNN's Philox, whose mask is the same in forward and backward and from every
 * engine; or by the caller's mask.
 */

static fattn__desc scores_of_call(const fattn__chain *c, fattn__slot slot, int type)
{
    const fattn_problem *p = c->problem;
    const int64_t dim[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    const int64_t strides[4] = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 };
    return fattn__tensor(c->g, slot, type, dim, strides);
}

static fattn__desc drawn(const fattn__chain *c)
{
    const bool dumped = (c->problem->outputs & FATTN_WANT_RNG_DUMP) != 0;
    fattn__rng op = { .keep = 1.0 - c->problem->dropout };
    op.seed = fattn__chain_vector(c, FATTN__AUXILIARY_SEED, c->problem->rng_bits);
    op.offset = fattn__chain_vector(c, FATTN__AUXILIARY_OFFSET, c->problem->rng_bits);
    op.y = dumped ? scores_of_call(c, FATTN__SLOT_RNG_DUMP, DNN_DATA_FLOAT)
                  : fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_rng(c->g, &op);
    return op.y;
}

bool fattn__chain_drops(const fattn__chain *c)
{
    return c->problem->dropout != 0.0 || c->problem->dropout_mask;
}

fattn__dropout fattn__chain_dropout(const fattn__chain *c)
{
    const bool backward = c->problem->pass == FATTN_BACKWARD;
    const double keep = 1.0 - c->problem->dropout;
    fattn__dropout out = { .keep = NULL };
    if (c->problem->dropout_mask) {
        out.keep = scores_of_call(c, FATTN__SLOT_DROPOUT_MASK,
                                  fattn__data_type(fattn__dropout_mask_dtype(c->problem)));
        out.scale = fattn__chain_small(c, FATTN__AUXILIARY_DROPOUT_SCALE);
    } else if (c->problem->dropout != 0.0) {
        out.keep = drawn(c);
        out.scale = fattn__value_f32(c->g, (float)(1.0 / keep));
        out.inverse = backward ? fattn__value_f32(c->g, (float)keep) : NULL;
    }
    return out;
}

/* The two kinds of dropout multiply in different orders, and engines recognise them by the order.
 */
fattn__desc fattn__chain_dropped(const fattn__chain *c, fattn__desc p, int type)
{
    if (!fattn__chain_drops(c))
        return p;
    const fattn__dropout dropout = fattn__chain_dropout(c);
    const bool given = c->problem->dropout_mask != 0;
    p = fattn__chain_binary(c, DNN_POINTWISE_MUL, p, given ? dropout.scale : dropout.keep,
                            DNN_DATA_FLOAT);
    return fattn__chain_binary(c, DNN_POINTWISE_MUL, p, given ? dropout.keep : dropout.scale, type);
}

/* With a drawn mask, D already contains the inverse of the factor, so one product at the end scales
 * both. cuDNN ignores a factor in memory beside D; there dP is scaled before. */
fattn__desc fattn__chain_dropped_slope(const fattn__chain *c, const fattn__slope *in,
                                       const fattn__dropout *dropout)
{
    fattn__desc x = in->d_p;
    const bool drops = dropout->keep != NULL, first = dropout->inverse == NULL;
    if (drops)
        x = fattn__chain_binary(c, DNN_POINTWISE_MUL, x, dropout->keep, DNN_DATA_FLOAT);
    if (drops && first)
        x = fattn__chain_binary(c, DNN_POINTWISE_MUL, x, dropout->scale, DNN_DATA_FLOAT);
    x = fattn__chain_binary(c, DNN_POINTWISE_SUB, x, in->sums, DNN_DATA_FLOAT);
    x = fattn__chain_binary(c, DNN_POINTWISE_MUL, x, in->p, DNN_DATA_FLOAT);
    return drops && !first
               ? fattn__chain_binary(c, DNN_POINTWISE_MUL, x, dropout->scale, DNN_DATA_FLOAT)
               : x;
}

/* K and V of the forward: as they are, or gathered from the pages of a cache. */

/* One operation gathers the operand of the product. K comes out transposed; engines distinguish it
 * from V by that. */
static fattn__desc gathered(const fattn__chain *c, fattn__role role)
{
    const fattn_problem *p = c->problem;
    const bool is_k = role == FATTN__ROLE_K;
    const fattn__shape whole = fattn__problem_shape(p, role),
                       pool = fattn__problem_bytes_of(p, role);
    const int64_t heads = whole.dim[1], keys = whole.dim[2], dim = whole.dim[3],
                  pages = is_k ? p->table_k : p->table_v;
    const int64_t turned[4] = { p->batch, heads, dim, keys },
                  turned_strides[4] = { dim * keys * heads, dim * keys, 1, dim };
    const int type = fattn__data_type(whole.dtype);
    fattn__paged_load op = { .seq_len = c->seq_len_kv };
    fattn__traits table = { .offsets = NULL };

    table.offsets = fattn__chain_vector(
        c, is_k ? FATTN__AUXILIARY_TABLE_OFFSETS_K : FATTN__AUXILIARY_TABLE_OFFSETS_V,
        p->ragged_bits);
    op.pages =
        fattn__tensor(c->g, is_k ? FATTN__SLOT_K : FATTN__SLOT_V, type, pool.dim, pool.strides);
    op.table = fattn__tensor_with(c->g, is_k ? FATTN__SLOT_PAGE_TABLE_K : FATTN__SLOT_PAGE_TABLE_V,
                                  DNN_DATA_INT32, (int64_t[4]){ p->batch, 1, pages, 1 },
                                  (int64_t[4]){ pages, pages, 1, 1 }, &table);
    op.y = is_k ? fattn__virtual(c->g, type, turned, turned_strides)
                : fattn__virtual(c->g, type, whole.dim, NULL);
    fattn__op_paged_load(c->g, &op);
    return op.y;
}

fattn__desc fattn__chain_keys(const fattn__chain *c)
{
    return fattn__problem_page(c->problem, FATTN__ROLE_K) != 0
               ? gathered(c, FATTN__ROLE_K)
               : fattn__chain_transposed(c, FATTN__ROLE_K);
}

fattn__desc fattn__chain_values(const fattn__chain *c)
{
    return fattn__problem_page(c->problem, FATTN__ROLE_V) != 0
               ? gathered(c, FATTN__ROLE_V)
               : fattn__chain_tensor(c, FATTN__ROLE_V);
}

/* Declared totals: with ragged tensors the workspace of a backward holds the declared tokens, not
 * batch times the longest entry. */

enum { UNKNOWN_ON_AMPERE_FROM = 91801 };

/* May the total be declared? Not for head dims that are no multiple of 16, or on sm_8x and sm_12x
 * from 9.18.1: the gradients are then known to be wrong, or were never tested. Without it only the
 * workspace is larger. With the guards off it is always declared.
 */
static bool is_declarable(const fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    const int major = c->g->sm / 10;
    const bool ampere = major == 8 || major == 12;
    return p->guards_off || (p->dim_qk % 16 == 0 && p->dim_v % 16 == 0 &&
                             !(ampere && fattn__graph_version(c->g) >= UNKNOWN_ON_AMPERE_FROM));
}

/* Offsets of the tensor serve for a group of heads too: the engines take the ratio of the strides
 * of s. */
fattn__desc fattn__chain_packed_scratch(const fattn__chain *c, fattn__role like, int type,
                                        int64_t heads)
{
    fattn__shape shape = fattn__problem_shape(c->problem, like);
    fattn__traits traits = fattn__chain_traits(c, like);
    const int64_t group = heads / shape.dim[1];
    traits.total = like == FATTN__ROLE_DK || like == FATTN__ROLE_DV ? c->problem->total_kv
                                                                    : c->problem->total_q;
    if (traits.offsets == NULL || traits.total == 0 || !is_declarable(c))
        return NULL;
    shape.dim[1] = heads;
    shape.strides[0] *= group;
    shape.strides[2] *= group;
    return fattn__scratch_with(c->g, type, shape.dim, shape.strides, &traits);
}
