/* Masks: padding, and the two bounds of the diagonal band in both spellings. row is the query's
 * index, col the key's. */
#include <float.h>
#include <math.h>

#include "cudnn_graph.h"

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

static fattn__desc predicate(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b)
{
    const fattn__desc y = fattn__chain_score(c, DNN_DATA_BOOLEAN);
    fattn__op_pointwise(c->g, &(fattn__pointwise){
                                  .mode = mode, .math = DNN_DATA_BOOLEAN, .x = x, .b = b, .y = y });
    return y;
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

/* index + value, or index - value, in `math`. */
static fattn__desc moved(const fattn__chain *c, int mode, fattn__desc index, fattn__desc value,
                         int math)
{
    const fattn__desc y = fattn__chain_score(c, math);
    fattn__op_pointwise(
        c->g, &(fattn__pointwise){ .mode = mode, .math = math, .x = index, .b = value, .y = y });
    return y;
}

/* Keeps row + shift + right >= col. */
static fattn__desc expanded_right(const fattn__chain *c, fattn__desc x)
{
    fattn__desc row = fattn__chain_index(c, x, FATTN__AXIS_ROW, DNN_DATA_FLOAT);
    const fattn__desc col = fattn__chain_index(c, x, FATTN__AXIS_COL, DNN_DATA_FLOAT);
    if (is_bottom_right(c)) {
        const fattn__desc kv = length_kv(c);
        row = moved(c, DNN_POINTWISE_ADD, row, kv, DNN_DATA_INT32);
        const fattn__desc q = length_q(c);
        row = moved(c, DNN_POINTWISE_SUB, row, q, DNN_DATA_INT32);
    }
    if (c->problem->window_right != 0) {
        const fattn__desc right = int_value(c, "window_right", c->problem->window_right);
        row = moved(c, DNN_POINTWISE_ADD, row, right, DNN_DATA_INT32);
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
        col = moved(c, DNN_POINTWISE_ADD, col, left, DNN_DATA_INT32);
        col = moved(c, DNN_POINTWISE_SUB, col, c->seq_len_kv, DNN_DATA_INT32);
        col = moved(c, DNN_POINTWISE_ADD, col, c->seq_len_q, DNN_DATA_INT32);
    } else {
        const fattn__desc left = folded_left(c);
        col = moved(c, DNN_POINTWISE_ADD, col, left, DNN_DATA_FLOAT);
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
