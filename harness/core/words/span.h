/* A piece of a longer text. */
#ifndef FACTS_SPAN_H
#define FACTS_SPAN_H

#include <stddef.h>

/* Not terminated. NULL where something is absent. */
typedef struct facts_span {
    const char *at;
    size_t length;
} facts_span;

#endif
