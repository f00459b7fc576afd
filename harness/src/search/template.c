#include "template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES 64

typedef struct filler {
    facts_span text; /* the whole text, for columns of errors */
    facts_expression_scope *scope;
    char *out;
    size_t used;
    facts_expression_fault *fault;
} filler;

static bool wrong(filler *f, const char *at, const char *what)
{
    *f->fault = (facts_expression_fault){ what, (size_t)(at - f->text.at) };
    return false;
}

static bool put(filler *f, const char *at, const char *letters, size_t count)
{
    if (f->used + count >= FACTS_CASE_TEXT)
        return wrong(f, at, "makes a value that is too long");
    memcpy(f->out + f->used, letters, count);
    f->used += count;
    return true;
}

static bool fill(filler *f, facts_span text)
{
    while (text.length > 0) {
        if (*text.at != '{') {
            if (!put(f, text.at, text.at, 1))
                return false;
            text.at++;
            text.length--;
            continue;
        }
        const char *end = memchr(text.at, '}', text.length), *start = text.at + 1;
        int64_t value;
        char digits[24];
        if (end == NULL)
            return wrong(f, text.at, "a { is not closed");
        if (!facts_expression_draw((facts_span){ start, (size_t)(end - start) }, f->scope, &value,
                                   f->fault)) {
            f->fault->at += (size_t)(start - f->text.at);
            return false;
        }
        int length = snprintf(digits, sizeof digits, "%" PRId64, value);
        if (!put(f, start, digits, (size_t)length))
            return false;
        text.length -= (size_t)(end + 1 - text.at);
        text.at = end + 1;
    }
    return true;
}

bool facts_template_fill(facts_span text, facts_expression_scope *scope, char out[FACTS_CASE_TEXT],
                         facts_expression_fault *fault)
{
    filler f = { .text = text, .scope = scope, .out = out, .fault = fault };
    long entries = strtol(facts_case_get(scope->c, FACTS_KEY_B), NULL, 10);
    entries = entries < 1 ? 1 : entries > MOST_ENTRIES ? MOST_ENTRIES : entries;
    while (text.length > 0) {
        const char *open = memchr(text.at, '<', text.length);
        if (!fill(&f, (facts_span){ text.at, open ? (size_t)(open - text.at) : text.length }))
            return false;
        if (open == NULL)
            break;
        text.length -= (size_t)(open - text.at);
        text.at = open;
        const char *close = memchr(open, '>', text.length);
        if (close == NULL)
            return wrong(&f, open, "a < is not closed");
        for (long i = 0; i < entries; i++)
            if ((i > 0 && !put(&f, open, "+", 1)) ||
                !fill(&f, (facts_span){ open + 1, (size_t)(close - open) - 1 }))
                return false;
        text.length -= (size_t)(close + 1 - text.at);
        text.at = close + 1;
    }
    out[f.used] = '\0';
    return true;
}
