#include "attention.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words/case_text.h"

/* The fields of a place and their values (attention.h). */
#define AS_WORD(symbol, word) "|" word
#define AS_LONG_WORD(symbol, word) "|CUDNN_DATA_" word
static const struct field_row {
    facts_import_place place;
    const char *values, *names;
} rows[] = {
    { FACTS_IMPORT_CONTEXT, NULL, "io_data_type" },
    { FACTS_IMPORT_CONTEXT, "*", "name" },
    { FACTS_IMPORT_CONTEXT, "FLOAT|NOT_SET", "compute_data_type intermediate_data_type" },
    { FACTS_IMPORT_CONTEXT, "false", "is_dynamic_shape_enabled is_override_shape_enabled" },
    { FACTS_IMPORT_CONTEXT, "-1", "sm_count" },
    { FACTS_IMPORT_NODE, NULL, "inputs outputs" },
    { FACTS_IMPORT_NODE,
      "SDPA|SDPA_FWD|SDPA_BWD|SDPA_FP8_FWD|SDPA_FP8_BWD|SDPA_MXFP8_FWD|SDPA_MXFP8_BWD|ROPE|"
      "ROPE_BWD|ROPE_BACKWARD",
      "tag" },
    { FACTS_IMPORT_NODE, "*", "name mma_core_mode" }, /* the mode follows from the type of Q */
    { FACTS_IMPORT_NODE, "#number", "attn_scale_value dropout_probability rescale_threshold" },
    { FACTS_IMPORT_NODE, "#int",
      "left_bound right_bound sliding_window_length max_seq_len_kv max_total_seq_len_kv "
      "max_total_seq_len_q rope_dim" },
    { FACTS_IMPORT_NODE, "#bool",
      "alibi_mask causal_mask causal_mask_bottom_right generate_stats is_deterministic_algorithm "
      "is_inference is_mxfp8 padding_mask stats_use_log2 unfuse_fma" },
    { FACTS_IMPORT_NODE, "TOP_LEFT|BOTTOM_RIGHT", "diagonal_alignment" },
    { FACTS_IMPORT_NODE, "AUTO|COMPOSITE|UNIFIED", "implementation" },
    { FACTS_IMPORT_NODE, "FLOAT|HALF|NOT_SET", "compute_data_type" },
    { FACTS_IMPORT_TENSOR, "NOT_SET" FACTS_IMPORT_TYPE_LIST(AS_WORD), "data_type" },
    { FACTS_IMPORT_TENSOR, NULL, "dim stride ragged_offset_uid ragged_offset_name" },
    { FACTS_IMPORT_TENSOR, "*", "name uid uid_assigned" },
    { FACTS_IMPORT_TENSOR, "#number", "pass_by_value" },
    { FACTS_IMPORT_TENSOR, "#bool", "is_pass_by_value is_virtual" },
    { FACTS_IMPORT_TENSOR, "#int", "ragged_offset_multiplier" },
    { FACTS_IMPORT_TENSOR, "NONE|F8_128x4", "reordering_type" },
    { FACTS_IMPORT_GRAPH, NULL, "nodes tensors" },
    { FACTS_IMPORT_GRAPH, "*", "finalizeMode" },
    { FACTS_IMPORT_OPERATION, NULL,
      "operation pointwiseMode reductionOp subgraph subGraph softmax" },
    { FACTS_IMPORT_OPERATION, "#int",
      "axis rope_dim subgraphInputUid subgraphOutputUid maxTotalSeqLenQ maxTotalSeqLenKV" },
    { FACTS_IMPORT_OPERATION, "#number", "bernoulli_dist_probability dropoutProbability" },
    { FACTS_IMPORT_OPERATION, "#bool", "statsLog2 unfuseFma" },
    { FACTS_IMPORT_OPERATION, "1", "alpha1 alpha2 output_scale" },
    { FACTS_IMPORT_OPERATION, "false", "isDeterministic is_neg_scale" },
    { FACTS_IMPORT_OPERATION, "1x32|32x1", "block_size" },
    { FACTS_IMPORT_OPERATION, "CUDNN_DATA_FLOAT|CUDNN_DATA_INT32|CUDNN_DATA_BOOLEAN", "mathPrec" },
    { FACTS_IMPORT_OPERATION, "CUDNN_POINTWISE_CMP_GE|CUDNN_POINTWISE_CMP_GT", "comparisonMode" },
    { FACTS_IMPORT_OPERATION, "CUDNN_RNG_DISTRIBUTION_BERNOULLI", "distribution" },
    { FACTS_IMPORT_OPERATION, "CUDNN_RESHAPE_VIEW_ONLY", "mode" },
    { FACTS_IMPORT_STORED, FACTS_IMPORT_TYPE_LIST(AS_LONG_WORD), "dataType" },
    { FACTS_IMPORT_STORED, NULL, "name dim stride isRagged" },
    { FACTS_IMPORT_STORED, "#bool", "isVirtual isByValue" },
    { FACTS_IMPORT_STORED, "#int", "raggedOffsetMultiplier" },
    { FACTS_IMPORT_STORED, "CUDNN_TENSOR_REORDERING_NONE|CUDNN_TENSOR_REORDERING_F8_128x4",
      "reordering" },
    { FACTS_IMPORT_STORED, "1", "vectCount" },
    { FACTS_IMPORT_STORED, "-1", "vectDim" },
    { FACTS_IMPORT_STORED, "16", "ptrAlignment" },
};

