#include "scan.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* jansson proves the text valid. What follows only finds where its members begin and end. It passes
 * over a NUL after a number, which is no JSON. */
static bool is_valid(const char *text, size_t length, json_type type)
{
    json_t *root = memchr(text, '\0', length) ? NULL : json_loadb(text, length, 0, NULL);
    const bool valid = root && json_typeof(root) == type;
    json_decref(root);
    return valid;
}

static const char *after_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

static const char *after_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

static const char *after_value(const char *at)
{
    int depth = 0;
    if (*at != '"' && *at != '{' && *at != '[')
        return at + strcspn(at, ",]} \t\n\r");
    do {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at = *at == '"' ? after_string(at) : at + 1;
    } while (depth);
    return at;
}

/* The next element of a list, with its key in an object; false: there are no more. */
static bool next(const char **at, bool object, facts_member *out)
{
    const char *start = after_blanks(*at + 1); /* behind the bracket or the comma */
    *out = (facts_member){ 0 };
    if (*start == '}' || *start == ']')
        return false;
    if (object) {
        const char *end = after_string(start);
        out->key = (facts_span){ start + 1, (size_t)(end - start) - 2 };
        start = after_blanks(after_blanks(end) + 1);
    }
    const char *end = after_value(start);
    out->value = (facts_span){ start, (size_t)(end - start) };
    *at = after_blanks(end);
    return true;
}

bool facts_scan_object(const char *text, size_t length, facts_member *out, size_t capacity,
                       size_t *count)
{
    facts_member member;
    *count = 0;
    if (!is_valid(text, length, JSON_OBJECT))
        return false;
    for (text = after_blanks(text); *text != '}' && next(&text, true, &member); ++*count)
        if (*count < capacity)
            out[*count] = member;
    return true;
}

bool facts_scan_array(const char *text, size_t length, facts_span *out, size_t capacity,
                      size_t *count)
{
    facts_member member;
    *count = 0;
    if (!is_valid(text, length, JSON_ARRAY))
        return false;
    for (text = after_blanks(text); *text != ']' && next(&text, false, &member); ++*count)
        if (*count < capacity)
            out[*count] = member.value;
    return true;
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
    char text[24], *end;
    if (!value.at || !value.length || value.length >= sizeof text)
        return false;
    memcpy(text, value.at, value.length);
    text[value.length] = '\0';
    errno = 0;
    const long long read = strtoll(text, &end, 10);
    if (errno || *end)
        return false;
    *out = read;
    return true;
}

static bool is_word(facts_span value, const char *word)
{
    return value.at && value.length == strlen(word) && memcmp(value.at, word, value.length) == 0;
}

bool facts_json_bool(facts_span value, bool *out)
{
    if (!is_word(value, "true") && !is_word(value, "false"))
        return false;
    *out = value.at[0] == 't';
    return true;
}

bool facts_json_is(facts_span value, const char *text)
{
    return value.length >= 2 && value.at[0] == '"' &&
           is_word((facts_span){ value.at + 1, value.length - 2 }, text);
}

bool facts_json_string(facts_span value, char *out, size_t capacity)
{
    json_t *json = value.at ? json_loadb(value.at, value.length, JSON_DECODE_ANY, NULL) : NULL;
    const char *text = json_string_value(json);
    if (text && capacity) {
        size_t length = json_string_length(json);
        if (length >= capacity)
            for (length = capacity - 1; length && (text[length] & 0xC0) == 0x80; length--)
                ;
        memcpy(out, text, length);
        out[length] = '\0';
    }
    json_decref(json);
    return text && capacity;
}
