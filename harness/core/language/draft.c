#include "draft.h"

#include <string.h>

facts_draft facts_draft_of(const facts_case *c)
{
    facts_draft draft = { .language = c->language };
    for (facts_key key = 0; key < c->language->count; key++)
        draft.value[key] = c->at[key] == 0 ? NULL : c->text + c->at[key];
    return draft;
}

/* Is it this value, or does it start as this one with * says? */
static bool fits(const char *value, const char *when)
{
    const size_t letters = when ? strcspn(when, "*") : 0;
    return !when || (strncmp(value, when, letters) == 0 && (when[letters] || !value[letters]));
}

const char *facts_draft_default(const facts_draft *draft, facts_key key)
{
    const facts_language *language = draft->language;
    const facts_key_default *of = language->keys[key].defaults;
    for (; of && of->other != FACTS_NO_KEY; of++) {
        const char *value = facts_draft_get(draft, of->other);
        if (fits(value, of->when))
            return of->otherwise       ? of->otherwise
                   : language->follows ? language->follows(key, value)
                                       : value;
    }
    return language->keys[key].otherwise;
}

const char *facts_draft_get(const facts_draft *draft, facts_key key)
{
    return draft->value[key] != NULL ? draft->value[key] : facts_draft_default(draft, key);
}

const char *facts_draft_normalise(facts_draft *draft, facts_key *at)
{
    const facts_language *language = draft->language;
    const char *complaint = language->normalise ? language->normalise(draft, at) : NULL;
    /* Defaults that follow from other keys come after those in the table, so one pass is enough. */
    for (facts_key key = 0; complaint == NULL && key < language->count; key++) {
        if (draft->value[key] && strcmp(draft->value[key], facts_draft_default(draft, key)) == 0)
            draft->value[key] = NULL;
    }
    return complaint;
}

bool facts_draft_store(const facts_draft *draft, facts_case *out)
{
    const facts_language *language = draft->language;
    facts_case stored = { .language = language, .used = 1 }; /* offset 0 stands for the default */
    size_t name = 0;
    for (facts_key key = 0; key < language->count; key++) {
        const char *value = draft->value[key];
        if (value == NULL && key >= language->always)
            continue;
        name += strlen(language->keys[key].word) +
                strlen(value != NULL ? value : language->keys[key].otherwise) + 2;
        if (value == NULL)
            continue;
        size_t room = strlen(value) + 1;
        if (room > FACTS_CASE_TEXT - (size_t)stored.used)
            return false;
        memcpy(stored.text + stored.used, value, room);
        stored.at[key] = stored.used;
        stored.used = (uint16_t)(stored.used + room);
    }
    if (name > FACTS_NAME_MAX)
        return false;
    *out = stored;
    return true;
}
