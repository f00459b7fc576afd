/* Device memory that was given back is kept for the next that needs as much: the driver takes as long to find some as a small kernel runs. What a kernel
 * still uses may be handed out again, as everything here is in the order of one stream. */
#include "gpu_launch.h"

#define MOST_KEPT ((size_t)512 << 20)

/* The smallest that is large enough, and not twice as large. */
static struct facts_kept_block *fitting(facts_gpu *gpu, size_t bytes)
{
    struct facts_kept_block *best = NULL;
    for (int i = 0; i < FACTS_KEPT_BLOCKS; i++) {
        struct facts_kept_block *block = &gpu->pool[i];
        const bool fits = block->at && !block->used && block->bytes >= bytes && block->bytes / 2 <= bytes;
        if (fits && (!best || block->bytes < best->bytes))
            best = block;
    }
    return best;
}

static struct facts_kept_block *place_of(facts_gpu *gpu, const void *at)
{
    for (int i = 0; i < FACTS_KEPT_BLOCKS; i++)
        if (gpu->pool[i].at == at)
            return &gpu->pool[i];
    return NULL;
}

static void drop(facts_gpu *gpu, struct facts_kept_block *block)
{
    fattn_buffer_destroy(gpu->context, block->at);
    *block = (struct facts_kept_block){ NULL, 0, false };
}

bool facts_gpu_trim(facts_gpu *gpu)
{
    const bool any = gpu->kept > 0;
    for (int i = 0; i < FACTS_KEPT_BLOCKS; i++)
        if (gpu->pool[i].at && !gpu->pool[i].used)
            drop(gpu, &gpu->pool[i]);
    gpu->kept = 0;
    return any;
}

fattn_status facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes)
{
    struct facts_kept_block *block = fitting(gpu, bytes), *place;
    *out = NULL;
    if (block) {
        block->used = true;
        gpu->kept -= block->bytes;
        *out = block->at;
        return FATTN_OK;
    }
    fattn_status status = fattn_buffer_create(out, gpu->context, bytes);
    if (status == FATTN_NO_MEMORY && facts_gpu_trim(gpu))
        status = fattn_buffer_create(out, gpu->context, bytes);
    place = status == FATTN_OK ? place_of(gpu, NULL) : NULL;
    if (place)
        *place = (struct facts_kept_block){ *out, bytes, true };
    return facts_gpu_said(gpu, status);
}

void facts_gpu_free(facts_gpu *gpu, void *memory)
{
    struct facts_kept_block *block = memory ? place_of(gpu, memory) : NULL;
    if (!block) {
        fattn_buffer_destroy(gpu->context, memory); /* the driver waits for what still uses it */
    } else if (gpu->kept + block->bytes > MOST_KEPT) {
        drop(gpu, block);
    } else {
        block->used = false;
        gpu->kept += block->bytes;
    }
}
