/* One case with everything that its configurations share: memory, expected values, and whether the
 * data can detect an error. */
#ifndef FACTS_CASE_REFERENCE_H
#define FACTS_CASE_REFERENCE_H

#include "case_memory.h"
#include "dropout_kept.h"
#include "numbers/expect/expectation.h"
#include "worker/gpu/worker_gpu.h"

/* The oracle on the worker's GPU, with the interface of expectations: storages, and the arrays of O
 * and of the gradients, are at device addresses. */
typedef struct facts_there {
    facts_gpu *gpu;
    uint64_t scores; /* the scores that its last forward kept for these inputs (fref_gpu_scores) */
    bool broken;     /* an array was not made, and a lack of memory was not the reason */
} facts_there;

typedef struct facts_reference {
    facts_memory memory;
    facts_expectation expectation;
    facts_kept keep;           /* the scores that dropout kept */
    int backend;               /* computes the case (fattn_backend), or FACTS_BACKEND_NOT_KNOWN */
    facts_constants constants; /* the constants that the expectation was computed with */
    bool weighed;              /* `untrusted` is valid: set by facts_judging_all */
    bool untrusted[FACTS_TENSOR_COUNT]; /* a wrong answer of this tensor could pass */
    facts_oracle oracle;                /* the oracle for memory on the GPU */
    facts_there there;                  /* the owner of the oracle */
    double fill_ms, oracle_ms;          /* the time of making it, with later renewals */
} facts_reference;

/* The program that computed the expected values: "gpu" or "cpu". */
const char *facts_reference_oracle(const facts_reference *reference);

/* A change of tensors (facts_memory_storage). Returns FATTN_OK, or a status with the sentence in
 * `error`. */
typedef fattn_status (*facts_change)(void *owner, facts_memory *memory, facts_error *error);

/* The changes that a further run of a check makes to the data of the fill. */
typedef struct facts_reference_edit {
    facts_change inputs; /* changes inputs, before the reference reads them */
    facts_change given;  /* backward: changes O and Stats, after the reference's were written */
    void *owner;
    bool here; /* the case itself is on the host */
} facts_reference_edit;

typedef struct facts_making {
    facts_worker *worker;
    const facts_problem *problem;
    const fattn_plan *plan; /* the plan that is compared; NULL: there is none yet */
    const facts_who
        *who;  /* the engine whose constants the error model uses; NULL: the starting constants */
    bool here; /* memory and reference are on the host, even if there is a GPU */
} facts_making;

/* The three steps that make the reference of a case: its memory, the data of the inputs, and the
 * reference results. A backward first gets O and Stats, as inputs. edit: NULL for the case with its
 * own fill. Destroy the reference also after a failure. Returns FATTN_OK, or a status with the
 * sentence in `error`. facts_reference_compute returns FATTN_INTERNAL if the reference of this side
 * cannot compute the case. */
fattn_status facts_reference_create(facts_reference *out, const facts_making *making,
                                    facts_error *error);
fattn_status facts_reference_fill(facts_reference *reference, const facts_reference_edit *edit,
                                  facts_error *error);
fattn_status facts_reference_compute(facts_reference *reference, const facts_reference_edit *edit,
                                     facts_error *error);
/* Sets the engine that is compared next. If it has other constants of the error model, the expected
 * values are computed again. Returns 0, or an errno. */
int facts_reference_judges(facts_reference *reference, const facts_who *who);
/* Computes the expected values again: for a backward, from the O and Stats that are in memory now
 * (pattern A). Returns 0, or an errno. */
int facts_reference_renew(facts_reference *reference);
/* Changes the seed of dropout; the case keeps its offset. The expected values are not computed
 * again: call facts_reference_renew. Returns FATTN_OK, or a status with the sentence in `error`. */
fattn_status facts_reference_reseed(facts_reference *reference, int64_t seed, facts_error *error);
/* For a backward whose forward has run: are the forward's O and Stats (pattern A) close enough to
 * the reference's to test the backward? If not, the reference's O and Stats are the inputs from now
 * on, and *kept is false. Returns 0, or an errno. */
int facts_reference_keep_own(facts_reference *reference, bool *kept);
void facts_reference_destroy(facts_reference *reference);

/* Copies expected values between host and GPU: to the host for the pictures and dumps of facts
 * repro, to the GPU for kernels that compare. */
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
