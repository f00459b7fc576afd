/* Copies expected values between host and GPU: to the host for the pictures and dumps of facts
 * repro, to the GPU for kernels that compare. */
#ifndef FACTS_EXPECTED_TRANSFER_H
#define FACTS_EXPECTED_TRANSFER_H

#include "case_reference.h"

/* Gets the expectation's arrays if they are on the host, else copies from the GPU, which
 * facts_expected_release frees. False: there are none, and *out is empty. */
bool facts_expected_on_host(facts_answer *out, const facts_reference *reference,
                            facts_tensor_id id);
void facts_expected_release(facts_answer *answer, const facts_reference *reference,
                            facts_tensor_id id);

/* Copies on the GPU of the expected statistics, which are computed on the host. */
typedef struct facts_expected_copies {
    void *want, *bound;
} facts_expected_copies;
/* Copies part->want and part->bound (`count` doubles each, on the host) to the GPU and sets them to
 * the copies. *out starts as { 0
 * }; call facts_expected_free in any case. Returns FATTN_OK, FATTN_NO_MEMORY or FATTN_DEVICE_FAULT.
 */
fattn_status facts_expected_upload(facts_expected_copies *out, facts_gpu *gpu, facts_part *part,
                                   size_t count);
void facts_expected_free(facts_expected_copies *copies, facts_gpu *gpu);

#endif
