/* status.h: what a function of the library returns, and the sentence of a failure. Included by every other header. */
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
    FATTN_BAD_PROBLEM = 1, /* nobody could compute this, or an argument is wrong: the message names the field */
    FATTN_UNSUPPORTED = 2, /* this target refuses; the decision holds cuDNN's own reason */
    FATTN_ENVIRONMENT = 3, /* driver, NVRTC or libraries are missing or mixed: the target could not be asked */
    FATTN_POLICY = 4,      /* a rule refuses what is known to fail (with problem.guards_off the backend is asked all the same) */
    FATTN_INTERNAL = 5,    /* this library lacks it, or is wrong */
    FATTN_NO_MEMORY = 6,
    FATTN_BUILD_FAILED = 7, /* heuristics offered the configuration; compiling it failed */
    FATTN_DEVICE_FAULT = 8, /* a launch or copy failed; the context is not usable any more */
    FATTN_BAD_PLAN = 9      /* a saved plan is damaged, or of another build or device */
} fattn_status;

const char *fattn_status_name(fattn_status status); /* "bad_problem"; "?" when unknown. Static */

/* The sentence of this thread's last failure; "" when there was none. Valid until this thread's next failure. */
const char *fattn_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
