/* Evaluates a graph that graph_recorder.h recorded: each operation does in double what cuDNN's
 * documentation says, on the memory of a call. What an entry does not have (a gap between ragged
 * rows, a row past its length) is a NaN, so a graph that reads it shows that. Engines take two
 * liberties here too: a row without a key has probabilities 0, and padded rows of an output are 0.
 */
#ifndef FATTN_TEST_GRAPH_VALUES_H
#define FATTN_TEST_GRAPH_VALUES_H

#include "cpu/kernels/cpu_number.h"
#include "graph_recorder.h"
#include "problem/dropout.h"

#define ATTR(name) DNN_ATTR_OPERATION_##name

static double
    *numbers[MOST]; /* of tensors that were read or made, dense in the order of their extents */
static const fattn_tensors *of_call;
static fattn_problem of_problem; /* its seq_q and seq_kv differ: lengths are found by them */

static int place_in(fattn__desc desc)
{
    return (int)((intptr_t)desc - 1);
}

/* A descriptor that an attribute names; NULL: the attribute is not set. */
static fattn__desc named(const recorded *r, int name)
{
    const setting *a = setting_of(r, name);
    return a != NULL ? (fattn__desc)(intptr_t)a->words[0] : NULL;
}

static int64_t word(const recorded *r, int name, int64_t otherwise)
{
    const setting *a = setting_of(r, name);
    return a != NULL ? a->words[0] : otherwise;
}

static int64_t count_of(const recorded *r)
{
    return r->dim[0] * r->dim[1] * r->dim[2] * r->dim[3];
}

#define EACH_ELEMENT(r, at, i)                                                                     \
    for (int64_t i = 0, at[4] = { 0 };                                                             \
         i < count_of(r) && (at[0] = i / (r)->dim[3] / (r)->dim[2] / (r)->dim[1],                  \
                            at[1] = i / (r)->dim[3] / (r)->dim[2] % (r)->dim[1],                   \
                            at[2] = i / (r)->dim[3] % (r)->dim[2], at[3] = i % (r)->dim[3], true); \
         i++)

/* ---- memory
 * ---------------------------------------------------------------------------------------------------------------------
 */

