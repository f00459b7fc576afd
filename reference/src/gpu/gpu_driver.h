/* The CUDA driver: only what the oracle on a GPU needs, declared here, found with dlopen. */
#ifndef FREF_GPU_DRIVER_H
#define FREF_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUmod_st;
struct CUfunc_st;
struct CUstream_st;

typedef unsigned long long fref__address; /* of device memory */

/* X(member, name in libcuda.so.1, arguments) */
#define FREF__DRIVER_LIST(X)                                                                                                       \
    X(init, cuInit, (unsigned flags))                                                                                              \
    X(device_get, cuDeviceGet, (int *out, int ordinal))                                                                            \
    X(device_name, cuDeviceGetName, (char *out, int bytes, int device))                                                            \
    X(device_attribute, cuDeviceGetAttribute, (int *out, int attribute, int device))                                               \
    X(context_retain, cuDevicePrimaryCtxRetain, (struct CUctx_st * *out, int device))                                              \
    X(context_release, cuDevicePrimaryCtxRelease_v2, (int device))                                                                 \
    X(context_set, cuCtxSetCurrent, (struct CUctx_st * context))                                                                   \
    X(context_get, cuCtxGetCurrent, (struct CUctx_st * *out))                                                                      \
    X(context_device, cuCtxGetDevice, (int *out))                                                                                  \
    X(module_load, cuModuleLoadData, (struct CUmod_st * *out, const void *image))                                                  \
    X(module_unload, cuModuleUnload, (struct CUmod_st * module))                                                                   \
    X(module_function, cuModuleGetFunction, (struct CUfunc_st * *out, struct CUmod_st * module, const char *name))                 \
    X(function_set, cuFuncSetAttribute, (struct CUfunc_st * function, int attribute, int value))                                   \
    X(launch, cuLaunchKernel,                                                                                                      \
      (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
       unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments, void **extra))                       \
    X(memory_alloc, cuMemAlloc_v2, (fref__address * out, size_t bytes))                                                            \
    X(memory_free, cuMemFree_v2, (fref__address at))                                                                               \
    X(host_alloc, cuMemHostAlloc, (void **out, size_t bytes, unsigned flags))                                                      \
    X(host_free, cuMemFreeHost, (void *at))                                                                                        \
    X(memory_info, cuMemGetInfo_v2, (size_t * free_bytes, size_t * all_bytes))                                                     \
    X(memory_set, cuMemsetD8Async, (fref__address at, unsigned char value, size_t bytes, struct CUstream_st *stream))              \
    X(copy_to_device, cuMemcpyHtoDAsync_v2, (fref__address to, const void *from, size_t bytes, struct CUstream_st *stream))        \
    X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *to, fref__address from, size_t bytes, struct CUstream_st *stream))                \
    X(stream_synchronize, cuStreamSynchronize, (struct CUstream_st * stream))                                                      \
    X(error_name, cuGetErrorName, (int result, const char **out))                                                                  \
    X(error_string, cuGetErrorString, (int result, const char **out))

/* Every function returns 0 or a number of the driver's. */
typedef struct fref__driver {
#define FREF__AS_MEMBER(member, name, arguments) int(*member) arguments;
    FREF__DRIVER_LIST(FREF__AS_MEMBER)
#undef FREF__AS_MEMBER
} fref__driver;

enum {
    FREF__OUT_OF_MEMORY = 2,    /* CUDA_ERROR_OUT_OF_MEMORY */
    FREF__SEEN_BY_DEVICE = 2,   /* CU_MEMHOSTALLOC_DEVICEMAP */
    FREF__MULTIPROCESSORS = 16, /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    FREF__READS_HOST_PAGES = 100, /* CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES */
    FREF__MAJOR = 75,
    FREF__MINOR,                 /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* */
    FREF__SHARED_OF_BLOCK = 97,  /* CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    FREF__MOST_SHARED_BYTES = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    FREF__SHARED_WITHOUT_ASKING = 48 << 10,
};

/* NULL, with the reason in `error`, where there is none. It stays loaded. */
const fref__driver *fref__driver_load(char error[256]);
/* From now on this one: for the tests, whose GPU may be emulated. */
void fref__driver_replace(const fref__driver *driver);

/* `what` failed with `result`: "what: NAME (text)". */
void fref__driver_say(const fref__driver *driver, char error[256], const char *what, int result);

#endif
