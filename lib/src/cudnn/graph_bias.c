/* The bias, added to the score, and its gradient: the sum of the score's gradient over what the bias broadcasts. */
#include "graph.h"

fattn__desc fattn__chain_bias(const fattn__chain *c, fattn__desc x)
{
    if (!c->problem->has_bias)
        return x;
    const fattn__desc bias = fattn__chain_tensor(c, FATTN__ROLE_BIAS);
    return fattn__chain_binary(c, DNN_POINTWISE_ADD, x, bias, DNN_DATA_FLOAT);
}

void fattn__chain_bias_gradient(const fattn__chain *c, fattn__desc d_s)
{
    if (!c->problem->dbias)
        return;
    const fattn__desc dbias = fattn__chain_tensor(c, FATTN__ROLE_DBIAS);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, d_s, dbias);
}
