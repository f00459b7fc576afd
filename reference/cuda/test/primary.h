/* A GPU for a program that has none yet: its primary context, made current. */
#ifndef FREF_CUDA_TEST_PRIMARY_H
#define FREF_CUDA_TEST_PRIMARY_H

#include <stdio.h>

#include <gpu/gpu_driver.h>

/* NULL, with the reason in `error`, where there is no GPU. The context lives as long as the
 * program. */
static inline const gpu_driver *open_gpu(char error[256])
{
    struct CUctx_st *context = NULL;
    const gpu_driver *driver = gpu_driver_load(error);
    int device = 0, result = driver ? driver->init(0) : 0;
    if (!driver)
        return NULL;
    if (result == 0)
        result = driver->device_get(&device, 0);
    if (result == 0)
        result = driver->primary_retain(&context, device);
    if (result == 0)
        result = driver->context_set(context);
    return gpu_driver_say(driver, result, "no GPU", error) == 0 ? driver : NULL;
}

#endif
