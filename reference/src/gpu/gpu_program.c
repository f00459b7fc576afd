/* Kernels of somebody's, loaded into the current context and launched. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <fref/gpu.h>

#include "gpu/gpu_driver.h"

struct fref_gpu_program {
    const fref__driver *driver;
    struct CUmod_st *module;
    size_t count;
    bool waits; /* after a copy from the host */
    struct {
        struct CUfunc_st *at;
        unsigned shared_bytes; /* that it was allowed to have */
    } function[];
};

static const fref__driver *driver_of_current_context(char error[256])
{
    struct CUctx_st *context = NULL;
    const fref__driver *driver = fref__driver_load(error);
    if (!driver)
        return NULL;
    const int result = driver->context_get(&context);
    if (result != 0)
        fref__driver_say(driver, error, "the CUDA driver does not run", result);
    else if (!context)
        snprintf(error, 256, "no CUDA context is current");
    return result == 0 && context ? driver : NULL;
}

/* A GPU that reads pageable memory where it lies (beside a Grace) needs no copy of it first: the call may return before it was read. */
static bool reads_host_pages(const fref__driver *driver)
{
    int device = 0, yes = 0;
    return driver->device_attribute && driver->context_device(&device) == 0 && driver->device_attribute(&yes, FREF__READS_HOST_PAGES, device) == 0 &&
           yes != 0;
}

int fref_gpu_program_create(fref_gpu_program **out, const void *image, const char *const *names, size_t count, char error[256])
{
    *out = NULL;
    if (!image) {
        snprintf(error, 256, "this build has no kernels");
        return ENOEXEC;
    }
    const fref__driver *driver = driver_of_current_context(error);
    if (!driver)
        return ENODEV;
    fref_gpu_program *program = calloc(1, sizeof *program + count * sizeof program->function[0]);
    if (!program) {
        snprintf(error, 256, "out of memory");
        return ENOMEM;
    }
    program->driver = driver;
    program->count = count;
    program->waits = reads_host_pages(driver);
    const char *what = "the driver refuses the kernels";
    int result = driver->module_load(&program->module, image);
    /* Asking for a function loads it: no launch does later, when a stream may be captured. */
    for (size_t n = 0; n < count && result == 0; n++) {
        result = driver->module_function(&program->function[n].at, program->module, names[n]);
        what = result == 0 ? what : names[n];
    }
    if (result == 0) {
        *out = program;
        return 0;
    }
    fref__driver_say(driver, error, what, result);
    fref_gpu_program_destroy(program);
    return result == FREF__OUT_OF_MEMORY ? ENOMEM : ENOEXEC;
}

void fref_gpu_program_destroy(fref_gpu_program *program)
{
    if (!program)
        return;
    if (program->module)
        program->driver->module_unload(program->module);
    free(program);
}

int fref_gpu_launch(fref_gpu_program *program, size_t kernel, const unsigned grid[3], const unsigned block[3],
                    unsigned shared_bytes, struct CUstream_st *stream, void **arguments, char error[256])
{
    if (kernel >= program->count) {
        snprintf(error, 256, "kernel %zu of %zu", kernel, program->count);
        return EIO;
    }
    const fref__driver *driver = program->driver;
    struct CUfunc_st *function = program->function[kernel].at;
    int result = 0;
    if (shared_bytes > FREF__SHARED_WITHOUT_ASKING && shared_bytes > program->function[kernel].shared_bytes) {
        result = driver->function_set(function, FREF__MOST_SHARED_BYTES, (int)shared_bytes);
        program->function[kernel].shared_bytes = result == 0 ? shared_bytes : 0;
    }
    if (result == 0)
        result = driver->launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, stream, arguments,
                                NULL);
    if (result == 0)
        return 0;
    fref__driver_say(driver, error, "a launch failed", result);
    return EIO;
}

static int said(const fref_gpu_program *program, int result, const char *what, char error[256])
{
    if (result == 0)
        return 0;
    fref__driver_say(program->driver, error, what, result);
    return EIO;
}

int fref_gpu_send(const fref_gpu_program *program, void *to, const void *from_host, size_t bytes, struct CUstream_st *stream, char error[256])
{
    int result = program->driver->copy_to_device((fref__address)(uintptr_t)to, from_host, bytes, stream);
    if (result == 0 && program->waits)
        result = program->driver->stream_synchronize(stream);
    return said(program, result, "copy to the GPU", error);
}

int fref_gpu_fetch(const fref_gpu_program *program, void *to_host, const void *from, size_t bytes, struct CUstream_st *stream, char error[256])
{
    int result = program->driver->copy_to_host(to_host, (fref__address)(uintptr_t)from, bytes, stream);
    if (result == 0)
        result = program->driver->stream_synchronize(stream);
    return said(program, result, "copy from the GPU", error);
}
