#include "language.h"

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
