/* The CUDA driver's functions that this library calls, loaded with dlopen; our own declarations, no CUDA header. */
#ifndef FATTN_CUDA_H
#define FATTN_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "fattn/fattn.h"

typedef int fattn__device; /* CUdevice */
typedef struct CUctx_st *fattn__cuda_context;
typedef struct CUevent_st *fattn__event;
typedef uint64_t fattn__device_address; /* CUdeviceptr */
typedef struct fattn__uuid {
    unsigned char bytes[16];
} fattn__uuid;

enum {
    CU_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_POINTER_DEVICE_ORDINAL = 9,
};

/* X(member, exported name, arguments); all return CUresult. The _v2 names are what the driver's header maps the plain names to. */
#define FATTN__CUDA_FUNCTION_LIST(X)                                                                                               \
    X(init, cuInit, (unsigned flags))                                                                                              \
    X(driver_version, cuDriverGetVersion, (int *out))                                                                              \
    X(error_string, cuGetErrorString, (int result, const char **out))                                                              \
    X(device_get, cuDeviceGet, (fattn__device * out, int ordinal))                                                                 \
    X(device_count, cuDeviceGetCount, (int *out))                                                                                  \
    X(device_name, cuDeviceGetName, (char *out, int capacity, fattn__device device))                                               \
    X(device_uuid, cuDeviceGetUuid, (fattn__uuid * out, fattn__device device))                                                     \
    X(device_attribute, cuDeviceGetAttribute, (int *out, int attribute, fattn__device device))                                     \
    X(primary_retain, cuDevicePrimaryCtxRetain, (fattn__cuda_context * out, fattn__device device))                                 \
    X(primary_release, cuDevicePrimaryCtxRelease_v2, (fattn__device device))                                                       \
    X(primary_state, cuDevicePrimaryCtxGetState, (fattn__device device, unsigned *flags, int *active))                             \
    X(context_set, cuCtxSetCurrent, (fattn__cuda_context context))                                                                 \
    X(context_id, cuCtxGetId, (fattn__cuda_context context, unsigned long long *out))                                              \
    X(context_get, cuCtxGetCurrent, (fattn__cuda_context * out))                                                                   \
    X(memory_alloc, cuMemAlloc_v2, (fattn__device_address * out, size_t bytes))                                                    \
    X(memory_free, cuMemFree_v2, (fattn__device_address address))                                                                  \
    X(copy_to_device, cuMemcpyHtoD_v2, (fattn__device_address to, const void *from, size_t bytes))                                 \
    X(copy_to_host, cuMemcpyDtoH_v2, (void *to, fattn__device_address from, size_t bytes))                                         \
    X(stream_create, cuStreamCreate, (struct CUstream_st * *out, unsigned flags))                                                  \
    X(stream_destroy, cuStreamDestroy_v2, (struct CUstream_st * stream))                                                           \
    X(stream_synchronize, cuStreamSynchronize, (struct CUstream_st * stream))                                                      \
    X(pointer_attribute, cuPointerGetAttribute, (void *out, int attribute, fattn__device_address address))                         \
    X(event_create, cuEventCreate, (fattn__event * out, unsigned flags))                                                           \
    X(event_destroy, cuEventDestroy_v2, (fattn__event event))                                                                      \
    X(event_record, cuEventRecord, (fattn__event event, struct CUstream_st * stream))                                              \
    X(event_synchronize, cuEventSynchronize, (fattn__event event))                                                                 \
    X(event_elapsed, cuEventElapsedTime, (float *out_ms, fattn__event start, fattn__event end))                                    \
    X(module_load, cuModuleLoadData, (struct CUmod_st * *out, const void *image))                                                  \
    X(module_function, cuModuleGetFunction, (struct CUfunc_st * *out, struct CUmod_st * module, const char *name))                 \
    X(module_unload, cuModuleUnload, (struct CUmod_st * module))                                                                   \
    X(launch, cuLaunchKernel,                                                                                                      \
      (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,         \
       unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments, void **extra))

struct CUmod_st;
struct CUfunc_st;

enum { FATTN__CUDA_OUT_OF_MEMORY = 2 };

#define FATTN__AS_POINTER_(member, name, arguments) int(*member) arguments;
typedef struct fattn__cuda {
    FATTN__CUDA_FUNCTION_LIST(FATTN__AS_POINTER_)
} fattn__cuda;
#undef FATTN__AS_POINTER_

/* Maps a driver (NULL: the system's libcuda.so.1) globally; what is mapped stays. Returns FATTN_OK or FATTN_ENVIRONMENT. */
fattn_status fattn__driver_map(void **out, const char *path);
/* The functions of a mapped driver. Returns FATTN_OK or FATTN_ENVIRONMENT (too old: the missing name is in the message). */
fattn_status fattn__cuda_load(const fattn__cuda **out, void *driver);
/* The driver's words for a result; "no message" when it has none. */
const char *fattn__cuda_text(const fattn__cuda *cuda, int result);

#endif
