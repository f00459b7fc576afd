/* The table of keys for programs. */
#include <ctype.h>
#include <string.h>

#include "language.h"

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
