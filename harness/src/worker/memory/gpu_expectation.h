/* The oracle on the worker's GPU, as the expectations see it: storages and arrays of O and the gradients at device addresses. */
#ifndef FACTS_ORACLE_GPU_H
#define FACTS_ORACLE_GPU_H

#include "numbers/expect/expectation.h"
#include "worker/gpu/worker_gpu.h"

/* Rows, and keys, that are answered (fref.h). */
typedef struct facts_sample {
    int64_t *rows, *keys, row_count, key_count;
} facts_sample;

typedef struct facts_there {
    facts_gpu *gpu;
    const facts_sample *sample; /* NULL: all */
    uint64_t scores;            /* that its last forward has left (fref_gpu_scores), of these inputs */
} facts_there;

/* Its owner is `there`. ENOTSUP: this problem is nothing for it; facts_gpu_error says what. */
facts_oracle facts_oracle_on(facts_there *there);

#endif