#undef AS_WORD
#undef AS_LONG_WORD

/* The arguments of operations beside the roles of attention.h. The scales of 8-bit types, their
 * largest values and the offset of dropout are there whenever the types or dropout are. */
static const char ports[] =
    "X|B|T|Y|matA|matB|matC|mOverride|nOverride|kOverride|seedTensor|offset|container|"
    "pageTable|sequence|freqs|xDesc|scaleDesc|shiftRightBoundDesc|leftBoundDesc|seqLenQDesc|"
    "seqLenKVDesc|cuSeqLenQDesc|cuSeqLenKVDesc|statsDesc|maxDesc|sumExpDesc|sinkDesc|DX|DY|"
    "COS|SIN|Offset|dropoutOffset|Descale_K|Descale_V|Descale_S|Descale_O|Descale_dO|"
    "Descale_dP|Scale_S|Scale_O|Scale_dP|Scale_dQ|Scale_dK|Scale_dV|Amax_S|Amax_O|Amax_dP|"
    "Amax_dQ|Amax_dK|Amax_dV|Dropout_scale|Dropout_scale_inv|Q_T|K_T|dO_T|dO_f16|Descale_Q_T|"
    "Descale_K_T|Descale_dO_T";

static bool listed(const char *list, char between, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; length > 0 && (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == between) && (at[length] == between || at[length] == '\0'))
            return true;
    return false;
}

static const struct field_row *row_of(facts_import_place place, const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].place == place && listed(rows[i].names, ' ', name))
            return &rows[i];
    return NULL;
}

const char *facts_import_field_values(facts_import_place place, const char *name)
{
    const struct field_row *row = row_of(place, name);
    return row != NULL ? row->values : NULL;
}

static bool is_port(const char *name)
{
#define AS_WORDS(symbol, frontend, forward, backward) "|" frontend "|" forward "|" backward
    return listed(ports, '|', name) || listed(FACTS_IMPORT_ROLE_LIST(AS_WORDS), '|', name);
#undef AS_WORDS
}

static bool accepts(const char *values, const json_t *value)
{
    char text[64];
    double number;
    if (values == NULL || values[0] == '*')
        return true;
    if (strcmp(values, "#bool") == 0)
        return json_is_boolean(value);
    if (strcmp(values, "#int") == 0)
        return json_is_integer(value);
    if (strcmp(values, "#number") == 0)
        return facts_import_number(value, &number);
    if (json_is_false(value))
        snprintf(text, sizeof text, "false");
    else if (json_is_string(value))
        snprintf(text, sizeof text, "%s", json_string_value(value));
    else if (json_is_number(value))
        snprintf(text, sizeof text, "%g", json_number_value(value));
    else if (json_array_size(value) == 2)
        snprintf(text, sizeof text, "%gx%g", json_number_value(json_array_get(value, 0)),
                 json_number_value(json_array_get(value, 1)));
    else
        snprintf(text, sizeof text, "%s", json_is_boolean(value) ? "true" : "?");
    return listed(values, '|', text);
}

/* ---- notes ---- */

void facts_import_note(facts_import_notes *notes, const char *format, ...)
{
    char text[FACTS_IMPORT_NOTE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (int i = 0; i < notes->count; i++)
        if (strcmp(notes->text[i], text) == 0)
            return;
    if (notes->count < FACTS_IMPORT_NOTES)
        memcpy(notes->text[notes->count++], text, sizeof text);
    else
        snprintf(notes->text[FACTS_IMPORT_NOTES - 1], FACTS_IMPORT_NOTE,
                 "not understood: more than %d fields", FACTS_IMPORT_NOTES - 1);
}

static void not_understood(facts_import_notes *notes, const char *name, const json_t *value,
                           const char *of)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII);
    char quote[2][FACTS_QUOTE_MAX];
    facts_import_note(notes, "not understood: %s %.50s of %s",
                      facts_quote(quote[0], facts_span_of(name)), text != NULL ? text : "?",
                      facts_quote(quote[1], facts_span_of(of)));
    free(text);
}

