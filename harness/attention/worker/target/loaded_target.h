/* One build on one device: opened once, and tested with a control case before any verdict. */
#ifndef FACTS_TARGET_H
#define FACTS_TARGET_H

#include "problem/case_problem.h"
#include "words/fail.h"
#include <fattn/fattn.h>
#include <jansson.h>

#include "driver/driver.h"
#include "plans.h"
#include "worker/gpu/worker_gpu.h"

struct facts_worker {
    fattn_context *context;
    fattn_context_info info;
    facts_device device;
    struct CUstream_st *stream; /* NULL if the device runs nothing */
    facts_gpu *gpu; /* its kernels and oracle; NULL: none, and gpu_error has the reason */
    char gpu_error[256];
    facts_oracle_choice oracle;
    double since_ms; /* the time of opening */
    bool ran;        /* an engine was launched in this process */
    bool lost; /* a sticky device error, or a write outside of the engine's buffers: the context is
                  dead, or cannot be trusted */
    bool has_graphs;           /* the device can do CUDA graphs */
    facts_plans *plans;        /* owned */
    struct facts_watch *watch; /* owned; the GPU's clocks; NULL: not opened yet, or not available */
    bool peak_measured;        /* it was measured, or the attempt failed */
    char cudnn_dir[FACTS_REQUEST_PATH];
};

/* Makes the context, asks the control case (bf16, d 128, no mask; not on the CPU), and checks the
 * memory map. False: *reply is
 * {"failed":…}. */
bool facts_target_open(facts_worker *out, const facts_target_request *request, json_t **reply);
/* Loads the kernels of a GPU and launches one: a device that fails this in a fresh process would
 * fail every case. Always fills *reply with {"ready":…} or {"failed":…}; returns true for ready. */
bool facts_target_prove(facts_worker *worker, json_t **reply);
/* Releases the target. A lost context is not touched. */
void facts_target_close(facts_worker *worker);

/* policy= of a case as a policy of the library, pushed on this thread while the case is answered.
 */
#define FACTS_NO_POLICY (-1)

/* Pushes the policy of the case for this worker's device. The CPU has one backend, so nothing is
 * pushed there. *depth is for facts_policy_end, also after a failure. Returns FATTN_OK, or the
 * library's status with one line in `error`. */
fattn_status facts_policy_begin(int *depth, const facts_worker *worker, facts_policy policy,
                                facts_error *error);
void facts_policy_end(int depth);
/* May this backend answer on this worker's device? */
bool facts_policy_allows(const facts_worker *worker, facts_policy policy, fattn_backend backend);

/* Checks the layouts that the library derives for a caller who gives none. The rule of fattn.h is
 * computed here in another way. */
/* For a problem with broadcast inputs: does fattn_match_layout give O the layout of Q, and the
 * gradients those of their inputs, as it promises? False: `why` has the first wrong one. */
bool facts_layouts_hold(const facts_problem *problem, facts_error *error);

#endif
