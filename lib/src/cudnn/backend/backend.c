#include "backend_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"

enum { FIRST_UID = 100, ALIGNMENT = 16 };

void fattn__graph_init(fattn__graph *g, const fattn__cudnn *api, int sm)
{
    /* The arrays are read only as far as they are counted. */
    memset(g, 0, offsetof(fattn__graph, descriptors));
    g->api = api;
    g->sm = sm;
    g->next_uid = FIRST_UID;
}

void fattn__graph_release(fattn__graph *g)
{
    while (g->descriptor_count > 0)
        g->api->cudnnBackendDestroyDescriptor(g->descriptors[--g->descriptor_count]);
    g->operation_count = g->binding_count = g->sum_count = 0;
    g->operation_graph = g->matmul = NULL;
}

fattn_status fattn__graph_status(const fattn__graph *g)
{
    return g->status;
}

int fattn__graph_version(const fattn__graph *g)
{
    return g->api->version;
}

uint64_t fattn__graph_id(const fattn__graph *g)
{
    uint64_t hash = g->hash;
    for (int i = 0; i < g->binding_count; i++) {
        const fattn__binding *b = &g->bindings[i];
        const uint64_t words[] = { (uint64_t)b->uid, (uint64_t)b->slot, b->value.bits, b->offset };
        hash = XXH3_64bits_withSeed(words, sizeof words, hash);
    }
    if (g->repeat != NULL) {
        hash = XXH3_64bits_withSeed(&g->repeat->engine, sizeof g->repeat->engine, hash);
        hash = XXH3_64bits_withSeed(g->repeat->knobs,
                                    (size_t)g->repeat->knob_count * sizeof *g->repeat->knobs, hash);
    }
    return XXH3_64bits_withSeed(g->sums, (size_t)g->sum_count * sizeof *g->sums, hash);
}

fattn_status fattn__graph_refuse(fattn__graph *g, fattn_status status, const char *format, ...)
{
    if (g->status != FATTN_OK)
        return g->status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(g->text, sizeof g->text, format, arguments);
    va_end(arguments);
    return g->status = fattn__fail(status, "%s", g->text);
}

int fattn__data_type(int32_t dtype)
{
    switch ((fattn_dtype)dtype) {
    case FATTN_BF16:
    case FATTN_DTYPE_DEFAULT:
        return DNN_DATA_BFLOAT16;
    case FATTN_F16:
        return DNN_DATA_HALF;
    case FATTN_F32:
        return DNN_DATA_FLOAT;
    case FATTN_E4M3:
    case FATTN_MXE4M3:
        return DNN_DATA_FP8_E4M3;
    case FATTN_E5M2:
    case FATTN_MXE5M2:
        return DNN_DATA_FP8_E5M2;
    case FATTN_BOOL: /* a byte each; eight elements of cuDNN's own BOOLEAN share one */
        return DNN_DATA_UINT8;
    }
    return -1;
}

/* ---- steps that stick
 * ------------------------------------------------------------------------------------------------------
 */

/* cuDNN refused a part of the graph. This is its answer about the problem, unless the status says
 * something else. */
