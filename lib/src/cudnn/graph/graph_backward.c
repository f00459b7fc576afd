/* dQ, dK, dV from dO, O and Stats as a composite graph: P is recomputed from Stats, five products, transposes by reshape.
 *
 *   D  = rowsum(dO * O)            P  = exp(mask(scale * Q K^T - Stats))      dV = P^T dO
 *   dP = dO V^T                    dS = scale * P * (dP - D)                  dK = dS^T Q        dQ = dS K
 *
 * Two forms. By default dQ is summed up in an fp32 accumulator of our own, by whichever block comes first: fast, linear memory, and
 * dQ differs between runs. The other form writes dQ directly; the engine then keeps dP itself (memory grows with seq_q * seq_kv).
 * It repeats, and it alone gives the gradient of a bias.
 */
#include "cudnn_graph.h"

/* Values that several steps read. */
typedef struct operands {
    fattn__desc q, k_transposed, d_o, stats;
    fattn__dropout dropout;
} operands;

/* dSink = -sum of exp(sink - Stats) * D over the rows of a head; the sign is the engine's. */
void fattn__chain_sink_gradient(const fattn__chain *c, fattn__desc stats, fattn__desc sums)
{
    const fattn__desc sink = fattn__chain_small(c, FATTN__AUXILIARY_SINK);
    const fattn__desc below_stats = fattn__chain_of_rows(c, DNN_POINTWISE_SUB, sink, stats, NULL);
    const fattn__desc p = fattn__chain_of_rows(c, DNN_POINTWISE_EXP, below_stats, NULL, NULL);
    const fattn__desc terms = fattn__chain_of_rows(c, DNN_POINTWISE_MUL, p, sums, NULL);
    const fattn__desc out = fattn__chain_small(c, FATTN__AUXILIARY_DSINK);
    fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, terms, out);
}

/* rowsum(dO * O), in a tensor of our own that the last product reads. The factor, 1 without a drawn
 * mask, is part of the pattern. */
static fattn__desc row_sums(const fattn__chain *c, const operands *in)
{
    const fattn_problem *p = c->problem;
    const int64_t rows[4] = { p->batch, p->heads_q, p->seq_q, 1 };
    const int64_t strides[4] = { p->heads_q * p->seq_q, p->seq_q, 1, 1 };
    const fattn__desc o = fattn__chain_tensor(c, FATTN__ROLE_O);
    const fattn__desc sum = fattn__chain_row_sums(c, in->d_o, o);
    if (p->dsink)
        fattn__chain_sink_gradient(c, in->stats, sum);
    const fattn__desc factor =
        in->dropout.inverse != NULL ? in->dropout.inverse : fattn__value_f32(c->g, 1.0F);
    fattn__desc out = fattn__chain_packed_scratch(c, FATTN__ROLE_STATS, DNN_DATA_FLOAT, p->heads_q);
    if (out == NULL)
        out = fattn__scratch(c->g, DNN_DATA_FLOAT, rows, strides);
    return fattn__chain_of_rows(c, DNN_POINTWISE_MUL, sum, factor, out);
}

/* The order matters: Stats are subtracted before the masks apply. *scaled is the score that a
 * score_mod modifies. */
