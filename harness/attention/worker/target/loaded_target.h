/* One build on one device: opened once, and tested with a control case before any verdict. */
#ifndef FACTS_TARGET_H
#define FACTS_TARGET_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "driver/driver.h"
#include "problem/case_problem.h"
#include "words/fail.h"
#include "worker/gpu/worker_gpu.h"

/* The plans of one worker. */
typedef struct facts_plans {
    int folder; /* of the current request; -1: none */
    /* Why a file of the folder was not used and was made again, the first of the request; "": every
     * file was used. */
    char not_loaded[300];
    char not_kept[160]; /* why a plan of this request is not in the folder, or "" */
} facts_plans;

/* Returns FATTN_OK; FATTN_NO_MEMORY. Free it. */
fattn_status facts_plans_open(facts_plans **out);
/* Sets the folder of one request. With "", or a folder that is not the user's own, nothing is kept
 * or loaded. */
void facts_plans_begin(facts_plans *plans, const char *folder);
void facts_plans_end(facts_plans *plans);

/* As fattn_plan_create, but loads the plan from the folder if its file is whole, and made by this
 * build of cuDNN for this device. A damaged file is dropped. A plan that is compiled is saved in the
 * folder. `plans` and `loaded` may be NULL. */
fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                            const fattn_problem *problem, const fattn_plan_options *options,
                            bool *loaded);

/* One build on one device: opened once, and tested with a control case before any verdict. */
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

/* The cases that a target accepts near one that it refused. */
/* Adds nearest[], nearest first: `change` ("head dims 128/128"), and `case`, the case with that
 * change, if the language can express it; and nearest_asked, the number of problems that were asked
 * (fattn_explain). Adds reason.meaning, a sentence about the keys that decide. Adds nothing if the
 * target could not be asked. */
void facts_row_nearest(json_t *row, fattn_context *context, const facts_case *c,
                       const fattn_problem *refused);

/* The decision on the forward that a backward needs, and its case; NULL: no case has it. The caller
 * destroys it. */
fattn_decision *facts_decide_forward(char name[FACTS_NAME_MAX], fattn_context *context,
                                     const facts_case *backward);

#endif
