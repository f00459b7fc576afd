#include "worker_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "gpu_launch.h"
#include "numbers/expect/expectation.h"
#include "numbers/fill/recipe.h"

bool facts_gpu_open(facts_gpu **out, fattn_context *context, struct CUstream_st *stream,
                    char error[256])
{
    *out = calloc(1, sizeof **out);
    if (!*out) {
        snprintf(error, 256, "no memory");
        return false;
    }
    (*out)->context = context;
    (*out)->stream = stream;
    if (facts_gpu_load(*out, error) &&
        fattn_buffer_create((void **)&(*out)->counters, context, sizeof(*out)->fetched) == FATTN_OK)
        return true;
    facts_gpu_close(*out, false);
    *out = NULL;
    return false;
}

void facts_gpu_close(facts_gpu *gpu, bool lost)
{
    struct CUctx_st *previous;
    if (gpu && !lost && fattn_context_enter(&previous, gpu->context) == FATTN_OK) {
        facts_gpu_forget(gpu);
        gpu_module_destroy(gpu->kernels);
        fattn_context_leave(gpu->context, previous);
        (void)facts_gpu_trim(gpu);
        fattn_buffer_destroy(gpu->context, gpu->counters);
    }
    free(gpu);
}

int64_t facts_gpu_free_bytes(facts_gpu *gpu)
{
    char error[256];
    struct CUctx_st *previous;
    size_t free_bytes = 0, all_bytes = 0;
    const gpu_driver *driver = gpu_driver_load(error);
    if (!driver || fattn_context_enter(&previous, gpu->context) != FATTN_OK)
        return -1;
    const int result = driver->memory_info(&free_bytes, &all_bytes);
    fattn_context_leave(gpu->context, previous);
    return result == 0 ? (int64_t)free_bytes : -1;
}

const char *facts_gpu_error(facts_gpu *gpu)
{
    memcpy(gpu->last, gpu->text, sizeof gpu->last);
    gpu->text[0] = '\0';
    return gpu->last;
}

int facts_gpu_refuse(facts_gpu *gpu, const char *why)
{
    snprintf(gpu->text, sizeof gpu->text, "%s", why);
    return ENOTSUP;
}

/* Keeps the library's message for a failure. Returns `status`. */
static fattn_status facts_gpu_keep_error(facts_gpu *gpu, fattn_status status)
{
    if (status != FATTN_OK)
        snprintf(gpu->text, sizeof gpu->text, "%.250s", fattn_last_error());
    return status;
}

/* Leaves the GPU's context. Returns the status of `result`, the result of a call of gpu_module.h in
 * that context. */
static fattn_status facts_gpu_leave(facts_gpu *gpu, struct CUctx_st *previous, int result)
{
    fattn_context_leave(gpu->context, previous);
    return result ? FATTN_DEVICE_FAULT : FATTN_OK;
}

fattn_status facts_gpu_wait(facts_gpu *gpu)
{
    return facts_gpu_keep_error(gpu, fattn_stream_synchronize(gpu->context, gpu->stream));
}

/* Work is in the order of the stream: only calls that return a result wait. */
fattn_status facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes)
{
    struct CUctx_st *previous;
    if (bytes == 0)
        return FATTN_OK;
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(gpu, previous,
                           gpu_send(gpu->kernels, to, from_host, bytes, gpu->stream, gpu->text));
}

fattn_status facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes)
{
    struct CUctx_st *previous;
    if (bytes == 0)
        return facts_gpu_wait(gpu);
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(gpu, previous,
                           gpu_fetch(gpu->kernels, to_host, from, bytes, gpu->stream, gpu->text));
}

