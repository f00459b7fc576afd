/* O = softmax(scale * Q K^T + mask) V of e4m3 and e5m2, scaled by numbers in device memory:
 *
 *   S = scale * descale_q * descale_k * Q K^T     P = softmax(mask(S)), amax_s, * scale_s, cast
 *   O = descale_s * descale_v * P V, amax_o, * scale_o, cast
 */
#include "graph_fp8.h"

fattn_status fattn__build_fp8_forward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__fp8 f;
    if (fattn__fp8_begin(&f, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    const fattn__chain *c = &f.chain;
    const fattn__desc q = fattn__chain_tensor(c, FATTN__ROLE_Q);
    const fattn__desc k = fattn__chain_keys(c);
    const fattn__desc product = fattn__chain_product(c, q, k);

    fattn__desc x = fattn__chain_scaled(c, product);
    x = fattn__fp8_times(&f, x, FATTN__AUXILIARY_DESCALE_Q, DNN_DATA_FLOAT);
    x = fattn__fp8_times(&f, x, FATTN__AUXILIARY_DESCALE_K, DNN_DATA_FLOAT);
    x = fattn__chain_masked(c, x);
    x = fattn__chain_softmax(c, x, DNN_DATA_FLOAT);
    x = fattn__chain_dropped(c, x, DNN_DATA_FLOAT);
    fattn__fp8_amax(&f, x, FATTN__AUXILIARY_AMAX_S);
    x = fattn__fp8_times(&f, x, FATTN__AUXILIARY_SCALE_S, c->type);

    const fattn__desc v = fattn__chain_values(c);
    fattn__fp8_multiply(&f, &(fattn__fp8_product){
                                .matmul = { .a = x, .b = v, .m = c->seq_len_q, .k = c->seq_len_kv },
                                .descale_a = FATTN__AUXILIARY_DESCALE_S,
                                .descale_b = FATTN__AUXILIARY_DESCALE_V,
                                .scale = FATTN__AUXILIARY_SCALE_O,
                                .amax = FATTN__AUXILIARY_AMAX_O,
                                .out = FATTN__ROLE_O });
    return fattn__graph_status(g);
}
