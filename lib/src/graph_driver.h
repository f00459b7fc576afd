/* The driver's functions for CUDA graphs. Apart from cuda.h, because a driver may lack them and still run everything else. */
#ifndef FATTN_GRAPH_DRIVER_H
#define FATTN_GRAPH_DRIVER_H

#include "core/context.h"

typedef struct CUgraph_st *fattn__cuda_graph;
typedef struct CUgraphExec_st *fattn__cuda_executable;

typedef struct fattn__graph_update {
    int result;
    void *node, *from;
} fattn__graph_update; /* CUgraphExecUpdateResultInfo */

enum { CU_CAPTURE_MODE_THREAD_LOCAL = 1 };

/* X(member, exported name, arguments); all return CUresult. */
#define FATTN__GRAPH_FUNCTION_LIST(X)                                                                                              \
    X(capture_begin, cuStreamBeginCapture_v2, (struct CUstream_st * stream, int mode))                                             \
    X(capture_end, cuStreamEndCapture, (struct CUstream_st * stream, fattn__cuda_graph * out))                                     \
    X(create, cuGraphCreate, (fattn__cuda_graph * out, unsigned flags))                                                            \
    X(destroy, cuGraphDestroy, (fattn__cuda_graph graph))                                                                          \
    X(nodes, cuGraphGetNodes, (fattn__cuda_graph graph, void **out, size_t *count))                                                \
    X(instantiate, cuGraphInstantiateWithFlags, (fattn__cuda_executable * out, fattn__cuda_graph graph, unsigned long long flags)) \
    X(update, cuGraphExecUpdate_v2, (fattn__cuda_executable executable, fattn__cuda_graph graph, fattn__graph_update * out))       \
    X(launch, cuGraphLaunch, (fattn__cuda_executable executable, struct CUstream_st * stream))                                     \
    X(executable_destroy, cuGraphExecDestroy, (fattn__cuda_executable executable))

#define FATTN__AS_POINTER_(member, name, arguments) int(*member) arguments;
typedef struct fattn__graph_driver {
    FATTN__GRAPH_FUNCTION_LIST(FATTN__AS_POINTER_)
} fattn__graph_driver;
#undef FATTN__AS_POINTER_

/* The functions of the driver that `context` runs on. Threads  safe.
 * Returns FATTN_OK; FATTN_UNSUPPORTED (the cpu, a described device); FATTN_ENVIRONMENT (the driver is too old: names what it lacks). */
fattn_status fattn__graph_driver_of(const fattn__graph_driver **out, const fattn_context *context);

/* Keeps "what: the driver's words". What a program may not do while a stream is captured is its own mistake and harms nothing
 * (FATTN_BAD_PROBLEM); an executable that cannot take an update is FATTN_UNSUPPORTED; the rest is FATTN_DEVICE_FAULT. */
fattn_status fattn__graph_failure(const fattn_context *context, int result, const char *what);

#endif
