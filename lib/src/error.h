/* The sentence of this thread's last failure. Codes are for programs; this is for people. */
#ifndef FATTN_ERROR_H
#define FATTN_ERROR_H

#include "fattn/fattn.h"

/* Keeps the sentence (one line; cut at 1023 bytes) for fattn_last_error() and returns `status`, so that a failure is one statement.
 */
fattn_status fattn__fail(fattn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
