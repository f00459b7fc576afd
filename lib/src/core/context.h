/* One build on one device. Members that are fixed at creation are read without a lock; each other
 * member stands beside its lock. The caller holds one reference, and each plan holds one: a context
 * lives as long as its plans, in whatever order they are destroyed. */
#ifndef FATTN_CONTEXT_H
#define FATTN_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <gpu/gpu_module.h>

#include "cudnn/backend/api.h"
#include "cudnn/backend/handles.h"
#include "fattn/cache.h"
#include "fattn/fattn.h"

/* From this version on, NVRTC is linked into libcudnn_graph. Below it, an NVRTC must be mapped. */
#define FATTN__NVRTC_INSIDE 92100

struct fattn_context {
    _Atomic int references;
    _Atomic bool abandoned; /* objects of cuDNN and of the driver must not be touched any more */
    uint64_t id; /* unique in the life of the process; an address is not: it may be used again */
    fattn_device_kind kind;
    int threads; /* cpu backend; 0: all */
    fattn_context_info info;
    char *nvrtc;             /* real path; NULL: none was given */
    const fattn__cudnn *api; /* NULL on the cpu */
    fattn__desc description; /* DEVICEPROP; NULL unless described */

    const gpu_driver *cuda; /* NULL unless a GPU, like the next members */
    int device;
    struct CUctx_st *primary;
    unsigned long long primary_id; /* changes with a device reset */
    fattn__handles *handles;
    gpu_module *_Atomic kernels; /* of the math backend; loaded under `lock`, NULL before */

    pthread_mutex_t lock; /* guards `paths` */
    char **paths;         /* strings handed out by fattn_context_libraries */
    size_t path_count;
};

/* Makes the GPU's primary context current on this thread; *previous is for fattn__leave. Nothing to
 * do on other devices. Returns FATTN_OK; FATTN_DEVICE_FAULT. */
fattn_status fattn__enter(const fattn_context *context, struct CUctx_st **previous);
void fattn__leave(const fattn_context *context, struct CUctx_st *previous);

fattn_context *fattn__context_retain(fattn_context *context);
void fattn__context_release(fattn_context *context);

/* May objects of this context still be destroyed? Not after fattn_context_abandon, a device reset,
 * or the end of the driver at exit: the objects of cuDNN and of the driver are then gone, or must
 * be leaked. */
bool fattn__context_alive(const fattn_context *context);

#endif
