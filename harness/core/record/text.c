#include "text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader.h"

void facts_text_clear(facts_text *text)
{
    text->length = 0;
    if (text->data)
        text->data[0] = '\0';
}

void facts_text_free(facts_text *text)
{
    free(text->data);
    *text = (facts_text){ 0 };
}

static void reserve(facts_text *text, size_t more)
{
    if (text->length + more + 1 <= text->capacity)
        return;
    size_t capacity = text->capacity ? text->capacity * 2 : 1024;
    while (capacity < text->length + more + 1)
        capacity *= 2;
    text->data = realloc(text->data, capacity);
    text->capacity = capacity;
}

void facts_text_add(facts_text *text, const char *bytes, size_t length)
{
    reserve(text, length);
    if (length)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void facts_text_puts(facts_text *text, const char *string)
{
    facts_text_add(text, string, strlen(string));
}

void facts_text_format(facts_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return;
    reserve(text, (size_t)length);
    va_start(args, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

/* Of a character of two or three bytes. */
static unsigned code_point(const char *string, size_t n)
{
    const unsigned char *c = (const unsigned char *)string;
    return n == 2 ? (c[0] & 0x1fu) << 6 | (c[1] & 0x3fu)
                  : (c[0] & 0xfu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
}

void facts_text_json(facts_text *text, const char *string, size_t length)
{
    static const char hex[] = "0123456789abcdef";
    facts_text_add(text, "\"", 1);
    for (size_t i = 0; i < length;) {
        unsigned char c = (unsigned char)string[i];
        if (c == '"' || c == '\\') {
            char escape[2] = { '\\', (char)c };
            facts_text_add(text, escape, 2);
            i++;
        } else if (c == '\n' || c == '\t') {
            facts_text_add(text, c == '\n' ? "\\n" : "\\t", 2);
            i++;
        } else if (c < 0x20 || c == 0x7f) {
            char escape[6] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };
            facts_text_add(text, escape, 6);
            i++;
        } else {
            size_t n = facts_utf8_length(string + i, length - i);
            if (n && facts_obeyed(string + i))
                facts_text_format(text, "\\u%04x", code_point(string + i, n));
            else if (n)
                facts_text_add(text, string + i, n);
            else
                facts_text_add(text, "\xEF\xBF\xBD", 3);
            i += n ? n : 1;
        }
    }
    facts_text_add(text, "\"", 1);
}

static void add_key(facts_text *text, const char *key)
{
    facts_text_add(text, "\"", 1);
    facts_text_puts(text, key);
    facts_text_add(text, "\":", 2);
}

void facts_text_member(facts_text *text, const char *key, const char *value)
{
    add_key(text, key);
    facts_text_json(text, value, strlen(value));
    facts_text_add(text, ",", 1);
}

void facts_text_member_int(facts_text *text, const char *key, int64_t value)
{
    add_key(text, key);
    facts_text_format(text, "%" PRId64 ",", value);
}

void facts_text_member_bool(facts_text *text, const char *key, bool value)
{
    facts_text_format(text, "\"%s\":%s,", key, value ? "true" : "false");
}

void facts_text_member_if(facts_text *text, const char *key, const char *value)
{
    if (value && *value)
        facts_text_member(text, key, value);
}

void facts_text_strings(facts_text *text, const char *key, const char *const *values, size_t count)
{
    facts_text_format(text, "\"%s\":[", key);
    for (size_t i = 0; i < count; i++) {
        facts_text_puts(text, i ? "," : "");
        facts_text_json(text, values[i], strlen(values[i]));
    }
    facts_text_puts(text, "],");
}

void facts_text_close(facts_text *text)
{
    if (!text->length)
        return;
    if (text->data[text->length - 1] == ',')
        text->data[text->length - 1] = '}';
    else
        facts_text_add(text, "}", 1);
}
