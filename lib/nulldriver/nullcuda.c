/* A libcuda.so.1 without a device.
 *
 * cuDNN opens the driver even to decide for a described device; without a driver it refuses everything, wrongly. With this
 * driver, cuDNN decides and compiles as on the real device, but it cannot run. A program that looks for a GPU finds none.
 *
 *   Real answers  no device (cuInit, cuDeviceGetCount), driver version 13.0, distinct handles, the names of errors
 *   Success       the functions in SUCCEED_LIST do nothing and return CUDA_SUCCESS
 *   Versions      cuDNN finds these functions with dlsym; from 9.27 on it links some, so it does not load if one is missing */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_VALUE = 1, NO_DEVICE = 100, NOT_FOUND = 500 };
enum { DRIVER_VERSION = 13000 };

/* Functions that do nothing and succeed. Callers pass arguments; on every ABI in use a callee may
 * ignore them. */
#define SUCCEED_LIST(X)                                                                            \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxGetDevice)                                                                              \
    X(cuCtxGetLimit)                                                                               \
    X(cuCtxPopCurrent)                                                                             \
    X(cuCtxPushCurrent)                                                                            \
    X(cuCtxSetCurrent)                                                                             \
    X(cuFuncGetAttribute)                                                                          \
    X(cuFuncSetAttribute)                                                                          \
    X(cuKernelGetAttribute)                                                                        \
    X(cuKernelSetAttribute)                                                                        \
    X(cuLaunchCooperativeKernel)                                                                   \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchKernelEx)                                                                            \
    X(cuLibraryUnload)                                                                             \
    X(cuLinkAddData)                                                                               \
    X(cuLinkComplete)                                                                              \
    X(cuLinkCreate)                                                                                \
    X(cuLinkDestroy)                                                                               \
    X(cuModuleUnload)                                                                              \
    X(cuOccupancyMaxActiveClusters)                                                                \
    X(cuOccupancyMaxPotentialClusterSize)                                                          \
    X(cuStreamGetCtx)                                                                              \
    X(cuStreamGetGreenCtx)                                                                         \
    X(cuTensorMapEncodeIm2col)                                                                     \
    X(cuTensorMapEncodeTiled)

/* Functions whose first argument receives a handle: each call gives another one. */
#define HANDLE_LIST(X)                                                                             \
    X(cuKernelGetFunction)                                                                         \
    X(cuLibraryGetKernel)                                                                          \
    X(cuLibraryGetModule)                                                                          \
    X(cuLibraryLoadData)                                                                           \
    X(cuLibraryLoadFromFile)                                                                       \
    X(cuModuleGetFunction)                                                                         \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleLoadDataEx)

/* Functions with an answer of their own. */
#define ANSWER_LIST(X)                                                                             \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetCount)                                                                            \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuGetProcAddress)                                                                            \
    X(cuGetProcAddress_v2)                                                                         \
    X(cuInit)

#define AS_SUCCEED(name)                                                                           \
    EXPORT int name(void);                                                                         \
    int name(void)                                                                                 \
    {                                                                                              \
        return SUCCESS;                                                                            \
    }
SUCCEED_LIST(AS_SUCCEED)

static int give_handle(void **out)
{
    static uintptr_t last = 0x1000;
    if (out == NULL)
        return INVALID_VALUE;
    *out = (void *)__atomic_add_fetch(&last, 16, __ATOMIC_RELAXED);
    return SUCCESS;
}

#define AS_HANDLE(name)                                                                            \
    EXPORT int name(void **out);                                                                   \
    int name(void **out)                                                                           \
    {                                                                                              \
        return give_handle(out);                                                                   \
    }
HANDLE_LIST(AS_HANDLE)

EXPORT int cuInit(unsigned flags);
int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

EXPORT int cuDriverGetVersion(int *out);
int cuDriverGetVersion(int *out)
{
    if (out == NULL)
        return INVALID_VALUE;
    *out = DRIVER_VERSION;
    return SUCCESS;
}

EXPORT int cuDeviceGetCount(int *out);
int cuDeviceGetCount(int *out)
{
    if (out != NULL)
        *out = 0;
    return NO_DEVICE;
}

EXPORT int cuDeviceGet(int *out, int ordinal);
int cuDeviceGet(int *out, int ordinal)
{
    (void)ordinal;
    if (out != NULL)
        *out = 0;
    return NO_DEVICE;
}

EXPORT int cuGetErrorName(int result, const char **out);
int cuGetErrorName(int result, const char **out)
{
    if (out == NULL)
        return INVALID_VALUE;
    *out = result == SUCCESS     ? "CUDA_SUCCESS"
           : result == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
                                 : "CUDA_ERROR_UNKNOWN";
    return SUCCESS;
}

EXPORT int cuGetErrorString(int result, const char **out);
int cuGetErrorString(int result, const char **out)
{
    if (out == NULL)
        return INVALID_VALUE;
    *out = result == SUCCESS ? "no error" : "the null driver owns no device";
    return SUCCESS;
}

EXPORT int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
                               int *found);
EXPORT int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);

typedef void (*function)(void); /* the type that any function's address may be cast to */

#define AS_ENTRY(name) { #name, (function)name },
static const struct entry {
    const char *name;
    function address;
} entries[] = { SUCCEED_LIST(AS_ENTRY) HANDLE_LIST(AS_ENTRY) ANSWER_LIST(AS_ENTRY) };

int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *found)
{
    (void)version;
    (void)flags;
    if (name == NULL || out == NULL)
        return INVALID_VALUE;
    *out = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(entries[i].name, name) == 0)
            memcpy(out, &entries[i].address,
                   sizeof *out); /* ISO C has no cast from a function's address */
    if (found != NULL)
        *found = *out != NULL ? 0 : 1; /* CU_GET_PROC_ADDRESS_SUCCESS, _SYMBOL_NOT_FOUND */
    return *out != NULL ? SUCCESS : NOT_FOUND;
}

int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
