/* An object as text. Not json_dumps: where its buffer cannot grow at a key, jansson 2.14 leaves the key out and reports success. */
#ifndef FATTN_JSON_TEXT_H
#define FATTN_JSON_TEXT_H

#include <jansson.h>

/* malloc'ed; NULL: no memory. */
char *fattn__json_text(const json_t *object);

#endif
