#include "graph.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suites/predicate.h"
#include "words/case_text.h"

#define AS_WORD(symbol, word) word,
static const char *const type_words[] = { FACTS_IMPORT_TYPE_LIST(AS_WORD) };
static const char *const kind_words[] = { FACTS_IMPORT_OPERATION_LIST(AS_WORD) };
#undef AS_WORD

/* "CUDNN_DATA_FLOAT" without "CUDNN_DATA_". */
static const char *without(const char *word, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(word, prefix, length) == 0 ? word + length : word;
}

static facts_import_type type_of(const char *word)
{
    word = without(word, "CUDNN_DATA_");
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++)
        if (strcmp(word, type_words[i]) == 0)
            return (facts_import_type)i;
    return FACTS_IMPORT_TYPE_OTHER;
}

static bool say(facts_error *error, const char *what, const char *of)
{
    char quote[FACTS_QUOTE_MAX];
    snprintf(error->text, sizeof error->text, "%s%s%s", what, of[0] != '\0' ? " " : "",
             facts_quote(quote, facts_span_of(of)));
    return false;
}

/* Numbers of a tensor: up to four; strides may be 0. */
static bool read_numbers(int64_t out[4], int *count, const json_t *array, int64_t least)
{
    size_t n = json_array_size(array);
    if (n > 4)
        return false;
    for (size_t i = 0; i < 4; i++)
        out[i] = 1;
    for (size_t i = 0; i < n; i++) {
        const json_t *number = json_array_get(array, i);
        out[i] = json_integer_value(number);
        if (!json_is_integer(number) || out[i] < least || out[i] > INT64_C(1) << 46)
            return false;
    }
    *count = (int)n;
    return true;
}

static bool read_shape(facts_import_tensor *t, const json_t *json, facts_error *error)
{
    int strides;
    if (!read_numbers(t->dim, &t->rank, json_object_get(json, "dim"), 1) ||
        !read_numbers(t->stride, &strides, json_object_get(json, "stride"), 0) ||
        (strides != t->rank && strides != 0))
        return say(error, "sizes and strides that are none, of tensor", t->name);
    t->strided = t->rank > 0 && strides == t->rank;
    return true;
}

static int add_tensor(facts_import_graph *g, const char *name)
{
    if (g->tensor_count >= FACTS_IMPORT_MOST)
        return -1;
    if ((g->tensor_count & (g->tensor_count - 1)) == 0) { /* room is a power of two */
        size_t room = g->tensor_count == 0 ? 1 : 2 * (size_t)g->tensor_count;
        g->tensor = realloc(g->tensor, room * sizeof *g->tensor);
    }
    g->tensor[g->tensor_count] = (facts_import_tensor){ .name = name, .ragged = -1, .writer = -1 };
    return g->tensor_count++;
}

static facts_import_operation *add_operation(facts_import_graph *g)
{
    if (g->operation_count >= FACTS_IMPORT_MOST)
        return NULL;
    if ((g->operation_count & (g->operation_count - 1)) == 0) {
        size_t room = g->operation_count == 0 ? 1 : 2 * (size_t)g->operation_count;
        g->operation = realloc(g->operation, room * sizeof *g->operation);
    }
    facts_import_operation *op = &g->operation[g->operation_count++];
    *op = (facts_import_operation){ .kind = FACTS_IMPORT_KIND_OTHER, .word = "", .mode = "" };
    return op;
}

int facts_import_tensor_named(const facts_import_graph *g, const char *name)
{
    for (int i = 0; i < g->tensor_count; i++)
        if (strcmp(g->tensor[i].name, name) == 0)
            return i;
    return -1;
}

const char *facts_import_word(const json_t *object, const char *key)
{
    const char *word = json_string_value(json_object_get(object, key));
    return word != NULL ? word : "";
}

