/* Steps of the graphs of 8 bit types. */
#include "graph_fp8.h"

#include "problem/layout.h"

fattn_status fattn__fp8_begin(fattn__fp8 *out, fattn__graph *g, const fattn_problem *problem)
{
    static const fattn__role gradients[] = { FATTN__ROLE_DQ, FATTN__ROLE_DK, FATTN__ROLE_DV };
    *out = (fattn__fp8){ .numbers = { NULL } };
    if (fattn__chain_begin(&out->chain, g, problem) != FATTN_OK)
        return fattn__graph_status(g);
    for (size_t i = 0; i < sizeof gradients / sizeof *gradients; i++)
        if (fattn__problem_sums(problem, gradients[i], NULL))
            return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                       "%s_strides: a gradient of 8 bit types cannot be the sum "
                                       "over what its input broadcasts",
                                       fattn__role_name(gradients[i]));
    if (problem->dbias || problem->mod_gradients != 0)
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                   "%s: cuDNN's backward of 8 bit types has no such gradient",
                                   problem->dbias ? "dbias" : "mod_gradients");
    return FATTN_OK;
}

/* ---- numbers of the call
 * ---------------------------------------------------------------------------------------------------
 */

static fattn__desc fattn__fp8_number(fattn__fp8 *f, fattn__auxiliary which)
{
    if (f->numbers[which] == NULL)
        f->numbers[which] = fattn__chain_small(&f->chain, which);
    return f->numbers[which];
}

fattn__desc fattn__fp8_times(fattn__fp8 *f, fattn__desc score, fattn__auxiliary number, int type)
{
    const fattn__desc factor = fattn__fp8_number(f, number);
    return fattn__chain_binary(&f->chain, DNN_POINTWISE_MUL, score, factor, type);
}

static fattn__desc fattn__fp8_row_times(fattn__fp8 *f, fattn__desc row, fattn__auxiliary number)
{
    const fattn__desc factor = fattn__fp8_number(f, number);
    return fattn__chain_of_rows(&f->chain, DNN_POINTWISE_MUL, row, factor, NULL);
}

void fattn__fp8_amax(fattn__fp8 *f, fattn__desc x, fattn__auxiliary amax)
{
    const fattn__desc largest = fattn__fp8_number(f, amax);
    fattn__op_reduce(f->chain.g, DNN_REDUCE_TENSOR_AMAX, x, largest);
}

/* ---- products
 * --------------------------------------------------------------------------------------------------------------
 */

/* The product of all query heads, fp32, summed to the heads of the output where they are fewer. */
static fattn__desc summed_product(const fattn__fp8 *f, const fattn__fp8_product *op,
                                  const fattn__shape *out)
{
    fattn__graph *g = f->chain.g;
    fattn__matmul product = op->matmul;
    const int64_t full[4] = { out->dim[0], f->chain.problem->heads_q, out->dim[2], out->dim[3] };
    product.c = fattn__virtual(g, DNN_DATA_FLOAT, full, NULL);
    fattn__op_matmul(g, &product);
    if (full[1] == out->dim[1])
        return product.c;
    const fattn__desc summed = fattn__virtual(g, DNN_DATA_FLOAT, out->dim, NULL);
    fattn__op_reduce(g, DNN_REDUCE_TENSOR_ADD, product.c, summed);
    return summed;
}

static fattn__desc times(fattn__fp8 *f, fattn__desc x, fattn__auxiliary number,
                         const int64_t dim[4])
{
    const fattn__desc factor = fattn__fp8_number(f, number),
                      y = fattn__virtual(f->chain.g, DNN_DATA_FLOAT, dim, NULL);
    return fattn__chain_of_rows(&f->chain, DNN_POINTWISE_MUL, x, factor, y);
}

/* The last multiplication is part of the pattern: an output of more than 8 bits is multiplied by a
 * constant 1. */
static void fattn__fp8_multiply(fattn__fp8 *f, const fattn__fp8_product *op)
{
    fattn__graph *g = f->chain.g;
    const fattn__shape shape = fattn__problem_shape(f->chain.problem, op->out);
    fattn__desc x = summed_product(f, op, &shape);
    x = times(f, x, op->descale_a, shape.dim);
    x = times(f, x, op->descale_b, shape.dim);
    const fattn__desc scale = fattn__dtype_is_fp8(shape.dtype) ? fattn__fp8_number(f, op->scale)
                                                               : fattn__value_f32(g, 1.0F);
    const fattn__desc out = fattn__chain_tensor(&f->chain, op->out);
    fattn__chain_of_rows(&f->chain, DNN_POINTWISE_MUL, x, scale, out);
    fattn__fp8_amax(f, x, op->amax);
}

