/* Errors of the harness: a line for people. A function that can fail takes `facts_error *error`
 * last. */
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
/* The number of bytes of the UTF-8 character at `text` if a terminal obeys it, or 0. */
size_t facts_obeyed(const char *text);
/* Replaces the characters that a terminal obeys by '?': control characters, also those of two
 * bytes, marks that change the direction of a text, and bytes that are not UTF-8. */
void facts_plain(char *text);

/* These functions fill *error, unless it is NULL, and cut a text that does not fit. */

/* Returns false. The text is plain: a quoted file or log may be hostile. */
bool facts_fail(facts_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for functions that return a number: returns `status`. */
int facts_fail_as(int status, facts_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns false. The text is "where:line:column: sentence". What comes from outside is passed
 * through facts_quote. */
bool facts_fail_at(facts_error *error, const char *where, int line, int column, const char *format,
                   ...) __attribute__((format(printf, 5, 6)));

/* What is wrong with a value. */
typedef struct facts_value_fault {
    size_t at;      /* letter of the value, from 0 */
    char text[360]; /* "what is wrong; what is allowed" */
} facts_value_fault;

/* Fills *fault and returns false. */
bool facts_fault(facts_value_fault *fault, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
