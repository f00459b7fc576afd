#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "words/case_text.h"

const char *facts_known_text(const facts_known *known, const char *key)
{
    const char *text = json_string_value(json_object_get(known->said, key));
    return text ? text : "";
}

bool facts_known_is(const facts_known *known, const char *key)
{
    return json_is_true(json_object_get(known->said, key));
}

bool facts_known_names(const facts_known *known, const char *verdict)
{
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(known->said, "verdict"), i, word)
    {
        if (strcmp(json_string_value(word), verdict) == 0)
            return true;
    }
    return false;
}

void facts_known_verdicts(facts_text *out, const facts_known *known)
{
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(known->said, "verdict"), i, word)
    {
        facts_text_puts(out, i ? "/" : "");
        facts_text_puts(out, json_string_value(word));
    }
}

static bool compile(facts_predicate **out, const facts_knowledge *list, const json_t *said,
                    const char *key, facts_error *error)
{
    const char *text = json_string_value(json_object_get(said, key));
    return !text || !*text || facts_predicate_parse(list->language, out, text, error);
}

static bool add_expectations(facts_knowledge *list, facts_error *error)
{
    size_t i;
    json_t *one;
    const json_t *said = list->at[list->count - 1].said;
    json_array_foreach(json_object_get(said, "expect"), i, one)
    {
        list->expected = facts_grow(list->expected, list->expected_count, sizeof *list->expected);
        facts_expectation *at = &list->expected[list->expected_count++];
        *at = (facts_expectation){ .known = list->count - 1,
                                   .sometimes = json_is_true(json_object_get(one, "sometimes")) };
        if (!compile(&at->where, list, one, "where", error))
            return false;
    }
    return true;
}

static bool has_verdicts(const json_t *said)
{
    size_t i;
    json_t *word;
    const json_t *verdicts = json_object_get(said, "verdict");
    json_array_foreach(verdicts, i, word)
    {
        if (!json_is_string(word))
            return false;
    }
    return json_array_size(verdicts) > 0;
}

static bool add(void *knowledge, json_t *said, facts_error *error)
{
    facts_knowledge *list = knowledge;
    list->at = facts_grow(list->at, list->count, sizeof *list->at);
    facts_known *at = &list->at[list->count++];
    *at = (facts_known){ .said = said };
    if (!has_verdicts(said))
        return facts_fail_at(error, "known.jsonl", 1, 1, "no verdict");
    return compile(&at->problem, list, said, "problem", error) &&
           compile(&at->data, list, said, "data", error) && add_expectations(list, error);
}

bool facts_knowledge_lines(const char *path, bool (*take)(void *list, json_t *said, facts_error *),
                           void *list, facts_error *error)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    bool ok = true;
    if (!file)
        return errno == ENOENT || errno == ENOTDIR ||
               facts_fail_at(error, path, 1, 1, "%s", strerror(errno));
    for (int line = 1; ok && getline(&text, &room, file) > 0; line++) {
        json_error_t wrong;
        json_t *said = json_loads(text, 0, &wrong);
        ok = said ? take(list, said, error)
                  : facts_fail_at(error, path, line, wrong.column, "%s", wrong.text);
    }
    free(text);
    fclose(file);
    return ok;
}

bool facts_knowledge_load(facts_knowledge *out, const facts_language *language, const char *path,
                          facts_error *error)
{
    *out = (facts_knowledge){ .language = language };
    return facts_knowledge_lines(path, add, out, error);
}

void facts_knowledge_free(facts_knowledge *knowledge)
{
    for (size_t i = 0; i < knowledge->count; i++) {
        facts_predicate_destroy(knowledge->at[i].problem);
        facts_predicate_destroy(knowledge->at[i].data);
        json_decref(knowledge->at[i].said);
    }
    for (size_t i = 0; i < knowledge->expected_count; i++)
        facts_predicate_destroy(knowledge->expected[i].where);
    free(knowledge->expected);
    free(knowledge->at);
    *knowledge = (facts_knowledge){ 0 };
}
