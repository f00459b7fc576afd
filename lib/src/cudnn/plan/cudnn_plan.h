/* Compiled plans: made from a configuration, written, read back, and launched. */
#ifndef FATTN_CUDNN_PLAN_H
#define FATTN_CUDNN_PLAN_H

#include "core/engine.h"
#include "cudnn/backend/backend.h"
#include "cudnn/backend/steps.h"

/* fattn_plan.state of this engine. */
typedef struct fattn__compiled {
    fattn__desc desc;
    struct fattn__compiled *before; /* another graph that is launched first, in the same workspace: the rotations of a backward; or NULL */
    size_t scratch_bytes; /* ours, in front of the engine's workspace */
    uint64_t graph;       /* fattn__graph_id */
    int binding_count;
    int sum_count;
    bool overrides; /* extents and strides may be given at the call */
    int64_t uids[FATTN__MAX_BINDINGS];
    fattn__binding bindings[FATTN__MAX_BINDINGS]; /* the constants live here: cuDNN reads them at every launch */
    fattn__graph_sum sums[FATTN__MAX_SUMS];       /* done after the launch, on its stream */
} fattn__compiled;

/* The members of fattn__engine. */
fattn_status fattn__cudnn_setup(fattn_plan *plan, const fattn_plan_options *options);
fattn_status fattn__cudnn_run(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream);
/* The same with the extents and strides of another problem, which has been checked. */
fattn_status fattn__cudnn_run_as(const fattn_plan *plan, const fattn_problem *problem, const fattn_tensors *tensors,
                                 struct CUstream_st *stream);
/* override.c: gives them to a pack that is not finalized. */
void fattn__overrides_give(fattn__steps *steps, fattn__desc pack, const fattn__compiled *compiled, const fattn_problem *problem);
/* May the plan be run so? */
bool fattn__cudnn_overrides(const fattn_plan *plan);
/* The part of a run that is ours: sums the gradients that cuDNN left in the workspace. Called with the device's context current. */
fattn_status fattn__cudnn_sums(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream);
void fattn__cudnn_done(fattn_plan *plan);

/* cuDNN's native graphs: fills an empty CUgraph with this call, or (`update`) gives one that was filled so the addresses of this
 * call. The device's context is current. Returns FATTN_OK; FATTN_UNSUPPORTED (this cuDNN or engine has none), FATTN_INTERNAL. */
fattn_status fattn__cudnn_fill_graph(const fattn_plan *plan, const fattn_tensors *tensors, void *graph, bool update);

/* The plan as cuDNN's JSON. *text is malloc'ed. Returns FATTN_OK; FATTN_INTERNAL, FATTN_NO_MEMORY. */
fattn_status fattn__cudnn_write(const fattn_plan *plan, char **text, size_t *count);

/* The other way: plan->problem and plan->config are set, `graph` is what fattn__cudnn_graph gave when the plan was written. Fills
 * workspace_bytes and state. Returns FATTN_OK; FATTN_BAD_PLAN. */
fattn_status fattn__cudnn_read(fattn_plan *plan, const char *text, size_t count, uint64_t graph);

/* Identifies the plan's graph: a plan of a library that builds its graphs otherwise must not be launched. */
uint64_t fattn__cudnn_graph(const fattn_plan *plan);

#endif
