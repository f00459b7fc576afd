#include "print_line.h"

#include <stdarg.h>

#include "words/fail.h"

void facts_print_line(FILE *out, const char *format, ...)
{
    char text[16384]; /* several paths */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    facts_plain(text);
    (void)fprintf(out, "%s\n", text);
}
