/* graph.h: CUDA graphs, for programs without a CUDA runtime. On the CPU, and for a described device, everything here
 * answers FATTN_UNSUPPORTED; with a driver that lacks a function of graphs, FATTN_ENVIRONMENT.
 *
 * fattn_forward and fattn_backward may be captured by anybody's stream capture; these functions are the driver's, thinly. Several calls
 * (a forward, then the backward that reads its O and Stats) may go into one graph.
 *
 * Addresses  a graph holds the addresses of the call, workspace included: they must stay valid, and no two graphs (or a graph and a call)
 *            with one workspace may run at once. Values in them are read anew by every launch.
 * Plans      below cuDNN 9.28 a graph does not hold its plan: launching it after fattn_plan_destroy uses freed memory. From 9.28 on it holds
 *            what it needs of cuDNN's plan. A graph keeps its context, as a plan does.
 * Captures   while a stream is captured its thread may not allocate, copy or synchronise: FATTN_BAD_PROBLEM here, and the driver gives the
 *            capture up. So make plans, buffers and streams before, and call each plan once outside of a capture: libraries load kernels at
 *            their first launch.
 */
#ifndef FATTN_GRAPH_H
#define FATTN_GRAPH_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fattn_graph fattn_graph; /* a recorded graph and its executable */

/* What is enqueued on `stream` between the two calls is recorded, not run (mode thread-local). A call of ours that is refused before it
 * launches anything leaves the capture as it was; after a failure of the driver inside, end still has to be called, and fails. When nothing
 * was enqueued the graph has 0 nodes, and launching it does nothing.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (the NULL stream; a capture is on already, or none is; it was given up); FATTN_NO_MEMORY;
 *          FATTN_DEVICE_FAULT. *out is NULL then. */
fattn_status fattn_capture_begin(fattn_context *context, struct CUstream_st *stream);
fattn_status fattn_capture_end(fattn_graph **out, fattn_context *context, struct CUstream_st *stream);

/* cuDNN's own way (from 9.5): a graph made of the plan and these addresses, without a stream. The addresses are checked as those of a call.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (this version, backend or engine has none, with cuDNN's words); FATTN_BAD_PROBLEM as the call. */
fattn_status fattn_graph_native(fattn_graph **out, const fattn_plan *plan, const fattn_tensors *tensors);

/* The graph from now on uses other addresses: a native one through cuDNN's update, a captured one through a new capture that is laid over
 * the executable. FATTN_UNSUPPORTED when the driver wants a new executable. */
fattn_status fattn_graph_native_update(fattn_graph *graph, const fattn_plan *plan, const fattn_tensors *tensors);
fattn_status fattn_graph_capture_update(fattn_graph *graph, fattn_graph *newer); /* consumes `newer`, also when it fails */

/* Enqueues the whole graph; asynchronous. */
fattn_status fattn_graph_launch(const fattn_graph *graph, struct CUstream_st *stream);
size_t fattn_graph_node_count(const fattn_graph *graph);
void fattn_graph_destroy(fattn_graph *graph); /* NULL is fine; not while it runs */

#ifdef __cplusplus
}
#endif
#endif
