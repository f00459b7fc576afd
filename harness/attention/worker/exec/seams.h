/* The steps of a call of the library: launch, wait, fetch the outputs. The functions are in a file
 * of their own, so that a test program can replace them at link time (harness/test/liars). */
#ifndef FACTS_SEAMS_H
#define FACTS_SEAMS_H

#include "fattn/graph.h"
#include "worker/memory/case_memory.h"

/* The data of one execution, with the addresses of one set. */
typedef struct facts_call {
    const fattn_plan *plan;
    fattn_tensors tensors;
    const fattn_plan *forward; /* for a backward: the forward that runs before it and makes its O
                                  and Stats; NULL */
    fattn_tensors forward_tensors;
    const fattn_problem *as; /* the problem to run, if the plan has another shape; NULL */
    bool backward;
} facts_call;

/* A launcher for fattn_stream_time; `argument` is a facts_call. */
fattn_status facts_call_launch(void *argument, struct CUstream_st *stream);
/* Launches the call and waits for it. Returns the library's status; its message is in
 * fattn_last_error(). */
fattn_status facts_seam_run(facts_memory *memory, facts_call *call);
/* Calls facts_memory_mislead, before a call is recorded. Returns as facts_seam_run. */
fattn_status facts_seam_mislead(facts_memory *memory);
/* Replays the graph and waits for it. Returns as facts_seam_run. */
fattn_status facts_seam_replay(facts_memory *memory, const fattn_graph *graph);
/* Calls facts_memory_fetch for the run over `pattern`. */
fattn_status facts_seam_fetch(facts_memory *memory, facts_pattern pattern,
                              int64_t overrun[FACTS_PLACES]);

#endif
