#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool continuation(const unsigned char *p, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80)
            return false;
    return true;
}

size_t facts_utf8_length(const char *text, size_t length)
{
    const unsigned char *p = (const unsigned char *)text;
    if (!length)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] >= 0xC2 && p[0] <= 0xDF)
        return length >= 2 && continuation(p, 2) ? 2 : 0;
    if ((p[0] & 0xF0) == 0xE0) {
        if (length < 3 || !continuation(p, 3))
            return 0;
        bool overlong = p[0] == 0xE0 && p[1] < 0xA0;
        bool surrogate = p[0] == 0xED && p[1] >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (p[0] >= 0xF0 && p[0] <= 0xF4) {
        if (length < 4 || !continuation(p, 4))
            return 0;
        bool overlong = p[0] == 0xF0 && p[1] < 0x90;
        bool beyond = p[0] == 0xF4 && p[1] >= 0x90;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

/* C1 controls, U+00AD, U+061C, U+200B, U+200E and F, U+2028 to 202E, U+2060 to 2069, U+FEFF, U+FFF9
 * to FFFB, U+E0000 to E007F: as reports/facts_reports/read/text.py. */
size_t facts_obeyed(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    if (*c < ' ' || *c == 0x7f)
        return *c != '\0';
    if (c[0] == 0xc2)
        return (c[1] >= 0x80 && c[1] < 0xa0) || c[1] == 0xad ? 2 : 0;
    if (c[0] == 0xd8)
        return c[1] == 0x9c ? 2 : 0;
    if (c[0] == 0xe2 && c[1] == 0x80)
        return c[2] == 0x8b || c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae) ? 3
                                                                                              : 0;
    if (c[0] == 0xe2 && c[1] == 0x81)
        return c[2] >= 0xa0 && c[2] <= 0xa9 ? 3 : 0;
    if (c[0] == 0xf3 && c[1] == 0xa0)
        return (c[2] == 0x80 || c[2] == 0x81) && c[3] >= 0x80 && c[3] < 0xc0 ? 4 : 0;
    if (c[0] == 0xef && c[1] == 0xbf)
        return c[2] >= 0xb9 && c[2] <= 0xbb ? 3 : 0;
    return c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf ? 3 : 0;
}

void facts_plain(char *text)
{
    while (*text != '\0') {
        size_t valid = facts_utf8_length(text, strnlen(text, 4)),
               n = valid > 0 ? facts_obeyed(text) : 1;
        memset(text, '?', n);
        text += n > 0 ? n : valid;
    }
}

static void fill(facts_error *error, const char *format, va_list arguments)
{
    if (error == NULL)
        return;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    facts_plain(error->text);
}

bool facts_fail(facts_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, format, arguments);
    va_end(arguments);
    return false;
}

int facts_fail_as(int status, facts_error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill(error, format, arguments);
    va_end(arguments);
    return status;
}

bool facts_fail_at(facts_error *error, const char *where, int line, int column, const char *format,
                   ...)
{
    if (error == NULL)
        return false;
    int used = snprintf(error->text, sizeof error->text, "%.200s:%d:%d: ", where, line, column);
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && (size_t)used < sizeof error->text)
        vsnprintf(error->text + used, sizeof error->text - (size_t)used, format, arguments);
    va_end(arguments);
    error->line = line;
    error->column = column;
    return false;
}

bool facts_fault(facts_value_fault *fault, size_t at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->text, sizeof fault->text, format, arguments);
    va_end(arguments);
    fault->at = at;
    return false;
}