static void cudnn_failed(fattn__graph *g, int status, const char *what)
{
    char last[512] = "";
    g->api->cudnnGetLastErrorString(last, sizeof last);
    g->cudnn_status = status;
    fattn_status st = FATTN_UNSUPPORTED;
    if (status == DNN_STATUS_SUBLIBRARY_LOADING_FAILED ||
        status == DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
        st = FATTN_ENVIRONMENT;
    fattn__graph_refuse(g, st, "%s: %s", what,
                        last[0] != '\0' ? last : fattn__cudnn_status_name(g->api, status));
}

static void note(fattn__graph *g, const void *data, size_t bytes)
{
    g->hash = XXH3_64bits_withSeed(data, bytes, g->hash);
}

/* A descriptor has a different address in every process, but always the same place in the graph.
 * The latest ones are named most often, so the search begins there. */
static int64_t place_of(const fattn__graph *g, fattn__desc desc)
{
    int64_t place = g->descriptor_count - 1;
    while (place >= 0 && g->descriptors[place] != desc)
        place--;
    return place;
}

static size_t element_size(int type)
{
    switch ((enum fattn__dnn_type)type) {
    case DNN_TYPE_HANDLE: /* does not depend on the graph */
        return 0;
    case DNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case DNN_TYPE_CHAR:
        return 1;
    case DNN_TYPE_INT64:
    case DNN_TYPE_DOUBLE:
    case DNN_TYPE_VOID_PTR:
        return 8;
    default:
        return sizeof(int32_t);
    }
}

static void note_attribute(fattn__graph *g, fattn__desc desc, int name, int type, int64_t count,
                           const void *elements)
{
    const int64_t head[] = { place_of(g, desc), name, type, count };
    const fattn__desc *named = elements;
    note(g, head, sizeof head);
    if (type != DNN_TYPE_BACKEND_DESCRIPTOR)
        note(g, elements, (size_t)count * element_size(type));
    for (int64_t i = 0; i < count && type == DNN_TYPE_BACKEND_DESCRIPTOR; i++) {
        const int64_t place = place_of(g, named[i]);
        note(g, &place, sizeof place);
    }
}

fattn__desc fattn__part(fattn__graph *g, int type, const char *what)
{
    fattn__desc desc = NULL;
    if (g->status != FATTN_OK)
        return NULL;
    if (g->descriptor_count == FATTN__MAX_DESCRIPTORS) {
        fattn__graph_refuse(g, FATTN_INTERNAL, "the graph needs more than %d descriptors",
                            FATTN__MAX_DESCRIPTORS);
        return NULL;
    }
    int status = g->api->cudnnBackendCreateDescriptor(type, &desc);
    if (status == DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED) {
        /* cuDNN's answer for an unknown type; it looks like a lack of memory */
        g->cudnn_status = status;
        fattn__graph_refuse(g, FATTN_UNSUPPORTED, "cuDNN %d knows no %s (descriptor type %d)",
                            g->api->version, what, type);
        return NULL;
    }
    if (status != DNN_STATUS_SUCCESS) {
        cudnn_failed(g, status, what);
        return NULL;
    }
    note(g, &type, sizeof type);
    return g->descriptors[g->descriptor_count++] = desc;
}

void fattn__part_set(fattn__graph *g, fattn__desc desc, int name, int type, int64_t count,
                     const void *elements)
{
    if (g->status != FATTN_OK)
        return;
    note_attribute(g, desc, name, type, count, elements);
    int status = g->api->cudnnBackendSetAttribute(desc, name, type, count, elements);
    if (status != DNN_STATUS_SUCCESS) {
        char what[48];
        snprintf(what, sizeof what, "attribute %d", name);
        cudnn_failed(g, status, what);
    }
}

void fattn__part_desc(fattn__graph *g, fattn__desc desc, int name, fattn__desc value)
{
    if (value != NULL)
        fattn__part_set(g, desc, name, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void fattn__part_finalize(fattn__graph *g, fattn__desc desc, const char *what)
{
    if (g->status != FATTN_OK)
        return;
    int status = g->api->cudnnBackendFinalize(desc);
    if (status != DNN_STATUS_SUCCESS)
        cudnn_failed(g, status, what);
}

void fattn__part_append(fattn__graph *g, fattn__desc operation, const char *what)
{
    fattn__part_finalize(g, operation, what);
    if (g->status != FATTN_OK)
        return;
    if (g->operation_count == FATTN__MAX_OPERATIONS) {
        fattn__graph_refuse(g, FATTN_INTERNAL, "the graph needs more than %d operations",
                            FATTN__MAX_OPERATIONS);
        return;
    }
    g->operations[g->operation_count++] = operation;
}

/* ---- tensors
 * ---------------------------------------------------------------------------------------------------------------
 */

static void set_traits(fattn__graph *g, fattn__desc desc, const fattn__traits *traits)
{
    const int tiled = DNN_TENSOR_REORDERING_F8_128x4;
    fattn__part_desc(g, desc, DNN_ATTR_TENSOR_RAGGED_OFFSET_DESC, traits->offsets);
    if (traits->multiplier != 0)
        fattn__part_set(g, desc, DNN_ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, DNN_TYPE_INT64, 1,
                        &traits->multiplier);
    if (traits->tiled)
        fattn__part_set(g, desc, DNN_ATTR_TENSOR_REORDERING_MODE, DNN_TYPE_TENSOR_REORDERING_MODE,
                        1, &tiled);
}

static fattn__desc tensor(fattn__graph *g, int data_type, const int64_t dim[4],
                          const int64_t strides[4], bool is_virtual, bool by_value,
                          const fattn__traits *traits)
{
    const int64_t alignment = ALIGNMENT, uid = g->next_uid++,
                  rank = traits != NULL && traits->rank != 0 ? traits->rank : 4;
    fattn__desc desc = fattn__part(g, DNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_DATA_TYPE, DNN_TYPE_DATA_TYPE, 1, &data_type);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_DIMENSIONS, DNN_TYPE_INT64, rank, dim);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_STRIDES, DNN_TYPE_INT64, rank, strides);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_UNIQUE_ID, DNN_TYPE_INT64, 1, &uid);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_BYTE_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_IS_VIRTUAL, DNN_TYPE_BOOLEAN, 1, &is_virtual);
    fattn__part_set(g, desc, DNN_ATTR_TENSOR_IS_BY_VALUE, DNN_TYPE_BOOLEAN, 1, &by_value);
    if (traits != NULL)
        set_traits(g, desc, traits);
    fattn__part_finalize(g, desc, "tensor");
    return g->status == FATTN_OK ? desc : NULL;
}

