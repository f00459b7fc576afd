/* Who spells a problem as a graph: a builder for each operation that cuDNN has for it, and what each can say. */
#ifndef FATTN_CUDNN_BUILDERS_H
#define FATTN_CUDNN_BUILDERS_H

#include "cudnn/backend/backend.h"
#include "problem/feature_set.h"

typedef struct fattn__builder {
    const char *name;
    uint64_t features; /* FATTN__HAS bits of what it spells; more is answered "not implemented" */
    fattn_status (*build)(fattn__graph *g, const fattn_problem *problem);
} fattn__builder;

/* Is a resolved problem spelled by a unified operation? As impl says; auto is the unified operation where it alone has the words (cumulative lengths, offsets in
 * tokens, a block mask, an unfused multiply-add), and otherwise the composite graph. */
bool fattn__is_unified(const fattn_problem *problem);
const fattn__builder *fattn__builder_of(const fattn_problem *problem);

/* Fills `g` by that builder. Refused is what the composite graph has no words for (FATTN_UNSUPPORTED) and what the builder lacks
 * (FATTN_INTERNAL). Returns fattn__graph_status(g). */
fattn_status fattn__build(fattn__graph *g, const fattn_problem *problem);

#endif
