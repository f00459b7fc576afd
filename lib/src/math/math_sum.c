#include "math_sum.h"

#include <errno.h>
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "math_params.h"

enum { OLDEST_SM = 80 };

const char *fattn__math_lacks(const fattn_context *context)
{
    if (context->kind == FATTN_DEVICE_CPU)
        return "the math backend is CUDA kernels, this context is the cpu's";
    if (fattn__math_image.bytes == 0)
        return "this library was built without a CUDA compiler";
    if (context->info.sm < OLDEST_SM)
        return "the math backend needs sm_80 or newer";
    return NULL;
}

static fattn_status load(fattn_context *context)
{
    static const char *const names[FATTN__KERNEL_COUNT] = {
#define AS_NAME(name) "fattn_" #name,
        FATTN__KERNEL_LIST(AS_NAME)
#undef AS_NAME
    };
    gpu_module *kernels;
    char error[256];
    const int failed = gpu_module_create(&kernels, context->cuda, &fattn__math_image, names,
                                         FATTN__KERNEL_COUNT, error);
    if (failed != 0)
        return fattn__fail(failed == ENOMEM ? FATTN_NO_MEMORY : FATTN_ENVIRONMENT,
                           "the kernels of the math backend (%s): %s", fattn__math_image.about,
                           error);
    context->kernels = kernels;
    return FATTN_OK;
}

fattn_status fattn__math_open(fattn_context *context)
{
    const char *lacks = fattn__math_lacks(context);
    if (lacks != NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "%s (%s)", lacks, fattn__math_image.about);
    if (context->cuda == NULL || context->kernels != NULL)
        return FATTN_OK;
    struct CUctx_st *previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st != FATTN_OK)
        return st;
    pthread_mutex_lock(&context->lock);
    if (context->kernels == NULL)
        st = load(context);
    pthread_mutex_unlock(&context->lock);
    fattn__leave(context, previous);
    return st;
}

void fattn__math_close(fattn_context *context)
{
    gpu_module_destroy(context->kernels);
    context->kernels = NULL;
}

fattn_status fattn__math_launch(const fattn_context *context, fattn__kernel which, int64_t blocks,
                                int threads, void **arguments, struct CUstream_st *stream)
{
    const unsigned grid[3] = { (unsigned)blocks, 1, 1 }, block[3] = { (unsigned)threads, 1, 1 };
    char error[256];
    if (context->kernels == NULL)
        return fattn__fail(FATTN_INTERNAL, "the kernels of the math backend are not loaded");
    if (blocks == 0)
        return FATTN_OK;
    if (blocks > INT32_MAX)
        return fattn__fail(FATTN_INTERNAL, "%lld blocks are more than a launch can have",
                           (long long)blocks);
    const int result =
        gpu_launch(context->kernels, which, grid, block, 0, stream, arguments, error);
    if (result != 0)
        return fattn__fail(FATTN_DEVICE_FAULT, "a launch of the math backend failed: %s",
                           gpu_driver_text(context->cuda, result));
    return FATTN_OK;
}

enum { THREADS = 256 };

fattn_status fattn__math_reduce(const fattn_context *context, const fattn__sum *sum, bool first,
                                struct CUstream_st *stream)
{
    fattn__sum_call call = { .from = { .at = (char *)(uintptr_t)sum->from, .dtype = sum->dtype },
                             .to = { .at = sum->to, .dtype = sum->to_dtype },
                             .kept = 1,
                             .terms = 1,
                             .lanes = 1,
                             .first = first,
                             .lengths = sum->lengths,
                             .length_step = sum->length_step,
                             .length_sums = sum->length_sums };
    call.to.starts = sum->to_starts;
    call.to.start_step = sum->to_start_step;
    call.to.start_bits = sum->to_start_bits;
    for (int axis = 0; axis < 4; axis++) {
        call.dim[axis] = sum->dim[axis];
        call.from.stride[axis] = sum->strides[axis];
        const bool packed = axis == 0 && sum->to_starts != NULL;
        call.to.stride[axis] = packed ? 0 : sum->to_strides[axis];
        call.summed[axis] = sum->dim[axis] > 1 && sum->to_strides[axis] == 0 && !packed;
        *(call.summed[axis] ? &call.terms : &call.kept) *= sum->dim[axis];
    }
    /* The threads of a warp read neighbours: neighbouring results if the innermost dimension stays, neighbouring terms if it is
     * summed. */
    const int64_t enough = call.summed[3] ? THREADS : THREADS / 32;
    while (call.lanes < call.terms && call.lanes < THREADS &&
           (call.lanes < enough || THREADS / call.lanes > call.kept))
        call.lanes *= 2;
    const int64_t results = THREADS / call.lanes;
    return fattn__math_launch(context, FATTN__KERNEL_sum, (call.kept + results - 1) / results,
                              THREADS, (void *[]){ &call }, stream);
}

fattn_status fattn__math_sum(const fattn_context *context, const fattn__sum *sum,
                             struct CUstream_st *stream)
{
    return fattn__math_reduce(context, sum, true, stream);
}
