/* The softmax over the keys of a row, as one operation (from 9.20) or spelled out. */
#include "cudnn_graph.h"

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
