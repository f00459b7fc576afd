/* Expected values on the other side: on the host, for facts repro's pictures and dumps; on the GPU, for kernels that judge. */
#ifndef FACTS_WORKER_DUE_H
#define FACTS_WORKER_DUE_H

#include "truth.h"

/* The expectation's arrays where they are here; else copies of what lies on the GPU, which facts_due_leave frees. False: it cannot
 * be had, and *out is empty. */
bool facts_due_here(facts_answer *out, const facts_truth *truth, facts_tensor_id id);
void facts_due_leave(facts_answer *answer, const facts_truth *truth, facts_tensor_id id);

/* Copies on the GPU of the expected statistics, which are computed on the host. */
typedef struct facts_lent {
    void *want, *bound;
} facts_lent;
/* part->want and part->bound (`count` doubles each, on the host) become copies on the GPU. *out starts as { 0 }; return it in any
 * case. Returns FATTN_OK, FATTN_NO_MEMORY or FATTN_DEVICE_FAULT. */
fattn_status facts_due_lend(facts_lent *out, facts_gpu *gpu, facts_part *part, size_t count);
void facts_due_return(facts_lent *lent, facts_gpu *gpu);

#endif
