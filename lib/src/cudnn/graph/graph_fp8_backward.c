/* dQ, dK, dV of e4m3 and e5m2. The form is its own: nothing is accumulated in a workspace of ours, dQ comes before dK, and the
 * masks before the subtraction of Stats.
 *
 *   D  = descale_do * descale_o * rowsum(dO * O)      P  = exp(mask(scale * descale_q * descale_k * Q K^T) - Stats)
 *   dV = descale_s * descale_do * (scale_s * P)^T dO  dP = descale_do * descale_v * dO V^T
 *   dS = scale * P * (dP - D), amax_dp, * scale_dp    dQ = descale_dp * descale_k * dS K    dK = descale_dp * descale_q * dS^T Q
 *
 * Of each gradient the largest magnitude is taken (amax_), then it is scaled (scale_) and cast.
 */
#include "graph_fp8.h"

static fattn__desc score_gradient(fattn__fp8 *f, fattn__desc p, fattn__desc scaled, fattn__desc d_o,
                                  fattn__desc sums)
{
    const fattn__chain *c = &f->chain;
    const fattn__desc v_transposed = fattn__chain_transposed(c, FATTN__ROLE_V);
    const fattn__desc product = fattn__chain_product(c, d_o, v_transposed);
    fattn__desc x = fattn__fp8_times(f, product, FATTN__AUXILIARY_DESCALE_DO, DNN_DATA_FLOAT);
    x = fattn__fp8_times(f, x, FATTN__AUXILIARY_DESCALE_V, DNN_DATA_FLOAT);
    x = fattn__fp8_score_gradient(f, x, sums, p, scaled);
    fattn__fp8_amax(f, x, FATTN__AUXILIARY_AMAX_DP);
    return x;
}

static void gradient_of_values(fattn__fp8 *f, fattn__desc p, fattn__desc d_o)
{
    const fattn__chain *c = &f->chain;
    const fattn__desc dropped = fattn__chain_dropped_again(c, p, &f->dropout);
    const fattn__desc narrow = fattn__fp8_times(f, dropped, FATTN__AUXILIARY_SCALE_S, c->type);
    const fattn__desc transposed = fattn__chain_transposed_score(c, narrow, c->type);
    fattn__fp8_multiply(
        f, &(fattn__fp8_product){
               .matmul = { .a = transposed, .b = d_o, .m = c->seq_len_kv, .k = c->seq_len_q },
               .descale_a = FATTN__AUXILIARY_DESCALE_S,
               .descale_b = FATTN__AUXILIARY_DESCALE_DO,
               .scale = FATTN__AUXILIARY_SCALE_DV,
               .amax = FATTN__AUXILIARY_AMAX_DV,
               .out = FATTN__ROLE_DV });
}

static void gradients_of_queries_and_keys(fattn__fp8 *f, fattn__desc d_s, fattn__desc q,
                                          fattn__desc k_transposed)
{
    const fattn__chain *c = &f->chain;
    const int type = fattn__data_type(c->problem->do_dtype); /* as cudnn-frontend does */
    const fattn__shape key = fattn__problem_shape(c->problem, FATTN__ROLE_K);
    const fattn__desc narrow = fattn__fp8_times(f, d_s, FATTN__AUXILIARY_SCALE_DP, type);
    const fattn__traits packing = fattn__chain_traits(c, FATTN__ROLE_K);
    const fattn__desc k = fattn__virtual_with(c->g, c->type, key.dim, key.strides, &packing);
    fattn__op_reshape(c->g, k_transposed, k);
    fattn__fp8_multiply(
        f, &(fattn__fp8_product){
               .matmul = { .a = narrow, .b = k, .m = c->seq_len_q, .k = c->seq_len_kv },
               .descale_a = FATTN__AUXILIARY_DESCALE_DP,
               .descale_b = FATTN__AUXILIARY_DESCALE_K,
               .scale = FATTN__AUXILIARY_SCALE_DQ,
               .amax = FATTN__AUXILIARY_AMAX_DQ,
               .out = FATTN__ROLE_DQ });
    const fattn__desc transposed = fattn__chain_transposed_score(c, narrow, type);
    fattn__fp8_multiply(
        f, &(fattn__fp8_product){
               .matmul = { .a = transposed, .b = q, .m = c->seq_len_kv, .k = c->seq_len_q },
               .descale_a = FATTN__AUXILIARY_DESCALE_DP,
               .descale_b = FATTN__AUXILIARY_DESCALE_Q,
               .scale = FATTN__AUXILIARY_SCALE_DK,
               .amax = FATTN__AUXILIARY_AMAX_DK,
               .out = FATTN__ROLE_DK });
}

fattn_status fattn__build_fp8_backward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__fp8 f;
    if (fattn__chain_repeat(g, problem) != FATTN_OK || fattn__fp8_begin(&f, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    const fattn__chain *c = &f.chain;
    const fattn__desc q = fattn__chain_tensor(c, FATTN__ROLE_Q);
    const fattn__desc k_transposed = fattn__chain_transposed(c, FATTN__ROLE_K);
    const fattn__desc d_o = fattn__chain_tensor(c, FATTN__ROLE_DO);
    const fattn__desc o = fattn__chain_tensor(c, FATTN__ROLE_O);
    const fattn__desc stats = fattn__chain_tensor(c, FATTN__ROLE_STATS);

    fattn__desc sums = fattn__fp8_row_sums(&f, d_o, o);
    sums = fattn__fp8_row_times(&f, sums, FATTN__AUXILIARY_DESCALE_DO);
    sums = fattn__fp8_row_times(
        &f, sums, FATTN__AUXILIARY_DESCALE_O); /* 16-bit O: cuDNN ignores the number */
    sums = fattn__fp8_softmax_sums(&f, sums, stats);

    const fattn__desc product = fattn__chain_product(c, q, k_transposed);
    fattn__desc scaled = fattn__chain_scaled(c, product);
    scaled = fattn__fp8_times(&f, scaled, FATTN__AUXILIARY_DESCALE_Q, DNN_DATA_FLOAT);
    scaled = fattn__fp8_times(&f, scaled, FATTN__AUXILIARY_DESCALE_K, DNN_DATA_FLOAT);
    const fattn__desc score = fattn__chain_mod(c, scaled);
    const fattn__desc p = fattn__fp8_probabilities(&f, score, stats);
    gradient_of_values(&f, p, d_o);
    const fattn__desc d_s = score_gradient(&f, p, scaled, d_o, sums);
    gradients_of_queries_and_keys(&f, d_s, q, k_transposed);
    return fattn__graph_status(g);
}
