/* Nothing of a log is lost: a field that is taken away or changed changes the case, or is
 * reported, or no case depends on it. */
#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "import/attention.h"
#include "import/import.h"
#include "night.h"

typedef struct trial {
    json_t *root;
    char *before; /* what import makes of the log as it is */
    const char *file;
    const json_t *nodes;
    bool frontend;
    bool names; /* a name matters: operations use it */
    size_t mutants, lost;
} trial;

/* What import makes of a graph: cases, notes, and what it could not read. */
static char *outcome(const json_t *root)
{
    char *text = json_dumps(root, 0), *out = NULL;
    size_t length, total;
    const char *unread;
    FILE *stream = open_memstream(&out, &length);
    facts_import *m = facts_import_create();
    facts_import_bytes(m, "log", text, strlen(text));
    for (size_t i = 0; i < facts_import_count(m); i++) {
        const facts_imported *p = facts_import_at(m, i);
        fprintf(stream, "%s\n", p->name);
        for (int n = 0; n < p->notes.count; n++)
            fprintf(stream, "%s\n", p->notes.text[n]);
        fprintf(stream, "%d\n", p->notes.scale_missing);
    }
    for (size_t i = 0; (unread = facts_import_unread(m, i, &total)); i++)
        fprintf(stream, "%s\n", unread);
    fclose(stream);
    facts_import_destroy(m);
    free(text);
    return out;
}

static void judge(trial *t, const char *what, const char *name, const char *of)
{
    if (t->mutants++ % (size_t)one_of() != 0)
        return;
    char *after = outcome(t->root);
    if (strcmp(after, t->before) == 0) {
        t->lost++;
        cr_expect_fail("%s: %s %s of %s is lost: %s", t->file, name, what, of, after);
    }
    free(after);
}

/* Another value of the same kind; for null, one of the kind that import reads. */
static json_t *other(const json_t *value, const char *values)
{
    char text[200];
    if (json_is_null(value))
        return values == NULL || values[0] != '#' ? json_string("x")
               : strcmp(values, "#bool") == 0     ? json_true()
                                                  : json_integer(2);
    if (json_is_boolean(value))
        return json_boolean(!json_is_true(value));
    if (json_is_integer(value))
        return json_integer(json_integer_value(value) + 1);
    if (json_is_real(value))
        return json_real(json_real_value(value) / 2);
    const char *was = json_string_value(value);
    double number;
    if (facts_import_number(value, &number)) /* the bits of a float */
        snprintf(text, sizeof text, "%s", strcmp(was, "3F000000") ? "3F000000" : "3E000000");
    else
        snprintf(text, sizeof text, "%sx", was);
    return json_string(text);
}

/* Is a tensor of cuDNN written and read, so that where it lies is not the caller's? Does the
 * frontend's node write it, so that its strides follow? Is it a pool of pages? */
static bool is_own(const trial *t, const json_t *nodes, const char *name)
{
    size_t i;
    const char *key;
    json_t *node, *value;
    bool written = false, read = false;
    json_array_foreach(nodes, i, node)
    {
        json_object_foreach(node, key, value)
        {
            const char *is = json_string_value(value);
            bool same = is && strcmp(is, name) == 0;
            written |= same && (strcmp(key, "Y") == 0 || strcmp(key, "matC") == 0);
            read |= same && strcmp(key, "Y") != 0 && strcmp(key, "matC") != 0;
        }
        json_object_foreach(json_object_get(node, "outputs"), key, value) written |=
            json_is_string(value) && strcmp(json_string_value(value), name) == 0;
    }
    return written && (read || t->frontend);
}

static bool is_pool(const trial *t, const char *name)
{
    const json_t *inputs = json_object_get(json_array_get(t->nodes, 0), "inputs");
    const char *k = json_string_value(json_object_get(inputs, "K")),
               *v = json_string_value(json_object_get(inputs, "V"));
    return strstr(t->before, " paged=") &&
           (!k || strcmp(k, name) == 0 || strcmp(v, name) == 0); /* by number: any */
}

/* A causal mask is said twice by the frontends that have causal_mask and bounds. */
static bool says_causal(const json_t *object)
{
    const json_t *right = json_object_get(object, "right_bound");
    return json_is_true(json_object_get(object, "causal_mask")) && json_is_integer(right) &&
           json_integer_value(right) == 0;
}

/* One number of sizes and strides after the other. A stride counts where there are several elements
 * in a tensor that is in memory. */
static void mutate_numbers(trial *t, const json_t *tensor, const char *key, const char *of)
{
    json_t *list = json_object_get(tensor, key), *dims = json_object_get(tensor, "dim");
    bool stride = strcmp(key, "stride") == 0, pool = is_pool(t, of),
         ragged =
             json_object_get(tensor, "isRagged") || json_object_get(tensor, "ragged_offset_uid"),
         within = json_is_true(json_object_get(tensor, "isVirtual")) ||
                  (!t->frontend && is_own(t, t->nodes, of));
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t was = json_integer_value(json_array_get(list, i)),
                   dim = json_integer_value(json_array_get(dims, i));
        if ((stride && (dim == 1 || within || (i == 0 && ragged))) || (!stride && i == 0 && pool))
            continue;
        json_array_set_new(list, i, json_integer(was + 1));
        judge(t, stride ? "+1 of a stride" : "+1 of a size", key, of);
        json_array_set_new(list, i, json_integer(was));
    }
}

