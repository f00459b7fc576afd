/* One build on one device: made once, proved with a control case before any verdict. */
#ifndef FACTS_TARGET_H
#define FACTS_TARGET_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "gpu.h"
#include "request.h"

typedef struct facts_worker {
    fattn_context *context;
    fattn_context_info info;
    facts_device device;
    struct CUstream_st *stream; /* NULL where nothing runs */
    facts_gpu *gpu;             /* kernels and oracle there; NULL: none, and gpu_error says why */
    char gpu_error[256];
    facts_oracle_choice oracle;
    bool lost;                  /* a sticky device error: the context is dead */
    bool has_graphs;            /* CUDA graphs can be had */
    fattn_rules *errata;        /* what policy=guard adds; NULL: none, and errata_error says why */
    char errata_error[300];
} facts_worker;

/* Makes the context, asks the control case (bf16, d 128, no mask; not of the cpu), verifies the memory map. Always fills *reply with
 * {"ready":…} or {"failed":…}; returns true when ready. */
bool facts_target_open(facts_worker *out, const facts_target_request *request, json_t **reply);
/* Releases; forgets a lost context. */
void facts_target_close(facts_worker *worker);

#endif
