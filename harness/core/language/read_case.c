#include <stdio.h>
#include <string.h>

#include "case.h"
#include "draft.h"
#include "simpler.h"

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

static facts_draft facts_draft_of(const facts_case *c)
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

/* What absence of `key` means in this draft. */
static const char *facts_draft_default(const facts_draft *draft, facts_key key)
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

const char *facts_case_get(const facts_case *c, facts_key key)
{
    if (c->at[key] != 0)
        return c->text + c->at[key];
    facts_draft draft = facts_draft_of(c);
    return facts_draft_default(&draft, key);
}

const char *facts_case_name(const facts_case *c, char out[FACTS_NAME_MAX])
{
    size_t used = 0;
    for (facts_key key = 0; key < c->language->count; key++) {
        if (c->at[key] == 0 && key >= c->language->always)
            continue;
        int written = snprintf(out + used, FACTS_NAME_MAX - used, "%s%s=%s", used > 0 ? " " : "",
                               c->language->keys[key].word, facts_case_get(c, key));
        if (written < 0 || (size_t)written >= FACTS_NAME_MAX - used)
            break; /* facts_draft_store keeps names shorter */
        used += (size_t)written;
    }
    out[used] = '\0';
    return out;
}

const char *facts_case_process(const facts_case *c)
{
    const facts_language *language = c->language;
    return language->process_variable && c->at[language->process_key]
               ? facts_case_get(c, language->process_key)
               : "";
}

bool facts_case_is_alone(const facts_case *c)
{
    bool alone = false;
    for (facts_key key = 0; key < c->language->count; key++)
        alone |= c->at[key] != 0 && c->language->keys[key].alone;
    return alone;
}

bool facts_case_set(facts_case *c, facts_key key, const char *value, facts_error *error)
{
    const facts_key_row *row = &c->language->keys[key];
    char text[FACTS_CASE_TEXT];
    facts_value_fault fault = { 0 };
    const bool value_of_key = facts_value_canonical(row, facts_span_of(value), text, &fault);
    if (!value_of_key && strcmp(value, row->otherwise) != 0) /* "same" is a default and no value */
        return facts_fail_at(error, row->word, 1, (int)fault.at + 1, "%s", fault.text);
    facts_case before = *c;
    facts_draft draft = facts_draft_of(&before);
    if (c->language->unfold)
        c->language->unfold(&draft, &before, key);
    draft.value[key] = value_of_key ? text : NULL;
    facts_key at = key;
    const char *complaint = facts_draft_normalise(&draft, &at);
    if (complaint != NULL)
        return facts_fail_at(error, c->language->keys[at].word, 1, 1, "%s", complaint);
    if (!facts_draft_store(&draft, c))
        return facts_fail_at(error, row->word, 1, 1, "the case is too long (at most %d letters)",
                             FACTS_CASE_TEXT);
    return true;
}

bool facts_case_read(const facts_language *language, facts_case *out, const char *text,
                     facts_error *error)
{
    facts_place place = { "case", 1, 1 };
    facts_token token[FACTS_KEYS_MOST];
    size_t count = 0;
    if (!facts_tokens_read(language, facts_span_of(text), place, token, &count, error))
        return false;
    char store[2 * FACTS_CASE_TEXT], value[FACTS_CASE_TEXT];
    size_t used = 0;
    facts_draft draft = { .language = language };
    int column[FACTS_KEYS_MOST] = { 0 };
    for (size_t i = 0; i < count; i++) {
        facts_value_fault fault = { 0 };
        if (memchr(token[i].value.at, ',', token[i].value.length) != NULL)
            return facts_fail_at(error, place.where, 1, token[i].column,
                                 "%s= lists several values, but this must be one case",
                                 language->keys[token[i].key].word);
        if (!facts_value_canonical(&language->keys[token[i].key], token[i].value, value, &fault))
            return facts_fail_at(error, place.where, 1, token[i].value_column + (int)fault.at, "%s",
                                 fault.text);
        size_t room = strlen(value) + 1;
        if (room > sizeof store - used)
            return facts_fail_at(error, place.where, 1, token[i].column,
                                 "too long for a case (at most %d letters)", FACTS_CASE_TEXT);
        memcpy(store + used, value, room);
        draft.value[token[i].key] = store + used;
        column[token[i].key] = token[i].column;
        used += room;
    }
    facts_key at = 0;
    const char *complaint = facts_draft_normalise(&draft, &at);
    if (complaint != NULL)
        return facts_fail_at(error, place.where, 1, column[at], "%s", complaint);
    if (!facts_draft_store(&draft, out))
        return facts_fail_at(error, place.where, 1, 1, "too long for a case (at most %d letters)",
                             FACTS_CASE_TEXT);
    return true;
}

bool facts_case_override(facts_case *c, const char *with, facts_error *error)
{
    facts_token token[FACTS_KEYS_MOST];
    char value[FACTS_CASE_TEXT];
    size_t count = 0;
    if (!facts_tokens_read(c->language, facts_span_of(with), (facts_place){ "--with", 1, 1 }, token,
                           &count, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (token[i].value.length >= sizeof value)
            return facts_fail_at(error, "--with", 1, token[i].value_column,
                                 "too long for a case (at most %d letters)", FACTS_CASE_TEXT);
        memcpy(value, token[i].value.at, token[i].value.length);
        value[token[i].value.length] = '\0';
        char canonical[FACTS_CASE_TEXT];
        facts_value_fault fault = { 0 };
        if (!facts_value_canonical(&c->language->keys[token[i].key], token[i].value, canonical,
                                   &fault))
            return facts_fail_at(error, "--with", 1, token[i].value_column + (int)fault.at, "%s",
                                 fault.text);
        if (!facts_case_set(c, token[i].key, value, error))
            return false;
    }
    return true;
}

bool facts_is_feature(const facts_language *language, facts_key key)
{
    const facts_simpler *simpler = language->simpler;
    for (size_t i = 0; i < simpler->size_count; i++) {
        if (simpler->sizes[i].key == key)
            return false;
    }
    return key != simpler->engine;
}

size_t facts_case_features(const facts_case *c)
{
    size_t n = 0;
    for (facts_key key = 0; key < c->language->count; key++)
        n += facts_is_feature(c->language, key) && c->at[key] != 0;
    return n;
}
