#include "gpu_launch.h"
#include "fattn/device.h"

#include <stdio.h>
#include <string.h>

#include "try.h"

#define MOST_BLOCKS 2048 /* kernels go on from there: enough for every GPU */

extern const gpu_image facts_image_of_kernels; /* of harness/cuda */

bool facts_gpu_load(facts_gpu *gpu, char error[256])
{
    static const char *const names[FACTS_KERNEL_COUNT] = {
#define AS_NAME(name) "facts_kernel_" #name,
        FACTS_KERNEL_LIST(AS_NAME)
#undef AS_NAME
    };
    struct CUctx_st *previous;
    if (fattn_context_enter(&previous, gpu->context) != FATTN_OK) {
        snprintf(error, 256, "%.250s", fattn_last_error());
        return false;
    }
    int status = gpu_module_create(&gpu->kernels, NULL, &facts_image_of_kernels, names,
                                   FACTS_KERNEL_COUNT, error);
    fattn_context_leave(gpu->context, previous);
    return status == 0;
}

int32_t facts_gpu_blocks(int64_t work)
{
    const int64_t blocks = (work + FACTS_BLOCK - 1) / FACTS_BLOCK;
    return (int32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

fattn_status facts_gpu_launch_blocks(facts_gpu *gpu, facts_kernel kernel, int64_t blocks,
                                     void *call)
{
    struct CUctx_st *previous;
    const unsigned grid[3] = { (unsigned)blocks, 1, 1 }, block[3] = { FACTS_BLOCK, 1, 1 };
    void *arguments[] = { call };
    if (blocks <= 0)
        return FATTN_OK;
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(
        gpu, previous,
        gpu_launch(gpu->kernels, kernel, grid, block, 0, gpu->stream, arguments, gpu->text));
}

fattn_status facts_gpu_launch(facts_gpu *gpu, facts_kernel kernel, int64_t work, void *call)
{
    return facts_gpu_launch_blocks(gpu, kernel, facts_gpu_blocks(work), call);
}

/* ---- several things in one launch
 * ---------------------------------------------------------------------------------------------
 */

typedef struct queue {
    void *call;
    int32_t *blocks;
    size_t most;
} queue;

static queue queue_of(facts_gpu *gpu, facts_kernel kernel)
{
    struct facts_together *t = &gpu->together;
    switch (kernel) {
#define AS_CASE(name)                                                                              \
    case FACTS_KERNEL_##name:                                                                      \
        return (queue){ &t->name, t->name.blocks, sizeof t->name.blocks / sizeof *t->name.blocks };
        FACTS_TOGETHER_LIST(AS_CASE)
#undef AS_CASE
    default:
        return (queue){ NULL, NULL, 0 };
    }
}

static void forget_all(facts_gpu *gpu)
{
    struct facts_together *t = &gpu->together;
    for (size_t n = 0; n < t->count[FACTS_KERNEL_fill]; n++)
        for (int i = 0; i < 4; i++)
            facts_gpu_free(gpu, t->table[n][i]);
    memset(t->count, 0, sizeof t->count);
}

fattn_status facts_gpu_launch_together(facts_gpu *gpu)
{
    fattn_status status = FATTN_OK;
    for (facts_kernel kernel = 0; kernel < FACTS_KERNEL_COUNT && status == FATTN_OK; kernel++) {
        const queue q = queue_of(gpu, kernel);
        int64_t blocks = 0;
        for (size_t n = 0; n < gpu->together.count[kernel]; n++)
            blocks += q.blocks[n];
        status = facts_gpu_launch_blocks(gpu, kernel, blocks, q.call);
    }
    forget_all(gpu);
    return status;
}

fattn_status facts_gpu_put_off(facts_gpu *gpu, facts_kernel kernel, int64_t work)
{
    size_t *count = &gpu->together.count[kernel];
    const queue q = queue_of(gpu, kernel);
    if (work <= 0)
        return FATTN_OK;
    q.blocks[(*count)++] = facts_gpu_blocks(work);
    return gpu->together.on && *count < q.most ? FATTN_OK : facts_gpu_launch_together(gpu);
}

void facts_gpu_together_begin(facts_gpu *gpu)
{
    forget_all(gpu);
    gpu->together.on = true;
}

fattn_status facts_gpu_together_end(facts_gpu *gpu)
{
    gpu->together.on = false;
    return facts_gpu_launch_together(gpu);
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
