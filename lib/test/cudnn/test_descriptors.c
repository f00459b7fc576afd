/* The graph as text: what the builders say to cuDNN, word for word. */
#include "fattn/descriptors.h"

#include <jansson.h>

#include "graph_recorder.h"

static json_t *text_of(fattn_problem p, int version, int sm)
{
    char *text;
    cr_assert_eq(fattn_descriptors(&text, &p, version, sm), FATTN_OK, "%s", fattn_last_error());
    json_t *out = json_loads(text, 0, NULL);
    cr_assert_not_null(out);
    free(text);
    return out;
}

static const char *string_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *descriptor(const json_t *text, size_t i)
{
    return json_array_get(json_object_get(text, "descriptors"), i);
}

/* The first value of an attribute; NULL: it is not set. */
static json_t *value(const json_t *one, const char *name)
{
    size_t i;
    json_t *attribute;
    json_array_foreach(json_object_get(one, "attributes"), i,
                       attribute) if (strcmp(string_of(attribute, "name"), name) ==
                                      0) return json_array_get(json_object_get(attribute, "values"),
                                                               0);
    return NULL;
}

/* Every descriptor that the recorder of the other tests sees, in the same order, with the same
 * types, extents and kinds. */
static void expect_same(fattn_problem p, int version)
{
    json_t *text = text_of(p, version, 90);
    cr_assert_eq(build(version, p), FATTN_OK, "%s", graph.text);
    cr_expect_eq(json_array_size(json_object_get(text, "descriptors")), made_count);
    cr_expect_eq(json_array_size(json_object_get(text, "bindings")), graph.binding_count);
    cr_expect_eq(json_integer_value(json_object_get(text, "scratch_bytes")), graph.scratch_bytes);
    for (int i = 0; i < made_count; i++) {
        const json_t *one = descriptor(text, (size_t)i);
        cr_expect_str_not_empty(string_of(one, "type"));
        if (made[i].type != DNN_BACKEND_TENSOR_DESCRIPTOR)
            continue;
        cr_expect_eq(json_is_true(value(one, "CUDNN_ATTR_TENSOR_IS_VIRTUAL")), made[i].is_virtual);
        cr_expect_eq(json_integer_value(value(one, "CUDNN_ATTR_TENSOR_DIMENSIONS")),
                     made[i].dim[0]);
        cr_expect_eq(json_integer_value(value(one, "CUDNN_ATTR_TENSOR_STRIDES")),
                     made[i].strides[0]);
    }
    fattn__graph_release(&graph);
    json_decref(text);
}

/* No word is missing: each attribute has its name, its type and its values. */
static void expect_words(const json_t *text)
{
    size_t i, j, k;
    json_t *one, *attribute, *item;
    json_array_foreach(json_object_get(text, "descriptors"), i, one)
    {
        json_array_foreach(json_object_get(one, "attributes"), j, attribute)
        {
            cr_expect_eq(strncmp(string_of(attribute, "name"), "CUDNN_ATTR_", 11), 0);
            cr_expect_eq(strncmp(string_of(attribute, "type"), "CUDNN_TYPE_", 11), 0);
            cr_expect_gt(json_array_size(json_object_get(attribute, "values")), 0);
            json_array_foreach(json_object_get(attribute, "values"), k,
                               item) if (json_is_string(item))
                cr_expect_eq(strncmp(json_string_value(item), "CUDNN_", 6), 0, "%s: %s",
                             string_of(attribute, "name"), json_string_value(item));
        }
    }
}

Test(descriptors, are_those_of_the_graph)
{
    expect_same(PROBLEM(.has_right = 1, .padding = 1), 91900);
    expect_same(PROBLEM(.has_right = 1, .padding = 1), 92700);
    expect_same(PROBLEM(.pass = FATTN_BACKWARD, .has_bias = 1, .dbias = 1, .alibi = 1), 92700);
    expect_same(PROBLEM(.dropout = 0.25, .outputs = FATTN_WANT_STATS | FATTN_WANT_RNG_DUMP), 92700);
    expect_same(PROBLEM(.dtype = FATTN_E4M3), 92700);
    expect_same(PROBLEM(.pass = FATTN_BACKWARD, .dtype = FATTN_E4M3), 92700);
}

