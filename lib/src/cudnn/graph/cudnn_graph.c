#include "cudnn_graph.h"

#include <string.h>

enum { LOG2_FROM = 92700, SINGLE_FROM = 92000 };

static const uint32_t row_outputs =
    FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2 | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP;

/* The outputs beside O that the expanded spelling is known to write. cuDNN accepts and runs other
 * choices, but does not write Max and Sum_exp. With a sink, no engine writes the pair. */
static bool expanded_writes(const fattn_problem *p)
{
    const uint32_t outputs = p->outputs & row_outputs;
    return outputs == 0 || outputs == FATTN_WANT_STATS ||
           (outputs == (FATTN_WANT_MAX | FATTN_WANT_SUM_EXP) && !p->sink);
}

static fattn_status choose_spelling(fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    const int version = fattn__graph_version(c->g);
    const bool has_single = version >= SINGLE_FROM, is_auto = p->spelling == FATTN_SPELLING_AUTO;
    const int major = version / 10000, minor = version / 100 % 100, patch = version % 100;

    c->single =
        p->spelling == FATTN_SPELLING_SINGLE || (is_auto && has_single && !expanded_writes(p));
    if ((p->outputs & FATTN_WANT_STATS_LOG2) != 0 && version < LOG2_FROM)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "outputs: stats in base 2 need cuDNN 9.27; this is %d.%d.%d",
                                   major, minor, patch);
    if ((p->outputs & FATTN_WANT_STATS_LOG2) != 0 && !c->single)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "outputs: stats in base 2 are an attribute of the single "
                                   "softmax; want spelling single or auto");
    if (c->single && !has_single)
        return fattn__graph_refuse(c->g, FATTN_UNSUPPORTED,
                                   "spelling single needs cuDNN 9.20; this is %d.%d.%d", major,
                                   minor, patch);
    if (!c->single && !expanded_writes(p) && !p->guards_off)
        return fattn__graph_refuse(c->g, FATTN_POLICY,
                                   "outputs: the expanded softmax writes either stats, or max and "
                                   "sum_exp%s; spelling single writes any of them "
                                   "from cuDNN 9.20 (this is %d.%d.%d)",
                                   p->sink ? " and without a sink" : "", major, minor, patch);
    return FATTN_OK;
}

static fattn__desc lengths(const fattn__chain *c, fattn__slot slot, uint32_t cumulative)
{
    const fattn_problem *p = c->problem;
    const fattn__traits traits = { .rank = p->len_rank };
    const int64_t count = p->batch + ((p->cumulative & cumulative) != 0);
    return fattn__tensor_with(c->g, slot, DNN_DATA_INT32, (int64_t[4]){ count, 1, 1, 1 },
                              (int64_t[4]){ p->len_broadcast ? 0 : 1, 1, 1, 1 }, &traits);
}

fattn__desc fattn__chain_vector(const fattn__chain *c, fattn__auxiliary which, int bits)
{
    const int64_t bytes = fattn__auxiliary_bytes(c->problem, which), width = bits == 64 ? 8 : 4;
    if (bytes == 0)
        return NULL;
    return fattn__tensor(c->g, fattn__slot_of_auxiliary(which),
                         bits == 64 ? DNN_DATA_INT64 : DNN_DATA_INT32,
                         (int64_t[4]){ bytes / width, 1, 1, 1 }, (int64_t[4]){ 1, 1, 1, 1 });
}

fattn__desc fattn__chain_small(const fattn__chain *c, fattn__auxiliary which)
{
    const int64_t heads = fattn__auxiliary_bytes(c->problem, which) / (int64_t)sizeof(float);
    return fattn__tensor(c->g, fattn__slot_of_auxiliary(which), DNN_DATA_FLOAT,
                         (int64_t[4]){ 1, heads, 1, 1 }, (int64_t[4]){ heads, 1, 1, 1 });
}

fattn_status fattn__chain_begin(fattn__chain *out, fattn__graph *g, const fattn_problem *problem)
{
    *out = (fattn__chain){ .g = g, .problem = problem, .type = fattn__data_type(problem->dtype) };
    if (choose_spelling(out) == FATTN_OK && problem->padding) {
        out->seq_len_q = lengths(out, FATTN__SLOT_SEQ_LEN_Q, FATTN_CUMULATIVE_Q);
        out->seq_len_kv = lengths(out, FATTN__SLOT_SEQ_LEN_KV, FATTN_CUMULATIVE_KV);
        for (int which = 0; which < FATTN_RAGGED_TENSORS; which++)
            out->offsets[which] = fattn__chain_vector(
                out, (fattn__auxiliary)((int)FATTN__AUXILIARY_Q_OFFSETS + which),
                problem->ragged_bits);
    }
    return fattn__graph_status(g);
}

static fattn__slot slot_of(fattn__role role)
{
#define AS_SLOT(symbol, name) [FATTN__ROLE_##symbol] = FATTN__SLOT_##symbol,
    static const fattn__slot table[FATTN__ROLE_COUNT] = { FATTN__ROLE_LIST(AS_SLOT) };
#undef AS_SLOT
    return table[role];
}

fattn__traits fattn__chain_traits(const fattn__chain *c, fattn__role role)
{
    fattn__traits traits = { .offsets = NULL };
    if (!fattn__problem_ragged(c->problem, role))
        return traits;
    traits.offsets = c->offsets[role];
    traits.multiplier =
        c->problem->ragged_tokens ? fattn__problem_shape(c->problem, role).strides[2] : 0;
    return traits;
}

