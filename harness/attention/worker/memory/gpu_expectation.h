/* The oracle on the worker's GPU, with the interface of expectations: storages, and the arrays of O
 * and of the gradients, are at device addresses. */
#ifndef FACTS_ORACLE_GPU_H
#define FACTS_ORACLE_GPU_H

#include "numbers/expect/expectation.h"
#include "worker/gpu/worker_gpu.h"

typedef struct facts_there {
    facts_gpu *gpu;
    uint64_t scores; /* the scores that its last forward kept for these inputs (fref_gpu_scores) */
    bool broken;     /* an array was not made, and a lack of memory was not the reason */
} facts_there;

/* The oracle's owner is `there`. ENOTSUP: it cannot compute this problem; facts_gpu_error has the
 * reason. */
facts_oracle facts_oracle_on(facts_there *there);

#endif