/* ---- one object after another ---- */

typedef struct check {
    facts_import_notes *notes;
    const facts_import_graph *graph;
} check;

static bool names_a_tensor(const facts_import_graph *graph, const json_t *value)
{
    const char *name = json_string_value(value);
    if (name != NULL)
        return facts_import_tensor_named(graph, name) >= 0;
    for (int i = 0; json_is_integer(value) && i < graph->tensor_count; i++)
        if (graph->tensor[i].uid == json_integer_value(value))
            return true;
    return false;
}

static void check_ports(const check *c, const json_t *object, const char *of)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (!is_port(name) || !names_a_tensor(c->graph, value))
            not_understood(c->notes, name, value, of);
    }
}

static void check_object(const check *c, facts_import_place place, const json_t *object,
                         const char *of)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        const struct field_row *row = row_of(place, name);
        bool port = row == NULL && place == FACTS_IMPORT_OPERATION && is_port(name);
        if (!json_is_null(value) && (port          ? !names_a_tensor(c->graph, value)
                                     : row == NULL ? true
                                                   : !accepts(row->values, value)))
            not_understood(c->notes, name, value, of);
    }
}

static void check_stored(const check *c, const json_t *tensor, int depth)
{
    check_object(c, FACTS_IMPORT_STORED, tensor, facts_import_word(tensor, "name"));
    const json_t *offsets = json_object_get(tensor, "isRagged");
    if (depth == 0 && json_array_size(offsets) > 0)
        check_stored(c, json_array_get(offsets, 0), 1);
}

static void check_backend(const check *c, const json_t *graph)
{
    size_t i;
    json_t *each;
    check_object(c, FACTS_IMPORT_GRAPH, graph, "the graph");
    json_array_foreach(json_object_get(graph, "tensors"), i, each) check_stored(c, each, 0);
    json_array_foreach(json_object_get(graph, "nodes"), i, each)
    {
        const json_t *softmax = json_object_get(each, "softmax");
        check_object(c, FACTS_IMPORT_OPERATION, each, facts_import_word(each, "operation"));
        if (json_is_object(softmax))
            check_object(c, FACTS_IMPORT_OPERATION, softmax, "SOFTMAX");
    }
    for (int op = 0; op < c->graph->operation_count; op++) {
        facts_import_graph inside;
        facts_error error;
        if (!facts_import_subgraph(&inside, &c->graph->operation[op], &error))
            continue;
        facts_import_fields(c->notes, &inside);
        facts_import_graph_free(&inside);
    }
}

/* Offsets are named twice: do number and name mean one tensor? Before json_version 2.0, 0 is the
 * number of a tensor without one. */
static void check_offsets(const check *c, const json_t *tensor, const char *of)
{
    const json_t *number = json_object_get(tensor, "ragged_offset_uid"),
                 *name = json_object_get(tensor, "ragged_offset_name");
    const int named =
        facts_import_tensor_named(c->graph, facts_import_word(tensor, "ragged_offset_name"));
    if (json_is_string(name) && json_is_integer(number) && json_integer_value(number) != 0 &&
        (named < 0 ? names_a_tensor(c->graph, number)
                   : c->graph->tensor[named].uid != json_integer_value(number)))
        not_understood(c->notes, "ragged_offset_name", name, of);
}

static void check_frontend(const check *c, const json_t *root)
{
    size_t i;
    const char *name;
    json_t *each;
    const json_t *tensors = json_object_get(root, "tensors");
    check_object(c, FACTS_IMPORT_CONTEXT, json_object_get(root, "context"), "the graph");
    json_array_foreach(json_object_get(root, "nodes"), i, each)
    {
        check_object(c, FACTS_IMPORT_NODE, each, facts_import_word(each, "tag"));
        check_ports(c, json_object_get(each, "inputs"), facts_import_word(each, "tag"));
        check_ports(c, json_object_get(each, "outputs"), facts_import_word(each, "tag"));
    }
    json_object_foreach((json_t *)tensors, name, each)
    {
        check_object(c, FACTS_IMPORT_TENSOR, each, name);
        check_offsets(c, each, name);
    }
    json_array_foreach(tensors, i, each)
    {
        check_object(c, FACTS_IMPORT_TENSOR, each, facts_import_word(each, "name"));
        check_offsets(c, each, facts_import_word(each, "name"));
    }
}

void facts_import_fields(facts_import_notes *notes, const facts_import_graph *graph)
{
    const check c = { notes, graph };
    if (graph->frontend)
        check_frontend(&c, graph->root);
    else
        check_backend(&c, graph->json);
}
