#include "key_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layout_word.h"
#include "stride.h"

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

/* What a key with parts takes, with an example; NULL: another key. */
static const char *parts_allowed(facts_key key)
{
    switch (key) {
    case FACTS_KEY_H:
        return "1 or more, or Q/KV: h=8/2";
    case FACTS_KEY_S:
        return "1 or more, or queries/keys: s=1/512";
    case FACTS_KEY_D:
        return "1 or more, or Q/V: d=192/128";
    default:
        return NULL;
    }
}

static bool not_allowed(facts_key key, facts_span value, facts_value_fault *fault)
{
    const facts_key_row *row = &facts_keys[key];
    facts_nearest nearest = facts_nearest_start(value);
    facts_span rest = facts_span_of(row->allowed), template;
    while ((template = facts_span_word(&rest)).length > 0)
        facts_nearest_offer(&nearest, template.at, template.length);
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    int length = facts_key_allowed_letters(key);
    const char *parts = parts_allowed(key);
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

static bool canonical_set(facts_key key, facts_span value, char *out, facts_value_fault *fault)
{
    const char *allowed = facts_keys[key].allowed;
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
            not_allowed(key, part, fault);
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

size_t facts_lengths_read(facts_span text, int32_t *out, size_t most)
{
    size_t count = 0;
    if (text.length == 0)
        return 0;
    bool more = true;
    while (more) {
        more = memchr(text.at, '+', text.length) != NULL;
        facts_span item = facts_span_cut(&text, '+');
        facts_span length = facts_span_cut(&item, 'x');
        uint64_t value = 0, times = 1;
        bool repeated = length.at + length.length < item.at + item.length ||
                        item.at > length.at + length.length;
        const bool unused = facts_span_is(length, "-1");
        if ((!unused && !facts_read_integer(length, INT32_MAX, &value)) ||
            (repeated && !facts_read_integer(item, most, &times)) || times == 0 ||
            times > most - count)
            return 0;
        for (uint64_t i = 0; i < times; i++)
            out[count++] = unused ? -1 : (int32_t)value;
        if (more && text.length == 0)
            return 0;
    }
    return count;
}

/* Appends lengths with repeats counted; false when there is no room. */
static bool lengths_write(char *out, size_t *used, const int32_t *lengths, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        char item[40];
        int written =
            run > 1 ? snprintf(item, sizeof item, "%s%dx%zu", i > 0 ? "+" : "", lengths[i], run)
                    : snprintf(item, sizeof item, "%s%d", i > 0 ? "+" : "", lengths[i]);
        if (*used + (size_t)written >= FACTS_CASE_TEXT)
            return false;
        memcpy(out + *used, item, (size_t)written + 1);
        *used += (size_t)written;
        i += run;
    }
    return true;
}

static bool canonical_lengths(facts_key key, facts_span value, char *out, facts_value_fault *fault)
{
    int32_t side[2][FACTS_MAX_LENGTHS];
    facts_span rest = value;
    facts_span queries = facts_span_cut(&rest, '/');
    bool two = queries.length < value.length;
    size_t count[2] = { facts_lengths_read(queries, side[0], FACTS_MAX_LENGTHS), 0 };
    if (count[0] == 0)
        return facts_fault(fault, 0, "%s takes %s, or lengths: 256+0x3/256+1x3 (at most %d)",
                           facts_keys[key].word, facts_keys[key].allowed, FACTS_MAX_LENGTHS);
    if (two && (count[1] = facts_lengths_read(rest, side[1], FACTS_MAX_LENGTHS)) == 0)
        return facts_fault(fault, (size_t)(rest.at - value.at),
                           "%s: lengths of the keys, for example 256+1x3, belong after the /",
                           facts_keys[key].word);
    bool same =
        two && count[0] == count[1] && memcmp(side[0], side[1], count[0] * sizeof side[0][0]) == 0;
    size_t used = 0;
    bool fits = lengths_write(out, &used, side[0], count[0]);
    if (fits && two && !same) {
        fits = used + 1 < FACTS_CASE_TEXT;
        if (fits) {
            out[used++] = '/';
            fits = lengths_write(out, &used, side[1], count[1]);
        }
    }
    return fits || facts_fault(fault, 0, "%s is longer than a case may be", facts_keys[key].word);
}

#define MOST_KNOBS 24

static bool canonical_knobs(facts_span value, char *out, facts_value_fault *fault)
{
    facts_span name[MOST_KNOBS];
    uint64_t number[MOST_KNOBS];
    size_t count = 0;
    facts_span rest = value;
    do {
        facts_span item = facts_span_cut(&rest, '+');
        facts_span left = facts_span_cut(&item, ':');
        size_t letters = 0;
        while (letters < left.length &&
               ((left.at[letters] >= 'a' && left.at[letters] <= 'z') || left.at[letters] == '_' ||
                (left.at[letters] >= '0' && left.at[letters] <= '9')))
            letters++;
        size_t at = (size_t)(left.at - value.at);
        if (count == MOST_KNOBS)
            return facts_fault(fault, at, "knob: at most %d", MOST_KNOBS);
        if (letters == 0 || letters < left.length || left.length > 40 ||
            !facts_read_integer(item, INT64_MAX, &number[count]))
            return facts_fault(fault, at,
                               "knob takes name:number joined by +, for example tile_m:2+stages:4");
        size_t place = count++;
        uint64_t own = number[place];
        for (; place > 0; place--) {
            size_t least =
                name[place - 1].length < left.length ? name[place - 1].length : left.length;
            int order = memcmp(name[place - 1].at, left.at, least);
            if (order == 0)
                order = name[place - 1].length < left.length ? -1
                                                             : name[place - 1].length > left.length;
            if (order == 0)
                return facts_fault(fault, at, "knob: %.*s is there twice", (int)left.length,
                                   left.at);
            if (order < 0)
                break;
            name[place] = name[place - 1];
            number[place] = number[place - 1];
        }
        name[place] = left;
        number[place] = own;
    } while (rest.length > 0 || (rest.at > value.at && rest.at[-1] == '+'));
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int written = snprintf(out + used, FACTS_CASE_TEXT - used, "%s%.*s:%" PRIu64,
                               i > 0 ? "+" : "", (int)name[i].length, name[i].at, number[i]);
        if (written < 0 || (size_t)written >= FACTS_CASE_TEXT - used)
            return facts_fault(fault, 0, "knob is longer than a case may be");
        used += (size_t)written;
    }
    return true;
}

