/* The one shape of an error in the harness: a line for people. Functions that fill one take `facts_error *error` last. */
#ifndef FACTS_FAIL_H
#define FACTS_FAIL_H

#include <stdbool.h>
#include <stddef.h>

/* What is wrong, where, and what to do about it. */
typedef struct facts_error {
    char text[640];
    int line, column; /* from 1, of facts_fail_at */
} facts_error;

/* Bytes of the UTF-8 character at `text`, 0 when it is none. */
size_t facts_utf8_length(const char *text, size_t length);
/* Bytes of the UTF-8 character at `text` that a terminal would obey, or 0. */
size_t facts_obeyed(const char *text);
/* Replaces what a terminal would obey by '?': control characters, also those of two bytes, marks that turn the direction of a
 * text, and bytes that are no UTF-8. */
void facts_plain(char *text);

/* All fill *error, unless it is NULL. A text that does not fit is cut. */

/* Returns false. The text is plain: a quoted file or log may be hostile. */
bool facts_fail(facts_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for functions that answer with a number: returns `status`. */
int facts_fail_as(int status, facts_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Returns false. The text is "where:line:column: sentence". What comes from outside is passed through facts_quote. */
bool facts_fail_at(facts_error *error, const char *where, int line, int column, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