static void *address_of(const fattn__binding *binding)
{
#define AS_CASE(symbol, field, ...)                                                                \
    if (binding->slot == FATTN__SLOT_##symbol)                                                     \
        return (void *)(uintptr_t)of_call->field;
    FATTN__CALL_SLOT_LIST(AS_CASE)
    FATTN__AUXILIARY_LIST(AS_CASE)
#undef AS_CASE
    return binding->slot == FATTN__SLOT_SCRATCH ? (char *)of_call->workspace + binding->offset
                                                : (void *)(uintptr_t)&binding->value;
}

static void *memory_of(const recorded *r)
{
    for (int i = 0; i < graph.binding_count; i++)
        if (graph.bindings[i].uid == word(r, DNN_ATTR_TENSOR_UNIQUE_ID, -1)) {
            void *memory = address_of(&graph.bindings[i]);
            cr_assert_not_null(memory, "slot %d has no memory", graph.bindings[i].slot);
            return memory;
        }
    cr_assert_fail("a tensor that is not virtual has no binding");
    return NULL;
}

static int32_t dtype_of(const recorded *r)
{
    switch (r->data_type) {
    case DNN_DATA_HALF:
        return FATTN_F16;
    case DNN_DATA_BFLOAT16:
        return FATTN_BF16;
    case DNN_DATA_FP8_E4M3:
        return FATTN_E4M3;
    case DNN_DATA_FP8_E5M2:
        return FATTN_E5M2;
    default:
        return FATTN_F32;
    }
}

static double load(const recorded *r, const void *memory, int64_t at)
{
    switch (r->data_type) {
    case DNN_DATA_INT32:
        return ((const int32_t *)memory)[at];
    case DNN_DATA_INT64:
        return (double)((const int64_t *)memory)[at];
    case DNN_DATA_UINT8:
        return ((const uint8_t *)memory)[at];
    case DNN_DATA_FP8_E8M0:
        return (double)fattn__number_factor(((const uint8_t *)memory)[at]);
    default:
        return (double)fattn__number_load(memory, dtype_of(r), at);
    }
}

static const double *value_of(fattn__desc desc);

/* Where an element lies; -1: past the length of a ragged entry. */
static int64_t element_of(const recorded *r, const int64_t at[4])
{
    const fattn__desc offsets = named(r, DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC);
    int64_t place = at[1] * r->strides[1] + at[2] * r->strides[2] + at[3] * r->strides[3];
    if (offsets == NULL)
        return place + at[0] * r->strides[0];
    const double *first = value_of(offsets);
    const int64_t unit = word(r, DNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, 1),
                  longest = r->strides[2] > r->strides[3] ? 2 : 3;
    const int32_t *lengths =
        r->dim[longest] == of_problem.seq_q ? of_call->seq_len_q : of_call->seq_len_kv;
    return at[longest] < lengths[at[0]] ? place + (int64_t)first[at[0]] * unit : -1;
}

static const double *value_of(fattn__desc desc)
{
    const recorded *r = of(desc);
    double **out = &numbers[place_in(desc)];
    if (*out != NULL)
        return *out;
    cr_assert(!r->is_virtual, "tensor %d is read before it is made", place_in(desc));
    const void *memory = memory_of(r);
    *out = calloc((size_t)count_of(r), sizeof **out);
    EACH_ELEMENT(r, at, i)
    {
        const int64_t place = element_of(r, at);
        (*out)[i] = place < 0 ? (double)NAN : load(r, memory, place);
    }
    return *out;
}

/* Gives a tensor its numbers, rounded to its type. */
static void make_value(fattn__desc desc, double *values)
{
    const recorded *r = of(desc);
    const int32_t dtype = dtype_of(r);
    cr_assert_null(numbers[place_in(desc)], "tensor %d is made twice", place_in(desc));
    for (int64_t i = 0; i < count_of(r) && dtype != FATTN_F32; i++)
        values[i] =
            isnan(values[i]) ? values[i] : (double)fattn__number_round(dtype, (float)values[i]);
    numbers[place_in(desc)] = values;
    if (r->is_virtual)
        return;
    void *memory = memory_of(r);
    EACH_ELEMENT(r, at, i)
    {
        const int64_t place = element_of(r, at);
        if (place >= 0)
            fattn__number_store(memory, dtype, place, (float)values[i]);
    }
}

static double *room_of(fattn__desc desc)
{
    return calloc((size_t)count_of(of(desc)), sizeof(double));
}

/* ---- operations
 * -----------------------------------------------------------------------------------------------------------------
 */

/* The element of an operand that stands beside element `at` of `whole`: extents of 1 are broadcast,
 * fewer heads are shared by groups. */
static int64_t beside(const recorded *operand, const recorded *whole, const int64_t at[4])
{
    int64_t place = 0;
    for (int axis = 0; axis < 4; axis++) {
        cr_assert_eq(whole->dim[axis] % operand->dim[axis], 0, "axis %d: %ld beside %ld", axis,
                     (long)operand->dim[axis], (long)whole->dim[axis]);
        place = place * operand->dim[axis] + at[axis] / (whole->dim[axis] / operand->dim[axis]);
    }
    return place;
}

static double pointwise(int mode, double x, double b)
{
    switch (mode) {
    case DNN_POINTWISE_ADD:
        return x + b;
    case DNN_POINTWISE_SUB:
        return isinf(x) && x < 0 ? x : x - b; /* a row without a key */
    case DNN_POINTWISE_MUL:
        return x * b;
    case DNN_POINTWISE_DIV:
        return fpclassify(x) == FP_ZERO ? 0 : x / b;
    case DNN_POINTWISE_MAX:
        return fmax(x, b);
    case DNN_POINTWISE_EXP:
        return exp(x);
    case DNN_POINTWISE_LOG:
        return log(x);
    case DNN_POINTWISE_TANH_FWD:
        return tanh(x);
    case DNN_POINTWISE_IDENTITY:
        return x;
    case DNN_POINTWISE_FLOOR:
        return floor(x);
    case DNN_POINTWISE_NEG:
        return -x;
    case DNN_POINTWISE_LOGICAL_AND:
        return fpclassify(x) != FP_ZERO && fpclassify(b) != FP_ZERO;
    case DNN_POINTWISE_CMP_LT:
        return x < b;
    case DNN_POINTWISE_CMP_LE:
        return x <= b;
    case DNN_POINTWISE_CMP_GT:
        return x > b;
    case DNN_POINTWISE_CMP_GE:
        return x >= b;
    default:
        cr_assert_fail("no mode %d is evaluated here", mode);
        return 0;
    }
}

static void do_pointwise(const recorded *op)
{
    const recorded *how = of(named(op, ATTR(POINTWISE_PW_DESCRIPTOR)));
    const fattn__desc x = named(op, ATTR(POINTWISE_XDESC)), b = named(op, ATTR(POINTWISE_BDESC)),
                      t = named(op, ATTR(POINTWISE_TDESC)), y = named(op, ATTR(POINTWISE_YDESC));
    const bool index = how->mode == DNN_POINTWISE_GEN_INDEX,
               select = how->mode == DNN_POINTWISE_BINARY_SELECT;
    const double *left = index ? NULL : value_of(x), *right = b != NULL ? value_of(b) : NULL,
                 *choice = t != NULL ? value_of(t) : NULL;
    double *out = room_of(y);
    EACH_ELEMENT(of(y), at, i)
    {
        const double one = left != NULL ? left[beside(of(x), of(y), at)] : 0,
                     other = right != NULL ? right[beside(of(b), of(y), at)] : 0;
        if (index)
            out[i] = (double)at[word(how, DNN_ATTR_POINTWISE_AXIS, 0)];
        else if (select)
            out[i] = fpclassify(choice[beside(of(t), of(y), at)]) != FP_ZERO ? one : other;
        else
            out[i] = pointwise(how->mode, one, other);
    }
    make_value(y, out);
}

static void do_reduction(const recorded *op)
{
    const int mode = of(named(op, ATTR(REDUCTION_DESC)))->mode;
    const fattn__desc x = named(op, ATTR(REDUCTION_XDESC)), y = named(op, ATTR(REDUCTION_YDESC));
    const double *in = value_of(x);
    double *out = room_of(y);
    for (int64_t i = 0; i < count_of(of(y)) && mode == DNN_REDUCE_TENSOR_MAX; i++)
        out[i] = -INFINITY;
    EACH_ELEMENT(of(x), at, i)
    {
        double *sum = &out[beside(of(y), of(x), at)];
        *sum = mode == DNN_REDUCE_TENSOR_ADD
                   ? *sum + in[i]
                   : fmax(*sum, mode == DNN_REDUCE_TENSOR_AMAX ? fabs(in[i]) : in[i]);
    }
    make_value(y, out);
}

/* Of one batch entry. */
static int64_t limit(fattn__desc lengths, int64_t entry, int64_t otherwise)
{
    return lengths != NULL ? (int64_t)value_of(lengths)[of(lengths)->dim[0] == 1 ? 0 : entry]
                           : otherwise;
}

static void do_matmul(const recorded *op)
{
    const fattn__desc a = named(op, ATTR(MATMUL_ADESC)), b = named(op, ATTR(MATMUL_BDESC)),
                      c = named(op, ATTR(MATMUL_CDESC));
    const double *left = value_of(a), *right = value_of(b);
    const int64_t depth = of(a)->dim[3], columns = of(b)->dim[3], all = of(c)->dim[1];
    double *out = room_of(c);
    cr_assert(of(b)->dim[2] == depth && of(c)->dim[2] == of(a)->dim[2] && of(c)->dim[3] == columns,
              "extents of a product");
    EACH_ELEMENT(of(c), at, i)
    {
        const int64_t m = limit(named(op, ATTR(MATMUL_GEMM_M_OVERRIDE_DESC)), at[0], of(a)->dim[2]);
        const int64_t n = limit(named(op, ATTR(MATMUL_GEMM_N_OVERRIDE_DESC)), at[0], columns);
        const int64_t k = limit(named(op, ATTR(MATMUL_GEMM_K_OVERRIDE_DESC)), at[0], depth);
        const int64_t row =
            ((at[0] * of(a)->dim[1] + at[1] / (all / of(a)->dim[1])) * of(a)->dim[2] + at[2]) *
            depth;
        const int64_t column =
            (at[0] * of(b)->dim[1] + at[1] / (all / of(b)->dim[1])) * depth * columns + at[3];
        for (int64_t j = 0; j < k && at[2] < m && at[3] < n; j++)
            out[i] += left[row + j] * right[column + j * columns];
    }
    make_value(c, out);
}

/* The same elements of a batch entry, by other extents and strides. */
static void do_reshape(const recorded *op)
{
    const fattn__desc x = named(op, ATTR(RESHAPE_XDESC)), y = named(op, ATTR(RESHAPE_YDESC));
    const double *in = value_of(x);
    const recorded *from = of(x), *to = of(y);
    int64_t span = 1;
    for (int axis = 1; axis < 4; axis++)
        span += (from->dim[axis] - 1) * from->strides[axis];
    double *entries = calloc((size_t)(from->dim[0] * span), sizeof *entries), *out = room_of(y);
    EACH_ELEMENT(from, at, i)
    entries[at[0] * span + at[1] * from->strides[1] + at[2] * from->strides[2] +
            at[3] * from->strides[3]] = in[i];
    EACH_ELEMENT(to, at, i)
    {
        const int64_t place =
            at[1] * to->strides[1] + at[2] * to->strides[2] + at[3] * to->strides[3];
        cr_assert_lt(place, span, "a view past the end");
        out[i] = entries[at[0] * span + place];
    }
    free(entries);
    make_value(y, out);
}

static void make_row(fattn__desc desc, int64_t row, double value)
{
    if (desc == NULL)
        return;
    if (numbers[place_in(desc)] == NULL)
        numbers[place_in(desc)] = room_of(desc);
    numbers[place_in(desc)][row] = value;
}

/* Rows were filled in one by one: now they are written. */
static void finish_rows(fattn__desc desc)
{
    if (desc == NULL)
        return;
    double *values = numbers[place_in(desc)];
    numbers[place_in(desc)] = NULL;
    make_value(desc, values);
}

static void do_softmax(const recorded *op)
{
    const fattn__desc x = named(op, ATTR(SOFTMAX_XDESC)), y = named(op, ATTR(SOFTMAX_YDESC)),
                      sink = named(op, ATTR(SOFTMAX_SINK_DESC));
    const fattn__desc stats = named(op, ATTR(SOFTMAX_STATS_DESC)),
                      max = named(op, ATTR(SOFTMAX_MAX_DESC)),
                      sum = named(op, ATTR(SOFTMAX_SUM_EXP_DESC));
    const int64_t keys = of(x)->dim[3], rows = count_of(of(x)) / keys;
    const bool log2_wanted = setting_of(op, ATTR(SOFTMAX_STATS_LOG2)) != NULL;
    const double *in = value_of(x);
    double *out = room_of(y);
    for (int64_t row = 0; row < rows; row++) {
        const double extra =
            sink != NULL ? value_of(sink)[row / of(x)->dim[2] % of(x)->dim[1]] : -INFINITY;
        double most = extra, total = 0;
        for (int64_t j = 0; j < keys; j++)
            most = fmax(most, in[row * keys + j]);
        for (int64_t j = 0; j < keys && most > -INFINITY; j++)
            total += out[row * keys + j] = exp(in[row * keys + j] - most);
        total += most > -INFINITY ? exp(extra - most) : 0;
        for (int64_t j = 0; j < keys && total > 0; j++)
            out[row * keys + j] /= total;
        make_row(stats, row, (most + log(total)) * (log2_wanted ? M_LOG2E : 1));
        make_row(max, row, most);
        make_row(sum, row, total);
    }
    finish_rows(stats), finish_rows(max), finish_rows(sum);
    make_value(y, out);
}

/* Keeps row + shift + right >= col, or col + left > row + shift. */
static void do_band(const recorded *op)
{
#define BAND(name) named(op, ATTR(DIAGONAL_BAND_MASK_##name))
    const fattn__desc x = BAND(XDESC), y = BAND(YDESC), left = BAND(LEFT_BOUND_DESC),
                      right = BAND(SHIFT_RIGHT_BOUND_DESC), fill = BAND(BDESC);
    const fattn__desc rows = BAND(SEQ_LEN_QDESC), keys = BAND(SEQ_LEN_KVDESC);
    const bool is_right =
        word(op, ATTR(DIAGONAL_BAND_MASK_COMPARISON_MODE), 0) == DNN_POINTWISE_CMP_GE;
    const double *in = value_of(x);
    double *out = room_of(y);
    cr_assert(is_right ? left == NULL : right == NULL && left != NULL,
              "the bound of this comparison");
    EACH_ELEMENT(of(x), at, i)
    {
        const double row = (double)at[2] + (double)(limit(keys, at[0], 0) - limit(rows, at[0], 0)),
                     col = (double)at[3];
        const bool keeps = is_right ? row + (right != NULL ? *value_of(right) : 0) >= col
                                    : col + *value_of(left) > row;
        out[i] = keeps ? in[i] : *value_of(fill);
    }
    make_value(y, out);
}

static void do_rng(const recorded *op)
{
    const fattn__desc y = named(op, ATTR(RNG_YDESC));
    double keep, *out = room_of(y);
    memcpy(&keep,
           &setting_of(of(named(op, ATTR(RNG_DESC))), DNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY)
                ->words[0],
           sizeof keep);
    const fattn__dropout generator = fattn__dropout_of(
        (int64_t)*value_of(named(op, ATTR(RNG_SEED))),
        (int64_t)*value_of(named(op, ATTR(RNG_OFFSET_DESC))), fattn__dropout_threshold(1 - keep));
    EACH_ELEMENT(of(y), at, i)
    out[i] = fattn__dropout_keeps(&generator, at[0], at[1], at[2], at[3]);
    make_value(y, out);
}

/* K comes out as [b,h,d,s], V as [b,h,s,d]. Keys past an entry's end are not gathered. */
static void do_paged_load(const recorded *op)
{
#define LOAD(name) named(op, ATTR(PAGED_CACHE_LOAD_##name))
    const fattn__desc pool = LOAD(CONTAINER_DESC), table = LOAD(PAGE_TABLE_DESC), y = LOAD(YDESC);
    const bool turned = of(y)->strides[2] == 1;
    const double *pages = value_of(pool);
    const int64_t *dim = of(pool)->dim;
    double *out = room_of(y);
    EACH_ELEMENT(of(y), at, i)
    {
        const int64_t key = turned ? at[3] : at[2], channel = turned ? at[2] : at[3];
        const int64_t cell = of(table)->dim[2] * at[0] + key / dim[2];
        const bool there = key < limit(LOAD(SEQUENCE_DESC), at[0], 0);
        out[i] = there ? pages[(((int64_t)value_of(table)[cell] * dim[1] + at[1]) * dim[2] +
                                key % dim[2]) *
                                   dim[3] +
                               channel]
                       : (double)NAN;
    }
    make_value(y, out);
}

/* Blocks of 32 lie along the axis in which the factors are fewer; factors lie in tiles of 128 lines
 * by 4 blocks. */
static void do_block_scale(const recorded *op)
{
#define SCALE(name) named(op, ATTR(BLOCK_SCALE_DEQUANTIZE_##name))
    const fattn__desc x = SCALE(XDESC), scale = SCALE(SCALE_DESC), y = SCALE(YDESC);
    const recorded *r = of(x), *f = of(scale);
    const bool across = f->dim[3] < f->dim[2];
    const int64_t lines = across ? f->dim[2] : f->dim[3], blocks = across ? f->dim[3] : f->dim[2],
                  tiles = blocks / 4;
    const uint8_t *memory = memory_of(f);
    const double *in = value_of(x);
    double *out = room_of(y);
    cr_assert_eq(f->reordering, DNN_TENSOR_REORDERING_F8_128x4);
    EACH_ELEMENT(r, at, i)
    {
        const int64_t line = across ? at[2] : at[3], block = (across ? at[3] : at[2]) / 32;
        const int64_t tile =
            (at[0] * r->dim[1] + at[1]) * lines * blocks + (line / 128 * tiles + block / 4) * 512;
        out[i] = in[i] * load(f, memory, tile + line % 32 * 16 + line / 32 % 4 * 4 + block % 4);
    }
    make_value(y, out);
}

/* ---- the graph
 * ------------------------------------------------------------------------------------------------------------------
 */

/* What the library sums after the launch. */
static void do_sum(const fattn__graph_sum *sum)
{
    const fattn__binding binding = { .slot = sum->slot };
    const recorded whole = { .dim = { sum->dim[0], sum->dim[1], sum->dim[2], sum->dim[3] } };
    void *to = address_of(&binding);
    for (int back = 0; back < 2; back++)
        EACH_ELEMENT(&whole, at, i)
        {
            int64_t from = 0, place = 0;
            for (int axis = 0; axis < 4; axis++)
                from += at[axis] * sum->strides[axis], place += at[axis] * sum->out_strides[axis];
            const float x = fattn__number_load((const char *)of_call->workspace + sum->offset,
                                               sum->dtype, from);
            fattn__number_store(to, sum->out_dtype, place,
                                back ? fattn__number_load(to, sum->out_dtype, place) + x : 0);
        }
}

/* Builds the graph of a resolved problem for `version`, and does its operations in their order. */
static void evaluate(const fattn_problem *p, int at_version, const fattn_tensors *tensors)
{
    fattn_tensors call = *tensors;
    cr_assert_neq(p->seq_q, p->seq_kv);
    of_problem = *p;
    cr_assert_eq(build(at_version, *p), FATTN_OK, "%s", graph.text);
    call.workspace = malloc(graph.scratch_bytes + 1);
    memset(call.workspace, 0xff, graph.scratch_bytes);
    of_call = &call;
    for (int i = 0; i < graph.operation_count; i++) {
        const recorded *op = of(graph.operations[i]);
        switch (op->type) {
        case DNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
            do_pointwise(op);
            break;
        case DNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            do_reduction(op);
            break;
        case DNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            do_matmul(op);
            break;
        case DNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            do_reshape(op);
            break;
        case DNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR:
            do_softmax(op);
            break;
        case DNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR:
            do_band(op);
            break;
        case DNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
            do_rng(op);
            break;
        case DNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR:
            do_paged_load(op);
            break;
        default:
            cr_assert_eq(op->type, BLOCK_SCALE, "no operation %d is evaluated here", op->type);
            do_block_scale(op);
        }
    }
    for (int i = 0; i < graph.sum_count; i++)
        do_sum(&graph.sums[i]);
    for (int i = 0; i < made_count; i++)
        free(numbers[i]), numbers[i] = NULL;
    free(call.workspace);
    fattn__graph_release(&graph);
}

#endif
