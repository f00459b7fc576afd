#include "math_kernels.h"

#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "math_image.h"
#include "math_sum.h"

enum { OLDEST_SM = 80 };

bool fattn__math_image_present(void)
{
    return fattn__math_image_bytes > 0;
}

const char *fattn__math_lacks(const fattn_context *context)
{
    if (context->kind == FATTN_DEVICE_CPU)
        return "the math backend is CUDA kernels, this context is the cpu's";
    if (!fattn__math_image_present())
        return "this library was built without a CUDA compiler";
    if (context->info.sm < OLDEST_SM)
        return "the math backend needs sm_80 or newer";
    return NULL;
}

static int load(fattn_context *context)
{
    static const char *const names[FATTN__KERNEL_COUNT] = {
#define AS_NAME(name) "fattn_" #name,
        FATTN__KERNEL_LIST(AS_NAME)
#undef AS_NAME
    };
    fattn__kernels *kernels = &context->kernels;
    int result = context->cuda->module_load(&kernels->module, fattn__math_image);
    /* Asking for a function loads it: no launch does later, when a stream may be captured. */
    for (int i = 0; i < FATTN__KERNEL_COUNT && result == 0; i++)
        result = context->cuda->module_function(&kernels->functions[i], kernels->module, names[i]);
    if (result != 0 && kernels->module != NULL) {
        context->cuda->module_unload(kernels->module);
        kernels->module = NULL;
    }
    return result;
}

fattn_status fattn__math_open(fattn_context *context)
{
    const char *lacks = fattn__math_lacks(context);
    if (lacks != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "%s (%s)", lacks, fattn__math_image_about);
    if (context->cuda == NULL || context->kernels.loaded)
        return FATTN_OK;
    fattn__cuda_context previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st != FATTN_OK)
        return st;
    pthread_mutex_lock(&context->lock);
    if (!context->kernels.loaded) {
        const int result = load(context);
        context->kernels.loaded = result == 0;
        if (result != 0)
            st = fattn__fail(FATTN_ENVIRONMENT, "the driver refuses the kernels of the math backend (%s): %s", fattn__math_image_about,
                             fattn__cuda_text(context->cuda, result));
    }
    pthread_mutex_unlock(&context->lock);
    fattn__leave(context, previous);
    return st;
}

void fattn__math_close(fattn_context *context)
{
    if (!context->kernels.loaded)
        return;
    context->cuda->module_unload(context->kernels.module);
    context->kernels.loaded = false;
}

fattn_status fattn__math_launch(const fattn_context *context, fattn__kernel which, int64_t blocks, int threads, void **arguments,
                                struct CUstream_st *stream)
{
    if (!context->kernels.loaded)
        return fattn__fail(FATTN_INTERNAL, "the kernels of the math backend are not loaded");
    if (blocks == 0)
        return FATTN_OK;
    if (blocks > INT32_MAX)
        return fattn__fail(FATTN_INTERNAL, "%lld blocks are more than a launch can have", (long long)blocks);
    const int result = context->cuda->launch(context->kernels.functions[which], (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, stream,
                                             arguments, NULL);
    if (result != 0)
        return fattn__fail(FATTN_DEVICE_FAULT, "a launch of the math backend failed: %s", fattn__cuda_text(context->cuda, result));
    return FATTN_OK;
}