Test(descriptors, have_a_word_for_everything)
{
    const fattn_problem problems[] = {
        PROBLEM(.padding = 1, .has_left = 1, .window_left = 7, .has_right = 1,
                .align = FATTN_BOTTOM_RIGHT),
        PROBLEM(.impl = FATTN_IMPL_UNIFIED, .has_right = 1, .sink = 1,
                .outputs = FATTN_WANT_STATS | FATTN_WANT_MAX),
        PROBLEM(.impl = FATTN_IMPL_UNIFIED, .dropout = 0.5),
        PROBLEM(.impl = FATTN_IMPL_UNIFIED, .rope = 1),
        PROBLEM(.pass = FATTN_BACKWARD, .impl = FATTN_IMPL_UNIFIED, .has_right = 1),
        PROBLEM(.spelling = FATTN_SPELLING_SINGLE, .has_right = 1,
                .outputs = FATTN_WANT_STATS_LOG2),
        PROBLEM(.padding = 1, .page_size_k = 16, .page_size_v = 16, .pages_k = 16, .pages_v = 16),
        PROBLEM(.dtype = FATTN_MXE4M3),
        PROBLEM(.pass = FATTN_BACKWARD, .dtype = FATTN_MXE4M3),
        PROBLEM(.pass = FATTN_BACKWARD, .dropout = 0.5, .sink = 1, .dsink = 1),
        PROBLEM(.padding = 1, .ragged_bits = 32)
    };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        json_t *text = text_of(problems[i], 92800, 100);
        expect_words(text);
        json_decref(text);
    }
}

Test(descriptors, name_the_graph_slots_values_scratch_and_sums)
{
    json_t *text = text_of(PROBLEM(.pass = FATTN_BACKWARD, .k_strides = { 0, 64, 512, 1 },
                                   .dk_strides = { 0, 64, 512, 1 }),
                           92700, 90);
    size_t i;
    int found = 0;
    json_t *one;
    json_array_foreach(json_object_get(text, "bindings"), i, one)
    {
        const char *slot = string_of(one, "slot");
        found |= strcmp(slot, "q") == 0 ? 1 : 0;
        found |= strcmp(slot, "value") == 0 && json_object_get(one, "bits") ? 2 : 0;
        found |= strcmp(slot, "scratch") == 0 && json_object_get(one, "offset") ? 4 : 0;
    }
    cr_expect_eq(found, 7);
    cr_expect_str_eq(string_of(json_array_get(json_object_get(text, "sums"), 0), "slot"), "dk");
    const json_int_t last = json_integer_value(json_object_get(text, "operation_graph"));
    one = descriptor(text, (size_t)last);
    cr_expect_str_eq(string_of(one, "type"), "CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR");
    cr_expect_null(value(one, "CUDNN_ATTR_OPERATIONGRAPH_HANDLE"));
    cr_expect_lt(json_integer_value(value(one, "CUDNN_ATTR_OPERATIONGRAPH_OPS")), last);
    json_decref(text);
}

Test(descriptors, of_what_is_not_spelled_there_are_none)
{
    char *text = (char *)"";
    fattn_problem p = PROBLEM(.pass = FATTN_BACKWARD, .impl = FATTN_IMPL_UNIFIED, .rope = 1);
    cr_expect_eq(fattn_descriptors(&text, &p, 92800, 90), FATTN_UNSUPPORTED);
    cr_expect_null(text);
    cr_expect(strstr(fattn_last_error(), "two graphs") != NULL);
    p = PROBLEM(.spelling = FATTN_SPELLING_SINGLE);
    cr_expect_eq(fattn_descriptors(&text, &p, 91900, 90), FATTN_UNSUPPORTED);
    cr_expect_null(text);
    p = PROBLEM(.heads_k = 3);
    cr_expect_eq(fattn_descriptors(&text, &p, 92700, 90), FATTN_BAD_PROBLEM);
}