/* A tensor of cuDNN's operationGraph. The tensor of its offsets stands inside it. */
static bool read_backend_tensor(facts_import_graph *g, const json_t *json, int depth, int *place,
                                facts_error *error)
{
    const char *name = facts_import_word(json, "name");
    if (name[0] == '\0' || depth > 1)
        return say(error, "a tensor without a name", "");
    *place = facts_import_tensor_named(g, name);
    if (*place >= 0) /* offsets stand in every tensor that has them */
        return json_equal(json, g->tensor[*place].json) ||
               say(error, "the log describes a tensor in two ways:", name);
    if ((*place = add_tensor(g, name)) < 0)
        return say(error, "more tensors than an attention graph has", "");
    facts_import_tensor t = g->tensor[*place];
    t.json = json;
    t.type = type_of(facts_import_word(json, "dataType"));
    t.is_virtual = json_is_true(json_object_get(json, "isVirtual"));
    t.by_value = json_is_true(json_object_get(json, "isByValue"));
    t.reordered = strstr(facts_import_word(json, "reordering"), "F8_128x4") != NULL;
    const json_t *offsets = json_object_get(json, "isRagged");
    if (!read_shape(&t, json, error))
        return false;
    if (!t.strided)
        return say(error, "no sizes and strides of tensor", name);
    if (json_array_size(offsets) > 0 &&
        !read_backend_tensor(g, json_array_get(offsets, 0), depth + 1, &t.ragged, error))
        return false;
    const json_t *multiplier = json_object_get(json, "raggedOffsetMultiplier");
    t.multiplier = json_is_integer(multiplier) ? json_integer_value(multiplier) : 0;
    g->tensor[*place] = t;
    return true;
}

static int tensor_numbered(const facts_import_graph *g, int64_t uid)
{
    for (int i = 0; i < g->tensor_count; i++)
        if (g->tensor[i].uid == uid)
            return i;
    return -1;
}

/* Every member of a node that names a tensor (cudnn-frontend from json_version 2.0: its number) is
 * a place of the operation. */
static bool read_ports(facts_import_graph *g, facts_import_operation *op, const json_t *members)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)members, key, value)
    {
        const char *name = json_string_value(value);
        int tensor = name != NULL ? facts_import_tensor_named(g, name) : -1;
        if (g->frontend && json_is_integer(value))
            tensor = tensor_numbered(g, json_integer_value(value));
        if (tensor < 0)
            continue;
        if (op->port_count == FACTS_IMPORT_PORTS)
            return false;
        op->port[op->port_count++] = (facts_import_port){ .name = key, .tensor = tensor };
    }
    return true;
}

static void read_kind(facts_import_operation *op, const char *word)
{
    op->word = word;
    const char *at = without(word, "CUDNN_BACKEND_OPERATION_");
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++) {
        size_t length = strlen(kind_words[i]);
        if (strncmp(at, kind_words[i], length) == 0 &&
            (at[length] == '\0' || strcmp(at + length, "_DESCRIPTOR") == 0))
            op->kind = (facts_import_kind)i;
    }
}

static bool read_backend(facts_import_graph *g, const json_t *json, facts_error *error)
{
    size_t i;
    json_t *each;
    g->json = json;
    json_array_foreach(json_object_get(json, "tensors"), i, each)
    {
        int place;
        if (!read_backend_tensor(g, each, 0, &place, error))
            return false;
    }
    json_array_foreach(json_object_get(json, "nodes"), i, each)
    {
        facts_import_operation *op = add_operation(g);
        if (op == NULL)
            return say(error, "more operations than an attention graph has", "");
        op->json = each;
        read_kind(op, facts_import_word(each, "operation"));
        op->mode = without(without(facts_import_word(each, "pointwiseMode"), "CUDNN_POINTWISE_"),
                           "CUDNN_");
        if (op->kind == FACTS_IMPORT_REDUCTION)
            op->mode = without(facts_import_word(each, "reductionOp"), "CUDNN_REDUCE_TENSOR_");
        if (!read_ports(g, op, each))
            return say(error, "an operation with more places than any has:", op->word);
        int written = facts_import_written(op);
        if (written >= 0)
            g->tensor[written].writer = g->operation_count - 1;
    }
    return true;
}