/* The value means what its absence means, or another field says the same. */
static bool is_default(const char *name, const json_t *value, const char *values)
{
    static const char twice[] =
        " generate_stats is_inference padding_mask ragged_offset_uid ragged_offset_name "
        "subgraphInputUid subgraphOutputUid ";
    return strstr(twice, name) || json_is_null(value) || json_is_false(value) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (values != NULL && values[0] != '#');
}

static void mutate(trial *t, facts_import_place place, json_t *object, const char *of)
{
    json_t *copy = json_copy(object), *value;
    const char *name;
    json_object_foreach(copy, name, value)
    {
        const char *values = facts_import_field_values(place, name);
        bool own = is_own(t, t->nodes, of),
             causal = says_causal(copy) &&
                      (strcmp(name, "causal_mask") == 0 || strcmp(name, "right_bound") == 0);
        const char *offsets = json_string_value(json_object_get(copy, "ragged_offset_name"));
        const json_t *tensors = json_object_get(t->root, "tensors");
        bool unlogged = offsets && json_is_object(tensors) && !json_object_get(tensors, offsets);
        if ((values != NULL && values[0] == '*') || (unlogged && strstr(name, "ragged_offset")) ||
            (own && strcmp(name, "isRagged") == 0) ||
            (causal && strcmp(name, "causal_mask") == 0) ||
            (strcmp(name, "name") == 0 && !t->names))
            continue;
        if (!is_default(name, value, values) && !causal && !(own && strcmp(name, "stride") == 0)) {
            json_object_del(object, name);
            judge(t, "removed", name, of);
            json_object_set(object, name, value);
        }
        if (json_is_array(value) && json_is_integer(json_array_get(value, 0)))
            mutate_numbers(t, object, name, of);
        else if (!json_is_object(value) && !json_is_array(value)) {
            json_object_set_new(object, name, other(value, values));
            judge(t, "changed", name, of);
            json_object_set(object, name, value);
        }
    }
    json_object_set_new(object, "a_new_field", json_true());
    judge(t, "added", "a_new_field", of);
    json_object_del(object, "a_new_field");
    json_decref(copy);
}

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "?";
}

static void mutate_backend(trial *t, const json_t *graph)
{
    t->nodes = json_object_get(graph, "nodes");
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(graph, "tensors"), i, each)
    {
        json_t *offsets = json_array_get(json_object_get(each, "isRagged"), 0);
        t->names = true;
        mutate(t, FACTS_IMPORT_STORED, each, word(each, "name"));
        t->names = false;
        if (offsets)
            mutate(t, FACTS_IMPORT_STORED, offsets, word(offsets, "name"));
    }
    json_array_foreach(json_object_get(graph, "nodes"), i, each)
    {
        mutate(t, FACTS_IMPORT_OPERATION, each, word(each, "operation"));
        if (json_is_object(json_object_get(each, "subgraph")))
            mutate_backend(t, json_object_get(each, "subgraph"));
    }
}

static void mutate_frontend(trial *t, const json_t *root)
{
    size_t i;
    const char *name;
    json_t *each;
    json_t *tensors = json_object_get(root, "tensors");
    t->nodes = json_object_get(root, "nodes");
    t->frontend = true;
    mutate(t, FACTS_IMPORT_CONTEXT, json_object_get(root, "context"), "the context");
    json_array_foreach(json_object_get(root, "nodes"), i, each)
    {
        mutate(t, FACTS_IMPORT_NODE, each, word(each, "tag"));
        mutate(t, FACTS_IMPORT_NODE, json_object_get(each, "inputs"), "inputs");
        mutate(t, FACTS_IMPORT_NODE, json_object_get(each, "outputs"), "outputs");
    }
    json_object_foreach(tensors, name, each) mutate(t, FACTS_IMPORT_TENSOR, each, name);
    json_array_foreach(tensors, i, each) mutate(t, FACTS_IMPORT_TENSOR, each, word(each, "name"));
}

static size_t mutate_text(const char *file, const char *text)
{
    const char *at = strchr(text, '{'), *end = strrchr(text, '}');
    json_error_t error;
    trial t = { .file = file };
    if (!at || !end || !(t.root = json_loadb(at, (size_t)(end - at) + 1, 0, &error)))
        return 0;
    t.before = outcome(t.root);
    const json_t *graph = json_object_get(t.root, "operationGraph");
    if (!graph)
        graph = json_object_get(json_object_get(t.root, "engineConfig"), "operationGraph");
    if (strncmp(t.before, "pass=", 5) != 0)
        ; /* import reads no case from it */
    else if (graph)
        mutate_backend(&t, graph);
    else if (json_object_get(t.root, "nodes"))
        mutate_frontend(&t, t.root);
    json_decref(t.root);
    free(t.before);
    return t.mutants;
}

Test(import_fields, a_field_that_is_removed_changed_or_new_is_never_lost, .timeout = 300)
{
    char pattern[4096];
    glob_t files;
    size_t mutants = 0;
    snprintf(pattern, sizeof pattern, "%s/harness/test/data/import/*", getenv("FACTS_SOURCE"));
    cr_assert_eq(glob(pattern, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *line = NULL;
        size_t room = 0;
        bool whole = strstr(files.gl_pathv[i], ".json") != NULL;
        FILE *file = fopen(files.gl_pathv[i], "r");
        cr_assert_not_null(file);
        while (getdelim(&line, &room, whole ? '\0' : '\n', file) > 0)
            mutants += mutate_text(strrchr(files.gl_pathv[i], '/') + 1, line);
        free(line);
        fclose(file);
    }
    globfree(&files);
    cr_expect_gt(mutants, 3000, "%zu", mutants);
}
