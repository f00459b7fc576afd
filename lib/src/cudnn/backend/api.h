/* cuDNN's functions, loaded by absolute path. A process holds one cuDNN: cuDNN finds its
 * sub-libraries by bare soname, so a second copy would be mixed in silently. */
#ifndef FATTN_CUDNN_API_H
#define FATTN_CUDNN_API_H

#include "abi.h"
#include "cudnn_nvrtc.h"
#include "fattn/fattn.h"

/* X(result, name, arguments) */
#define FATTN__CUDNN_FUNCTION_LIST(X)                                                              \
    X(size_t, cudnnGetVersion, (void))                                                             \
    X(size_t, cudnnGetCudartVersion, (void))                                                       \
    X(const char *, cudnnGetErrorString, (int status))                                             \
    X(void, cudnnGetLastErrorString, (char *out, size_t capacity))                                 \
    X(int, cudnnSetCallback, (unsigned mask, void *user, fattn__log log))                          \
    X(int, cudnnCreate, (fattn__handle * out))                                                     \
    X(int, cudnnDestroy, (fattn__handle handle))                                                   \
    X(int, cudnnSetStream, (fattn__handle handle, void *stream))                                   \
    X(int, cudnnBackendCreateDescriptor, (int type, fattn__desc *out))                             \
    X(int, cudnnBackendDestroyDescriptor, (fattn__desc desc))                                      \
    X(int, cudnnBackendFinalize, (fattn__desc desc))                                               \
    X(int, cudnnBackendSetAttribute,                                                               \
      (fattn__desc desc, int name, int type, int64_t count, const void *elements))                 \
    X(int, cudnnBackendGetAttribute,                                                               \
      (fattn__desc desc, int name, int type, int64_t capacity, int64_t *count, void *elements))    \
    X(int, cudnnBackendExecute, (fattn__handle handle, fattn__desc plan, fattn__desc variant_pack))

/* NULL if this cuDNN does not have the function. */
#define FATTN__CUDNN_OPTIONAL_LIST(X)                                                              \
    X(int, cudnnBackendPopulateCudaGraph,                                                          \
      (fattn__handle handle, fattn__desc plan, fattn__desc variant_pack, void *graph))             \
    X(int, cudnnBackendUpdateCudaGraph,                                                            \
      (fattn__handle handle, fattn__desc plan, fattn__desc variant_pack, void *graph))

#define FATTN__AS_POINTER_(result, name, arguments) result(*name) arguments;
typedef struct fattn__cudnn {
    int version; /* cudnnGetVersion(), 92000 */
    fattn__nvrtc nvrtc;
    void *driver;     /* the mapped libcuda.so.1 */
    char dir[4096];   /* real path of the folder */
    uint64_t written; /* fattn__build_written, taken before the libraries were mapped */
    uint64_t stamp;   /* fattn__build_stamp, taken before `build` was computed */
    uint64_t build;   /* the result of fattn__cudnn_build; 0: not asked yet */
    FATTN__CUDNN_FUNCTION_LIST(FATTN__AS_POINTER_)
    FATTN__CUDNN_OPTIONAL_LIST(FATTN__AS_POINTER_)
} fattn__cudnn;
#undef FATTN__AS_POINTER_

/* Maps, in this order and globally visible: the driver (NULL: the system's libcuda.so.1), NVRTC with its builtins (NULL: none),
 * then libcudnn_graph, libcudnn_engines_runtime_compiled and libcudnn of `dir`. What is mapped stays mapped: neither cuDNN nor the
 * driver can be unloaded and loaded again. Threads  safe; a second call with the same folder gives the same functions. Returns
 * FATTN_OK; FATTN_ENVIRONMENT (missing library or function; NVRTC of another CUDA major; another cuDNN is loaded already). */
fattn_status fattn__cudnn_load(const fattn__cudnn **out, const char *dir, const char *nvrtc,
                               const char *driver);

/* A hash of the contents of the mapped libraries, and of NVRTC if cuDNN compiles with it
 * (fattn__build_id). 0: a file was changed since it was mapped, so the contents are unknown. The
 * first call reads the files; later calls take a few microseconds. Threads: safe. */
uint64_t fattn__cudnn_build(const fattn__cudnn *api);

/* cuDNN's name of a status, for example "CUDNN_STATUS_BAD_PARAM". */
const char *fattn__cudnn_status_name(const fattn__cudnn *api, int status);

#endif