/* Binds the next tensor. */
static fattn__binding *bind(fattn__graph *g, fattn__slot slot)
{
    static fattn__binding nowhere;
    if (g->status == FATTN_OK && g->binding_count == FATTN__MAX_BINDINGS)
        fattn__graph_refuse(g, FATTN_INTERNAL, "the graph binds more than %d tensors",
                            FATTN__MAX_BINDINGS);
    if (g->status != FATTN_OK)
        return &nowhere;
    fattn__binding *binding = &g->bindings[g->binding_count++];
    *binding = (fattn__binding){ .uid = g->next_uid, .slot = (int32_t)slot };
    return binding;
}

fattn__desc fattn__tensor(fattn__graph *g, fattn__slot slot, int data_type, const int64_t dim[4],
                          const int64_t strides[4])
{
    return fattn__tensor_with(g, slot, data_type, dim, strides, NULL);
}

fattn__desc fattn__tensor_with(fattn__graph *g, fattn__slot slot, int data_type,
                               const int64_t dim[4], const int64_t strides[4],
                               const fattn__traits *traits)
{
    bind(g, slot);
    return tensor(g, data_type, dim, strides, false, false, traits);
}

fattn__desc fattn__virtual(fattn__graph *g, int data_type, const int64_t dim[4],
                           const int64_t strides[4])
{
    return fattn__virtual_with(g, data_type, dim, strides, NULL);
}

fattn__desc fattn__virtual_with(fattn__graph *g, int data_type, const int64_t dim[4],
                                const int64_t strides[4], const fattn__traits *traits)
{
    const int64_t packed[4] = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 };
    return tensor(g, data_type, dim, strides != NULL ? strides : packed, true, false, traits);
}

static int64_t element_bytes(int data_type)
{
    switch (data_type) {
    case DNN_DATA_DOUBLE:
    case DNN_DATA_INT64:
        return 8;
    case DNN_DATA_HALF:
    case DNN_DATA_BFLOAT16:
        return 2;
    case DNN_DATA_BOOLEAN:
    case DNN_DATA_FP8_E4M3:
    case DNN_DATA_FP8_E5M2:
        return 1;
    default:
        return 4;
    }
}

fattn__desc fattn__scratch(fattn__graph *g, int data_type, const int64_t dim[4],
                           const int64_t strides[4])
{
    return fattn__scratch_with(g, data_type, dim, strides, NULL);
}

