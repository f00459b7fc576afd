/* graph.h: CUDA graphs, for programs without a CUDA runtime. Included by fattn.h. On the CPU everything here answers FATTN_UNSUPPORTED.
 *
 * fattn_forward and fattn_backward may be captured by anybody's stream capture; these functions are the driver's, thinly.
 */
#ifndef FATTN_GRAPH_H
#define FATTN_GRAPH_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fattn_graph fattn_graph; /* a recorded graph and its executable */

/* What is enqueued on `stream` between the two calls is recorded, not run (mode thread-local). After a failure inside, end still has to
 * be called, and fails. */
fattn_status fattn_capture_begin(fattn_context *context, struct CUstream_st *stream);
fattn_status fattn_capture_end(fattn_graph **out, fattn_context *context, struct CUstream_st *stream);

/* cuDNN's own way (from 9.5): a graph made of the plan and these addresses, without a stream.
 * Returns  FATTN_OK; FATTN_UNSUPPORTED (this version, backend or engine has none, with cuDNN's words). */
fattn_status fattn_graph_native(fattn_graph **out, const fattn_plan *plan, const fattn_tensors *tensors);

/* The graph from now on uses other addresses: a native one through cuDNN's update, a captured one through a new capture that is laid over
 * the executable. FATTN_UNSUPPORTED when the driver wants a new executable. */
fattn_status fattn_graph_native_update(fattn_graph *graph, const fattn_plan *plan, const fattn_tensors *tensors);
fattn_status fattn_graph_capture_update(fattn_graph *graph, fattn_graph *newer); /* consumes `newer`, also when it fails */

fattn_status fattn_graph_launch(const fattn_graph *graph, struct CUstream_st *stream);
size_t fattn_graph_node_count(const fattn_graph *graph);
void fattn_graph_destroy(fattn_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
