/* Compiled plans: made from a configuration, saved, loaded and launched. */
#ifndef FATTN_CUDNN_PLAN_H
#define FATTN_CUDNN_PLAN_H

#include "core/engine.h"
#include "cudnn/backend/backend.h"
#include "cudnn/backend/steps.h"

/* fattn_plan.state of this engine. */
typedef struct fattn__compiled {
    fattn__desc desc;
    struct fattn__compiled *before; /* NULL, or a graph that is launched first: the rotations of a
                                       backward, in the same workspace */
    size_t scratch_bytes;           /* the library's part, before the engine's workspace */
    uint64_t graph;                 /* fattn__graph_id */
    int binding_count;
    int sum_count;
    bool overrides; /* a call may change extents and strides */
    int64_t uids[FATTN__MAX_BINDINGS];
    fattn__binding bindings[FATTN__MAX_BINDINGS]; /* the constants are stored here: cuDNN reads them
                                                     at every launch */
    fattn__graph_sum sums[FATTN__MAX_SUMS];       /* done after the launch, on its stream */
} fattn__compiled;

/* The members of fattn__engine. */
fattn_status fattn__cudnn_setup(fattn_plan *plan, const fattn_plan_options *options);
fattn_status fattn__cudnn_run(const fattn_plan *plan, const fattn_tensors *tensors,
                              struct CUstream_st *stream);
/* The same with the extents and strides of another problem. The caller has checked that problem. */
fattn_status fattn__cudnn_run_as(const fattn_plan *plan, const fattn_problem *problem,
                                 const fattn_tensors *tensors, struct CUstream_st *stream);
/* Sets these extents and strides in a variant pack that is not finalized. */
void fattn__overrides_give(fattn__steps *steps, fattn__desc pack, const fattn__compiled *compiled,
                           const fattn_problem *problem);
/* May the plan be run with other extents and strides? */
bool fattn__cudnn_overrides(const fattn_plan *plan);
/* The library's part of a run: sums the gradients that cuDNN left in the workspace. The device's
 * context must be current. */
fattn_status fattn__cudnn_sums(const fattn_plan *plan, const fattn_tensors *tensors,
                               struct CUstream_st *stream);
void fattn__cudnn_done(fattn_plan *plan);

/* cuDNN's native graphs: fills an empty CUgraph with this call. With `update`, sets the addresses
 * of this call in a graph that was filled before. The device's context is current. Returns
 * FATTN_OK; FATTN_UNSUPPORTED (this cuDNN or engine has no native graphs), FATTN_INTERNAL. */
fattn_status fattn__cudnn_fill_graph(const fattn_plan *plan, const fattn_tensors *tensors,
                                     void *graph, bool update);

/* The plan as cuDNN's JSON. *text is malloc'ed. Returns FATTN_OK; FATTN_INTERNAL, FATTN_NO_MEMORY.
 */
fattn_status fattn__cudnn_write(const fattn_plan *plan, char **text, size_t *count);

/* Loads a plan from cuDNN's JSON. plan->problem and plan->config are set; `graph` is the value of
 * fattn__cudnn_graph when the plan was written. Fills workspace_bytes and state. Returns FATTN_OK;
 * FATTN_BAD_PLAN. */
fattn_status fattn__cudnn_read(fattn_plan *plan, const char *text, size_t count, uint64_t graph);

/* Identifies the plan's graph. A saved plan must not be launched if the library now builds another
 * graph for the problem. */
uint64_t fattn__cudnn_graph(const fattn_plan *plan);

#endif