fattn__desc fattn__scratch_with(fattn__graph *g, int data_type, const int64_t dim[4],
                                const int64_t strides[4], const fattn__traits *traits)
{
    const bool packed = traits != NULL && traits->total != 0;
    const int64_t extents[4] = { packed ? 1 : dim[0], dim[1], packed ? traits->total : dim[2],
                                 dim[3] };
    int64_t last = 0, bytes;
    for (int i = 0; i < 4; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(extents[i] - 1, strides[i], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            fattn__graph_refuse(g, FATTN_BAD_PROBLEM,
                                "a workspace tensor has more elements than 64 bits can count");
    }
    if (__builtin_mul_overflow(last + 1, element_bytes(data_type), &bytes) ||
        bytes > INT64_MAX - ALIGNMENT)
        fattn__graph_refuse(g, FATTN_BAD_PROBLEM,
                            "a workspace tensor has more bytes than 64 bits can count");
    fattn__binding *binding = bind(g, FATTN__SLOT_SCRATCH);
    if (g->status != FATTN_OK)
        return NULL;
    binding->offset = g->scratch_bytes;
    g->scratch_bytes += ((size_t)bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return tensor(g, data_type, dim, strides, false, false, traits);
}

void fattn__sum_later(fattn__graph *g, const fattn__graph_sum *sum)
{
    if (g->sum_count == FATTN__MAX_SUMS)
        fattn__graph_refuse(g, FATTN_INTERNAL, "the graph sums more than %d gradients",
                            FATTN__MAX_SUMS);
    if (g->status == FATTN_OK)
        g->sums[g->sum_count++] = *sum;
}

static fattn__desc value(fattn__graph *g, int data_type)
{
    static const int64_t one[4] = { 1, 1, 1, 1 };
    return tensor(g, data_type, one, one, false, true, NULL);
}

fattn__desc fattn__value_f32(fattn__graph *g, float x)
{
    bind(g, FATTN__SLOT_VALUE)->value.f32 = x;
    return value(g, DNN_DATA_FLOAT);
}

fattn__desc fattn__value_i32(fattn__graph *g, int32_t x)
{
    bind(g, FATTN__SLOT_VALUE)->value.i32 = x;
    return value(g, DNN_DATA_INT32);
}

/* ---- operations
 * ------------------------------------------------------------------------------------------------------------
 */

void fattn__op_pointwise(fattn__graph *g, const fattn__pointwise *op)
{
    fattn__desc pointwise = fattn__part(g, DNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
    fattn__part_set(g, pointwise, DNN_ATTR_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, 1, &op->mode);
    fattn__part_set(g, pointwise, DNN_ATTR_POINTWISE_MATH_PREC, DNN_TYPE_DATA_TYPE, 1, &op->math);
    if (op->mode == DNN_POINTWISE_GEN_INDEX) {
        const int64_t axis = op->axis;
        fattn__part_set(g, pointwise, DNN_ATTR_POINTWISE_AXIS, DNN_TYPE_INT64, 1, &axis);
    }
    fattn__part_finalize(g, pointwise, "pointwise");
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_POINTWISE_XDESC, op->x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_POINTWISE_BDESC, op->b);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_POINTWISE_TDESC, op->t);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_POINTWISE_YDESC, op->y);
    fattn__part_append(g, operation, "pointwise operation");
}

void fattn__op_reduce(fattn__graph *g, int mode, fattn__desc x, fattn__desc y)
{
    const int math = DNN_DATA_FLOAT;
    fattn__desc reduction = fattn__part(g, DNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction");
    fattn__part_set(g, reduction, DNN_ATTR_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION_OPERATOR_TYPE, 1,
                    &mode);
    fattn__part_set(g, reduction, DNN_ATTR_REDUCTION_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &math);
    fattn__part_finalize(g, reduction, "reduction");
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    fattn__part_append(g, operation, "reduction operation");
}

void fattn__op_matmul(fattn__graph *g, const fattn__matmul *op)
{
    const int math = DNN_DATA_FLOAT;
    if (g->matmul == NULL) {
        g->matmul = fattn__part(g, DNN_BACKEND_MATMUL_DESCRIPTOR, "matmul");
        fattn__part_set(g, g->matmul, DNN_ATTR_MATMUL_COMP_TYPE, DNN_TYPE_DATA_TYPE, 1, &math);
        fattn__part_finalize(g, g->matmul, "matmul");
    }
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_DESC, g->matmul);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_ADESC, op->a);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_BDESC, op->b);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_CDESC, op->c);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, op->m);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, op->n);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, op->k);
    fattn__part_append(g, operation, "matmul operation");
}

void fattn__op_reshape(fattn__graph *g, fattn__desc x, fattn__desc y)
{
    const int mode = DNN_RESHAPE_VIEW_ONLY;
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    if (g->api->version >= 92200)
        fattn__part_set(g, operation, DNN_ATTR_OPERATION_RESHAPE_MODE, DNN_TYPE_RESHAPE_MODE, 1,
                        &mode);
    fattn__part_append(g, operation, "reshape operation");
}

