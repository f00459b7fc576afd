/* The builders: one for each form of graph in which cuDNN takes attention, and the features that
 * each can express. */
#ifndef FATTN_CUDNN_BUILDERS_H
#define FATTN_CUDNN_BUILDERS_H

#include "cudnn/backend/backend.h"
#include "problem/feature_set.h"

typedef struct fattn__builder {
    const char *name;
    uint64_t features; /* FATTN__HAS bits that it can express; a problem with others is "not
                          implemented" */
    fattn_status (*build)(fattn__graph *g, const fattn_problem *problem);
} fattn__builder;

/* Fills `g` with that builder. Refuses features that the composite graph cannot express
 * (FATTN_UNSUPPORTED) and features that the builder lacks (FATTN_INTERNAL). Returns
 * fattn__graph_status(g). */
fattn_status fattn__build(fattn__graph *g, const fattn_problem *problem);

#endif
