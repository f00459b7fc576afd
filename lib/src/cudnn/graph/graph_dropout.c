/* Dropout of P: by cuDNN's Philox, whose mask is the same in forward and backward and from every
 * engine; or by the caller's mask.
 */
#include "cudnn_graph.h"

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
