/* A GPU that is harness/cuda/test/emulated.cpp: its memory is the host's, the context is the cpu backend's. */
#ifndef FACTS_TEST_EMULATED_H
#define FACTS_TEST_EMULATED_H

#include <criterion/criterion.h>

#include "../../../reference/src/gpu/gpu_driver.h"
#include "worker/gpu/worker_gpu.h"

extern int emulated_oracle_fails;         /* 0, or an errno: what the oracle answers from now on */
extern const char *emulated_kernel_fails; /* its name: it cannot be launched from now on; NULL: none */
extern int emulated_launches;             /* so far */
int emulated_module_function(struct CUfunc_st **out, struct CUmod_st *module, const char *name);
int emulated_launch(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                    unsigned block_y, unsigned block_z, unsigned shared_bytes, struct CUstream_st *stream, void **arguments,
                    void **extra);

static inline int emulated_context_get(struct CUctx_st **out)
{
    static int here;
    *out = (struct CUctx_st *)(void *)&here;
    return 0;
}

static inline int emulated_load(struct CUmod_st **out, const void *image)
{
    *out = (struct CUmod_st *)(uintptr_t)image;
    return 0;
}

static inline int emulated_unload(struct CUmod_st *module)
{
    (void)module;
    return 0;
}

static inline int emulated_text(int result, const char **out)
{
    (void)result;
    *out = "emulated";
    return 0;
}

static inline int emulated_send(fref__address to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

static inline int emulated_fetch(void *to, fref__address from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

static inline int emulated_wait(struct CUstream_st *stream)
{
    (void)stream;
    return 0;
}

static inline facts_gpu *open_emulated(fattn_context **context)
{
    static fref__driver driver;
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    char error[256] = "";
    facts_gpu *gpu = NULL;
    driver = (fref__driver){ .context_get = emulated_context_get,
                             .module_load = emulated_load,
                             .module_unload = emulated_unload,
                             .module_function = emulated_module_function,
                             .launch = emulated_launch,
                             .copy_to_device = emulated_send,
                             .copy_to_host = emulated_fetch,
                             .stream_synchronize = emulated_wait,
                             .error_name = emulated_text,
                             .error_string = emulated_text };
    fref__driver_replace(&driver);
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 2;
    cr_assert_eq(fattn_context_create(context, &options), FATTN_OK);
    cr_assert(facts_gpu_open(&gpu, *context, NULL, error), "%s", error);
    return gpu;
}

static inline void close_emulated(facts_gpu *gpu, fattn_context *context)
{
    facts_gpu_close(gpu, false);
    fattn_context_destroy(context);
}

#endif
