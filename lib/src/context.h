/* One build on one device. Paths, libraries and the device are fixed at creation; everything here is read-only afterwards, but for what
 * has a lock beside it. */
#ifndef FATTN_CONTEXT_H
#define FATTN_CONTEXT_H

#include <pthread.h>

#include "cuda.h"
#include "cudnn/api.h"
#include "fattn/fattn.h"

struct fattn_context {
    fattn_device_kind kind;
    int threads;              /* cpu backend; 0: all */
    fattn_context_info info;
    char *nvrtc;              /* real path; NULL: none was given */
    const fattn__cudnn *api;  /* NULL on the cpu */
    const fattn__cuda *cuda;  /* NULL unless a GPU */
    fattn__device device;     /* GPU only */
    fattn__cuda_context primary;
    fattn__handle handle;     /* GPU only: for graphs and plans, which only read it; launches have their own (plan.c) */
    fattn__desc description;  /* DEVICEPROP; described device only */
    pthread_mutex_t lock;     /* guards what follows */
    fattn_library *libraries; /* as of the last fattn_context_libraries; older strings are kept in `paths` */
    size_t library_count;
    char **paths;
    size_t path_count;
};

#endif