bool facts_value_canonical(facts_key key, facts_span value, char *out, facts_value_fault *fault)
{
    const facts_key_row *row = &facts_keys[key];
    if (value.length == 0)
        return facts_fault(fault, 0, "%s= has no value; allowed: %.*s", row->word,
                           facts_key_allowed_letters(key) > 200 ? 200
                                                                : facts_key_allowed_letters(key),
                           row->allowed);
    if (value.length >= FACTS_CASE_TEXT)
        return facts_fault(fault, 0, "%s is longer than a case may be (%d)", row->word,
                           FACTS_CASE_TEXT);
    if (row->kind == FACTS_KIND_SET)
        return canonical_set(key, value, out, fault);
    if (facts_template_match(row->allowed, value, out) >= 0) {
        if (row->kind == FACTS_KIND_RATIO)
            say_once(out);
        return true;
    }
    switch (row->kind) {
    case FACTS_KIND_LENS:
        return canonical_lengths(key, value, out, fault);
    case FACTS_KIND_KNOBS:
        return canonical_knobs(value, out, fault);
    case FACTS_KIND_LAYOUT:
        return facts_layout_canonical(value, out) || not_allowed(key, value, fault);
    case FACTS_KIND_STRIDE:
        return facts_stride_canonical(value, out, fault);
    default:
        return not_allowed(key, value, fault);
    }
}
