/* A JSON object as text. json_dumps is not used: if its buffer cannot grow at a key, jansson 2.14
 * omits the key and reports success. */
#ifndef FATTN_JSON_TEXT_H
#define FATTN_JSON_TEXT_H

#include <jansson.h>

/* The text is malloc'ed. NULL: out of memory. */
char *fattn__json_text(const json_t *object);

#endif
