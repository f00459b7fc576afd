#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

static void fill(facts_error *error, const char *format, va_list arguments)
{
    if (error == NULL)
        return;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    for (char *c = error->text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
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