/* What frontend calls an operation. */
static void read_tag(facts_import_operation *op, const char *tag)
{
    op->word = tag;
    if (strncmp(tag, "SDPA", 4) == 0 && strstr(tag, "BWD") != NULL)
        op->kind = FACTS_IMPORT_SDPA_BACKWARD;
    else if (strncmp(tag, "SDPA", 4) == 0)
        op->kind = FACTS_IMPORT_SDPA;
    else if (strcmp(tag, "ROPE") == 0)
        op->kind = FACTS_IMPORT_ROPE;
    else if (strcmp(tag, "ROPE_BACKWARD") == 0 || strcmp(tag, "ROPE_BWD") == 0)
        op->kind = FACTS_IMPORT_ROPE_BACKWARD;
}

static bool read_frontend_tensor(facts_import_graph *g, const char *name, const json_t *json,
                                 const char *io, facts_error *error)
{
    int place = add_tensor(g, name);
    if (place < 0)
        return say(error, "more tensors than an attention graph has", "");
    facts_import_tensor *t = &g->tensor[place];
    const json_t *type = json_object_get(json, "data_type"),
                 *value = json_object_get(json, "pass_by_value");
    t->type = type_of(json_is_string(type) && strcmp(json_string_value(type), "NOT_SET") != 0
                          ? json_string_value(type)
                          : io);
    t->is_virtual = json_is_true(json_object_get(json, "is_virtual"));
    t->by_value = json_is_true(json_object_get(json, "is_pass_by_value"));
    t->reordered = strstr(facts_import_word(json, "reordering_type"), "F8_128x4") != NULL;
    t->uid = json_integer_value(json_object_get(json, "uid"));
    t->has_value = facts_import_number(value, &t->value);
    t->multiplier = json_integer_value(json_object_get(json, "ragged_offset_multiplier"));
    if (json_object_get(json, "ragged_offset_uid") != NULL)
        t->ragged = -2;
    return read_shape(t, json, error);
}

/* Offsets are named by number and by name; the tensor itself may be there or not. Numbers count in
 * json_version 2.0 alone: before, a tensor without a number of its own has 0. */
static void link_offsets(facts_import_graph *g, int at, const json_t *json, bool numbered)
{
    const json_t *uid = json_object_get(json, "ragged_offset_uid");
    int found = facts_import_tensor_named(g, facts_import_word(json, "ragged_offset_name")),
        by_number = json_is_integer(uid) ? tensor_numbered(g, json_integer_value(uid)) : -1;
    if (by_number >= 0 && (numbered || (found < 0 && json_integer_value(uid) != 0)))
        found = by_number;
    if (found >= 0 && found != at)
        g->tensor[at].ragged = found;
}

/* json_version 1.0 has them by name, 2.0 one after another. */
static bool read_frontend_tensors(facts_import_graph *g, const json_t *tensors, const char *io,
                                  facts_error *error)
{
    const char *key;
    json_t *each;
    size_t i;
    int at = 0;
    json_object_foreach((json_t *)tensors, key, each)
    {
        if (!read_frontend_tensor(g, key, each, io, error))
            return false;
    }
    json_array_foreach(tensors, i, each)
    {
        if (!read_frontend_tensor(g, facts_import_word(each, "name"), each, io, error))
            return false;
    }
    json_object_foreach((json_t *)tensors, key, each) link_offsets(g, at++, each, false);
    json_array_foreach(tensors, i, each) link_offsets(g, at++, each, true);
    return true;
}

