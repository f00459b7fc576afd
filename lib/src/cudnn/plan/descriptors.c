/* A graph as text: the builders run with a replacement of cuDNN that writes down the calls. */
#include "fattn/descriptors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "builders.h"
#include "core/error.h"
#include "cudnn/backend/backend.h"
#include "cudnn/backend/json_text.h"

/* ---- cuDNN's numbers in cuDNN's words
 * -------------------------------------------------------------------------------------------- */

typedef struct word {
    const char *name;
    int value;
} word;

#define AS_WORD(name, value) { "CUDNN_" #name, value },
static const word words[] = {
    DNN_TYPE_LIST(AS_WORD) DNN_DATA_LIST(AS_WORD) DNN_DESCRIPTOR_LIST(AS_WORD)
        DNN_ATTRIBUTE_LIST(AS_WORD) DNN_POINTWISE_LIST(AS_WORD) DNN_MODE_LIST(AS_WORD)
            DNN_SINCE_9_13_LIST(AS_WORD) DNN_SINCE_9_15_LIST(AS_WORD) DNN_SINCE_9_17_LIST(AS_WORD)
                DNN_SINCE_9_20_LIST(AS_WORD) DNN_SINCE_9_21_LIST(AS_WORD)
                    DNN_SINCE_9_22_LIST(AS_WORD) DNN_SINCE_9_24_LIST(AS_WORD)
                        DNN_SINCE_9_25_LIST(AS_WORD) DNN_SINCE_9_27_LIST(AS_WORD)
                            DNN_SINCE_9_28_LIST(AS_WORD)
};
#undef AS_WORD

/* The name with this prefix and number; "" for none. */
static const char *word_of(const char *kind, int value)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].value == value && strncmp(words[i].name, kind, strlen(kind)) == 0)
            return words[i].name;
    return "";
}

/* The prefix of the names of an attribute's values; NULL: its values are numbers. */
static const char *kind_of(int type)
{
    switch (type) {
    case DNN_TYPE_DATA_TYPE:
        return "CUDNN_DATA_";
    case DNN_TYPE_POINTWISE_MODE:
        return "CUDNN_POINTWISE_";
    case DNN_TYPE_REDUCTION_OPERATOR_TYPE:
        return "CUDNN_REDUCE_TENSOR_";
    case DNN_TYPE_TENSOR_REORDERING_MODE:
        return "CUDNN_TENSOR_REORDERING_";
    case DNN_TYPE_RNG_DISTRIBUTION:
        return "CUDNN_RNG_DISTRIBUTION_";
    case DNN_TYPE_RESHAPE_MODE:
        return "CUDNN_RESHAPE_";
    default:
        return NULL;
    }
}

/* ---- the recorder
 * ----------------------------------------------------------------------------------------------------------------
 */

/* One for each thread, because cuDNN's functions have no argument for it. A descriptor is its
 * position in the list, counted from 1. */
static _Thread_local json_t *descriptors;
static _Thread_local int recorded_version;
static _Thread_local bool no_memory; /* something is missing in the text */

static void add(json_t *array, json_t *value)
{
    no_memory |= json_array_append_new(array, value) != 0;
}

static json_t *attributes_of(fattn__desc desc)
{
    return json_object_get(json_array_get(descriptors, (size_t)(intptr_t)desc - 1), "attributes");
}

static int create(int type, fattn__desc *out)
{
    const bool scaled = type == fattn__block_scale_dequantize_type(recorded_version);
    const char *name = scaled ? "CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR"
                              : word_of("CUDNN_BACKEND_", type);
    if (name[0] == '\0')
        return DNN_STATUS_INTERNAL_ERROR;
    add(descriptors, json_pack("{s:s, s:[]}", "type", name, "attributes"));
    if (no_memory)
        return DNN_STATUS_INTERNAL_ERROR;
    *out = (fattn__desc)(intptr_t)json_array_size(descriptors);
    return DNN_STATUS_SUCCESS;
}

static json_t *value_of(int type, const void *elements, int64_t i, bool *unknown)
{
    const char *kind = kind_of(type);
    if (kind != NULL)
        return json_string(word_of(kind, ((const int *)elements)[i]));
    switch (type) {
    case DNN_TYPE_BACKEND_DESCRIPTOR:
        return json_integer((intptr_t)((const fattn__desc *)elements)[i] - 1);
    case DNN_TYPE_INT64:
        return json_integer(((const int64_t *)elements)[i]);
    case DNN_TYPE_INT32:
        return json_integer(((const int32_t *)elements)[i]);
    case DNN_TYPE_BOOLEAN:
        return json_boolean(((const bool *)elements)[i]);
    case DNN_TYPE_FLOAT:
        return json_real((double)((const float *)elements)[i]);
    case DNN_TYPE_DOUBLE:
        return json_real(((const double *)elements)[i]);
    default:
        *unknown = true;
        return json_null();
    }
}

static int set(fattn__desc desc, int name, int type, int64_t count, const void *elements)
{
    const char *attribute = word_of("CUDNN_ATTR_", name), *kind = word_of("CUDNN_TYPE_", type);
    json_t *values = json_array();
    bool unknown = attribute[0] == '\0' || kind[0] == '\0';
    for (int64_t i = 0; i < count; i++)
        add(values, value_of(type, elements, i, &unknown));
    add(attributes_of(desc),
        json_pack("{s:s, s:s, s:o}", "name", attribute, "type", kind, "values", values));
    return unknown || no_memory ? DNN_STATUS_INTERNAL_ERROR : DNN_STATUS_SUCCESS;
}

