#include "token.h"

#include <string.h>

static bool unknown_key(const facts_language *language, facts_span word, facts_span whole,
                        facts_place place, int column, facts_error *error)
{
    char quote[FACTS_QUOTE_MAX];
    if (word.length == whole.length)
        return facts_fail_at(error, place.where, place.line, column, "%s is not key=value",
                             facts_quote(quote, whole));
    const char *near = facts_key_nearest(language, word.at, word.length);
    return facts_fail_at(error, place.where, place.line, column, "%s is not a key%s%s%s",
                         facts_quote(quote, word), near != NULL ? "; did you mean " : "",
                         near != NULL ? near : "; `facts keys` lists them",
                         near != NULL ? "?" : "");
}

bool facts_tokens_read(const facts_language *language, facts_span text, facts_place place,
                       facts_token *out, size_t *count, facts_error *error)
{
    bool seen[FACTS_KEYS_MOST] = { false };
    *count = 0;
    for (size_t i = 0; i < text.length;) {
        if (facts_is_blank(text.at[i])) {
            i++;
            continue;
        }
        size_t end = i;
        while (end < text.length && !facts_is_blank(text.at[end]))
            end++;
        facts_span whole = { text.at + i, end - i };
        facts_span value = whole;
        facts_span word = facts_span_cut(&value, '=');
        int column = place.column + (int)i;
        facts_key key = word.length < whole.length ? facts_key_find(language, word.at, word.length)
                                                   : FACTS_NO_KEY;
        if (key == FACTS_NO_KEY)
            return unknown_key(language, word, whole, place, column, error);
        if (seen[key])
            return facts_fail_at(error, place.where, place.line, column, "%s= is there twice",
                                 language->keys[key].word);
        seen[key] = true;
        out[(*count)++] = (facts_token){ key, value, column, column + (int)word.length + 1 };
        i = end;
    }
    return true;
}
