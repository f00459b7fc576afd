/* cuDNN's log messages about a refusal. cuDNN gives its reasons only to its log callback. The
 * library sets the callback once, for errors and warnings; the callback writes into the buffer that
 * the thread has opened. */
#ifndef FATTN_CUDNN_LOG_H
#define FATTN_CUDNN_LOG_H

#include <stddef.h>

#include "core/decision.h"

typedef struct fattn__log_buffer {
    char *text; /* lines, ended by a NUL; NULL while empty */
    size_t used;
    struct fattn__log_buffer *outer;
} fattn__log_buffer;

/* Opens a buffer for this thread. Buffers nest; each open needs its close. */
void fattn__log_open(fattn__log_buffer *buffer);
/* Stops collecting. The text stays until fattn__log_free. */
void fattn__log_close(fattn__log_buffer *buffer);
void fattn__log_free(fattn__log_buffer *buffer);

/* The innermost sentence of a failed step: "CUDNN_STATUS_X: sentence (condition)", or cuDNN's name
 * of `status` when nothing was logged. */
void fattn__log_sentence(const fattn__log_buffer *buffer, const char *status, char *out,
                         size_t capacity);

void fattn__log_callback(int severity, void *user, const void *debug, const char *message);

/* Reads the refusals from a log or from cudnnGetLastErrorString: one for each "Warning:" or
 * "Error:" line. cuDNN gives them in order, for each engine the innermost first. *first is the
 * index of the reason: the first line after the first "engineConfig", or the first line if no
 * engine was tried; -1 if there is none. Returns FATTN_OK or FATTN_NO_MEMORY. */
fattn_status fattn__log_refusals(fattn_decision *out, const char *text, int *first);

#endif
