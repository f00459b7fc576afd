/* Operands of block-scaled types: codes and the scale factors of their blocks of 32, as fp32. */
#include "graph_fp8.h"

enum { BLOCK = 32, TILE_ROWS = 128, TILE_COLUMNS = 4 };

static int64_t rounded(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* The extents of the scale factors as cuDNN reads them: [b,h,rows,blocks of channels], or
 * [b,h,blocks of rows,channels]. In memory both are tiles of 128 rows (or channels) and 4 blocks.
 */
static void lay_out(const fattn_problem *p, const fattn__mx_operand *operand, int64_t dim[4],
                    int64_t strides[4])
{
    const fattn__shape x = fattn__problem_shape(p, operand->role);
    const bool along_rows = operand->along_rows;
    const int64_t b = x.dim[0], h = x.dim[1];
    const int64_t length = rounded(along_rows ? x.dim[3] : x.dim[2], TILE_ROWS);
    const int64_t blocks =
        rounded(((along_rows ? x.dim[2] : x.dim[3]) + BLOCK - 1) / BLOCK, TILE_COLUMNS);
    const int64_t height = along_rows ? blocks : length, width = along_rows ? length : blocks;
    dim[0] = b, dim[1] = h, dim[2] = height, dim[3] = width;
    strides[0] = h * height * width, strides[1] = height * width, strides[2] = width,
    strides[3] = 1;
    if (p->scale_format == FATTN_FORMAT_BSHD)
        strides[1] = width, strides[2] = h * width;
    if (p->scale_format == FATTN_FORMAT_SBHD)
        strides[0] = h * width, strides[1] = width, strides[2] = b * h * width;
    /* The stride of s of a second quantisation's factors goes from one tile of channels to the next; of a single tile it is the
     * end. */
    if (operand->second &&
        (p->scale_format == FATTN_FORMAT_UNSET || p->scale_format == FATTN_FORMAT_BHSD))
        strides[2] = length == TILE_ROWS ? b * h * height * width : blocks * TILE_ROWS;
}

static void transpose(int64_t x[4])
{
    const int64_t rows = x[2];
    x[2] = x[3];
    x[3] = rows;
}

fattn__desc fattn__mx_factors(const fattn__chain *c, const fattn__mx_operand *operand)
{
    int64_t dim[4], strides[4];
    lay_out(c->problem, operand, dim, strides);
    if (operand->transposed) {
        transpose(dim);
        transpose(strides);
    }
    return fattn__tensor_with(c->g, fattn__slot_of_auxiliary(operand->factors), DNN_DATA_FP8_E8M0,
                              dim, strides, &(fattn__traits){ .tiled = true });
}

fattn__desc fattn__mx_dequantized(const fattn__chain *c, const fattn__mx_operand *operand)
{
    fattn__shape x = fattn__problem_shape(c->problem, operand->role);
    if (operand->transposed) {
        transpose(x.dim);
        transpose(x.strides);
    }
    const fattn__traits packing = fattn__chain_traits(c, operand->role);
    fattn__block_scale op = { 0 };
    op.x = fattn__tensor_with(c->g, operand->data, fattn__data_type(x.dtype), x.dim, x.strides,
                              &packing);
    op.scale = fattn__mx_factors(c, operand);
    op.y = fattn__virtual_with(c->g, DNN_DATA_FLOAT, x.dim, x.strides, &packing);
    fattn__op_block_scale(c->g, &op);
    return op.y;
}

/* O = softmax(scale * Q K^T + mask) V of block-scaled types. P is cast to the type of Q as it is,
 * between 0 and 1. */

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

/* dQ, dK, dV of block-scaled types. A product sums along the blocks of its operands. So Q, K and dO
 * have two copies: one quantised along the channels, for Q K^T and dO V^T, and one along rows and
 * keys, for P^T dO, dS K and dS^T Q. rowsum(dO * O) uses 16-bit tensors. P and dS stay fp32. */

typedef struct operands {
    fattn__desc q, k_transposed, v_transposed, d_o;
} operands;

static void dequantize(const fattn__chain *c, operands *out)
{
    out->k_transposed =
        fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_K,
                                                       .factors = FATTN__AUXILIARY_SF_K,
                                                       .role = FATTN__ROLE_K,
                                                       .transposed = true });
    out->v_transposed =
        fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_V,
                                                       .factors = FATTN__AUXILIARY_SF_V,
                                                       .role = FATTN__ROLE_V,
                                                       .transposed = true });
    out->q = fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_Q,
                                                            .factors = FATTN__AUXILIARY_SF_Q,
                                                            .role = FATTN__ROLE_Q });
    out->d_o = fattn__mx_dequantized(c, &(fattn__mx_operand){ .data = FATTN__SLOT_DO,
                                                              .factors = FATTN__AUXILIARY_SF_DO,
                                                              .role = FATTN__ROLE_DO });
}

