#include "resolution.h"

#include <stdio.h>
#include <string.h>

#include "keys/key_values.h"
#include "keys/keys.h"

facts_resolve_status facts_resolve_say(facts_error *error, facts_resolve_status status,
                                       facts_key key, const char *what)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s: %s", facts_keys[key].word, what);
        error->line = 1;
        error->column = 1;
    }
    return status;
}

facts_resolve_status facts_resolve_bad(facts_resolution *r, facts_key key, const char *what)
{
    return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, key, what);
}

facts_resolve_status facts_resolve_idle(facts_resolution *r, const facts_key *keys, size_t count,
                                        const char *why)
{
    for (size_t i = 0; i < count; i++)
        if (facts_key_given(r->c, keys[i]))
            return facts_resolve_bad(r, keys[i], why);
    return FACTS_RESOLVED;
}

bool facts_key_given(const facts_case *c, facts_key key)
{
    return c->at[key] != 0;
}

bool facts_key_is(const facts_case *c, facts_key key, const char *word)
{
    return strcmp(facts_case_get(c, key), word) == 0;
}

int facts_key_place(const facts_case *c, facts_key key)
{
    char scratch[FACTS_CASE_TEXT];
    return facts_template_match(facts_keys[key].allowed, facts_span_of(facts_case_get(c, key)),
                                scratch);
}

int32_t facts_key_dtype(const facts_case *c, facts_key key)
{
#define AS_WORD(symbol, value, word) [value] = word,
    static const char *const words[] = { "", FATTN_DTYPE_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t dtype = 1; dtype < sizeof words / sizeof *words; dtype++)
        if (facts_key_is(c, key, words[dtype]))
            return (int32_t)dtype;
    return -1;
}
