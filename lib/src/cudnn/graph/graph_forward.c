/* O = softmax(scale * Q K^T + mask) V as a composite graph. */
#include "cudnn_graph.h"

fattn_status fattn__build_forward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__chain c;
    if (fattn__chain_begin(&c, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    const fattn__desc q = fattn__chain_tensor(&c, FATTN__ROLE_Q);
    const fattn__desc k = fattn__chain_keys(&c);
    const fattn__desc product = fattn__chain_product(&c, q, k);

    fattn__desc x = fattn__chain_scaled(&c, product);
    x = fattn__chain_masked(&c, x);
    x = fattn__chain_softmax(&c, x, fattn__chain_drops(&c) ? DNN_DATA_FLOAT : c.type);
    x = fattn__chain_dropped(&c, x, c.type);

    const fattn__desc v = fattn__chain_values(&c);
    const fattn__desc o = fattn__chain_tensor(&c, FATTN__ROLE_O);
    fattn__op_matmul(
        g, &(fattn__matmul){ .a = x, .b = v, .c = o, .m = c.seq_len_q, .k = c.seq_len_kv });
    return fattn__graph_status(g);
}