static fattn__desc probabilities(const fattn__chain *c, const operands *in, fattn__desc *scaled)
{
    const fattn__desc product = fattn__chain_product(c, in->q, in->k_transposed);
    fattn__desc x = fattn__chain_scaled(c, product);
    *scaled = x;
    x = fattn__chain_mod(c, x);
    x = fattn__chain_bias(c, x);
    x = fattn__chain_binary(c, DNN_POINTWISE_SUB, x, in->stats, DNN_DATA_FLOAT);
    x = fattn__chain_padding(c, x);
    x = fattn__chain_bands(c, x);
    return fattn__chain_unary(c, DNN_POINTWISE_EXP, x, DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_dropped_again(const fattn__chain *c, fattn__desc p,
                                       const fattn__dropout *dropout)
{
    if (dropout->keep == NULL)
        return p;
    const fattn__desc kept =
        fattn__chain_binary(c, DNN_POINTWISE_MUL, p, dropout->keep, DNN_DATA_FLOAT);
    return fattn__chain_binary(c, DNN_POINTWISE_MUL, kept, dropout->scale, DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_transposed_score(const fattn__chain *c, fattn__desc x, int type)
{
    const fattn_problem *p = c->problem;
    const int64_t dim[4] = { p->batch, p->heads_q, p->seq_kv, p->seq_q };
    const int64_t strides[4] = { p->heads_q * p->seq_q * p->seq_kv, p->seq_q * p->seq_kv, 1,
                                 p->seq_kv };
    const fattn__desc y = fattn__virtual(c->g, type, dim, strides);
    fattn__op_reshape(c->g, x, y);
    return y;
}

/* gradient = scores^T rows, summed over the query heads that share a head of K or V. */
static void gradient_of_keys(const fattn__chain *c, fattn__desc scores, fattn__desc rows,
                             fattn__role gradient, fattn__role input)
{
    fattn__shape shape = fattn__problem_shape(c->problem, input);
    const bool grouped = shape.dim[1] != c->problem->heads_q;
    const fattn__desc scores_t = fattn__chain_transposed_score(c, scores, c->type);
    fattn__desc product, out = NULL;
    if (grouped) {
        shape.dim[1] = c->problem->heads_q;
        product = fattn__chain_packed_scratch(c, gradient, c->type, c->problem->heads_q);
        if (product == NULL)
            product = fattn__virtual(c->g, c->type, shape.dim, NULL);
    } else {
        product = fattn__chain_gradient(c, gradient, input);
    }
    fattn__op_matmul(
        c->g, &(fattn__matmul){
                  .a = scores_t, .b = rows, .c = product, .m = c->seq_len_kv, .k = c->seq_len_q });
    if (grouped) {
        out = fattn__chain_gradient(c, gradient, input);
        fattn__op_reduce(c->g, DNN_REDUCE_TENSOR_ADD, product, out);
    }
}

/* dS without the transposed view: scale * P * (dO V^T - D), through the gradient of the score_mod.
 * The gradient of a bias is taken before. */
static fattn__desc score_gradient(const fattn__chain *c, const operands *in, fattn__desc p,
                                  fattn__desc scaled, fattn__desc sums)
{
    const fattn__desc v_transposed = fattn__chain_transposed(c, FATTN__ROLE_V);
    const fattn__desc product = fattn__chain_product(c, in->d_o, v_transposed);
    fattn__desc x = fattn__chain_dropped_slope(
        c, &(fattn__slope){ .d_p = product, .sums = sums, .p = p }, &in->dropout);
    fattn__chain_added_gradients(c, x);
    x = fattn__chain_mod_gradient(c, scaled, x);
    return fattn__chain_scaled(c, x);
}

/* With the accumulator of dQ, cuDNN accepts, plans and runs a gradient of the bias, and never
 * writes it. */
static bool keeps_dp(const fattn__chain *c)
{
    return c->problem->dbias || c->problem->mod_gradients != 0 ||
           (c->g->repeat != NULL && c->g->repeat->keeps_dp);
}

static void gradient_of_queries(const fattn__chain *c, fattn__desc scores, fattn__desc k_transposed)
{
    const fattn__shape query = fattn__problem_shape(c->problem, FATTN__ROLE_Q);
    const fattn__desc k = fattn__chain_turned_back(c, k_transposed);
    const fattn__desc dq = fattn__chain_gradient(c, FATTN__ROLE_DQ, FATTN__ROLE_Q);
    fattn__matmul product = { .a = scores, .b = k, .c = dq, .m = c->seq_len_q, .k = c->seq_len_kv };
    if (keeps_dp(c)) {
        fattn__op_matmul(c->g, &product);
        return;
    }
    const int64_t rows = query.dim[2] * query.dim[3];
    const int64_t packed[4] = { query.dim[1] * rows, rows, query.dim[3], 1 };
    product.c = fattn__chain_packed_scratch(c, FATTN__ROLE_DQ, DNN_DATA_FLOAT, query.dim[1]);
    if (product.c == NULL)
        product.c = fattn__scratch(c->g, DNN_DATA_FLOAT, query.dim, packed);
    fattn__op_matmul(c->g, &product);
    fattn__chain_of_rows(c, DNN_POINTWISE_IDENTITY, product.c, NULL, dq);
}

fattn_status fattn__chain_repeat(fattn__graph *g, const fattn_problem *p)
{
    char why[256];
    if (!p->deterministic)
        return FATTN_OK;
    g->repeat = fattn__repeat_find(p, fattn__graph_version(g), g->sm, why, sizeof why);
    /* The form of the graph repeats too, but it pins no engine. */
    if (g->repeat == NULL && p->guards_off && p->determinism != FATTN_DETERMINISM_PIN)
        g->repeat = &fattn__repeat_unknown;
    return g->repeat != NULL ? FATTN_OK : fattn__graph_refuse(g, FATTN_UNSUPPORTED, "%s", why);
}

fattn_status fattn__build_backward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__chain c;
    if (fattn__chain_repeat(g, problem) != FATTN_OK ||
        fattn__chain_begin(&c, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    fattn__desc scaled = NULL;
    operands in = { .q = fattn__chain_tensor(&c, FATTN__ROLE_Q) };
    in.k_transposed = fattn__chain_transposed(&c, FATTN__ROLE_K);
    in.d_o = fattn__chain_tensor(&c, FATTN__ROLE_DO);
    in.stats = fattn__chain_tensor(&c, FATTN__ROLE_STATS);
    in.dropout = fattn__chain_dropout(&c);

    const fattn__desc sums = row_sums(&c, &in);
    const fattn__desc p = probabilities(&c, &in, &scaled);
    const fattn__desc p_dropped = fattn__chain_dropped_again(&c, p, &in.dropout);
    gradient_of_keys(&c, p_dropped, in.d_o, FATTN__ROLE_DV, FATTN__ROLE_V);
    const fattn__desc d_s = score_gradient(&c, &in, p, scaled, sums);
    gradient_of_keys(&c, d_s, in.q, FATTN__ROLE_DK, FATTN__ROLE_K);
    gradient_of_queries(&c, d_s, in.k_transposed);
    return fattn__graph_status(g);
}
