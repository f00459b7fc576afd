#include "scan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct cursor {
    const char *at, *end;
    int depth;
} cursor;

static bool value(cursor *c);

static void blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(cursor *c, char what)
{
    if (c->at == c->end || *c->at != what)
        return false;
    c->at++;
    return true;
}

/* Four hex digits after \u, or -1. */
static int hex4(const char *p, const char *end)
{
    int code = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char d = p[i];
        int digit = d >= '0' && d <= '9'   ? d - '0'
                    : d >= 'a' && d <= 'f' ? d - 'a' + 10
                    : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* After the backslash. A lone surrogate and \u0000 are refused: no reader of ours could hold them.
 */
static bool escape(cursor *c)
{
    if (c->at == c->end)
        return false;
    char kind = *c->at++;
    if (kind != 'u')
        return kind != '\0' && strchr("\"\\/bfnrt", kind) != NULL;
    int code = hex4(c->at, c->end);
    if (code <= 0 || (code >= 0xDC00 && code <= 0xDFFF))
        return false;
    c->at += 4;
    if (code < 0xD800 || code > 0xDBFF)
        return true;
    if (c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u')
        return false;
    int low = hex4(c->at + 2, c->end);
    c->at += 6;
    return low >= 0xDC00 && low <= 0xDFFF;
}

static bool string(cursor *c)
{
    if (!take(c, '"'))
        return false;
    while (c->at < c->end) {
        unsigned char byte = (unsigned char)*c->at;
        if (byte == '"') {
            c->at++;
            return true;
        }
        if (byte == '\\') {
            c->at++;
            if (!escape(c))
                return false;
        } else if (byte < 0x20) {
            return false;
        } else if (byte < 0x80) {
            c->at++;
        } else {
            size_t n = facts_utf8_length(c->at, (size_t)(c->end - c->at));
            if (!n)
                return false;
            c->at += n;
        }
    }
    return false;
}

static bool digits(cursor *c)
{
    const char *first = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > first;
}

static bool number(cursor *c)
{
    take(c, '-');
    if (!take(c, '0') && !digits(c))
        return false;
    if (take(c, '.') && !digits(c))
        return false;
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (!take(c, '+'))
            take(c, '-');
        return digits(c);
    }
    return true;
}

static bool word(cursor *c, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
        return false;
    c->at += n;
    return true;
}

typedef struct sink {
    facts_member *members;
    facts_span *elements;
    size_t capacity, count;
} sink;

static void keep(sink *out, facts_span key, facts_span body)
{
    if (!out)
        return;
    if (out->count < out->capacity) {
        if (out->members)
            out->members[out->count] = (facts_member){ key, body };
        else if (out->elements)
            out->elements[out->count] = body;
    }
    out->count++;
}

/* The members of an object or the elements of an array, after the opening bracket. */
static bool contents(cursor *c, char close, sink *out)
{
    if (++c->depth > FACTS_SCAN_DEPTH)
        return false;
    blanks(c);
    bool more = !take(c, close);
    while (more) {
        facts_span key = { 0 };
        blanks(c);
        if (close == '}') {
            const char *start = c->at;
            if (!string(c))
                return false;
            key = (facts_span){ start + 1, (size_t)(c->at - start) - 2 };
            blanks(c);
            if (!take(c, ':'))
                return false;
            blanks(c);
        }
        const char *start = c->at;
        if (!value(c))
            return false;
        keep(out, key, (facts_span){ start, (size_t)(c->at - start) });
        blanks(c);
        more = take(c, ',');
        if (!more && !take(c, close))
            return false;
    }
    c->depth--;
    return true;
}

static bool value(cursor *c)
{
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '{':
        c->at++;
        return contents(c, '}', NULL);
    case '[':
        c->at++;
        return contents(c, ']', NULL);
    case '"':
        return string(c);
    case 't':
        return word(c, "true");
    case 'f':
        return word(c, "false");
    case 'n':
        return word(c, "null");
    default:
        return number(c);
    }
}

static bool scan(const char *text, size_t length, char open, char close, sink *out)
{
    cursor c = { .at = text, .end = text + length };
    blanks(&c);
    if (!take(&c, open) || !contents(&c, close, out))
        return false;
    blanks(&c);
    return c.at == c.end;
}

bool facts_scan_object(const char *text, size_t length, facts_member *out, size_t capacity,
                       size_t *count)
{
    sink kept = { .members = out, .capacity = capacity };
    bool ok = scan(text, length, '{', '}', &kept);
    *count = kept.count;
    return ok;
}

bool facts_scan_array(const char *text, size_t length, facts_span *out, size_t capacity,
                      size_t *count)
{
    sink kept = { .elements = out, .capacity = capacity };
    bool ok = scan(text, length, '[', ']', &kept);
    *count = kept.count;
    return ok;
}

facts_span facts_member_find(const facts_member *members, size_t count, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < count; i++)
        if (members[i].key.length == n && memcmp(members[i].key.at, key, n) == 0)
            return members[i].value;
    return (facts_span){ 0 };
}

bool facts_json_int(facts_span value, int64_t *out)
{
    char digits_only[24];
    if (!value.at || !value.length || value.length >= sizeof digits_only)
        return false;
    for (size_t i = 0; i < value.length; i++)
        if (!(value.at[i] >= '0' && value.at[i] <= '9') &&
            !(i == 0 && value.at[i] == '-' && value.length > 1))
            return false;
    memcpy(digits_only, value.at, value.length);
    digits_only[value.length] = '\0';
    long long read = strtoll(digits_only, NULL, 10);
    if (read == LLONG_MAX || read == LLONG_MIN)
        return false;
    *out = read;
    return true;
}

bool facts_json_bool(facts_span value, bool *out)
{
    bool is_true = value.at && value.length == 4 && memcmp(value.at, "true", 4) == 0;
    bool is_false = value.at && value.length == 5 && memcmp(value.at, "false", 5) == 0;
    if (is_true || is_false)
        *out = is_true;
    return is_true || is_false;
}

bool facts_json_is(facts_span value, const char *text)
{
    size_t n = strlen(text);
    return value.at && value.length == n + 2 && value.at[0] == '"' &&
           memcmp(value.at + 1, text, n) == 0;
}
