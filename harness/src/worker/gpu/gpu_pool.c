/* Freed device memory is kept for the next allocation of that size: an allocation by the driver
 * takes as long as a small case. Memory that a kernel still uses may be reused, because all work
 * here is in the order of one stream. */
#include "fattn/device.h"
#include "gpu_launch.h"

#define MOST_KEPT ((size_t)1 << 30)

/* The smallest block that is large enough and less than twice as large. */
static struct facts_kept_block *fitting(facts_gpu *gpu, size_t bytes, bool exact)
{
    struct facts_kept_block *best = NULL;
    for (int i = 0; i < gpu->reached; i++) {
        struct facts_kept_block *block = &gpu->pool[i];
        const bool fits = block->at && !block->used && block->bytes >= bytes &&
                          (exact ? block->bytes == bytes : block->bytes / 2 <= bytes);
        if (fits && (!best || block->bytes < best->bytes))
            best = block;
    }
    return best;
}

static struct facts_kept_block *place_of(facts_gpu *gpu, const void *at)
{
    for (int i = 0; i < gpu->reached; i++)
        if (gpu->pool[i].at == at)
            return &gpu->pool[i];
    return NULL;
}

static void drop(facts_gpu *gpu, struct facts_kept_block *block)
{
    gpu->kept -= block->used ? 0 : block->bytes;
    fattn_buffer_destroy(gpu->context, block->at);
    *block = (struct facts_kept_block){ .at = NULL };
}

/* The unused block that was requested least recently; NULL: all are in use. */
static struct facts_kept_block *oldest(facts_gpu *gpu)
{
    struct facts_kept_block *found = NULL;
    for (int i = 0; i < gpu->reached; i++) {
        struct facts_kept_block *block = &gpu->pool[i];
        if (block->at && !block->used && (!found || block->since < found->since))
            found = block;
    }
    return found;
}

static bool trim_oracle(facts_gpu *gpu)
{
    struct CUctx_st *previous;
    if (!gpu->oracle || fattn_context_enter(&previous, gpu->context) != FATTN_OK)
        return false;
    const bool any = fref_gpu_trim(gpu->oracle);
    fattn_context_leave(gpu->context, previous);
    return any;
}

bool facts_gpu_trim(facts_gpu *gpu)
{
    struct facts_kept_block *block = oldest(gpu);
    const bool any = block != NULL;
    for (; block; block = oldest(gpu))
        drop(gpu, block);
    return trim_oracle(gpu) || any;
}

/* A free entry of the list for a new block of the driver; NULL: the list is full. */
static struct facts_kept_block *free_place(facts_gpu *gpu)
{
    struct facts_kept_block *place = place_of(gpu, NULL);
    if (!place && gpu->reached < FACTS_KEPT_BLOCKS)
        place = &gpu->pool[gpu->reached++];
    struct facts_kept_block *least = place ? NULL : oldest(gpu);
    if (least)
        drop(gpu, least);
    return place ? place : least;
}

static fattn_status make(facts_gpu *gpu, void **out, size_t bytes, bool exact)
{
    struct facts_kept_block *block = fitting(gpu, bytes, exact), *place;
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
    place = status == FATTN_OK ? free_place(gpu) : NULL;
    if (place)
        *place = (struct facts_kept_block){ .at = *out, .bytes = bytes, .used = true };
    return facts_gpu_keep_error(gpu, status);
}

fattn_status facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes)
{
    return make(gpu, out, bytes, false);
}

fattn_status facts_gpu_make_exact(facts_gpu *gpu, void **out, size_t bytes)
{
    return make(gpu, out, bytes, true);
}

void facts_gpu_free(facts_gpu *gpu, void *memory)
{
    struct facts_kept_block *block = memory ? place_of(gpu, memory) : NULL;
    if (!block) {
        fattn_buffer_destroy(gpu->context,
                             memory); /* the driver waits for the kernels that still use it */
        return;
    }
    if (block->bytes > MOST_KEPT) {
        drop(gpu, block);
        return;
    }
    block->used = false;
    block->since = ++gpu->given_back;
    gpu->kept += block->bytes;
    while (gpu->kept > MOST_KEPT)
        drop(gpu, oldest(gpu));
}
