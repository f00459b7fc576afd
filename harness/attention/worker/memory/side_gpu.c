/* The bytes stay on the GPU. An input is written there once and copied before each run; an answer
 * over poison A is kept there. Host code that reads a storage gets a copy, valid until the next
 * run. */
#include <stdio.h>
#include <stdlib.h>

#include "memory_side.h"
#include "worker/gpu/worker_gpu.h"

#define ALIGNMENT ((size_t)16)

static void forget(unsigned char **bytes, const facts_block *block)
{
    if (*bytes)
        free(*bytes - block->lead);
    *bytes = NULL;
}

/* Each element has a place of its own, and every place has an element. */
static bool is_dense(const facts_tensor *t)
{
    int64_t places = 1;
    for (int turn = 0; turn < 4; turn++) {
        int d = 0;
        while (d < 4 && (t->dim[d] == 1 || t->stride[d] != places))
            d++;
        places *= d < 4 ? t->dim[d] : 1;
    }
    return t->packed == FACTS_PACKED_NOT && t->page == 0 && t->first == 0 && places == t->elements;
}

/* Elements that no fill writes. */
static bool has_gaps(const facts_memory *m, facts_tensor_id owner)
{
    const facts_tensor *t = &m->problem->tensor[owner];
    return m->block[owner].tensors != 1u << owner || facts_memory_is_given(owner) ||
           facts_is_mx(t->dtype) || !is_dense(t);
}

static fattn_status fill(facts_memory *m, facts_tensor_id owner)
{
    const facts_problem *p = m->problem;
    facts_block *block = &m->block[owner];
    void *storage = facts_image_storage(&block->image, block->kept);
    if (has_gaps(m, owner))
        TRY(facts_gpu_gaps(m->gpu, p, block->image.dtype, storage, block->image.elements));
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (!facts_memory_is_given(id) && (block->tensors >> id & 1))
            TRY(facts_gpu_fill(m->gpu, p, id, storage));
    return FATTN_OK;
}

static fattn_status begin(facts_memory *m, facts_tensor_id owner, facts_error *error)
{
    facts_block *block = &m->block[owner];
    facts_list list;
    const size_t count = facts_memory_list(m, owner, true, &list);
    if (!facts_image_measure(&block->image, list.at, count))
        return (fattn_status)facts_fail_as(FATTN_INTERNAL, error,
                                           "%s: the tensor reaches outside its storage",
                                           facts_tensor_word(owner));
    block->lead = (ALIGNMENT - block->image.front % ALIGNMENT) % ALIGNMENT;
    fattn_status status = facts_gpu_make(m->gpu, &block->kept, block->image.bytes);
    if (status != FATTN_OK)
        facts_fail(error, "%s", facts_gpu_error(m->gpu));
    return status;
}

static void end(facts_memory *m, facts_tensor_id owner)
{
    facts_block *block = &m->block[owner];
    forget(&block->host, block);
    forget(&block->second, block);
    if (!m->worker->lost)
        facts_gpu_free(m->gpu, block->kept);
}

static fattn_status produce(facts_memory *m, facts_tensor_id owner)
{
    (void)m;
    (void)owner;
    return FATTN_OK;
}

static void *storage(facts_memory *m, facts_tensor_id owner, facts_pattern pattern)
{
    facts_block *block = &m->block[owner];
    unsigned char **bytes = pattern == FACTS_PATTERN_B ? &block->second : &block->host;
    const void *from = pattern == FACTS_PATTERN_B ? m->set->device[owner] : block->kept;
    if (!*bytes) {
        unsigned char *made = malloc(block->lead + block->image.bytes);
        *bytes = made ? made + block->lead : NULL;
        if (made && facts_gpu_fetch(m->gpu, *bytes, from, block->image.bytes) != FATTN_OK)
            forget(bytes, block);
    }
    return *bytes ? facts_image_storage(&block->image, *bytes) : NULL;
}

static void *address(facts_memory *m, facts_tensor_id owner, facts_pattern pattern)
{
    const facts_block *block = &m->block[owner];
    return facts_image_storage(&block->image,
                               pattern == FACTS_PATTERN_B ? m->set->device[owner] : block->kept);
}

static fattn_status push(facts_memory *m, facts_tensor_id owner)
{
    facts_block *block = &m->block[owner];
    return block->host ? facts_gpu_send(m->gpu, block->kept, block->host, block->image.bytes)
                       : FATTN_OK;
}

static fattn_status arm(facts_memory *m, facts_tensor_id owner, facts_pattern pattern)
{
    facts_block *block = &m->block[owner];
    if (block->output)
        return facts_gpu_poison(m->gpu, &block->image, pattern, m->set->device[owner]);
    TRY(facts_gpu_guard(m->gpu, &block->image, pattern, block->kept));
    return facts_gpu_copy(m->gpu, m->set->device[owner], block->kept, block->image.bytes);
}

static fattn_status fetch(facts_memory *m, facts_tensor_id owner, facts_pattern pattern,
                          int64_t *overrun)
{
    facts_block *block = &m->block[owner];
    facts_list list;
    void *device = m->set->device[owner];
    if (!block->output)
        return facts_gpu_differ(m->gpu, device, block->kept, block->image.bytes, overrun);
    const size_t count = facts_memory_list(m, owner, false, &list);
    forget(pattern == FACTS_PATTERN_B ? &block->second : &block->host, block);
    TRY(facts_gpu_overrun(m->gpu, &block->image, list.at, count, pattern, device, overrun));
    return pattern == FACTS_PATTERN_A
               ? facts_gpu_copy(m->gpu, block->kept, device, block->image.bytes)
               : FATTN_OK;
}

static fattn_status spoil(facts_memory *m, facts_tensor_id owner)
{
    return facts_gpu_poison(m->gpu, &m->block[owner].image, FACTS_PATTERN_A, m->set->device[owner]);
}

static fattn_status untouched(facts_memory *m, facts_tensor_id owner, int64_t *changed)
{
    return facts_gpu_changed(m->gpu, &m->block[owner].image, FACTS_PATTERN_A, m->set->device[owner],
                             changed);
}

static fattn_status set(facts_memory *m, void *to, size_t bytes, unsigned char byte)
{
    return facts_gpu_set(m->gpu, to, byte, bytes);
}

static fattn_status noise(facts_memory *m, void *to, size_t bytes, uint64_t garbage)
{
    return facts_gpu_noise(m->gpu, to, garbage, bytes);
}

const facts_side facts_side_gpu = { "gpu", begin, fill,  end,   produce,   storage, address,
                                    push,  arm,   fetch, spoil, untouched, set,     noise };
