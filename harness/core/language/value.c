#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "case.h"

#define MOST_INTEGER                                                                               \
    INT64_MAX /* of N, M and L; sizes are checked again where they are multiplied */

/* The letters that a placeholder of a template may stand for: a number up to the template's next
 * own letter. */
static facts_span number_part(facts_span value, char stop)
{
    if (stop == '\0')
        return value;
    const char *end = value.length > 0 ? memchr(value.at, stop, value.length) : NULL;
    return (facts_span){ value.at, end == NULL ? value.length : (size_t)(end - value.at) };
}

/* Reads what stands for one placeholder and writes it canonically. Returns letters written, 0 when
 * it does not fit. */
static size_t placeholder(char kind, facts_span part, char out[32])
{
    uint64_t integer;
    double real;
    if (part.length == 0 || part.length > 30)
        return 0;
    switch (kind) {
    case 'L':
        if (facts_span_is(part, "inf"))
            return (size_t)snprintf(out, 32, "inf");
        /* fall through */
    case 'N':
    case 'M':
        if (!facts_read_integer(part, MOST_INTEGER, &integer) || (kind == 'M' && integer == 0))
            return 0;
        return (size_t)snprintf(out, 32, "%" PRIu64, integer);
    default:
        if (!facts_read_real(part, &real) || (kind == 'P' && (real < 0.0 || real > 1.0)))
            return 0;
        facts_write_real(out, real);
        return strlen(out);
    }
}

static bool one_template(facts_span template, facts_span value, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < template.length; i++) {
        char letter = template.at[i];
        if (letter < 'A' || letter > 'Z') {
            if (value.length == 0 || *value.at != letter)
                return false;
            out[used++] = letter;
            value.at++;
            value.length--;
            continue;
        }
        char number[32];
        facts_span part = number_part(value, i + 1 < template.length ? template.at[i + 1] : '\0');
        size_t written = placeholder(letter, part, number);
        if (written == 0)
            return false;
        memcpy(out + used, number, written);
        used += written;
        value.at += part.length;
        value.length -= part.length;
    }
    out[used] = '\0';
    return value.length == 0;
}

int facts_template_match(const char *templates, facts_span value, char *out)
{
    facts_span rest = facts_span_of(templates), template;
    for (int place = 0; (template = facts_span_word(&rest)).length > 0; place++) {
        if (one_template(template, value, out))
            return place;
    }
    out[0] = '\0';
    return -1;
}

static bool not_allowed(const facts_key_row *row, facts_span value, facts_value_fault *fault)
{
    facts_nearest nearest = facts_nearest_start(value);
    facts_span rest = facts_span_of(row->allowed), template;
    while ((template = facts_span_word(&rest)).length > 0)
        facts_nearest_offer(&nearest, template.at, template.length);
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    int length = facts_key_allowed_letters(row);
    const char *parts = row->parts;
    const bool whole = strchr(row->allowed, 'N') != NULL, above = strchr(row->allowed, 'M') != NULL;
    const char *gloss = parts                               ? ""
                        : whole && above                    ? " (N, M: a whole number, M above 0)"
                        : whole                             ? " (N: a whole number)"
                        : above                             ? " (M: a whole number above 0)"
                        : strchr(row->allowed, 'L') != NULL ? " (L: a whole number or inf)"
                        : strchr(row->allowed, 'P') != NULL ? " (P: a number from 0 to 1)"
                                                            : "";
    return facts_fault(fault, 0, "%s=%s is not a value; allowed: %.*s%s%s", row->word,
                       facts_quote(quote, value), parts || length > 170 ? 170 : length,
                       parts ? parts : row->allowed, gloss, facts_nearest_hint(&nearest, hint));
}

/* 8/8/8 is 8, 8/2/2 is 8/2: trailing parts that repeat the one before are what absence means. */
static void say_once(char *text)
{
    for (;;) {
        char *last = strrchr(text, '/');
        if (last == NULL)
            return;
        *last = '\0';
        const char *before = strrchr(text, '/');
        before = before == NULL ? text : before + 1;
        if (strcmp(before, last + 1) != 0) {
            *last = '/';
            return;
        }
    }
}

static bool canonical_set(const facts_key_row *row, facts_span value, char *out,
                          facts_value_fault *fault)
{
    const char *allowed = row->allowed;
    uint64_t chosen = 0;
    facts_span rest = value;
    do {
        facts_span part = facts_span_cut(&rest, '+');
        facts_span words = facts_span_of(allowed), word;
        unsigned i = 0;
        while ((word = facts_span_word(&words)).length > 0 &&
               !(word.length == part.length && memcmp(word.at, part.at, part.length) == 0))
            i++;
        if (word.length == 0) {
            not_allowed(row, part, fault);
            fault->at = (size_t)(part.at - value.at);
            return false;
        }
        chosen |= UINT64_C(1) << i;
    } while (rest.length > 0 || (rest.at > value.at && rest.at[-1] == '+'));
    facts_span words = facts_span_of(allowed), word;
    size_t used = 0;
    for (unsigned i = 0; (word = facts_span_word(&words)).length > 0; i++) {
        bool none =
            i == 0 && chosen != 1; /* the first word is "nothing": it adds nothing to others */
        if ((chosen >> i & 1) == 0 || none)
            continue;
        if (used > 0)
            out[used++] = '+';
        memcpy(out + used, word.at, word.length);
        used += word.length;
    }
    out[used] = '\0';
    return true;
}

bool facts_value_canonical(const facts_key_row *row, facts_span value, char *out,
                           facts_value_fault *fault)
{
    const int letters = facts_key_allowed_letters(row);
    if (value.length == 0)
        return facts_fault(fault, 0, "%s= has no value; allowed: %.*s", row->word,
                           letters > 200 ? 200 : letters, row->allowed);
    if (value.length >= FACTS_CASE_TEXT)
        return facts_fault(fault, 0, "%s is longer than a case may be (%d)", row->word,
                           FACTS_CASE_TEXT);
    if (row->form == FACTS_FORM_SET)
        return canonical_set(row, value, out, fault);
    if (facts_template_match(row->allowed, value, out) >= 0) {
        if (row->form == FACTS_FORM_RATIO)
            say_once(out);
        return true;
    }
    if (row->read && row->read(row, value, out, fault))
        return true;
    return fault->text[0] == '\0' ? not_allowed(row, value, fault) : false;
}
