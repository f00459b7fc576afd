#include "language.h"

#include <ctype.h>
#include <string.h>

facts_key facts_key_find(const facts_language *language, const char *word, size_t length)
{
    for (facts_key key = 0; key < language->count; key++) {
        if (facts_span_is((facts_span){ word, length }, language->keys[key].word))
            return key;
    }
    return FACTS_NO_KEY;
}

bool facts_key_is_number(const facts_key_row *row)
{
    facts_span rest = facts_span_of(row->allowed), template;
    while ((template = facts_span_word(&rest)).length > 0) {
        if (template.length == 1 && strchr("NMXP", template.at[0]) != NULL)
            return row->form == FACTS_FORM_WORD && row->read == NULL;
    }
    return false;
}

int facts_key_allowed_letters(const facts_key_row *row)
{
    return (int)facts_span_trim(facts_span_of(row->allowed)).length;
}

const char *facts_key_nearest(const facts_language *language, const char *word, size_t length)
{
    facts_nearest nearest = facts_nearest_start((facts_span){ word, length });
    for (facts_key key = 0; key < language->count; key++)
        facts_nearest_offer(&nearest, language->keys[key].word, strlen(language->keys[key].word));
    return nearest.best;
}

void facts_keys_help(const facts_language *language, facts_key which, FILE *out)
{
    for (facts_key key = 0; key < language->count; key++) {
        const facts_key_row *row = &language->keys[key];
        const char *set = row->form == FACTS_FORM_SET ? " (joined by +)" : "";
        if (which == FACTS_NO_KEY || which == key)
            fprintf(out, "  %-14s %s\n  %-14s   %.*s%s%s; default %s\n", row->word, row->help, "",
                    facts_key_allowed_letters(row), row->allowed, set, row->also ? row->also : "",
                    row->otherwise);
    }
}

/* The table of keys for programs. */

/* The templates that stand for themselves. */
static json_t *values(const facts_key_row *row)
{
    json_t *out = json_array();
    facts_span rest = facts_span_of(row->allowed), word;
    while ((word = facts_span_word(&rest)).length > 0) {
        size_t i = 0;
        while (i < word.length && !isupper((unsigned char)word.at[i]))
            i++;
        if (i == word.length)
            json_array_append_new(out, json_stringn(word.at, word.length));
    }
    return out;
}

/* The words behind the dot: {"q": 0, "kv": 1} of s. */
static json_t *parts(const facts_language *language, facts_key key)
{
    json_t *out = json_object();
    for (size_t i = 0; i < language->part_count; i++)
        if (language->parts[i].key == key)
            json_object_set_new(out, strchr(language->parts[i].word, '.') + 1,
                                json_integer(language->parts[i].index));
    return out;
}

static void add_defaults(json_t *row, const facts_language *language, const facts_key_default *of)
{
    json_t *when = json_array();
    for (; of && of->other != FACTS_NO_KEY; of++) {
        const char *other = language->keys[of->other].word;
        if (of->otherwise)
            json_array_append_new(when, json_pack("[s, s, s]", other, of->when, of->otherwise));
        else
            json_object_set_new(row, "follows", json_string(other));
    }
    if (json_array_size(when) > 0)
        json_object_set(row, "when", when);
    json_decref(when);
}

static void add(json_t *row, const char *member, json_t *list)
{
    if (json_array_size(list) + json_object_size(list) > 0)
        json_object_set(row, member, list);
    json_decref(list);
}

json_t *facts_keys_json(const facts_language *language)
{
    json_t *out = json_array();
    for (facts_key key = 0; key < language->count; key++) {
        const facts_key_row *row = &language->keys[key];
        json_t *one = json_pack("{s:s, s:s}", "key", row->word, "default", row->otherwise);
        add(one, "values", values(row));
        add(one, "parts", parts(language, key));
        if (facts_key_is_number(row))
            json_object_set_new(one, "number", json_true());
        add_defaults(one, language, row->defaults);
        json_array_append_new(out, one);
    }
    return out;
}
