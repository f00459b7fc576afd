/* A cuDNN of our own that only writes down what it is told. For tests of graphs: build() leaves the
 * operations in `order`, the descriptors in `made`. */
#ifndef FATTN_TEST_GRAPH_RECORDER_H
#define FATTN_TEST_GRAPH_RECORDER_H

#include "cudnn/backend/backend.h"
#include "cudnn/plan/builders.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the recorder
 * ---------------------------------------------------------------------------------------------------------------
 */

enum { MOST = 768, BLOCK_SCALE = 37 };

enum { MOST_SETTINGS = 40 };

typedef struct setting {
    int name;
    int64_t words[4]; /* the first elements */
} setting;

typedef struct recorded {
    int type, mode, math, data_type, reordering, setting_count;
    setting settings[MOST_SETTINGS];
    bool is_virtual, finalized;
    int64_t dim[4], strides[4];
    int reads_lengths; /* GEMM overrides, or lengths of a band */
} recorded;

static recorded made[MOST];
static int made_count, alive, calls, failing_call;
static char order[4096];
static uint64_t recorded_hash, recorded_id; /* of the calls; fattn__graph_id's */

static void mix(const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        recorded_hash = (recorded_hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static bool fails(void)
{
    return ++calls == failing_call;
}

static recorded *of(fattn__desc desc)
{
    return &made[(intptr_t)desc - 1];
}

__attribute__((unused)) static const setting *setting_of(const recorded *r, int name)
{
    for (int i = 0; i < r->setting_count; i++)
        if (r->settings[i].name == name)
            return &r->settings[i];
    return NULL;
}

static void keep_setting(recorded *r, int name, int type, int64_t count, const void *elements)
{
    const int64_t bytes =
        type == DNN_TYPE_BOOLEAN ? 1
        : type == DNN_TYPE_BACKEND_DESCRIPTOR || type == DNN_TYPE_INT64 || type == DNN_TYPE_DOUBLE
            ? 8
            : 4;
    cr_assert_lt(r->setting_count, MOST_SETTINGS);
    mix(&name, sizeof name);
    mix(elements, (size_t)(count * bytes));
    setting *to = &r->settings[r->setting_count++];
    *to = (setting){ .name = name };
    memcpy(to->words, elements, (size_t)(count * bytes < 32 ? count * bytes : 32));
}

static int create(int type, fattn__desc *out)
{
    if (fails())
        return DNN_STATUS_BAD_PARAM;
    cr_assert_lt(made_count, MOST);
    made[made_count] = (recorded){ .type = type };
    mix(&type, sizeof type);
    *out = (fattn__desc)(intptr_t)++made_count;
    alive++;
    return DNN_STATUS_SUCCESS;
}

static int destroy(fattn__desc desc)
{
    (void)desc;
    alive--;
    return DNN_STATUS_SUCCESS;
}

static const char *pointwise_name(int mode)
{
#define ROW(name, value) { #name, value },
    static const struct {
        const char *name;
        int value;
    } names[] = { DNN_POINTWISE_LIST(ROW) };
#undef ROW
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].value == mode)
            return names[i].name + strlen("POINTWISE_");
    return "?";
}

static void note_operation(const recorded *r)
{
    char word[64] = "";
    switch (r->type) {
    case DNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        snprintf(word, sizeof word, "%s", pointwise_name(r->mode));
        break;
    case DNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        snprintf(word, sizeof word, "reduce_%s",
                 r->mode == DNN_REDUCE_TENSOR_AMAX  ? "amax"
                 : r->mode == DNN_REDUCE_TENSOR_MAX ? "max"
                                                    : "add");
        break;
    case DNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        snprintf(word, sizeof word, r->reads_lengths ? "matmul(lengths)" : "matmul");
        break;
    case DNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        snprintf(word, sizeof word, "reshape");
        break;
    case DNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
        snprintf(word, sizeof word, "rng");
        break;
    default:
        return;
    }
    snprintf(order + strlen(order), sizeof order - strlen(order), "%s%s",
             order[0] != '\0' ? " " : "", word);
}

static int finalize(fattn__desc desc)
{
    if (fails())
        return DNN_STATUS_BAD_PARAM;
    of(desc)->finalized = true;
    note_operation(of(desc));
    return DNN_STATUS_SUCCESS;
}