/* The only value that builders read back: a tensor's number. */
static int get(fattn__desc desc, int name, int type, int64_t capacity, int64_t *count,
               void *elements)
{
    size_t i;
    json_t *attribute;
    (void)capacity;
    json_array_foreach(attributes_of(desc), i, attribute)
    {
        if (type != DNN_TYPE_INT64 || strcmp(json_string_value(json_object_get(attribute, "name")),
                                             word_of("CUDNN_ATTR_", name)) != 0)
            continue;
        *(int64_t *)elements =
            json_integer_value(json_array_get(json_object_get(attribute, "values"), 0));
        *count = 1;
        return DNN_STATUS_SUCCESS;
    }
    return DNN_STATUS_BAD_PARAM;
}

static int accept(fattn__desc desc)
{
    (void)desc;
    return DNN_STATUS_SUCCESS;
}

static const char *error_string(int status)
{
    (void)status;
    return "the recorder has no word for it";
}

static void last_error(char *out, size_t capacity)
{
    if (capacity > 0)
        out[0] = '\0';
}

/* ---- the text
 * --------------------------------------------------------------------------------------------------------------------
 */

static const char *slot_word(int32_t slot)
{
#define AS_WORD(symbol, field) [FATTN__SLOT_##symbol] = #field,
#define AS_AUXILIARY(symbol, field, written) [FATTN__SLOT_##symbol] = #field,
    static const char *const table[] = { FATTN__CALL_SLOT_LIST(AS_WORD) FATTN__AUXILIARY_LIST(
                                             AS_AUXILIARY)[FATTN__SLOT_SCRATCH] = "scratch",
                                         [FATTN__SLOT_VALUE] = "value" };
#undef AS_WORD
#undef AS_AUXILIARY
    return table[slot];
}

static json_t *four(const int64_t at[4])
{
    return json_pack("[I, I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2],
                     (json_int_t)at[3]);
}

static json_t *bindings_of(const fattn__graph *g)
{
    json_t *out = json_array();
    for (int i = 0; i < g->binding_count; i++) {
        const fattn__binding *b = &g->bindings[i];
        json_t *one =
            json_pack("{s:I, s:s}", "uid", (json_int_t)b->uid, "slot", slot_word(b->slot));
        if (b->slot == FATTN__SLOT_VALUE)
            no_memory |= json_object_set_new(one, "bits", json_integer(b->value.bits)) != 0;
        if (b->slot == FATTN__SLOT_SCRATCH)
            no_memory |=
                json_object_set_new(one, "offset", json_integer((json_int_t)b->offset)) != 0;
        add(out, one);
    }
    return out;
}

static json_t *sums_of(const fattn__graph *g)
{
    json_t *out = json_array();
    for (int i = 0; i < g->sum_count; i++) {
        const fattn__graph_sum *sum = &g->sums[i];
        add(out, json_pack("{s:s, s:I, s:o, s:o}", "slot", slot_word(sum->slot), "offset",
                           (json_int_t)sum->offset, "dim", four(sum->dim), "strides",
                           four(sum->strides)));
    }
    return out;
}

static char *text_of(const fattn__graph *g)
{
    json_t *root =
        json_pack("{s:O, s:I, s:o, s:I, s:o}", "descriptors", descriptors, "operation_graph",
                  (json_int_t)(intptr_t)g->operation_graph - 1, "bindings", bindings_of(g),
                  "scratch_bytes", (json_int_t)g->scratch_bytes, "sums", sums_of(g));
    char *out = root != NULL ? fattn__json_text(root) : NULL;
    json_decref(root);
    return out;
}

static fattn_status record(char **out, const fattn__cudnn *recorder, const fattn_problem *problem,
                           int32_t sm)
{
    fattn__graph *g = malloc(sizeof *g);
    if (g == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a graph");
    fattn__graph_init(g, recorder, sm);
    fattn_status st = fattn__build(g, problem);
    if (st == FATTN_OK)
        st = fattn__graph_finalize(g, NULL);
    if (st == FATTN_OK)
        *out = text_of(g);
    if (no_memory || (st == FATTN_OK && *out == NULL)) {
        free(*out);
        *out = NULL;
        st = fattn__fail(FATTN_NO_MEMORY, "no memory for the text of a graph");
    }
    fattn__graph_release(g);
    free(g);
    return st;
}

fattn_status fattn_descriptors(char **out, const fattn_problem *problem, int32_t cudnn_version,
                               int32_t sm)
{
    NEED(out);
    fattn_problem resolved;
    *out = NULL;
    TRY(fattn_problem_resolve(problem, &resolved));
    if (resolved.rope && resolved.pass == FATTN_BACKWARD)
        return fattn__fail(FATTN_UNSUPPORTED, "rope: a backward is two graphs");
    fattn__cudnn *recorder = calloc(1, sizeof *recorder);
    descriptors = json_array();
    no_memory = false;
    fattn_status st = recorder == NULL || descriptors == NULL
                          ? fattn__fail(FATTN_NO_MEMORY, "no memory for the text of a graph")
                          : FATTN_OK;
    if (st == FATTN_OK) {
        recorder->version = recorded_version = cudnn_version;
        recorder->cudnnBackendCreateDescriptor = create;
        recorder->cudnnBackendDestroyDescriptor = accept;
        recorder->cudnnBackendFinalize = accept;
        recorder->cudnnBackendSetAttribute = set;
        recorder->cudnnBackendGetAttribute = get;
        recorder->cudnnGetErrorString = error_string;
        recorder->cudnnGetLastErrorString = last_error;
        st = record(out, recorder, &resolved, sm);
    }
    json_decref(descriptors);
    descriptors = NULL;
    free(recorder);
    return st;
}
