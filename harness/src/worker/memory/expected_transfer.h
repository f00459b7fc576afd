/* Copies expected values between host and GPU: to the host for the pictures and dumps of facts repro, to the GPU for kernels that
 * compare. */
#ifndef FACTS_EXPECTED_TRANSFER_H
#define FACTS_EXPECTED_TRANSFER_H

#include "case_reference.h"

/* The expectation's arrays where they are here; else copies of what lies on the GPU, which facts_expected_release frees. False: it
 * cannot be had, and *out is empty. */
bool facts_expected_on_host(facts_answer *out, const facts_reference *reference, facts_tensor_id id);
void facts_expected_release(facts_answer *answer, const facts_reference *reference, facts_tensor_id id);

/* Copies on the GPU of the expected statistics, which are computed on the host. */
typedef struct facts_expected_copies {
    void *want, *bound;
} facts_expected_copies;
/* part->want and part->bound (`count` doubles each, on the host) become copies on the GPU. *out starts as { 0 }; return it in any
 * case. Returns FATTN_OK, FATTN_NO_MEMORY or FATTN_DEVICE_FAULT. */
fattn_status facts_expected_upload(facts_expected_copies *out, facts_gpu *gpu, facts_part *part, size_t count);
void facts_expected_free(facts_expected_copies *copies, facts_gpu *gpu);

#endif
