/* A context whose GPU is lib/cuda/test/emulated.cpp: device memory is the host's, kernels run as C++. */
#ifndef FATTN_TEST_MATH_EMULATED_H
#define FATTN_TEST_MATH_EMULATED_H

#include "../../src/math/math_sum.h"
#include "../../test/math/math_runs.h"

int emulated_module_function(struct CUfunc_st **out, struct CUmod_st *module, const char *name);
int emulated_launch(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                    unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments, void **extra);

static inline int no_alloc(fattn__device_address *out, size_t bytes)
{
    void *at = aligned_alloc(256, (bytes + 255) / 256 * 256);
    *out = (fattn__device_address)(uintptr_t)at;
    return at == NULL ? 2 : 0;
}

static inline int no_free(fattn__device_address at)
{
    free((void *)(uintptr_t)at);
    return 0;
}

static inline int no_copy_to(fattn__device_address to, const void *from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static inline int no_copy_from(void *to, fattn__device_address from, size_t bytes)
{
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static inline int no_context_get(fattn__cuda_context *out)
{
    *out = NULL;
    return 0;
}

static inline int no_wait(struct CUstream_st *stream)
{
    (void)stream;
    return 0;
}

static inline int no_load(struct CUmod_st **out, const void *image)
{
    *out = (struct CUmod_st *)(uintptr_t)image;
    return 0;
}

static inline int no_unload(struct CUmod_st *module)
{
    (void)module;
    return 0;
}

static inline int no_text(int result, const char **out)
{
    (void)result;
    *out = "emulated";
    return 0;
}

static inline fattn_context *open_emulated(void)
{
    static fattn__cuda cuda;
    cuda = (fattn__cuda){ .memory_alloc = no_alloc,
                          .memory_free = no_free,
                          .copy_to_device = no_copy_to,
                          .copy_to_host = no_copy_from,
                          .context_get = no_context_get,
                          .stream_synchronize = no_wait,
                          .module_load = no_load,
                          .module_unload = no_unload,
                          .module_function = emulated_module_function,
                          .launch = emulated_launch,
                          .error_string = no_text };
    fattn_context *context = calloc(1, sizeof *context);
    context->kind = FATTN_DEVICE_GPU;
    context->cuda = &cuda;
    context->info.sm = 80;
    pthread_mutex_init(&context->lock, NULL);
    return context;
}

static inline void close_emulated(fattn_context *context)
{
    fattn__math_close(context);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

#endif
