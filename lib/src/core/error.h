/* The message of this thread's last failure. Status codes are for programs; the message is for
 * people. */
#ifndef FATTN_ERROR_H
#define FATTN_ERROR_H

#include "fattn/fattn.h"

/* Keeps the message (one line; cut at 1023 bytes) for fattn_last_error(). */
void fattn__keep_sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fattn__fail(status, format, ...) keeps the message and evaluates to `status`, so that a failure
 * is one statement. It is a macro, so that compilers and analyzers see that a failure is never
 * FATTN_OK. */
#define fattn__fail(status, ...) (fattn__keep_sentence(__VA_ARGS__), (status))

/* BAD_PROBLEM if one of `count` arguments is NULL; `names` are theirs: "out, context". */
fattn_status fattn__need(const char *names, const void *const *given, size_t count);

/* Returns from a public function that was called with NULL for one of these arguments. */
#define NEED(...)                                                                                  \
    TRY(fattn__need(#__VA_ARGS__, (const void *const[]){ __VA_ARGS__ },                            \
                    sizeof((const void *const[]){ __VA_ARGS__ }) / sizeof(void *)))

/* Returns from the caller if the expression fails. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        const fattn_status status_ = (expr);                                                       \
        if (status_ != FATTN_OK)                                                                   \
            return status_;                                                                        \
    } while (0)

#endif
