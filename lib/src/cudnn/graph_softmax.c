/* The softmax over the keys of a row, as one operation (from 9.20) or spelled out. */
#include "graph.h"

static bool wants(const fattn__chain *c, uint32_t output)
{
    return (c->problem->outputs & output) != 0;
}

/* Stats, Max and Sum_exp have one layout. */
static fattn__desc row_output(const fattn__chain *c, fattn__slot slot)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, FATTN__ROLE_STATS);
    return fattn__tensor(c->g, slot, DNN_DATA_FLOAT, shape.dim, shape.strides);
}

static fattn__desc row_wanted(const fattn__chain *c, uint32_t output, fattn__slot slot)
{
    return wants(c, output) ? row_output(c, slot) : fattn__chain_row(c);
}

static fattn__desc single(const fattn__chain *c, fattn__desc x, int type)
{
    fattn__softmax op = { .x = x };
    op.stats = wants(c, FATTN_WANT_STATS) ? row_output(c, FATTN__SLOT_STATS) : NULL;
    op.max = wants(c, FATTN_WANT_MAX) ? row_output(c, FATTN__SLOT_MAX) : NULL;
    op.sum_exp = wants(c, FATTN_WANT_SUM_EXP) ? row_output(c, FATTN__SLOT_SUM_EXP) : NULL;
    op.y = fattn__chain_score(c, type);
    fattn__op_softmax(c->g, &op);
    return op.y;
}

/* stats = max + log(sum). The pair is part of the pattern even when nobody wants stats, unless max and sum_exp stand for them. */
static void add_stats(const fattn__chain *c, fattn__desc max, fattn__desc sum)
{
    if (!wants(c, FATTN_WANT_STATS) && (wants(c, FATTN_WANT_MAX) || wants(c, FATTN_WANT_SUM_EXP)))
        return;
    const fattn__desc log = fattn__chain_row(c);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = DNN_POINTWISE_LOG, .x = sum, .y = log });
    const fattn__desc stats = row_wanted(c, FATTN_WANT_STATS, FATTN__SLOT_STATS);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = DNN_POINTWISE_ADD, .x = max, .b = log, .y = stats });
}

static fattn__desc expanded(const fattn__chain *c, fattn__desc x, int type)
{
    const fattn__desc max = row_wanted(c, FATTN_WANT_MAX, FATTN__SLOT_MAX);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_MAX, x, max);
    const fattn__desc below_max = fattn__chain_binary(c, DNN_POINTWISE_SUB, x, max, DNN_DATA_FLOAT);
    const fattn__desc exp = fattn__chain_unary(c, DNN_POINTWISE_EXP, below_max, DNN_DATA_FLOAT);
    const fattn__desc sum = row_wanted(c, FATTN_WANT_SUM_EXP, FATTN__SLOT_SUM_EXP);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, exp, sum);
    add_stats(c, max, sum);
    return fattn__chain_binary(c, DNN_POINTWISE_DIV, exp, sum, type);
}

fattn__desc fattn__chain_softmax(const fattn__chain *c, fattn__desc x, int type)
{
    return c->single ? single(c, x, type) : expanded(c, x, type);
}
