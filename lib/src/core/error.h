/* The sentence of this thread's last failure. Codes are for programs; this is for people. */
#ifndef FATTN_ERROR_H
#define FATTN_ERROR_H

#include "fattn/fattn.h"

/* Keeps the sentence (one line; cut at 1023 bytes) for fattn_last_error(). */
void fattn__keep_sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* fattn__fail(status, format, ...): keeps the sentence and is `status`, so that a failure is one statement. Not a function: who reads the
 * caller, compiler or analyzer, sees that a failure is never FATTN_OK. */
#define fattn__fail(status, ...) (fattn__keep_sentence(__VA_ARGS__), (status))

/* Passes a failure on. */
#define TRY(expr)                                                                                                                  \
    do {                                                                                                                           \
        const fattn_status status_ = (expr);                                                                                       \
        if (status_ != FATTN_OK)                                                                                                   \
            return status_;                                                                                                        \
    } while (0)

#endif
