/* status.h: the status that functions return, and the sentence of a failure. Every other header
 * includes it. */
#ifndef FATTN_STATUS_H
#define FATTN_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fattn_status {
    FATTN_OK = 0,
    FATTN_BAD_PROBLEM =
        1, /* the problem makes no sense, or an argument is wrong: the message names the field */
    FATTN_UNSUPPORTED = 2, /* this target refuses; the decision has cuDNN's reason */
    FATTN_ENVIRONMENT =
        3, /* driver, NVRTC or libraries are missing or mixed: the target could not be asked */
    FATTN_POLICY = 4,   /* a guard refuses a problem that is known to fail; problem.guards_off asks
                           the backend anyway */
    FATTN_INTERNAL = 5, /* the library does not implement it, or has a bug */
    FATTN_NO_MEMORY = 6,
    FATTN_BUILD_FAILED = 7, /* heuristics offered the configuration; compiling it failed */
    FATTN_DEVICE_FAULT = 8, /* a launch or copy failed; the context cannot be used any more */
    FATTN_BAD_PLAN = 9      /* a saved plan is damaged, or of another build or device */
} fattn_status;

const char *fattn_status_name(fattn_status status); /* "bad_problem"; "?" when unknown. Static */

/* The sentence of this thread's last failure; "" when there was none. Valid until this thread's
 * next failure. */
const char *fattn_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