static fattn__desc along_rows(const fattn__chain *c, fattn__slot data, fattn__auxiliary factors,
                              fattn__role role)
{
    return fattn__mx_dequantized(
        c,
        &(fattn__mx_operand){
            .data = data, .factors = factors, .role = role, .second = true, .along_rows = true });
}

/* rowsum(dO * O) of the tensors in o_dtype. */
static fattn__desc row_sums(fattn__fp8 *f, fattn__desc stats)
{
    const fattn__chain *c = &f->chain;
    const fattn__shape shape = fattn__problem_shape(c->problem, FATTN__ROLE_DO);
    const fattn__desc d_o = fattn__tensor(
        c->g, FATTN__SLOT_DO_16, fattn__data_type(c->problem->o_dtype), shape.dim, shape.strides);
    const fattn__desc o = fattn__chain_tensor(c, FATTN__ROLE_O);
    return fattn__fp8_softmax_sums(f, fattn__chain_row_sums(c, d_o, o), stats);
}

static fattn__desc score_gradient(fattn__fp8 *f, const operands *in, fattn__desc p,
                                  fattn__desc scaled, fattn__desc sums)
{
    const fattn__chain *c = &f->chain;
    const fattn__desc product = fattn__chain_product(c, in->d_o, in->v_transposed);
    return fattn__fp8_score_gradient(f, product, sums, p, scaled);
}

/* scores^T rows, where the rows are quantised along themselves. */
static void gradient_of_keys(fattn__fp8 *f, fattn__desc scores, fattn__desc rows, fattn__role out,
                             fattn__auxiliary amax)
{
    const fattn__chain *c = &f->chain;
    fattn__mx_multiply(
        f, &(fattn__fp8_product){
               .matmul = { .a = scores, .b = rows, .m = c->seq_len_kv, .k = c->seq_len_q },
               .amax = amax,
               .out = out });
}

fattn_status fattn__build_mx_backward(fattn__graph *g, const fattn_problem *problem)
{
    fattn__fp8 f;
    if (fattn__chain_repeat(g, problem) != FATTN_OK || fattn__fp8_begin(&f, g, problem) != FATTN_OK)
        return fattn__graph_status(g);

    const fattn__chain *c = &f.chain;
    operands in;
    dequantize(c, &in);
    const fattn__desc stats = fattn__chain_tensor(c, FATTN__ROLE_STATS);
    const fattn__desc sums = row_sums(&f, stats);

    const fattn__desc product = fattn__chain_product(c, in.q, in.k_transposed);
    const fattn__desc scaled = fattn__chain_scaled(c, product);
    const fattn__desc score = fattn__chain_mod(c, scaled);
    const fattn__desc p = fattn__fp8_probabilities(&f, score, stats);
    const fattn__desc dropped = fattn__chain_dropped_again(c, p, &f.dropout);
    const fattn__desc p_transposed = fattn__chain_transposed_score(c, dropped, DNN_DATA_FLOAT);
    const fattn__desc d_o_rows =
        along_rows(c, FATTN__SLOT_DO_T, FATTN__AUXILIARY_SF_DO_T, FATTN__ROLE_DO);
    gradient_of_keys(&f, p_transposed, d_o_rows, FATTN__ROLE_DV, FATTN__AUXILIARY_AMAX_DV);

    const fattn__desc d_s = score_gradient(&f, &in, p, scaled, sums);
    const fattn__desc k_rows =
        along_rows(c, FATTN__SLOT_K_T, FATTN__AUXILIARY_SF_K_T, FATTN__ROLE_K);
    fattn__mx_multiply(
        &f, &(fattn__fp8_product){
                .matmul = { .a = d_s, .b = k_rows, .m = c->seq_len_q, .k = c->seq_len_kv },
                .amax = FATTN__AUXILIARY_AMAX_DQ,
                .out = FATTN__ROLE_DQ });
    const fattn__desc d_s_transposed = fattn__chain_transposed_score(c, d_s, DNN_DATA_FLOAT);
    const fattn__desc q_rows =
        along_rows(c, FATTN__SLOT_Q_T, FATTN__AUXILIARY_SF_Q_T, FATTN__ROLE_Q);
    gradient_of_keys(&f, d_s_transposed, q_rows, FATTN__ROLE_DK, FATTN__AUXILIARY_AMAX_DK);
    return fattn__graph_status(g);
}
