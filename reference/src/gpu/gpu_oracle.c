#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/gpu_image.h"
#include "gpu/gpu_run.h"

/* Of the device of the current context; 0: it says nothing. */
static int attribute_of(const fref__driver *driver, int attribute)
{
    int device = 0, value = 0;
    return driver->context_device(&device) == 0 && driver->device_attribute(&value, attribute, device) == 0 ? value : 0;
}

int fref__gpu_create(fref_gpu **out, const void *image, char error[256])
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
    int status = fref_gpu_program_create(&gpu->program, image, names, FREF__KERNEL_COUNT, error);
    if (status != 0) {
        free(gpu);
        return status;
    }
    gpu->driver = fref__driver_load(error);
    void *trouble = NULL;
    status = gpu->driver->host_alloc(&trouble, sizeof *gpu->trouble, FREF__SEEN_BY_DEVICE);
    if (status != 0) {
        fref__driver_say(gpu->driver, error, "no memory for the oracle on the GPU", status);
        fref_gpu_destroy(gpu);
        return ENOMEM;
    }
    gpu->trouble = trouble;
    gpu->wide = (size_t)attribute_of(gpu->driver, FREF__SHARED_OF_BLOCK) >= FREF__WIDE_BY_ROW(2, 3) * sizeof(double);
    gpu->busy = 128;
    gpu->multiprocessors = attribute_of(gpu->driver, FREF__MULTIPROCESSORS);
    *out = gpu;
    return 0;
}

int fref_gpu_create(fref_gpu **out, char error[256])
{
    *out = NULL;
    if (fref__gpu_image_bytes == 0) {
        snprintf(error, 256, "this build has no kernels: %s", fref__gpu_image_about);
        return ENOEXEC;
    }
    return fref__gpu_create(out, fref__gpu_image, error);
}

void fref_gpu_run_ahead(fref_gpu *gpu, bool yes)
{
    gpu->ahead = yes;
}

uint64_t fref_gpu_scores(const fref_gpu *gpu)
{
    return gpu->scores_left ? gpu->runs : 0;
}

void fref_gpu_destroy(fref_gpu *gpu)
{
    if (!gpu)
        return;
    for (int n = 0; n < FREF__BUFFER_COUNT; n++)
        if (gpu->buffer[n].bytes > 0)
            gpu->driver->memory_free(gpu->buffer[n].at);
    if (gpu->trouble)
        gpu->driver->host_free((void *)(uintptr_t)gpu->trouble);
    fref_gpu_program_destroy(gpu->program);
    free(gpu);
}
