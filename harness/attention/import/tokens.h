/* The tokens of a case while they are collected. */
#ifndef FACTS_IMPORT_TOKENS_H
#define FACTS_IMPORT_TOKENS_H

#include <stdarg.h>
#include <stdio.h>

#include "language/case.h"

typedef struct tokens {
    char between;
    size_t length;
    char text[4 * FACTS_CASE_TEXT];
} tokens;

__attribute__((format(printf, 2, 3))) static inline void add(tokens *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (t->length > 0 && t->length + 1 < sizeof t->text)
        t->text[t->length++] = t->between;
    int wrote = vsnprintf(t->text + t->length, sizeof t->text - t->length, format, arguments);
    va_end(arguments);
    if (wrote > 0 && (size_t)wrote < sizeof t->text - t->length)
        t->length += (size_t)wrote;
}

#endif
