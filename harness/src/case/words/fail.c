#include "fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the UTF-8 character that a terminal would obey, or 0. C1 controls, U+061C, U+200E and F, U+2028 to 202E, U+2066 to 2069,
 * U+FEFF. */
static size_t obeyed(const unsigned char *c)
{
    if (*c < ' ' || *c == 0x7f)
        return *c != '\0';
    if (c[0] == 0xc2)
        return c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
    if (c[0] == 0xd8)
        return c[1] == 0x9c ? 2 : 0;
    if (c[0] == 0xe2 && c[1] == 0x80)
        return c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xa8 && c[2] <= 0xae) ? 3 : 0;
    if (c[0] == 0xe2 && c[1] == 0x81)
        return c[2] >= 0xa6 && c[2] <= 0xa9 ? 3 : 0;
    return c[0] == 0xef && c[1] == 0xbb && c[2] == 0xbf ? 3 : 0;
}

void facts_plain(char *text)
{
    for (size_t n; *text != '\0'; text += n > 0 ? n : 1)
        if ((n = obeyed((const unsigned char *)text)) > 0)
            memset(text, '?', n);
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

bool facts_fail_at(facts_error *error, const char *where, int line, int column, const char *format, ...)
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
