/* Kernels over storages: fills, poison, what has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers/expect.h"
#include "../numbers/fill.h"
#include "../numbers/mx.h"
#include "gpu_launch.h"
#include "try.h"

fattn_status facts_gpu_copy(facts_gpu *gpu, void *to, const void *from, size_t bytes)
{
    facts_copy_call call = { .to = to, .from = from, .bytes = (int64_t)bytes };
    return facts_gpu_launch(gpu, FACTS_KERNEL_copy, (call.bytes + 15) / 16 + 15, &call);
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
static fattn_status send_table(facts_gpu *gpu, void **out, const void *table, int64_t count, size_t size)
{
    *out = NULL;
    if (!table)
        return FATTN_OK;
    fattn_status status = facts_gpu_make(gpu, out, (size_t)count * size);
    return status != FATTN_OK ? status : facts_gpu_send(gpu, *out, table, (size_t)count * size);
}

/* In place of the recipe's own, which are here. */
static fattn_status send_tables(facts_gpu *gpu, void *table[4], facts_recipe *r)
{
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

static void free_tables(facts_gpu *gpu, void *const table[4])
{
    for (int i = 0; i < 4; i++)
        facts_gpu_free(gpu, table[i]);
}

static int64_t sum_of(const int32_t *blocks, size_t count)
{
    int64_t all = 0;
    for (size_t n = 0; n < count; n++)
        all += blocks[n];
    return all;
}

/* What was put off is launched: gaps first, as elements lie between them. */
static fattn_status launch_fills(facts_gpu *gpu)
{
    struct facts_put_off *f = &gpu->fills;
    fattn_status status = facts_gpu_launch_blocks(gpu, FACTS_KERNEL_gaps, sum_of(f->gaps.blocks, f->gap_count), &f->gaps);
    if (status == FATTN_OK)
        status = facts_gpu_launch_blocks(gpu, FACTS_KERNEL_fill, sum_of(f->fill.blocks, f->count), &f->fill);
    for (size_t n = 0; n < f->count; n++)
        free_tables(gpu, f->table[n]);
    f->gap_count = f->count = 0;
    return status;
}

void facts_gpu_fills_begin(facts_gpu *gpu)
{
    gpu->fills.on = true;
}

fattn_status facts_gpu_fills_end(facts_gpu *gpu)
{
    gpu->fills.on = false;
    return launch_fills(gpu);
}

static fattn_status launch_unless_put_off(facts_gpu *gpu)
{
    const struct facts_put_off *f = &gpu->fills;
    return f->on && f->count < FACTS_FILLS_TOGETHER && f->gap_count < FACTS_FILLS_TOGETHER ? FATTN_OK : launch_fills(gpu);
}

/* Blocks are quantised here. */
static fattn_status fill_blocks(facts_gpu *gpu, const facts_problem *problem, facts_tensor_id id, void *storage)
{
    const size_t bytes = (size_t)problem->tensor[id].elements * facts_dtype_bytes(problem->tensor[id].dtype);
    void *here = malloc(bytes + 1);
    fattn_status status = here ? launch_fills(gpu) : FATTN_NO_MEMORY;
    if (status == FATTN_OK)
        status = facts_gpu_fetch(gpu, here, storage, bytes);
    if (status == FATTN_OK)
        status = facts_fill_tensor(problem, id, here) ? facts_gpu_send(gpu, storage, here, bytes) : FATTN_NO_MEMORY;
    if (status == FATTN_NO_MEMORY)
        snprintf(gpu->text, sizeof gpu->text, "no memory for the fill of %s", facts_tensor_word(id));
    free(here);
    return status;
}

fattn_status facts_gpu_fill(facts_gpu *gpu, const facts_problem *problem, facts_tensor_id id, void *storage)
{
    struct facts_put_off *f = &gpu->fills;
    facts_one_fill *fill = &f->fill.one[f->count];
    facts_recipe recipe;
    if (facts_mx_makes(problem, id))
        return fill_blocks(gpu, problem, id, storage);
    if (!facts_recipe_make(&recipe, problem, id)) {
        facts_recipe_destroy(&recipe);
        snprintf(gpu->text, sizeof gpu->text, "no memory for the fill of %s", facts_tensor_word(id));
        return FATTN_NO_MEMORY;
    }
    const int64_t rows = recipe.extent[0] * recipe.extent[1] * recipe.extent[2];
    *fill = (facts_one_fill){ .recipe = recipe, .storage = storage, .lane_bits = facts_lane_bits(rows, recipe.extent[3]) };
    f->fill.blocks[f->count] = facts_gpu_blocks(rows << fill->lane_bits);
    memset(f->table[f->count], 0, sizeof f->table[f->count]);
    const fattn_status status = send_tables(gpu, f->table[f->count], &fill->recipe);
    facts_recipe_destroy(&recipe);
    if (status == FATTN_OK) {
        f->count++;
        return launch_unless_put_off(gpu);
    }
    free_tables(gpu, f->table[f->count]);
    return status;
}

fattn_status facts_gpu_gaps(facts_gpu *gpu, const facts_problem *problem, int32_t dtype, void *storage, int64_t elements)
{
    struct facts_put_off *f = &gpu->fills;
    f->gaps.blocks[f->gap_count] = facts_gpu_blocks(elements);
    f->gaps.one[f->gap_count++] = (facts_one_gaps){ .gaps = facts_gaps_of(problem, dtype), .storage = storage, .elements = elements };
    return launch_unless_put_off(gpu);
}

/* ---- poison ---- */

static void pattern_of(int32_t dtype, facts_pattern pattern, uint32_t code[FACTS_PATTERN_PERIOD])
{
    for (int64_t i = 0; i < FACTS_PATTERN_PERIOD; i++)
        code[i] = facts_pattern_code(dtype, pattern, i);
}

static facts_poison_call poison_of(const facts_image *image, facts_pattern pattern, void *bytes)
{
    facts_poison_call call = { .dtype = image->dtype, .storage = facts_image_storage(image, bytes) };
    pattern_of(image->dtype, pattern, call.code);
    call.from = -facts_image_before(image);
    call.to = image->elements + facts_image_after(image);
    return call;
}

static fattn_status poison_range(facts_gpu *gpu, facts_poison_call call, int64_t from, int64_t to)
{
    call.from = from;
    call.to = to;
    return facts_gpu_launch(gpu, FACTS_KERNEL_poison, to - from, &call);
}

fattn_status facts_gpu_guard(facts_gpu *gpu, const facts_image *image, facts_pattern pattern, void *bytes)
{
    const facts_poison_call call = poison_of(image, pattern, bytes);
    TRY(facts_gpu_set(gpu, bytes, FACTS_GUARD_FILLER, facts_image_odd(image)));
    TRY(poison_range(gpu, call, call.from, 0));
    return poison_range(gpu, call, image->elements, call.to);
}

fattn_status facts_gpu_poison(facts_gpu *gpu, const facts_image *image, facts_pattern pattern, void *bytes)
{
    const facts_poison_call call = poison_of(image, pattern, bytes);
    TRY(facts_gpu_set(gpu, bytes, FACTS_GUARD_FILLER, facts_image_odd(image)));
    return poison_range(gpu, call, call.from, call.to);
}

/* ---- after a run ---- */

fattn_status facts_gpu_watch_begin(facts_gpu *gpu)
{
    static const facts_counter none[FACTS_COUNTERS];
    gpu->watched_count = 0;
    return facts_gpu_count(gpu, none, FACTS_COUNTERS);
}

/* Two counters: what is added to *to, and what is taken off. */
static facts_counter *watch(facts_gpu *gpu, int64_t *to)
{
    *to = 0;
    gpu->watched[gpu->watched_count] = to;
    return gpu->counters + 2 * gpu->watched_count++;
}

fattn_status facts_gpu_watch_end(facts_gpu *gpu)
{
    facts_counter found[FACTS_COUNTERS];
    TRY(facts_gpu_counted(gpu, found, 2 * gpu->watched_count));
    for (size_t n = 0; n < gpu->watched_count; n++)
        *gpu->watched[n] += (int64_t)(found[2 * n] - found[2 * n + 1]);
    return FATTN_OK;
}

/* The few bytes of a skew that make no element. */
static fattn_status changed_filler(facts_gpu *gpu, const facts_image *image, const void *bytes, int64_t *changed)
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
    facts_strided view = { .first = t->first, .dtype = t->dtype, .start = t->start, .live = t->live };
    memcpy(view.dim, t->dim, sizeof view.dim);
    memcpy(view.stride, t->stride, sizeof view.stride);
    view.lane_bits = facts_lane_bits(t->dim[0] * t->dim[1] * t->dim[2], t->dim[3]);
    return view;
}

