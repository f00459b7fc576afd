/* O = softmax(scale * Q K^T + mask) V of block-scaled types. P is cast to the type of Q as it is,
 * between 0 and 1. */
#include "graph_fp8.h"

fattn_status fattn__build_mx_forward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__fp8 f;
    if (fattn__fp8_begin(&f, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    const fattn__chain *c = &f.chain;
    const fattn__desc k =
        fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_K,
                                                       .factors = FATTN__AUXILIARY_SF_K,
                                                       .role = FATTN__ROLE_K,
                                                       .transposed = true });
    const fattn__desc q = fattn__mx_dequantized(
        c, &(fattn__mx_operand){
               .data = FATTN__SLOT_Q, .factors = FATTN__AUXILIARY_SF_Q, .role = FATTN__ROLE_Q });
    const fattn__desc product = fattn__chain_product(c, q, k);

    fattn__desc x = fattn__chain_scaled(c, product);
    x = fattn__chain_masked(c, x);
    x = fattn__chain_softmax(c, x, fattn__chain_drops(c) ? DNN_DATA_FLOAT : c->type);
    x = fattn__chain_dropped(c, x, c->type);

    const fattn__desc v =
        fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_V,
                                                       .factors = FATTN__AUXILIARY_SF_V,
                                                       .role = FATTN__ROLE_V,
                                                       .along_rows = true });
    fattn__mx_multiply(&f, &(fattn__fp8_product){
                               .matmul = { .a = x, .b = v, .m = c->seq_len_q, .k = c->seq_len_kv },
                               .amax = FATTN__AUXILIARY_AMAX_O,
                               .out = FATTN__ROLE_O });
    return fattn__graph_status(g);
}
