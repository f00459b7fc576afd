#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

#include "commands/options/options.h"

int facts_complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return status;
}

int facts_no_memory(void)
{
    return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: out of memory");
}