void fattn__op_band(fattn__graph *g, const fattn__band *op)
{
    fattn__desc operation = fattn__part(g, DNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR,
                                        "diagonal band operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, op->x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, op->fill);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, op->y);
    fattn__part_set(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE,
                    DNN_TYPE_POINTWISE_MODE, 1, &op->compare);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC, op->left);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC,
                     op->right);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC,
                     op->seq_len_q);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC,
                     op->seq_len_kv);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC,
                     op->cu_seq_len_q);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_KVDESC,
                     op->cu_seq_len_kv);
    fattn__part_append(g, operation, "diagonal band operation");
}

static fattn__desc softmax(fattn__graph *g, const fattn__softmax *op)
{
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, "softmax operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_XDESC, op->x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_YDESC, op->y);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_STATS_DESC, op->stats);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_MAX_DESC, op->max);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC, op->sum_exp);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_SOFTMAX_SINK_DESC, op->sink);
    if (op->log2)
        fattn__part_set(g, operation, DNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2, DNN_TYPE_BOOLEAN, 1,
                        &op->log2);
    return operation;
}

void fattn__op_softmax(fattn__graph *g, const fattn__softmax *op)
{
    fattn__part_append(g, softmax(g, op), "softmax operation");
}

fattn__desc fattn__softmax_desc(fattn__graph *g, const fattn__softmax *op)
{
    fattn__desc operation = softmax(g, op);
    fattn__part_finalize(g, operation, "softmax operation");
    return g->status == FATTN_OK ? operation : NULL;
}

void fattn__op_rng(fattn__graph *g, const fattn__rng *op)
{
    const int distribution = DNN_RNG_DISTRIBUTION_BERNOULLI;
    fattn__desc rng = fattn__part(g, DNN_BACKEND_RNG_DESCRIPTOR, "random numbers");
    fattn__part_set(g, rng, DNN_ATTR_RNG_DISTRIBUTION, DNN_TYPE_RNG_DISTRIBUTION, 1, &distribution);
    fattn__part_set(g, rng, DNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY, DNN_TYPE_DOUBLE, 1, &op->keep);
    fattn__part_finalize(g, rng, "random numbers");
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_RNG_DESCRIPTOR, "random number operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RNG_YDESC, op->y);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RNG_DESC, rng);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RNG_SEED, op->seed);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_RNG_OFFSET_DESC, op->offset);
    fattn__part_append(g, operation, "random number operation");
}

void fattn__op_paged_load(fattn__graph *g, const fattn__paged_load *op)
{
    fattn__desc operation =
        fattn__part(g, DNN_BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, "paged load operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, op->pages);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, op->table);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC, op->seq_len);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, op->y);
    fattn__part_append(g, operation, "paged load operation");
}

/* The block is always {1, 32}, whatever its dimension: cuDNN finds the dimension from the extents
 * of the scale. */
void fattn__op_block_scale(fattn__graph *g, const fattn__block_scale *op)
{
    static const int32_t block[2] = { 1, 32 };
    const int math = DNN_DATA_FLOAT, type = fattn__block_scale_dequantize_type(g->api->version);
    const bool negative = false;
    fattn__desc operation = fattn__part(g, type, "block scale operation");
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, op->x);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, op->scale);
    fattn__part_desc(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, op->y);
    fattn__part_set(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC,
                    DNN_TYPE_DATA_TYPE, 1, &math);
    fattn__part_set(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE,
                    DNN_TYPE_INT32, 2, block);
    if (g->api->version >= 91400)
        fattn__part_set(g, operation, DNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE,
                        DNN_TYPE_BOOLEAN, 1, &negative);
    fattn__part_append(g, operation, "block scale operation");
}

fattn_status fattn__graph_finalize(fattn__graph *g, fattn__handle handle)
{
    fattn__desc graph = fattn__part(g, DNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
    fattn__part_set(g, graph, DNN_ATTR_OPERATIONGRAPH_OPS, DNN_TYPE_BACKEND_DESCRIPTOR,
                    g->operation_count, g->operations);
    if (g->overrides)
        fattn__part_set(g, graph, DNN_ATTR_OPERATIONGRAPH_IS_OVERRIDE_SHAPE_ENABLED,
                        DNN_TYPE_BOOLEAN, 1, &g->overrides);
    if (handle != NULL)
        fattn__part_set(g, graph, DNN_ATTR_OPERATIONGRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &handle);
    fattn__part_finalize(g, graph, "operation graph");
    g->operation_graph = g->status == FATTN_OK ? graph : NULL;
    return g->status;
}
