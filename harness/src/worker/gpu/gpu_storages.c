/* Kernels over storages: fills, poison, counts of changes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_launch.h"
#include "numbers/expect/expectation.h"
#include "numbers/fill/fill.h"
#include "numbers/fill/mx.h"
#include "numbers/fill/recipe.h"
#include "try.h"

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
