#include <gpu/gpu_module.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHARED_WITHOUT_ASKING = 48 << 10 };

struct gpu_module {
    const gpu_driver *driver;
    struct CUmod_st *module;
    size_t count;
    bool waits; /* after a copy from the host */
    struct {
        struct CUfunc_st *at;
        unsigned shared_bytes; /* that it was allowed to have */
    } function[];
};

static const gpu_driver *driver_of_current_context(char error[256])
{
    struct CUctx_st *context = NULL;
    const gpu_driver *driver = gpu_driver_load(error);
    if (!driver || gpu_driver_say(driver, driver->context_get(&context),
                                  "the CUDA driver does not run", error) != 0)
        return NULL;
    if (!context)
        snprintf(error, 256, "no CUDA context is current");
    return context ? driver : NULL;
}

/* A GPU that reads pageable memory where it lies (beside a Grace) needs no copy of it first: the
 * call may return before it was read. */
static bool reads_host_pages(const gpu_driver *driver)
{
    int device = 0, yes = 0;
    return driver->context_device(&device) == 0 &&
           driver->device_attribute(&yes, GPU_READS_HOST_PAGES, device) == 0 && yes != 0;
}

int gpu_module_create(gpu_module **out, const gpu_driver *driver, const gpu_image *image,
                      const char *const *names, size_t count, char error[256])
{
    *out = NULL;
    if (image->bytes == 0) {
        snprintf(error, 256, "this build has no kernels: %s", image->about);
        return ENOEXEC;
    }
    if (!driver)
        driver = driver_of_current_context(error);
    if (!driver)
        return ENODEV;
    gpu_module *module = calloc(1, sizeof *module + count * sizeof module->function[0]);
    if (!module) {
        snprintf(error, 256, "out of memory");
        return ENOMEM;
    }
    module->driver = driver;
    module->count = count;
    module->waits = reads_host_pages(driver);
    const char *what = "the driver refuses the kernels";
    int result = driver->module_load(&module->module, image->data);
    for (size_t n = 0; n < count && result == 0; n++) {
        result = driver->module_function(&module->function[n].at, module->module, names[n]);
        what = result == 0 ? what : names[n];
    }
    if (gpu_driver_say(driver, result, what, error) == 0) {
        *out = module;
        return 0;
    }
    gpu_module_destroy(module);
    return result == GPU_OUT_OF_MEMORY ? ENOMEM : ENOEXEC;
}

void gpu_module_destroy(gpu_module *module)
{
    if (module && module->module)
        module->driver->module_unload(module->module);
    free(module);
}

int gpu_launch(gpu_module *module, size_t kernel, const unsigned grid[3], const unsigned block[3],
               unsigned shared_bytes, struct CUstream_st *stream, void **arguments, char error[256])
{
    const gpu_driver *driver = module->driver;
    struct CUfunc_st *function = kernel < module->count ? module->function[kernel].at : NULL;
    int result = function ? 0 : GPU_INVALID_VALUE;
    if (result == 0 && shared_bytes > SHARED_WITHOUT_ASKING &&
        shared_bytes > module->function[kernel].shared_bytes) {
        result = driver->function_set(function, GPU_MOST_SHARED_BYTES, (int)shared_bytes);
        module->function[kernel].shared_bytes = result == 0 ? shared_bytes : 0;
    }
    if (result == 0)
        result = driver->launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                shared_bytes, stream, arguments, NULL);
    return gpu_driver_say(driver, result, "a launch failed", error);
}

int gpu_send(const gpu_module *module, void *to, const void *from_host, size_t bytes,
             struct CUstream_st *stream, char error[256])
{
    int result = module->driver->send((gpu_address)(uintptr_t)to, from_host, bytes, stream);
    if (result == 0 && module->waits)
        result = module->driver->stream_synchronize(stream);
    return gpu_driver_say(module->driver, result, "copy to the GPU", error);
}

int gpu_fetch(const gpu_module *module, void *to_host, const void *from, size_t bytes,
              struct CUstream_st *stream, char error[256])
{
    int result = module->driver->fetch(to_host, (gpu_address)(uintptr_t)from, bytes, stream);
    if (result == 0)
        result = module->driver->stream_synchronize(stream);
    return gpu_driver_say(module->driver, result, "copy from the GPU", error);
}