static int set(fattn__desc desc, int name, int type, int64_t count, const void *elements)
{
    if (fails())
        return DNN_STATUS_BAD_PARAM;
    recorded *r = of(desc);
    mix(&desc, sizeof desc);
    keep_setting(r, name, type, count, elements);
    switch (name) {
    case DNN_ATTR_POINTWISE_MODE:
    case DNN_ATTR_REDUCTION_OPERATOR:
    case DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE:
        memcpy(&r->mode, elements, sizeof r->mode);
        break;
    case DNN_ATTR_POINTWISE_MATH_PREC:
        memcpy(&r->math, elements, sizeof r->math);
        break;
    case DNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR:
    case DNN_ATTR_OPERATION_REDUCTION_DESC:
        r->mode = of(*(const fattn__desc *)elements)->mode;
        break;
    case DNN_ATTR_TENSOR_DIMENSIONS:
        memcpy(r->dim, elements, sizeof r->dim);
        break;
    case DNN_ATTR_TENSOR_STRIDES:
        memcpy(r->strides, elements, sizeof r->strides);
        break;
    case DNN_ATTR_TENSOR_DATA_TYPE:
        memcpy(&r->data_type, elements, sizeof r->data_type);
        break;
    case DNN_ATTR_TENSOR_REORDERING_MODE:
        memcpy(&r->reordering, elements, sizeof r->reordering);
        break;
    case DNN_ATTR_TENSOR_IS_VIRTUAL:
        memcpy(&r->is_virtual, elements, sizeof r->is_virtual);
        break;
    case DNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC:
    case DNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC:
    case DNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC:
    case DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC:
    case DNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC:
        r->reads_lengths++;
        break;
    default:
        if (type ==
            DNN_TYPE_BACKEND_DESCRIPTOR) /* whatever is used must have been finished before */
            for (int64_t i = 0; i < count; i++)
                cr_assert(of(((const fattn__desc *)elements)[i])->finalized, "attribute %d", name);
    }
    return DNN_STATUS_SUCCESS;
}

/* A tensor's unique id is its place. */
static int get(fattn__desc desc, int name, int type, int64_t most, int64_t *count, void *out)
{
    (void)name, (void)type, (void)most;
    *count = 1;
    *(int64_t *)out = (intptr_t)desc;
    return DNN_STATUS_SUCCESS;
}

static const char *error_string(int status)
{
    (void)status;
    return "CUDNN_STATUS_BAD_PARAM";
}

static void last_error(char *out, size_t capacity)
{
    snprintf(out, capacity, "refused by the recorder");
}

static fattn__cudnn recorder = { .version = 91900,
                                 .cudnnGetErrorString = error_string,
                                 .cudnnGetLastErrorString = last_error,
                                 .cudnnBackendCreateDescriptor = create,
                                 .cudnnBackendDestroyDescriptor = destroy,
                                 .cudnnBackendFinalize = finalize,
                                 .cudnnBackendGetAttribute = get,
                                 .cudnnBackendSetAttribute = set };

static fattn__graph graph;

/* Builds and finalizes; the caller releases. */
__attribute__((unused)) static fattn_status build(int version, fattn_problem p)
{
    fattn_problem r;
    cr_assert_eq(fattn_problem_resolve(&p, &r), FATTN_OK, "%s", fattn_last_error());
    recorder.version = version;
    made_count = alive = calls = 0;
    recorded_hash = 0xcbf29ce484222325u;
    order[0] = '\0';
    fattn__graph_init(&graph, &recorder, 90);
    const fattn_status st = fattn__build(&graph, &r);
    recorded_id = fattn__graph_id(&graph);
    return st == FATTN_OK ? fattn__graph_finalize(&graph, NULL) : st;
}

/* The descriptor bound to a slot. */
__attribute__((unused)) static const recorded *tensor_of(fattn__slot slot)
{
    for (int i = 0, uid = 0; i < made_count; i++) {
        if (made[i].type != DNN_BACKEND_TENSOR_DESCRIPTOR)
            continue;
        for (int b = 0; b < graph.binding_count; b++)
            if (graph.bindings[b].uid == 100 + uid && graph.bindings[b].slot == (int32_t)slot)
                return &made[i];
        uid++;
    }
    cr_assert_fail("no tensor of slot %d", (int)slot);
    return NULL;
}

#define PROBLEM(...)                                                                               \
    (fattn_problem)                                                                                \
    {                                                                                              \
        .struct_size = sizeof(fattn_problem), .batch = 2, .heads_q = 8, .seq_q = 96,               \
        .seq_kv = 128, .dim_qk = 64, __VA_ARGS__                                                   \
    }

#endif