fattn__desc fattn__chain_tensor(const fattn__chain *c, fattn__role role)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, role);
    const fattn__traits traits = fattn__chain_traits(c, role);
    return fattn__tensor_with(c->g, slot_of(role), fattn__data_type(shape.dtype), shape.dim,
                              shape.strides, &traits);
}

/* A tensor with one row for all queries (extent 1 in s_q): the backward of every tested version
 * (9.14.0, 9.19.0, 9.27.0 on an H100) reads it wrongly, the forward correctly. Both read the same
 * memory correctly as all rows at stride 0. With the guards off the tensor is passed on unchanged.
 */
fattn__desc fattn__chain_beside(const fattn__chain *c, fattn__slot slot, int32_t dtype,
                                const int64_t dim[4], const int64_t strides[4])
{
    const fattn_problem *p = c->problem;
    const bool widened = p->pass == FATTN_BACKWARD && !p->guards_off && dim[2] == 1;
    const int64_t rows = widened ? p->seq_q : dim[2], step = widened ? 0 : strides[2];
    return fattn__tensor(c->g, slot, fattn__data_type(dtype),
                         (int64_t[4]){ dim[0], dim[1], rows, dim[3] },
                         (int64_t[4]){ strides[0], strides[1], step, strides[3] });
}

fattn__desc fattn__chain_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input)
{
    if (!fattn__problem_sums(c->problem, gradient, NULL))
        return fattn__chain_tensor(c, gradient);
    const fattn__shape out = fattn__problem_shape(c->problem, gradient),
                       full = fattn__problem_shape(c->problem, input);
    if (fattn__problem_ragged(c->problem, gradient) || fattn__problem_ragged(c->problem, input))
        fattn__graph_refuse(
            c->g, FATTN_UNSUPPORTED,
            "%s_strides: a packed gradient is not summed over what its input broadcasts",
            fattn__role_name(gradient));
    fattn__graph_sum sum = { .slot = (int32_t)slot_of(gradient),
                             .dtype = out.dtype,
                             .out_dtype = out.dtype,
                             .offset = c->g->scratch_bytes };
    memcpy(sum.dim, full.dim, sizeof sum.dim);
    memcpy(sum.out_strides, out.strides, sizeof sum.out_strides);
    fattn__dense_strides(sum.dim, "bshd", sum.strides);
    const fattn__desc each =
        fattn__scratch(c->g, fattn__data_type(sum.dtype), sum.dim, sum.strides);
    fattn__sum_later(c->g, &sum);
    return each;
}

fattn__desc fattn__chain_transposed(const fattn__chain *c, fattn__role role)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, role);
    const int64_t dim[4] = { shape.dim[0], shape.dim[1], shape.dim[3], shape.dim[2] };
    const int64_t strides[4] = { shape.strides[0], shape.strides[1], shape.strides[3],
                                 shape.strides[2] };
    const fattn__traits traits = fattn__chain_traits(c, role);
    return fattn__tensor_with(c->g, slot_of(role), fattn__data_type(shape.dtype), dim, strides,
                              &traits);
}

fattn__desc fattn__chain_score(const fattn__chain *c, int type)
{
    const fattn_problem *p = c->problem;
    return fattn__virtual(c->g, type, (int64_t[4]){ p->batch, p->heads_q, p->seq_q, p->seq_kv },
                          NULL);
}

fattn__desc fattn__chain_row(const fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    return fattn__virtual(c->g, DNN_DATA_FLOAT, (int64_t[4]){ p->batch, p->heads_q, p->seq_q, 1 },
                          NULL);
}

fattn__desc fattn__chain_unary(const fattn__chain *c, int mode, fattn__desc x, int type)
{
    return fattn__chain_binary(c, mode, x, NULL, type);
}

fattn__desc fattn__chain_binary(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                int type)
{
    const fattn__desc y = fattn__chain_score(c, type);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = mode, .x = x, .b = b, .y = y });
    return y;
}

fattn__desc fattn__chain_of_rows(const fattn__chain *c, int mode, fattn__desc x, fattn__desc b,
                                 fattn__desc y)
{
    const fattn__desc out = y != NULL ? y : fattn__chain_row(c);
    fattn__op_pointwise(c->g, &(fattn__pointwise){ .mode = mode, .x = x, .b = b, .y = out });
    return out;
}

fattn__desc fattn__chain_scaled(const fattn__chain *c, fattn__desc x)
{
    const fattn__desc scale = c->problem->scale_in_memory
                                  ? fattn__chain_small(c, FATTN__AUXILIARY_ATTN_SCALE)
                                  : fattn__value_f32(c->g, (float)c->problem->attn_scale);
    return fattn__chain_binary(c, DNN_POINTWISE_MUL, x, scale, DNN_DATA_FLOAT);
}

fattn__desc fattn__chain_product(const fattn__chain *c, fattn__desc a, fattn__desc b_transposed)
{
    const fattn__desc product = fattn__chain_score(c, DNN_DATA_FLOAT);
    fattn__op_matmul(
        c->g, &(fattn__matmul){
                  .a = a, .b = b_transposed, .c = product, .m = c->seq_len_q, .n = c->seq_len_kv });
    return product;
}

fattn__desc fattn__chain_masked(const fattn__chain *c, fattn__desc x)
{
    x = fattn__chain_mod(c, x);
    x = fattn__chain_bias(c, x);
    x = fattn__chain_padding(c, x);
    return fattn__chain_bands(c, x);
}
