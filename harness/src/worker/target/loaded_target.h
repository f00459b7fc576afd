/* One build on one device: made once, proved with a control case before any verdict. */
#ifndef FACTS_TARGET_H
#define FACTS_TARGET_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "errata.h"
#include "plans.h"
#include "request.h"
#include "worker/gpu/worker_gpu.h"

/* The size from which the expected values of a case are computed in slabs (slabs.h). */
typedef struct facts_slab_limits {
    double most_bytes;    /* of doubles, for all answers at once */
    double slab_bytes;    /* of one slab */
    double most_products; /* beyond it a sample */
} facts_slab_limits;

typedef struct facts_worker {
    fattn_context *context;
    fattn_context_info info;
    facts_device device;
    struct CUstream_st *stream; /* NULL where nothing runs */
    facts_gpu *gpu;             /* kernels and oracle there; NULL: none, and gpu_error says why */
    char gpu_error[256];
    facts_oracle_choice oracle;
    double since_ms; /* when it was opened */
    const facts_slab_limits *limits; /* NULL: those of a GPU of today */
    bool ran;                        /* an engine was launched in this process */
    bool lost;       /* a sticky device error, or a write outside of what it was given: the context is dead, or nothing in it can be
                        trusted */
    bool has_graphs; /* CUDA graphs can be had */
    facts_plans *plans;        /* owned */
    struct facts_job *kept;    /* the case that is launched again: serve.c's; NULL: none */
    struct facts_watch *watch; /* owned; of the GPU's clocks; NULL: not asked for yet, or none */
    bool peak_measured;        /* it was tried once */
    char cudnn_dir[FACTS_REQUEST_PATH];
    facts_errata *errata; /* what policy=guard adds; NULL: none, and errata_error says why */
    facts_error errata_error;
} facts_worker;

/* Makes the context, asks the control case (bf16, d 128, no mask; not of the cpu), verifies the memory map. False: *reply is
 * {"failed":…}. */
bool facts_target_open(facts_worker *out, const facts_target_request *request, json_t **reply);
/* Loads the kernels of a GPU and launches one: what a device does not do in a fresh process it will not do for a case. Always fills
 * *reply with {"ready":…} or {"failed":…}; returns true when ready. */
bool facts_target_prove(facts_worker *worker, json_t **reply);
/* Releases; forgets a lost context. */
void facts_target_close(facts_worker *worker);

#endif
