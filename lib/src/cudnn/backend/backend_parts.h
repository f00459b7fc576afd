/* The steps that backend.c builds its operations from, for files that build other operations. After
 * the first failure of the graph, each step does nothing. */
#ifndef FATTN_CUDNN_BACKEND_PARTS_H
#define FATTN_CUDNN_BACKEND_PARTS_H

#include "backend.h"

/* A descriptor that the graph owns. `what` is its name in a message. */
fattn__desc fattn__part(fattn__graph *g, int type, const char *what);
void fattn__part_set(fattn__graph *g, fattn__desc desc, int name, int type, int64_t count,
                     const void *elements);
/* A NULL value is left out. */
void fattn__part_desc(fattn__graph *g, fattn__desc desc, int name, fattn__desc value);
void fattn__part_finalize(fattn__graph *g, fattn__desc desc, const char *what);
/* Finalizes an operation and adds it to the end of the graph. */
void fattn__part_append(fattn__graph *g, fattn__desc operation, const char *what);

#endif
