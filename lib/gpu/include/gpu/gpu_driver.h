/* The CUDA driver: the functions of libcuda.so.1 that FACTS calls, found with dlsym. These are our own declarations: no CUDA header
 * is read.
 *
 * A gpu_driver is a table of function pointers, and every one returns CUresult (0: success). Nothing here calls the driver, selects
 * a context, prints or ends the process. Threads  any.
 */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUmod_st;
struct CUfunc_st;
struct CUgraph_st;
struct CUgraphExec_st;

typedef uint64_t gpu_address; /* CUdeviceptr: of device memory */
typedef struct gpu_uuid {
    unsigned char bytes[16];
} gpu_uuid;
typedef struct gpu_graph_update {
    int result;
    void *node, *from;
} gpu_graph_update; /* CUgraphExecUpdateResultInfo */

enum {
    GPU_INVALID_VALUE = 1, /* CUDA_ERROR_... */
    GPU_OUT_OF_MEMORY = 2,

    GPU_MULTIPROCESSORS = 16, /* CU_DEVICE_ATTRIBUTE_... */
    GPU_MAJOR = 75,           /* of the compute capability */
    GPU_MINOR = 76,
    GPU_SHARED_OF_BLOCK = 97,   /* ..._MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    GPU_READS_HOST_PAGES = 100, /* PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */

    GPU_MOST_SHARED_BYTES = 8,    /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    GPU_ORDINAL_OF_POINTER = 9,   /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */
    GPU_HOST_SEEN_BY_DEVICE = 2,  /* CU_MEMHOSTALLOC_DEVICEMAP */
    GPU_STREAM_NON_BLOCKING = 1,  /* CU_STREAM_NON_BLOCKING */
    GPU_CAPTURE_THREAD_LOCAL = 1, /* CU_STREAM_CAPTURE_MODE_THREAD_LOCAL */
};

/* X(member, exported name, arguments). The driver's header maps the plain names to the _v2 names.
 */
#define GPU_FUNCTION_LIST(X)                                                                       \
    X(init, cuInit, (unsigned flags))                                                              \
    X(driver_version, cuDriverGetVersion, (int *out))                                              \
    X(error_name, cuGetErrorName, (int result, const char **out))                                  \
    X(error_string, cuGetErrorString, (int result, const char **out))                              \
    X(device_get, cuDeviceGet, (int *out, int ordinal))                                            \
    X(device_count, cuDeviceGetCount, (int *out))                                                  \
    X(device_name, cuDeviceGetName, (char *out, int capacity, int device))                         \
    X(device_uuid, cuDeviceGetUuid, (gpu_uuid * out, int device))                                  \
    X(device_attribute, cuDeviceGetAttribute, (int *out, int attribute, int device))               \
    X(primary_retain, cuDevicePrimaryCtxRetain, (struct CUctx_st * *out, int device))              \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (int device))                                 \
    X(primary_state, cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))       \
    X(context_set, cuCtxSetCurrent, (struct CUctx_st * context))                                   \
    X(context_get, cuCtxGetCurrent, (struct CUctx_st * *out))                                      \
    X(context_id, cuCtxGetId, (struct CUctx_st * context, unsigned long long *out))                \
    X(context_device, cuCtxGetDevice, (int *out))                                                  \
    X(module_load, cuModuleLoadData, (struct CUmod_st * *out, const void *image))                  \
    X(module_unload, cuModuleUnload, (struct CUmod_st * module))                                   \
    X(module_function, cuModuleGetFunction,                                                        \
      (struct CUfunc_st * *out, struct CUmod_st * module, const char *name))                       \
    X(function_set, cuFuncSetAttribute, (struct CUfunc_st * function, int attribute, int value))   \
    X(launch, cuLaunchKernel,                                                                      \
      (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z,             \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       struct CUstream_st *stream, void **arguments, void **extra))                                \
    X(memory_alloc, cuMemAlloc_v2, (gpu_address * out, size_t bytes))                              \
    X(memory_free, cuMemFree_v2, (gpu_address at))                                                 \
    X(memory_info, cuMemGetInfo_v2, (size_t *free_bytes, size_t *all_bytes))                       \
    X(memory_set, cuMemsetD8Async,                                                                 \
      (gpu_address at, unsigned char value, size_t bytes, struct CUstream_st *stream))             \
    X(host_alloc, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))                      \
    X(host_free, cuMemFreeHost, (void *at))                                                        \
    X(pointer_attribute, cuPointerGetAttribute, (void *out, int attribute, gpu_address address))   \
    X(copy_to_device, cuMemcpyHtoD_v2, (gpu_address to, const void *from, size_t bytes))           \
    X(copy_to_host, cuMemcpyDtoH_v2, (void *to, gpu_address from, size_t bytes))                   \
    X(send, cuMemcpyHtoDAsync_v2,                                                                  \
      (gpu_address to, const void *from, size_t bytes, struct CUstream_st *stream))                \
    X(fetch, cuMemcpyDtoHAsync_v2,                                                                 \
      (void *to, gpu_address from, size_t bytes, struct CUstream_st *stream))                      \
    X(stream_create, cuStreamCreate, (struct CUstream_st * *out, unsigned flags))                  \
    X(stream_destroy, cuStreamDestroy_v2, (struct CUstream_st * stream))                           \
    X(stream_synchronize, cuStreamSynchronize, (struct CUstream_st * stream))                      \
    X(event_create, cuEventCreate, (struct CUevent_st * *out, unsigned flags))                     \
    X(event_destroy, cuEventDestroy_v2, (struct CUevent_st * event))                               \
    X(event_record, cuEventRecord, (struct CUevent_st * event, struct CUstream_st * stream))       \
    X(event_synchronize, cuEventSynchronize, (struct CUevent_st * event))                          \
    X(event_elapsed, cuEventElapsedTime,                                                           \
      (float *out_ms, struct CUevent_st *start, struct CUevent_st *end))

