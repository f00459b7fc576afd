#include "gpu_launch.h"

#include <stdio.h>

#define MOST_BLOCKS 2048 /* kernels go on from there: enough for every GPU */

/* harness/cuda, as lib/cuda/make_image.cmake embeds it. */
extern const unsigned char facts_image_of_kernels[];
extern const size_t facts_image_of_kernels_bytes;
extern const char facts_image_of_kernels_about[];

bool facts_gpu_load(facts_gpu *gpu, char error[256])
{
    static const char *const names[FACTS_KERNEL_COUNT] = {
#define AS_NAME(name) "facts_kernel_" #name,
        FACTS_KERNEL_LIST(AS_NAME)
#undef AS_NAME
    };
    struct CUctx_st *previous;
    if (facts_image_of_kernels_bytes == 0) {
        snprintf(error, 256, "the harness was built without kernels: %.200s", facts_image_of_kernels_about);
        return false;
    }
    if (fattn_context_enter(&previous, gpu->context) != FATTN_OK) {
        snprintf(error, 256, "%.250s", fattn_last_error());
        return false;
    }
    int status = fref_gpu_program_create(&gpu->program, facts_image_of_kernels, names, FACTS_KERNEL_COUNT, error);
    fattn_context_leave(gpu->context, previous);
    return status == 0;
}

int32_t facts_gpu_blocks(int64_t work)
{
    const int64_t blocks = (work + FACTS_BLOCK - 1) / FACTS_BLOCK;
    return (int32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

fattn_status facts_gpu_launch_blocks(facts_gpu *gpu, facts_kernel kernel, int64_t blocks, void *call)
{
    struct CUctx_st *previous;
    const unsigned grid[3] = { (unsigned)blocks, 1, 1 }, block[3] = { FACTS_BLOCK, 1, 1 };
    void *arguments[] = { call };
    if (blocks <= 0)
        return FATTN_OK;
    fattn_status status = fattn_context_enter(&previous, gpu->context);
    if (status != FATTN_OK) {
        snprintf(gpu->text, sizeof gpu->text, "%.250s", fattn_last_error());
        return status;
    }
    int failed = fref_gpu_launch(gpu->program, (size_t)kernel, grid, block, 0, gpu->stream, arguments, gpu->text);
    fattn_context_leave(gpu->context, previous);
    return failed ? FATTN_DEVICE_FAULT : FATTN_OK;
}

fattn_status facts_gpu_launch(facts_gpu *gpu, facts_kernel kernel, int64_t work, void *call)
{
    return facts_gpu_launch_blocks(gpu, kernel, facts_gpu_blocks(work), call);
}

int64_t facts_threads_of(const facts_strided *view)
{
    return (view->dim[0] * view->dim[1] * view->dim[2]) << view->lane_bits;
}

fattn_status facts_gpu_count(facts_gpu *gpu, const facts_counter *values, size_t count)
{
    return facts_gpu_send(gpu, gpu->counters, values, count * sizeof *values);
}

fattn_status facts_gpu_counted(facts_gpu *gpu, facts_counter *values, size_t count)
{
    return facts_gpu_fetch(gpu, values, gpu->counters, count * sizeof *values);
}
