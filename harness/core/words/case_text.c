#include "case_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

facts_span facts_span_of(const char *text)
{
    return (facts_span){ text, strlen(text) };
}

bool facts_span_is(facts_span span, const char *word)
{
    return strlen(word) == span.length && memcmp(span.at, word, span.length) == 0;
}

facts_span facts_span_cut(facts_span *rest, char separator)
{
    const char *end = rest->length > 0 ? memchr(rest->at, separator, rest->length) : NULL;
    facts_span head = *rest;
    if (end == NULL) {
        rest->at += rest->length;
        rest->length = 0;
        return head;
    }
    head.length = (size_t)(end - rest->at);
    rest->at = end + 1;
    rest->length -= head.length + 1;
    return head;
}

bool facts_is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\r';
}

facts_span facts_span_trim(facts_span text)
{
    while (text.length > 0 && facts_is_blank(text.at[0])) {
        text.at++;
        text.length--;
    }
    while (text.length > 0 && facts_is_blank(text.at[text.length - 1]))
        text.length--;
    return text;
}

facts_span facts_span_without_comment(facts_span text)
{
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] == '#' && (i == 0 || facts_is_blank(text.at[i - 1])))
            text.length = i;
    return facts_span_trim(text);
}

facts_span facts_span_word(facts_span *rest)
{
    while (rest->length > 0 && *rest->at == ' ') {
        rest->at++;
        rest->length--;
    }
    return facts_span_cut(rest, ' ');
}

const char *facts_quote(char out[FACTS_QUOTE_MAX], facts_span span)
{
    size_t n = 0;
    for (; n < span.length && n < FACTS_QUOTE_MAX - 4; n++)
        out[n] = span.at[n] >= 0x20 && span.at[n] < 0x7f ? span.at[n] : '?';
    if (n < span.length) {
        memcpy(out + n, "...", 3);
        n += 3;
    }
    out[n] = '\0';
    return out;
}

#define LONGEST_WORD 24

/* Letters to change, add, take away or exchange with their neighbour to turn one word into the
 * other. */
static size_t distance_between(facts_span a, facts_span b)
{
    size_t rows[3][LONGEST_WORD + 1]; /* in turns: two letters ago, one letter ago, now */
    for (size_t j = 0; j <= b.length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.length; i++) {
        size_t *now = rows[i % 3], *before = rows[(i - 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= b.length; j++) {
            const size_t change = before[j - 1] + (a.at[i - 1] != b.at[j - 1]), add = before[j] + 1,
                         drop = now[j - 1] + 1;
            now[j] = change < add ? change : add;
            now[j] = drop < now[j] ? drop : now[j];
            const bool exchanged =
                i > 1 && j > 1 && a.at[i - 1] == b.at[j - 2] && a.at[i - 2] == b.at[j - 1];
            if (exchanged && rows[(i - 2) % 3][j - 2] + 1 < now[j])
                now[j] = rows[(i - 2) % 3][j - 2] + 1;
        }
    }
    return rows[a.length % 3][b.length];
}

facts_nearest facts_nearest_start(facts_span asked)
{
    return (facts_nearest){ .asked = asked, .distance = asked.length > 4 ? 3 : 2 };
}

void facts_nearest_offer(facts_nearest *nearest, const char *word, size_t length)
{
    if (length > LONGEST_WORD || nearest->asked.length > LONGEST_WORD || nearest->asked.length == 0)
        return;
    const size_t other = nearest->asked.length;
    if ((length > other ? length - other : other - length) >= nearest->distance)
        return; /* at least so many letters differ */
    size_t distance = distance_between(nearest->asked, (facts_span){ word, length });
    /* What shares no letter is not near, however short both words are. */
    size_t longer = length > nearest->asked.length ? length : nearest->asked.length;
    if (distance >= nearest->distance || distance >= longer)
        return;
    nearest->best = word;
    nearest->best_length = length;
    nearest->distance = distance;
}

const char *facts_nearest_word(const char *asked, const char *const *words, size_t count)
{
    facts_nearest nearest = facts_nearest_start(facts_span_of(asked));
    for (size_t i = 0; i < count; i++)
        facts_nearest_offer(&nearest, words[i], strlen(words[i]));
    return nearest.best;
}

const char *facts_nearest_hint(const facts_nearest *nearest, char out[FACTS_QUOTE_MAX])
{
    out[0] = '\0';
    if (nearest->best != NULL)
        snprintf(out, FACTS_QUOTE_MAX, "; did you mean %.*s?", (int)nearest->best_length,
                 nearest->best);
    return out;
}

bool facts_read_integer(facts_span span, uint64_t most, uint64_t *out)
{
    uint64_t value = 0;
    if (span.length == 0)
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (span.at[i] < '0' || span.at[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(span.at[i] - '0');
        if (value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return value <= most;
}

bool facts_read_real(facts_span span, double *out)
{
    char copy[40];
    if (span.length == 0 || span.length >= sizeof copy)
        return false;
    bool digit = false;
    for (size_t i = 0; i < span.length; i++) {
        if (strchr("0123456789+-.eE", span.at[i]) == NULL || span.at[i] == '\0')
            return false;
        digit = digit || (span.at[i] >= '0' && span.at[i] <= '9');
    }
    if (!digit || span.at[0] == '+')
        return false;
    memcpy(copy, span.at, span.length);
    copy[span.length] = '\0';
    char *end;
    double value = strtod(copy, &end);
    if (*end != '\0' || !isfinite(value))
        return false;
    *out = value == 0.0 ? 0.0 : value; /* -0 is 0 */
    return true;
}

void facts_write_real(char out[32], double value)
{
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value)
            break;
    }
    /* 30, not 3e+01: plain notation as long as it is not long. */
    double size = fabs(value);
    if (size >= 1e-6 && size < 1e15) {
        int exponent = (int)floor(log10(size)), decimals = digits - 1 - exponent;
        char plain[32];
        snprintf(plain, sizeof plain, "%.*f", decimals > 0 ? decimals : 0, value);
        if (strtod(plain, NULL) == value)
            memcpy(out, plain, sizeof plain);
    }
}

void *facts_grow(void *array, size_t count, size_t size)
{
    return (count & (count + 1)) == 0 ? realloc(array, (count * 2 + 1) * size) : array;
}

int facts_by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}
