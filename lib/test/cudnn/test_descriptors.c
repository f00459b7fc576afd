/* The graph as text has a word for everything. That it is the graph e2e_standalone shows: programs of
 * it make the plans of the library. */
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