fattn_status facts_gpu_overrun(facts_gpu *gpu, const facts_image *image, const facts_tensor *const tensors[], size_t count,
                               facts_pattern pattern, void *bytes, int64_t *changed)
{
    facts_changed_call all = { .poison = poison_of(image, pattern, bytes), .count = watch(gpu, changed) };
    TRY(changed_filler(gpu, image, bytes, changed));
    TRY(facts_gpu_launch(gpu, FACTS_KERNEL_changed, all.poison.to - all.poison.from, &all));
    for (size_t i = 0; i < count; i++) {
        facts_owned_call owned = { .view = facts_strided_of(tensors[i]),
                                   .storage = all.poison.storage,
                                   .count = all.count + 1 };
        memcpy(owned.code, all.poison.code, sizeof owned.code);
        for (int d = 0; d < 4; d++) {
            if (owned.view.stride[d] == 0 && owned.view.dim[d] > 1 && !(d == 0 && owned.view.start))
                owned.view.dim[d] = 1;
        }
        owned.view.lane_bits = facts_lane_bits(owned.view.dim[0] * owned.view.dim[1] * owned.view.dim[2], owned.view.dim[3]);
        TRY(facts_gpu_launch(gpu, FACTS_KERNEL_owned, facts_threads_of(&owned.view), &owned));
    }
    return FATTN_OK;
}

fattn_status facts_gpu_changed(facts_gpu *gpu, const facts_image *image, facts_pattern pattern, void *bytes, int64_t *changed)
{
    return facts_gpu_overrun(gpu, image, NULL, 0, pattern, bytes, changed);
}

fattn_status facts_gpu_differ(facts_gpu *gpu, const void *a, const void *b, size_t bytes, int64_t *differ)
{
    facts_differ_call call = { .a = a, .b = b, .bytes = (int64_t)bytes, .count = watch(gpu, differ) };
    return facts_gpu_launch(gpu, FACTS_KERNEL_differ, (call.bytes + 15) / 16 + 15, &call);
}
