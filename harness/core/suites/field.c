#include "field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "words/verdict.h"

#define AS_WORD2(symbol, word) word " "

static const char backend[] = "backend";

/* What is known of a result. X(MEMBER of facts_subject, "word", KIND, words) */
/* clang-format off */
#define RESULT_LIST(X)                                                                          \
    X(cudnn, "cudnn", VERSION, NULL) X(sm, "sm", NUMBER, NULL) X(build, "build", WORD, NULL)    \
    X(backend, backend, WORD, NULL)                                   \
    X(grade, "grade", WORD, "measured decided claimed")                                         \
    X(verdict, "verdict", WORD, FACTS_VERDICT_LIST(AS_WORD2)) X(engine, "engine", NUMBER, NULL) \
    X(config, "config", NUMBER, NULL)                                                           \
    X(reason_class, "class", WORD, "unsupported bad_problem environment policy internal")
/* clang-format on */

#define AS_ROW(member, word, kind, words) { FACTS_FIELD_##kind, FACTS_NO_KEY, 0, 0, words, word },
static const facts_field results[] = { RESULT_LIST(AS_ROW) };
#undef AS_ROW
#define RESULTS (sizeof results / sizeof *results)

static const char case_word[] = "case";

bool facts_field_find(const facts_language *language, facts_span word, facts_field *out,
                      char hint[FACTS_QUOTE_MAX])
{
    facts_nearest nearest = facts_nearest_start(word);
    for (size_t i = 0; i < RESULTS; i++) {
        *out = results[i];
        out->result = (int)i;
        if (results[i].name == backend)
            out->words = language->backends;
        if (facts_span_is(word, results[i].name))
            return true;
        facts_nearest_offer(&nearest, results[i].name, strlen(results[i].name));
    }
    for (size_t i = 0; i < language->part_count; i++) {
        const facts_key_part *part = &language->parts[i];
        *out = (facts_field){ FACTS_FIELD_PART, part->key, part->index, -1, NULL, part->word };
        if (facts_span_is(word, part->word))
            return true;
        facts_nearest_offer(&nearest, part->word, strlen(part->word));
    }
    *out = (facts_field){ FACTS_FIELD_WORD, FACTS_NO_KEY, 0, -1, NULL, case_word };
    if (facts_span_is(word, case_word))
        return true;
    facts_key key = facts_key_find(language, word.at, word.length);
    if (key != FACTS_NO_KEY) {
        *out = (facts_field){ facts_key_is_number(&language->keys[key]) ? FACTS_FIELD_NUMBER
                                                                        : FACTS_FIELD_KEY,
                              key,
                              0,
                              -1,
                              NULL,
                              language->keys[key].word };
        return true;
    }
    for (key = 0; key < language->count; key++)
        facts_nearest_offer(&nearest, language->keys[key].word, strlen(language->keys[key].word));
    facts_nearest_hint(&nearest, hint);
    return false;
}

static const char *result_text(const facts_field *field, const facts_subject *subject)
{
#define AS_VALUE(member, word, kind, words) subject->member,
    const char *const values[] = { RESULT_LIST(AS_VALUE) };
#undef AS_VALUE
    return values[field->result];
}

/* The part of 8/2/2, 512, 128:inf; a part that is absent repeats the one before. */
static facts_span part_of(const char *text, int index)
{
    facts_span rest = facts_span_of(text);
    char separator = strchr(text, ':') != NULL ? ':' : '/';
    facts_span part = facts_span_cut(&rest, separator);
    for (int i = 0; i < index && rest.length > 0; i++)
        part = facts_span_cut(&rest, separator);
    return part;
}

bool facts_field_text(const facts_field *field, const facts_subject *subject, char *out)
{
    facts_key key = field->key;
    if (field->result >= 0) {
        const char *known = result_text(field, subject);
        if (known != NULL) {
            snprintf(out, FACTS_NAME_MAX, "%s", known);
            return true;
        }
        /* Before a result is known, `engine` is the one that the case asks for. */
        key = subject->c == NULL
                  ? FACTS_NO_KEY
                  : facts_key_find(subject->c->language, field->name, strlen(field->name));
        if (key == FACTS_NO_KEY)
            return false;
    }
    if (subject->c == NULL)
        return false;
    if (key == FACTS_NO_KEY) {
        facts_case_name(subject->c, out);
        return true;
    }
    const char *text = facts_case_get(subject->c, key);
    facts_span part =
        field->kind == FACTS_FIELD_PART ? part_of(text, field->part) : facts_span_of(text);
    snprintf(out, FACTS_NAME_MAX, "%.*s", (int)part.length, part.at);
    return true;
}

bool facts_field_read_number(facts_span text, double *out)
{
    if (text.length > 3 && memcmp(text.at, "sm_", 3) == 0)
        text = (facts_span){ text.at + 3, text.length - 3 };
    if (facts_span_is(text, "inf")) {
        *out = INFINITY;
        return true;
    }
    return facts_read_real(text, out);
}

bool facts_field_number(const facts_field *field, const facts_subject *subject, double *out)
{
    char text[FACTS_NAME_MAX];
    return facts_field_text(field, subject, text) &&
           facts_field_read_number(facts_span_of(text), out);
}

bool facts_version_read(facts_span text, uint32_t out[FACTS_VERSION_PARTS])
{
    facts_span rest = text;
    text = facts_span_cut(&rest, '-');
    for (int i = 0; i < FACTS_VERSION_PARTS; i++) {
        uint64_t value = 0;
        bool expects = i == 0 || text.length > 0;
        if (expects && !facts_read_integer(facts_span_cut(&text, '.'), 999999, &value))
            return false;
        out[i] = (uint32_t)value;
    }
    return text.length == 0;
}

int32_t facts_version_number(facts_span text, uint32_t missing)
{
    uint32_t part[FACTS_VERSION_PARTS];
    int written = 1;
    if (!facts_version_read(text, part))
        return 0;
    for (size_t i = 0; i < text.length && text.at[i] != '-'; i++)
        written += text.at[i] == '.';
    for (int i = written; i < 3; i++)
        part[i] = missing;
    return written < 2 || written > 3 || part[0] > 99 || part[1] > 99 || part[2] > 99
               ? 0
               : (int32_t)(part[0] * 10000 + part[1] * 100 + part[2]);
}

int facts_version_compare(const uint32_t a[FACTS_VERSION_PARTS],
                          const uint32_t b[FACTS_VERSION_PARTS])
{
    for (int i = 0; i < FACTS_VERSION_PARTS; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

bool facts_glob(facts_span pattern, const char *text)
{
    size_t p = 0, star = SIZE_MAX, t = 0, back = 0;
    while (text[t] != '\0') {
        if (p < pattern.length && pattern.at[p] == '*') {
            star = p++;
            back = t;
        } else if (p < pattern.length && (pattern.at[p] == '?' || pattern.at[p] == text[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++back;
        } else {
            return false;
        }
    }
    while (p < pattern.length && pattern.at[p] == '*')
        p++;
    return p == pattern.length;
}
