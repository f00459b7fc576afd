/* graph.h: CUDA graphs, for programs without a CUDA runtime. On the CPU and for a described device all functions return FATTN_UNSUPPORTED; with
 * a driver without graph functions, FATTN_ENVIRONMENT.
 *
 * Any stream capture may capture fattn_forward and fattn_backward. The functions here are thin wrappers of the driver's. A graph may hold
 *     several
 * calls, for example a forward and the backward that reads its O and Stats.
 *
 * Addresses  a graph holds the addresses of the call, also of the workspace. They must stay valid. Two graphs, or a graph and a call, with the
 *            same workspace may not run at once. Every launch reads the values at these addresses again.
 * Plans      below cuDNN 9.28 a graph does not hold its plan: a launch after fattn_plan_destroy uses freed memory. From 9.28 on it holds the
 *            needed parts of cuDNN's plan. A graph keeps its context, as a plan does.
 * Captures   during a capture the thread may not allocate, copy or synchronise: the functions return FATTN_BAD_PROBLEM, and the driver ends the
 *            capture. So make plans, buffers and streams before. Also call each plan once before a capture, because libraries load kernels at
 *            their first launch.
 */
#ifndef FATTN_GRAPH_H
#define FATTN_GRAPH_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fattn_graph fattn_graph; /* a recorded graph and its executable */

/* Records the work that is enqueued on `stream` between the two calls, without running it (mode thread-local). A call that the library refuses
 * does not change the capture. After a failure of the driver, call fattn_capture_end all the same; it fails. A graph without work has 0 nodes,
 * and its launch does nothing.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (the NULL stream; a capture is active already, or none is; the driver ended it); FATTN_NO_MEMORY;
 *          FATTN_DEVICE_FAULT. *out is NULL then. */
fattn_status fattn_capture_begin(fattn_context *context, struct CUstream_st *stream);
fattn_status fattn_capture_end(fattn_graph **out, fattn_context *context,
                               struct CUstream_st *stream);

/* cuDNN's native graph (from 9.5), made from the plan and these addresses, without a stream. The library checks the addresses as for a call.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (this version, backend or engine has none, with cuDNN's words); FATTN_BAD_PROBLEM as the call. */
fattn_status fattn_graph_native(fattn_graph **out, const fattn_plan *plan,
                                const fattn_tensors *tensors);

/* Gives the graph other addresses: a native graph through cuDNN's update, a captured graph through
 * a newer capture that updates the executable. FATTN_UNSUPPORTED if the driver needs a new
 * executable. */
fattn_status fattn_graph_native_update(fattn_graph *graph, const fattn_plan *plan,
                                       const fattn_tensors *tensors);
fattn_status
fattn_graph_capture_update(fattn_graph *graph,
                           fattn_graph *newer); /* consumes `newer`, also when it fails */

/* Enqueues the whole graph; asynchronous. */
fattn_status fattn_graph_launch(const fattn_graph *graph, struct CUstream_st *stream);
size_t fattn_graph_node_count(const fattn_graph *graph);
void fattn_graph_destroy(fattn_graph *graph); /* NULL is allowed. Not while the graph runs */

#ifdef __cplusplus
}
#endif
#endif
