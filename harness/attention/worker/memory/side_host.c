/* Every byte is on the host too: the data that was sent, and the results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "memory_side.h"
#include "numbers/bits.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/storage_image.h"
#include "worker/gpu/worker_gpu.h"

#define CHUNK ((size_t)1 << 20) /* of the scratch, at least */
#define ALIGNMENT ((size_t)16)

static bool make_bytes(unsigned char **out, const facts_block *block)
{
    unsigned char *bytes = malloc(block->lead + block->image.bytes);
    *out = bytes ? bytes + block->lead : NULL;
    return bytes != NULL;
}

static void free_bytes(unsigned char *bytes, const facts_block *block)
{
    if (bytes)
        free(bytes - block->lead);
}

static fattn_status no_memory(facts_error *error)
{
    return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error,
                                       "no memory for the tensors of this case");
}

static fattn_status fill(facts_memory *m, facts_tensor_id owner)
{
    const facts_problem *p = m->problem;
    facts_block *block = &m->block[owner];
    void *storage = facts_image_storage(&block->image, block->host);
    facts_fill_gaps(p, block->image.dtype, storage, block->image.elements);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (!facts_memory_is_given(id) && (block->tensors >> id & 1) &&
            !facts_fill_tensor(p, id, storage))
            return FATTN_NO_MEMORY;
    return FATTN_OK;
}

/* Memory between ragged sequences belongs to no tensor. */
static bool make_image(facts_memory *m, facts_tensor_id owner)
{
    const facts_problem *p = m->problem;
    facts_image *image = &m->block[owner].image;
    facts_list list;
    const size_t count = facts_memory_list(m, owner, true, &list);
    bool good = facts_image_create(image, list.at, count);
    for (size_t i = 0; i < count && good; i++) {
        const bool queries = list.packed[i] == FACTS_PACKED_Q;
        if (list.packed[i] != FACTS_PACKED_NOT)
            good = facts_image_pack(image, list.at[i], queries ? p->start_q : p->start_kv,
                                    queries ? p->len_q : p->len_kv, p->ask.batch);
    }
    return good;
}

static fattn_status begin(facts_memory *m, facts_tensor_id owner, facts_error *error)
{
    facts_block *block = &m->block[owner];
    if (!make_image(m, owner))
        return (fattn_status)facts_fail_as(
            FATTN_NO_MEMORY, error, "%s: no memory, or the tensor reaches outside its storage",
            facts_tensor_word(owner));
    block->lead = (ALIGNMENT - block->image.front % ALIGNMENT) % ALIGNMENT;
    if (!make_bytes(&block->host, block) || (block->output && !make_bytes(&block->second, block)))
        return no_memory(error);
    return FATTN_OK;
}

static void end(facts_memory *m, facts_tensor_id owner)
{
    facts_block *block = &m->block[owner];
    facts_image_destroy(&block->image);
    free_bytes(block->host, block);
    free_bytes(block->second, block);
}

static fattn_status produce(facts_memory *m, facts_tensor_id owner)
{
    facts_block *block = &m->block[owner];
    return block->second || make_bytes(&block->second, block) ? FATTN_OK : FATTN_NO_MEMORY;
}

static unsigned char *bytes_of(const facts_block *block, facts_pattern pattern)
{
    return pattern == FACTS_PATTERN_B ? block->second : block->host;
}

static void *storage(facts_memory *m, facts_tensor_id owner, facts_pattern pattern)
{
    return facts_image_storage(&m->block[owner].image, bytes_of(&m->block[owner], pattern));
}

static fattn_status push(facts_memory *m, facts_tensor_id owner) /* this is the data that is sent */
{
    (void)m;
    (void)owner;
    return FATTN_OK;
}

static fattn_status arm(facts_memory *m, facts_tensor_id owner, facts_pattern pattern)
{
    facts_block *block = &m->block[owner];
    unsigned char *bytes = bytes_of(block, block->output ? pattern : FACTS_PATTERN_A);
    if (block->output)
        facts_image_poison(&block->image, pattern, bytes);
    else
        facts_image_guard(&block->image, pattern, bytes);
    return fattn_buffer_write(m->worker->context, m->set->device[owner], bytes, block->image.bytes);
}

static int64_t bytes_that_differ(const unsigned char *a, const unsigned char *b, size_t count)
{
    int64_t different = 0;
    if (memcmp(a, b, count) != 0)
        for (size_t i = 0; i < count; i++)
            different += a[i] != b[i];
    return different;
}

static fattn_status fetch(facts_memory *m, facts_tensor_id owner, facts_pattern pattern,
                          int64_t *overrun)
{
    facts_block *block = &m->block[owner];
    unsigned char *to = block->output ? bytes_of(block, pattern) : m->scratch;
    TRY(fattn_buffer_read(m->worker->context, to, m->set->device[owner], block->image.bytes));
    *overrun = block->output ? facts_image_overrun(&block->image, pattern, to)
                             : bytes_that_differ(to, block->host, block->image.bytes);
    return FATTN_OK;
}

static fattn_status spoil(facts_memory *m, facts_tensor_id owner)
{
    facts_image_poison(&m->block[owner].image, FACTS_PATTERN_A, m->scratch);
    return fattn_buffer_write(m->worker->context, m->set->device[owner], m->scratch,
                              m->block[owner].image.bytes);
}

static fattn_status untouched(facts_memory *m, facts_tensor_id owner, int64_t *changed)
{
    const facts_image *image = &m->block[owner].image;
    unsigned char *found = malloc(image->bytes);
    fattn_status status =
        found ? fattn_buffer_read(m->worker->context, found, m->set->device[owner], image->bytes)
              : FATTN_NO_MEMORY;
    if (status == FATTN_OK) {
        facts_image_poison(image, FACTS_PATTERN_A, m->scratch);
        *changed = bytes_that_differ(found, m->scratch, image->bytes);
    }
    free(found);
    return status;
}

/* The scratch, repeated as often as necessary. */
static fattn_status write_all(facts_memory *m, void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CHUNK)
        TRY(fattn_buffer_write(m->worker->context, (unsigned char *)to + at, m->scratch,
                               bytes - at < CHUNK ? bytes - at : CHUNK));
    return FATTN_OK;
}

static fattn_status set(facts_memory *m, void *to, size_t bytes, unsigned char byte)
{
    memset(m->scratch, byte, bytes < CHUNK ? bytes : CHUNK);
    return write_all(m, to, bytes);
}

static fattn_status noise(facts_memory *m, void *to, size_t bytes, uint64_t garbage)
{
    for (size_t i = 0; i < (bytes < CHUNK ? bytes : CHUNK) / sizeof garbage; i++) {
        uint64_t word = facts_mix(garbage + i);
        memcpy(m->scratch + i * sizeof word, &word, sizeof word);
    }
    return write_all(m, to, bytes);
}

const facts_side facts_side_host = { "cpu", begin, fill,  end,   produce,   storage, storage,
                                     push,  arm,   fetch, spoil, untouched, set,     noise };
