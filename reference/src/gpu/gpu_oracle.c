#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu_run.h"

/* A number of the current context's device; 0: unknown. */
static int attribute_of(const gpu_driver *driver, int attribute)
{
    int device = 0, value = 0;
    return driver->context_device(&device) == 0 &&
                   driver->device_attribute(&value, attribute, device) == 0
               ? value
               : 0;
}

int fref__gpu_create(fref_gpu **out, const gpu_image *image, char error[256])
{
    static const char *const names[FREF__KERNEL_COUNT] = {
#define AS_NAME(name, shared) "fref_" #name,
        FREF__KERNEL_LIST(AS_NAME)
#undef AS_NAME
    };
    *out = NULL;
    fref_gpu *gpu = calloc(1, sizeof *gpu);
    if (!gpu) {
        snprintf(error, 256, "out of memory");
        return ENOMEM;
    }
    int status = gpu_module_create(&gpu->module, NULL, image, names, FREF__KERNEL_COUNT, error);
    if (status != 0) {
        free(gpu);
        return status;
    }
    gpu->driver = gpu_driver_load(error);
    void *trouble = NULL;
    status = gpu->driver->host_alloc(&trouble, sizeof *gpu->trouble, GPU_HOST_SEEN_BY_DEVICE);
    if (gpu_driver_say(gpu->driver, status, "no memory for the oracle on the GPU", error) != 0) {
        fref_gpu_destroy(gpu);
        return status == GPU_OUT_OF_MEMORY ? ENOMEM : EIO;
    }
    gpu->trouble = trouble;
    gpu->busy = 128;
    gpu->multiprocessors = attribute_of(gpu->driver, GPU_MULTIPROCESSORS);
    *out = gpu;
    return 0;
}

int fref_gpu_create(fref_gpu **out, char error[256])
{
    return fref__gpu_create(out, &fref__gpu_image, error);
}

void fref_gpu_run_ahead(fref_gpu *gpu, bool yes)
{
    gpu->ahead = yes;
}

uint64_t fref_gpu_scores(const fref_gpu *gpu)
{
    return gpu->scores_left ? gpu->runs : 0;
}

bool fref_gpu_trim(fref_gpu *gpu)
{
    bool any = false;
    for (int n = 0; n < FREF__BUFFER_COUNT; n++) {
        if (gpu->buffer[n].bytes > 0) {
            gpu->driver->memory_free(gpu->buffer[n].at);
            any = true;
        }
        gpu->buffer[n].bytes = 0;
    }
    gpu->scores_left = false;
    return any;
}

void fref_gpu_destroy(fref_gpu *gpu)
{
    if (!gpu)
        return;
    (void)fref_gpu_trim(gpu);
    if (gpu->trouble)
        gpu->driver->host_free((void *)(uintptr_t)gpu->trouble);
    gpu_module_destroy(gpu->module);
    free(gpu);
}
