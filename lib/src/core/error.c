#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_error[1024];

void fattn__keep_sentence(const char *format, ...)
{
    /* An argument may be the old sentence, so the new one is written first. */
    char text[sizeof last_error];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t i = 0;
    for (; text[i] != '\0'; i++)
        last_error[i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    last_error[i] = '\0';
}

fattn_status fattn__need(const char *names, const void *const *given, size_t count)
{
    for (size_t i = 0; i < count; i++, names += strcspn(names, " ") + 1)
        if (given[i] == NULL)
            return fattn__fail(FATTN_BAD_PROBLEM, "%.*s is NULL", (int)strcspn(names, ","), names);
    return FATTN_OK;
}

const char *fattn_last_error(void)
{
    return last_error;
}

const char *fattn_status_name(fattn_status status)
{
    static const char *const names[] = { "ok",          "bad_problem",  "unsupported",
                                         "environment", "policy",       "internal",
                                         "no_memory",   "build_failed", "device_fault",
                                         "bad_plan" };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "?";
}

void fattn_free(void *memory)
{
    free(memory);
}