void fattn__mx_multiply(fattn__fp8 *f, const fattn__fp8_product *op)
{
    fattn__graph *g = f->chain.g;
    const fattn__shape shape = fattn__problem_shape(f->chain.problem, op->out);
    const int64_t full[4] = { shape.dim[0], f->chain.problem->heads_q, shape.dim[2], shape.dim[3] };
    fattn__matmul product = op->matmul;
    const fattn__desc out = fattn__chain_tensor(&f->chain, op->out);
    product.c = full[1] == shape.dim[1] ? out : fattn__virtual(g, DNN_DATA_FLOAT, full, NULL);
    fattn__op_matmul(g, &product);
    if (product.c != out)
        fattn__op_reduce(g, DNN_REDUCE_TENSOR_ADD, product.c, out);
    fattn__fp8_amax(f, out, op->amax);
}

/* ---- rows of the backward
 * --------------------------------------------------------------------------------------------------
 */

/* With a sink, this factor (1 without dropout) distinguishes the sink's product from this one.
 * Without a sink there is no factor. */
fattn__desc fattn__fp8_softmax_sums(fattn__fp8 *f, fattn__desc sums, fattn__desc stats)
{
    const fattn__chain *c = &f->chain;
    f->dropout = fattn__chain_dropout(c);
    if (c->problem->dsink)
        fattn__chain_sink_gradient(c, stats, sums);
    if (f->dropout.inverse == NULL && !c->problem->sink)
        return sums;
    const fattn__desc factor =
        f->dropout.inverse != NULL ? f->dropout.inverse : fattn__value_f32(c->g, 1.0F);
    return fattn__chain_of_rows(c, DNN_POINTWISE_MUL, sums, factor, NULL);
}

fattn__desc fattn__fp8_probabilities(fattn__fp8 *f, fattn__desc score, fattn__desc stats)
{
    const fattn__chain *c = &f->chain;
    fattn__desc x = fattn__chain_bias(c, score);
    x = fattn__chain_padding(c, x);
    x = fattn__chain_bands(c, x);
    x = fattn__chain_binary(c, DNN_POINTWISE_SUB, x, stats, DNN_DATA_FLOAT);
    return fattn__chain_unary(c, DNN_POINTWISE_EXP, x, DNN_DATA_FLOAT);
}

fattn__desc fattn__fp8_score_gradient(fattn__fp8 *f, fattn__desc d_p, fattn__desc sums,
                                      fattn__desc p, fattn__desc scaled)
{
    const fattn__chain *c = &f->chain;
    fattn__desc x = fattn__chain_dropped_slope(
        c, &(fattn__slope){ .d_p = d_p, .sums = sums, .p = p }, &f->dropout);
    x = fattn__chain_mod_gradient(c, scaled, x);
    return fattn__chain_scaled(c, x);
}

/* O = softmax(scale * Q K^T + mask) V of e4m3 and e5m2, scaled by numbers in device memory:
 *
 *   S = scale * descale_q * descale_k * Q K^T     P = softmax(mask(S)), amax_s, * scale_s, cast
 *   O = descale_s * descale_v * P V, amax_o, * scale_o, cast
 */

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

/* dQ, dK, dV of e4m3 and e5m2. The form is its own: nothing is accumulated in a workspace of ours, dQ comes before dK, and the
 * masks before the subtraction of Stats.
 *
 *   D  = descale_do * descale_o * rowsum(dO * O)      P  = exp(mask(scale * descale_q * descale_k * Q K^T) - Stats)
 *   dV = descale_s * descale_do * (scale_s * P)^T dO  dP = descale_do * descale_v * dO V^T
 *   dS = scale * P * (dP - D), amax_dp, * scale_dp    dQ = descale_dp * descale_k * dS K    dK = descale_dp * descale_q * dS^T Q
 *
 * Of each gradient the largest magnitude is taken (amax_), then it is scaled (scale_) and cast.
 */

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
    const fattn__desc narrow = fattn__fp8_times(f, d_s, FATTN__AUXILIARY_SCALE_DP, type);
    const fattn__desc k = fattn__chain_turned_back(c, k_transposed);
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

    fattn__desc sums = fattn__chain_row_sums(c, d_o, o);
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