/* CUDA graphs: a driver may lack them and still run everything else. A function that it lacks is
 * NULL in the table. */
#define GPU_GRAPH_LIST(X)                                                                          \
    X(capture_begin, cuStreamBeginCapture_v2, (struct CUstream_st * stream, int mode))             \
    X(capture_end, cuStreamEndCapture, (struct CUstream_st * stream, struct CUgraph_st * *out))    \
    X(graph_create, cuGraphCreate, (struct CUgraph_st * *out, unsigned flags))                     \
    X(graph_destroy, cuGraphDestroy, (struct CUgraph_st * graph))                                  \
    X(graph_nodes, cuGraphGetNodes, (struct CUgraph_st * graph, void **out, size_t *count))        \
    X(graph_instantiate, cuGraphInstantiateWithFlags,                                              \
      (struct CUgraphExec_st * *out, struct CUgraph_st * graph, unsigned long long flags))         \
    X(graph_update, cuGraphExecUpdate_v2,                                                          \
      (struct CUgraphExec_st * executable, struct CUgraph_st * graph, gpu_graph_update * out))     \
    X(graph_launch, cuGraphLaunch,                                                                 \
      (struct CUgraphExec_st * executable, struct CUstream_st * stream))                           \
    X(executable_destroy, cuGraphExecDestroy, (struct CUgraphExec_st * executable))

#define GPU_AS_POINTER(member, name, arguments) int(*member) arguments;
typedef struct gpu_driver {
    GPU_FUNCTION_LIST(GPU_AS_POINTER)
    GPU_GRAPH_LIST(GPU_AS_POINTER)
} gpu_driver;
#undef GPU_AS_POINTER

/* The functions of a mapped libcuda.so.1. A process has one driver: later calls give the same table.
 * Returns  NULL, with a sentence in `error`, where the driver lacks a function of GPU_FUNCTION_LIST: it is the null driver or too
 * old. */
const gpu_driver *gpu_driver_of(void *library, char error[256]);
/* The same for the system's libcuda.so.1, which this call maps globally and never unmaps. NULL,
 * with a sentence in `error`, also without one. */
const gpu_driver *gpu_driver_load(char error[256]);
/* From now on gpu_driver_load gives this one; NULL: the system's again. For tests, whose GPU is
 * emulated, and benchmarks that count calls. */
void gpu_driver_replace(const gpu_driver *driver);

/* The exported name of the first function for CUDA graphs that the driver lacks; NULL: it has them
 * all. */
const char *gpu_driver_lacks_graphs(const gpu_driver *driver);

/* The driver's words for a result; "no message" when it has none. */
const char *gpu_driver_text(const gpu_driver *driver, int result);
/* Writes "what: NAME (the driver's words)". Returns `result`; with 0 it writes nothing. */
int gpu_driver_say(const gpu_driver *driver, int result, const char *what, char error[256]);

#ifdef __cplusplus
}
#endif
#endif
