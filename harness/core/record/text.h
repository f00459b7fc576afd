/* A line being written: a growing buffer. */
#ifndef FACTS_TEXT_H
#define FACTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct facts_text {
    char *data; /* NUL-terminated once something was added; NULL before */
    size_t length, capacity;
} facts_text;

void facts_text_clear(facts_text *text); /* keeps the memory */
void facts_text_free(facts_text *text);
void facts_text_add(facts_text *text, const char *bytes, size_t length);
void facts_text_puts(facts_text *text, const char *string);
void facts_text_format(facts_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD, so that a line always
 * stays valid. */
void facts_text_json(facts_text *text, const char *string, size_t length);

/* `"key":"value",` and its kind: members of an object, each followed by a comma. */
void facts_text_member(facts_text *text, const char *key, const char *value);
void facts_text_member_int(facts_text *text, const char *key, int64_t value);
void facts_text_member_bool(facts_text *text, const char *key, bool value);
/* Only if the value is neither NULL nor empty. */
void facts_text_member_if(facts_text *text, const char *key, const char *value);
/* `"key":["value",...],`. */
void facts_text_strings(facts_text *text, const char *key, const char *const *values, size_t count);
/* Closes an object: replaces the last comma by a brace. */
void facts_text_close(facts_text *text);

#endif