fattn_status facts_gpu_prove(facts_gpu *gpu)
{
    uint64_t words[2] = { 0 };
    void *memory;
    TRY(facts_gpu_make(gpu, &memory, sizeof words));
    fattn_status st = facts_gpu_send(gpu, memory, words, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_noise(gpu, memory, 1, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_fetch(gpu, words, memory, sizeof words);
    if (st == FATTN_OK)
        st = facts_gpu_wait(gpu);
    facts_gpu_free(gpu, memory);
    if (st == FATTN_OK && words[0] == 0 && words[1] == 0) {
        facts_gpu_refuse(gpu, "a kernel wrote nothing");
        st = FATTN_DEVICE_FAULT;
    }
    return st;
}

#define MOST_BLOCKS 2048 /* kernels go on from there: enough for every GPU */

extern const gpu_image facts_image_of_kernels; /* of harness/attention/cuda */

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
    const gpu_driver *driver = gpu_driver_load(error);
    int device, status = gpu_module_create(&gpu->kernels, driver, &facts_image_of_kernels, names,
                                           FACTS_KERNEL_COUNT, error);
    if (status == 0 &&
        (driver->context_device(&device) ||
         driver->device_attribute(&gpu->multiprocessors, GPU_MULTIPROCESSORS, device) ||
         driver->device_attribute(&gpu->shared_bytes, GPU_SHARED_OF_BLOCK, device)))
        gpu->multiprocessors = 0;
    fattn_context_leave(gpu->context, previous);
    return status == 0;
}

int32_t facts_gpu_blocks(int64_t work)
{
    const int64_t blocks = (work + FACTS_BLOCK - 1) / FACTS_BLOCK;
    return (int32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

static fattn_status launch_sharing(facts_gpu *gpu, facts_kernel kernel, int64_t blocks,
                                   unsigned shared_bytes, void *call)
{
    struct CUctx_st *previous;
    const unsigned grid[3] = { (unsigned)blocks, 1, 1 }, block[3] = { FACTS_BLOCK, 1, 1 };
    void *arguments[] = { call };
    if (blocks <= 0)
        return FATTN_OK;
    TRY(facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)));
    return facts_gpu_leave(gpu, previous,
                           gpu_launch(gpu->kernels, kernel, grid, block, shared_bytes, gpu->stream,
                                      arguments, gpu->text));
}

fattn_status facts_gpu_launch_blocks(facts_gpu *gpu, facts_kernel kernel, int64_t blocks,
                                     void *call)
{
    return launch_sharing(gpu, kernel, blocks, 0, call);
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

static fattn_status facts_gpu_launch_together(facts_gpu *gpu)
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

/* Adds the work that the caller wrote to together.NAME.one[together.count[kernel]], with `work`
 * threads. It is launched now, or later together with other work. */
static fattn_status facts_gpu_put_off(facts_gpu *gpu, facts_kernel kernel, int64_t work)
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

/* Freed device memory is kept for the next allocation of that size: an allocation by the driver
 * takes as long as a small case. Memory that a kernel still uses may be reused, because all work
 * here is in the order of one stream. */

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

/* Kernels over storages: fills, poison, counts of changes. */

/* Its index among the deferred launches. */
#define NEXT(gpu, name) (&(gpu)->together.name.one[(gpu)->together.count[FACTS_KERNEL_##name]])

fattn_status facts_gpu_copy(facts_gpu *gpu, void *to, const void *from, size_t bytes)
{
    *NEXT(gpu, copy) = (facts_one_copy){ .to = to, .from = from, .bytes = (int64_t)bytes };
    return facts_gpu_put_off(gpu, FACTS_KERNEL_copy, ((int64_t)bytes + 15) / 16 + 15);
}

fattn_status facts_gpu_set(facts_gpu *gpu, void *to, unsigned char byte, size_t bytes)
{
    facts_set_call call = { .to = to, .bytes = (int64_t)bytes, .byte = byte };
    return facts_gpu_launch(gpu, FACTS_KERNEL_set, call.bytes, &call);
}

fattn_status facts_gpu_noise(facts_gpu *gpu, void *to, uint64_t seed, size_t bytes)
{
    facts_noise_call call = { .to = to, .bytes = (int64_t)bytes, .seed = seed };
    return facts_gpu_launch(gpu, FACTS_KERNEL_noise, (call.bytes + 7) / 8, &call);
}

/* One block has all that a multiprocessor may give; two for each, as one may end before the last
 * has begun. */
fattn_status facts_gpu_shared(facts_gpu *gpu, double *share)
{
    const int64_t blocks = 2 * (int64_t)gpu->multiprocessors;
    facts_counter found = 0;
    facts_shared_call call = { .words = gpu->shared_bytes / 4,
                               .held = share ? gpu->counters : NULL };
    if (share)
        TRY(facts_gpu_count(gpu, &found, 1));
    if (call.words > 0)
        TRY(launch_sharing(gpu, FACTS_KERNEL_shared, blocks, (unsigned)gpu->shared_bytes, &call));
    if (share) {
        TRY(facts_gpu_counted(gpu, &found, 1));
        *share = (double)found / ((double)blocks * call.words);
    }
    return FATTN_OK;
}

/* ---- fills ---- */

/* A table of a recipe, on the device. */
static fattn_status send_table(facts_gpu *gpu, void **out, const void *table, int64_t count,
                               size_t size)
{
    *out = NULL;
    if (!table)
        return FATTN_OK;
    fattn_status status = facts_gpu_make(gpu, out, (size_t)count * size);
    return status != FATTN_OK ? status : facts_gpu_send(gpu, *out, table, (size_t)count * size);
}

/* Replaces the recipe's table with this one. */
static fattn_status send_tables(facts_gpu *gpu, void *table[4], facts_recipe *r)
{
    for (int i = 0; i < 4; i++)
        table[i] = NULL;
    const int64_t *dim = r->dim, rows = dim[0] * dim[1] * dim[2];
    TRY(send_table(gpu, &table[0], r->live, dim[0], sizeof *r->live));
    TRY(send_table(gpu, &table[1], r->row, rows, sizeof *r->row));
    TRY(send_table(gpu, &table[2], r->list, rows * dim[3], sizeof *r->list));
    TRY(send_table(gpu, &table[3], r->place, dim[0] * r->runs, sizeof *r->place));
    r->live = table[0];
    r->row = table[1];
    r->list = table[2];
    r->place = table[3];
    return FATTN_OK;
}

/* Quantises the blocks. */
static fattn_status fill_blocks(facts_gpu *gpu, const facts_problem *problem, facts_tensor_id id,
                                void *storage)
{
    const size_t bytes =
        (size_t)problem->tensor[id].elements * facts_dtype_bytes(problem->tensor[id].dtype);
    void *here = malloc(bytes + 1);
    fattn_status status = here ? facts_gpu_launch_together(gpu) : FATTN_NO_MEMORY;
    if (status == FATTN_OK)
        status = facts_gpu_fetch(gpu, here, storage, bytes);
    if (status == FATTN_OK)
        status = facts_fill_tensor(problem, id, here) ? facts_gpu_send(gpu, storage, here, bytes)
                                                      : FATTN_NO_MEMORY;
    if (status == FATTN_NO_MEMORY)
        snprintf(gpu->text, sizeof gpu->text, "no memory for the fill of %s",
                 facts_tensor_word(id));
    free(here);
    return status;
}

fattn_status facts_gpu_fill(facts_gpu *gpu, const facts_problem *problem, facts_tensor_id id,
                            void *storage)
{
    void **table = gpu->together.table[gpu->together.count[FACTS_KERNEL_fill]];
    facts_one_fill *fill = NEXT(gpu, fill);
    facts_recipe recipe;
    if (facts_mx_makes(problem, id))
        return fill_blocks(gpu, problem, id, storage);
    if (!facts_recipe_make(&recipe, problem, id)) {
        facts_recipe_destroy(&recipe);
        snprintf(gpu->text, sizeof gpu->text, "no memory for the fill of %s",
                 facts_tensor_word(id));
        return FATTN_NO_MEMORY;
    }
    const int64_t rows = recipe.extent[0] * recipe.extent[1] * recipe.extent[2];
    *fill = (facts_one_fill){ .recipe = recipe,
                              .storage = storage,
                              .lane_bits = facts_lane_bits(rows, recipe.extent[3]) };
    const fattn_status status = send_tables(gpu, table, &fill->recipe);
    facts_recipe_destroy(&recipe);
    if (status == FATTN_OK)
        return facts_gpu_put_off(gpu, FACTS_KERNEL_fill, rows << fill->lane_bits);
    for (int i = 0; i < 4; i++)
        facts_gpu_free(gpu, table[i]);
    return status;
}

fattn_status facts_gpu_gaps(facts_gpu *gpu, const facts_problem *problem, int32_t dtype,
                            void *storage, int64_t elements)
{
    *NEXT(gpu, gaps) = (facts_one_gaps){ .gaps = facts_gaps_of(problem, dtype),
                                         .storage = storage,
                                         .elements = elements };
    return facts_gpu_put_off(gpu, FACTS_KERNEL_gaps, elements);
}

/* ---- poison ---- */

static void pattern_of(int32_t dtype, facts_pattern pattern, uint32_t code[FACTS_PATTERN_PERIOD])
{
    for (int64_t i = 0; i < FACTS_PATTERN_PERIOD; i++)
        code[i] = facts_pattern_code(dtype, pattern, i);
}

static facts_one_poison poison_of(const facts_image *image, facts_pattern pattern, void *bytes)
{
    facts_one_poison call = { .dtype = image->dtype, .storage = facts_image_storage(image, bytes) };
    pattern_of(image->dtype, pattern, call.code);
    call.from = -facts_image_before(image);
    call.to = image->elements + facts_image_after(image);
    return call;
}

static fattn_status poison_range(facts_gpu *gpu, const facts_one_poison *all, int64_t from,
                                 int64_t to)
{
    facts_one_poison *one = NEXT(gpu, poison);
    *one = *all;
    one->from = from;
    one->to = to;
    return facts_gpu_put_off(gpu, FACTS_KERNEL_poison, to - from);
}

fattn_status facts_gpu_guard(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                             void *bytes)
{
    const facts_one_poison all = poison_of(image, pattern, bytes);
    TRY(facts_gpu_set(gpu, bytes, FACTS_GUARD_FILLER, facts_image_odd(image)));
    TRY(poison_range(gpu, &all, all.from, 0));
    return poison_range(gpu, &all, image->elements, all.to);
}

fattn_status facts_gpu_poison(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                              void *bytes)
{
    const facts_one_poison all = poison_of(image, pattern, bytes);
    TRY(facts_gpu_set(gpu, bytes, FACTS_GUARD_FILLER, facts_image_odd(image)));
    return poison_range(gpu, &all, all.from, all.to);
}

/* ---- after a run ---- */

fattn_status facts_gpu_watch_begin(facts_gpu *gpu)
{
    static const facts_counter none[FACTS_COUNTERS];
    gpu->watched_count = gpu->collected_count = gpu->collected_bytes = 0;
    facts_gpu_together_begin(gpu);
    return facts_gpu_count(gpu, none, FACTS_COUNTERS);
}

/* Two counters: one is added to *to, the other is subtracted. */
static facts_counter *watch(facts_gpu *gpu, int64_t *to)
{
    *to = 0;
    gpu->watched[gpu->watched_count] = to;
    return gpu->counters + 2 * gpu->watched_count++;
}

#define COUNTER_BYTES (FACTS_COUNTERS * sizeof(facts_counter))

fattn_status facts_gpu_collect(facts_gpu *gpu, void *to_host, const void *from, size_t bytes)
{
    const size_t at = gpu->collected_bytes;
    if (bytes > FACTS_COLLECTED - at || gpu->collected_count == FACTS_GPU_WATCHED)
        return facts_gpu_fetch(gpu, to_host, from, bytes);
    gpu->collected[gpu->collected_count++] =
        (struct facts_collected){ .to = to_host, .bytes = bytes, .at = COUNTER_BYTES + at };
    gpu->collected_bytes += (bytes + 15) / 16 * 16;
    return facts_gpu_copy(gpu, (unsigned char *)gpu->counters + COUNTER_BYTES + at, from, bytes);
}

fattn_status facts_gpu_watch_end(facts_gpu *gpu)
{
    facts_counter found[FACTS_COUNTERS];
    TRY(facts_gpu_together_end(gpu));
    TRY(facts_gpu_fetch(gpu, gpu->fetched, gpu->counters, COUNTER_BYTES + gpu->collected_bytes));
    memcpy(found, gpu->fetched, sizeof found);
    for (size_t n = 0; n < gpu->watched_count; n++)
        *gpu->watched[n] += (int64_t)(found[2 * n] - found[2 * n + 1]);
    for (size_t n = 0; n < gpu->collected_count; n++)
        memcpy(gpu->collected[n].to, gpu->fetched + gpu->collected[n].at, gpu->collected[n].bytes);
    return FATTN_OK;
}

/* The bytes of a skew that are smaller than an element. */
static fattn_status changed_filler(facts_gpu *gpu, const facts_image *image, const void *bytes,
                                   int64_t *changed)
{
    unsigned char odd[16];
    const size_t count = facts_image_odd(image);
    if (count == 0)
        return FATTN_OK;
    TRY(facts_gpu_fetch(gpu, odd, bytes, count));
    for (size_t i = 0; i < count; i++)
        *changed += odd[i] != FACTS_GUARD_FILLER;
    return FATTN_OK;
}

facts_strided facts_strided_of(const facts_tensor *t)
{
    facts_strided view = {
        .first = t->first, .dtype = t->dtype, .start = t->start, .live = t->live
    };
    memcpy(view.dim, t->dim, sizeof view.dim);
    memcpy(view.stride, t->stride, sizeof view.stride);
    view.lane_bits = facts_lane_bits(t->dim[0] * t->dim[1] * t->dim[2], t->dim[3]);
    return view;
}

fattn_status facts_gpu_overrun(facts_gpu *gpu, const facts_image *image,
                               const facts_tensor *const tensors[], size_t count,
                               facts_pattern pattern, void *bytes, int64_t *changed)
{
    const facts_one_changed all = { .poison = poison_of(image, pattern, bytes),
                                    .count = watch(gpu, changed) };
    TRY(changed_filler(gpu, image, bytes, changed));
    *NEXT(gpu, changed) = all;
    TRY(facts_gpu_put_off(gpu, FACTS_KERNEL_changed, all.poison.to - all.poison.from));
    for (size_t i = 0; i < count; i++) {
        facts_one_owned *owned = NEXT(gpu, owned);
        *owned = (facts_one_owned){ .view = facts_strided_of(tensors[i]),
                                    .storage = all.poison.storage,
                                    .count = all.count + 1 };
        memcpy(owned->code, all.poison.code, sizeof owned->code);
        int64_t *dim = owned->view.dim;
        for (int d = 0; d < 4; d++)
            if (owned->view.stride[d] == 0 && dim[d] > 1 && !(d == 0 && owned->view.start))
                dim[d] = 1;
        owned->view.lane_bits = facts_lane_bits(dim[0] * dim[1] * dim[2], dim[3]);
        TRY(facts_gpu_put_off(gpu, FACTS_KERNEL_owned, facts_threads_of(&owned->view)));
    }
    return FATTN_OK;
}

fattn_status facts_gpu_changed(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                               void *bytes, int64_t *changed)
{
    return facts_gpu_overrun(gpu, image, NULL, 0, pattern, bytes, changed);
}

fattn_status facts_gpu_differ(facts_gpu *gpu, const void *a, const void *b, size_t bytes,
                              int64_t *differ)
{
    *NEXT(gpu, differ) =
        (facts_one_differ){ .a = a, .b = b, .bytes = (int64_t)bytes, .count = watch(gpu, differ) };
    return facts_gpu_put_off(gpu, FACTS_KERNEL_differ, ((int64_t)bytes + 15) / 16 + 15);
}

/* The oracle on the GPU, in the worker's context. */

/* Its first use loads it. */
static int open_oracle(facts_gpu *gpu)
{
    return gpu->oracle ? 0 : fref_gpu_create(&gpu->oracle, gpu->text);
}

/* The oracle had too little memory. Releases what the pool and the oracle keep; false: they kept
 * none. */
static bool had_some(facts_gpu *gpu, int status)
{
    if (status != ENOMEM || !gpu->oracle || !facts_gpu_trim(gpu))
        return false;
    gpu->text[0] = '\0';
    return true;
}

int facts_gpu_oracle(facts_gpu *gpu, facts_oracle_call *call, void *asked)
{
    struct CUctx_st *previous;
    if (facts_gpu_keep_error(gpu, fattn_context_enter(&previous, gpu->context)) != FATTN_OK)
        return EIO;
    int status = open_oracle(gpu);
    if (status == 0)
        status = call(asked, gpu->oracle, gpu->stream, gpu->text);
    if (had_some(gpu, status))
        status = call(asked, gpu->oracle, gpu->stream, gpu->text);
    fattn_context_leave(gpu->context, previous);
    return status;
}

void facts_gpu_forget(facts_gpu *gpu)
{
    fref_gpu_destroy(gpu->oracle);
    gpu->oracle = NULL;
}