static bool read_frontend(facts_import_graph *g, const json_t *root, facts_error *error)
{
    const json_t *tensors = json_object_get(root, "tensors");
    const char *io = facts_import_word(json_object_get(root, "context"), "io_data_type");
    json_t *each;
    size_t i;
    if (!read_frontend_tensors(g, tensors, io, error))
        return false;
    json_array_foreach(json_object_get(root, "nodes"), i, each)
    {
        facts_import_operation *op = add_operation(g);
        if (op == NULL)
            return say(error, "more operations than an attention graph has", "");
        op->json = each;
        read_tag(op, facts_import_word(each, "tag"));
        if (!read_ports(g, op, json_object_get(each, "inputs")) ||
            !read_ports(g, op, json_object_get(each, "outputs")))
            return say(error, "an operation with more places than any has:", op->word);
    }
    return true;
}

/* "9.19.0" or 91900. */
static int version_of(const json_t *json)
{
    if (json_is_integer(json))
        return (int)(json_integer_value(json) & 0xffffff);
    return json_is_string(json) ? facts_version_number(facts_span_of(json_string_value(json)), 0)
                                : 0;
}

bool facts_import_read(facts_import_graph *out, json_t *root, facts_error *error)
{
    *out = (facts_import_graph){ .root = root };
    const json_t *graph = json_object_get(root, "operationGraph");
    bool ok;
    if (graph == NULL)
        graph = json_object_get(json_object_get(root, "engineConfig"), "operationGraph");
    if (json_is_object(graph)) {
        out->cudnn = version_of(json_object_get(root, "cudnnVersion"));
        ok = read_backend(out, graph, error);
    } else if (json_is_array(json_object_get(root, "nodes")) &&
               (json_is_object(json_object_get(root, "tensors")) ||
                json_is_array(json_object_get(root, "tensors")))) {
        out->frontend = true;
        out->cudnn = version_of(json_object_get(root, "cudnn_backend_version"));
        out->frontend_version = version_of(json_object_get(root, "cudnn_frontend_version"));
        ok = read_frontend(out, root, error);
    } else {
        ok = say(error, "the JSON is no graph: it has no operationGraph, and no nodes and tensors",
                 "");
    }
    if (!ok)
        facts_import_graph_free(out);
    return ok;
}

bool facts_import_number(const json_t *json, double *out)
{
    const char *digits = json_string_value(json);
    *out = json_number_value(json);
    if (digits == NULL || strlen(digits) != 8 || strspn(digits, "0123456789abcdefABCDEF") != 8)
        return json_is_number(json);
    uint32_t bits = (uint32_t)strtoul(digits, NULL, 16);
    float value;
    memcpy(&value, &bits, sizeof value);
    *out = (double)value;
    return isfinite(value);
}

bool facts_import_subgraph(facts_import_graph *out, const facts_import_operation *operation,
                           facts_error *error)
{
    error->text[0] = '\0';
    *out = (facts_import_graph){ 0 };
    const json_t *json = json_object_get(operation->json, "subgraph");
    if (json == NULL)
        json = json_object_get(operation->json, "subGraph");
    if (!json_is_object(json))
        return false;
    bool ok = read_backend(out, json, error);
    if (!ok)
        facts_import_graph_free(out);
    return ok;
}

void facts_import_graph_free(facts_import_graph *graph)
{
    json_decref(graph->root);
    free(graph->tensor);
    free(graph->operation);
    *graph = (facts_import_graph){ 0 };
}

int facts_import_port_of(const facts_import_operation *operation, const char *name)
{
    for (int i = 0; i < operation->port_count; i++)
        if (strcmp(operation->port[i].name, name) == 0)
            return operation->port[i].tensor;
    return -1;
}

int facts_import_written(const facts_import_operation *operation)
{
    int place = facts_import_port_of(operation, "Y");
    return place >= 0 ? place : facts_import_port_of(operation, "matC");
}

const facts_import_operation *facts_import_writer(const facts_import_graph *graph, int tensor)
{
    int at = tensor >= 0 ? graph->tensor[tensor].writer : -1;
    return at >= 0 ? &graph->operation[at] : NULL;
}

bool facts_import_is_scalar(const facts_import_tensor *tensor)
{
    return tensor->dim[0] == 1 && tensor->dim[1] == 1 && tensor->dim[2] == 1 && tensor->dim[3] == 1;
}
