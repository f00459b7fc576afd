/* The steps of which backend.c makes its operations, for files that make operations of their own. Each does nothing once the graph
 * has failed; a failure sticks. */
#ifndef FATTN_CUDNN_BACKEND_PARTS_H
#define FATTN_CUDNN_BACKEND_PARTS_H

#include "backend.h"

/* A descriptor that the graph owns. `what` is its name in a message. */
fattn__desc fattn__part(fattn__graph *g, int type, const char *what);
void fattn__part_set(fattn__graph *g, fattn__desc desc, int name, int type, int64_t count, const void *elements);
/* A NULL value is left out. */
void fattn__part_desc(fattn__graph *g, fattn__desc desc, int name, fattn__desc value);
void fattn__part_finalize(fattn__graph *g, fattn__desc desc, const char *what);
/* Finalizes an operation and puts it at the end of the graph. */
void fattn__part_append(fattn__graph *g, fattn__desc operation, const char *what);

#endif
