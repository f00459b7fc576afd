#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "words/fail.h"

int facts_complain(int status, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    facts_plain(text); /* may contain paths and words of the command line */
    fprintf(stderr, "%s\n", text);
    return status;
}
