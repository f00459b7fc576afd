#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers/dtype.h"
#include "../numbers/fill.h"

#define WORKSPACE_GUARD ((size_t)1024)
#define CHUNK ((size_t)1 << 20)
#define ALIGNMENT ((size_t)16)

#define TRY(expr)                                                                                                                          \
    do {                                                                                                                                   \
        fattn_status try_status = (expr);                                                                                                  \
        if (try_status != FATTN_OK)                                                                                                        \
            return try_status;                                                                                                             \
    } while (0)

static facts_tensor_id owner_of(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].shares ? (facts_tensor_id)(p->tensor[id].shares - 1) : id;
}

static fattn_status no_memory(char error[256])
{
    snprintf(error, 256, "no memory for the tensors of this case");
    return FATTN_NO_MEMORY;
}

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

static fattn_status create_block(facts_memory *m, facts_tensor_id owner, char error[256])
{
    const facts_problem *p = m->problem;
    facts_block *block = &m->block[owner];
    const facts_tensor *list[FACTS_TENSOR_COUNT];
    size_t count = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (block->tensors >> id & 1)
            list[count++] = &p->tensor[id];
    if (!facts_image_create(&block->image, list, count)) {
        snprintf(error, 256, "%s: no memory, or the tensor reaches outside its storage", facts_tensor_word(owner));
        return FATTN_NO_MEMORY;
    }
    block->lead = (ALIGNMENT - block->image.front % ALIGNMENT) % ALIGNMENT;
    if (!make_bytes(&block->host, block) || (block->output && !make_bytes(&block->second, block)))
        return no_memory(error);
    fattn_status status = fattn_buffer_create(&block->device, m->worker->context, block->image.bytes);
    if (status != FATTN_OK)
        snprintf(error, 256, "%.250s", fattn_last_error());
    return status;
}

static fattn_status fill_block(facts_memory *m, facts_tensor_id owner, char error[256])
{
    const facts_problem *p = m->problem;
    facts_block *block = &m->block[owner];
    void *storage = facts_image_storage(&block->image, block->host);
    facts_fill_gaps(p, block->image.dtype, storage, block->image.elements);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        bool drawn = id == FACTS_TENSOR_Q || id == FACTS_TENSOR_K || id == FACTS_TENSOR_V || id == FACTS_TENSOR_DO;
        if (drawn && (block->tensors >> id & 1) && !facts_fill_tensor(p, id, storage))
            return no_memory(error);
    }
    return FATTN_OK;
}

static fattn_status create_lengths(facts_memory *m, char error[256])
{
    const facts_problem *p = m->problem;
    size_t bytes = (size_t)p->ask.batch * sizeof *p->len_q;
    fattn_context *context = m->worker->context;
    if (!p->has_lengths)
        return FATTN_OK;
    fattn_status status = fattn_buffer_create(&m->len_q, context, bytes);
    if (status == FATTN_OK)
        status = fattn_buffer_create(&m->len_kv, context, bytes);
    if (status == FATTN_OK)
        status = fattn_buffer_write(context, m->len_q, p->len_q, bytes);
    if (status == FATTN_OK)
        status = fattn_buffer_write(context, m->len_kv, p->len_kv, bytes);
    if (status != FATTN_OK)
        snprintf(error, 256, "%.250s", fattn_last_error());
    return status;
}

fattn_status facts_memory_create(facts_memory *out, facts_worker *worker, const facts_problem *problem, char error[256])
{
    *out = (facts_memory){ .problem = problem, .worker = worker };
    size_t largest = 1;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (problem->tensor[id].present) {
            facts_block *block = &out->block[owner_of(problem, id)];
            block->tensors |= 1u << id;
            block->output = block->output || facts_tensor_is_output(problem, id);
        }
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!out->block[id].tensors)
            continue;
        TRY(create_block(out, id, error));
        if (out->block[id].output)
            continue;
        TRY(fill_block(out, id, error));
        largest = out->block[id].image.bytes > largest ? out->block[id].image.bytes : largest;
    }
    out->scratch = malloc(largest > CHUNK ? largest : CHUNK);
    return out->scratch ? create_lengths(out, error) : no_memory(error);
}

void facts_memory_destroy(facts_memory *m)
{
    fattn_context *context = m->worker ? m->worker->context : NULL;
    bool lost = !m->worker || m->worker->lost; /* a dead context releases by dying */
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_image_destroy(&m->block[id].image);
        free_bytes(m->block[id].host, &m->block[id]);
        free_bytes(m->block[id].second, &m->block[id]);
        if (!lost)
            fattn_buffer_destroy(context, m->block[id].device);
    }
    free(m->scratch);
    if (!lost) {
        fattn_buffer_destroy(context, m->len_q);
        fattn_buffer_destroy(context, m->len_kv);
        fattn_buffer_destroy(context, m->workspace);
    }
    *m = (facts_memory){ 0 };
}

void *facts_memory_storage(const facts_memory *m, facts_tensor_id id, facts_pattern pattern)
{
    const facts_block *block = &m->block[owner_of(m->problem, id)];
    return facts_image_storage(&block->image, block->output && pattern == FACTS_PATTERN_B ? block->second : block->host);
}

facts_storages facts_memory_storages(const facts_memory *m)
{
    facts_storages out = { { 0 } };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->problem->tensor[id].present && !facts_tensor_is_output(m->problem, id))
            out.at[id] = facts_memory_storage(m, id, FACTS_PATTERN_A);
    return out;
}

fattn_status facts_memory_workspace(facts_memory *m, size_t bytes)
{
    fattn_buffer_destroy(m->worker->context, m->workspace);
    m->workspace = NULL;
    m->workspace_bytes = bytes;
    return fattn_buffer_create(&m->workspace, m->worker->context, bytes + WORKSPACE_GUARD);
}

static void *address(const facts_memory *m, facts_tensor_id id)
{
    const facts_tensor *t = &m->problem->tensor[id];
    if (!t->present)
        return NULL;
    const facts_block *block = &m->block[owner_of(m->problem, id)];
    return (unsigned char *)block->device + block->image.front + t->first * (int64_t)facts_dtype_bytes(t->dtype);
}

fattn_tensors facts_memory_tensors(const facts_memory *m)
{
    fattn_tensors out = FATTN_TENSORS_INIT;
    out.q = address(m, FACTS_TENSOR_Q);
    out.k = address(m, FACTS_TENSOR_K);
    out.v = address(m, FACTS_TENSOR_V);
    out.o = address(m, FACTS_TENSOR_O);
    out.stats = address(m, FACTS_TENSOR_STATS);
    out.max = address(m, FACTS_TENSOR_MAX);
    out.sum_exp = address(m, FACTS_TENSOR_SUM_EXP);
    out.d_o = address(m, FACTS_TENSOR_DO);
    out.dq = address(m, FACTS_TENSOR_DQ);
    out.dk = address(m, FACTS_TENSOR_DK);
    out.dv = address(m, FACTS_TENSOR_DV);
    out.seq_len_q = m->len_q;
    out.seq_len_kv = m->len_kv;
    out.workspace = m->workspace;
    out.workspace_bytes = m->workspace_bytes;
    return out;
}

static fattn_status arm_workspace(facts_memory *m, facts_pattern pattern)
{
    size_t whole = m->workspace_bytes + WORKSPACE_GUARD;
    memset(m->scratch, facts_pattern_byte(pattern), whole < CHUNK ? whole : CHUNK);
    for (size_t at = 0; at < whole; at += CHUNK)
        TRY(fattn_buffer_write(m->worker->context, (unsigned char *)m->workspace + at, m->scratch, whole - at < CHUNK ? whole - at : CHUNK));
    return FATTN_OK;
}

fattn_status facts_memory_arm(facts_memory *m, facts_pattern pattern)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_block *block = &m->block[id];
        if (!block->tensors)
            continue;
        unsigned char *bytes = block->output && pattern == FACTS_PATTERN_B ? block->second : block->host;
        if (block->output)
            facts_image_poison(&block->image, pattern, bytes);
        else
            facts_image_guard(&block->image, pattern, bytes);
        TRY(fattn_buffer_write(m->worker->context, block->device, bytes, block->image.bytes));
    }
    return arm_workspace(m, pattern);
}

static int64_t bytes_that_differ(const unsigned char *a, const unsigned char *b, size_t count)
{
    int64_t different = 0;
    if (memcmp(a, b, count) != 0)
        for (size_t i = 0; i < count; i++)
            different += a[i] != b[i];
    return different;
}

fattn_status facts_memory_fetch(facts_memory *m, facts_pattern pattern, int64_t overrun[FACTS_TENSOR_COUNT + 1])
{
    fattn_context *context = m->worker->context;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_block *block = &m->block[id];
        overrun[id] = 0;
        if (!block->tensors)
            continue;
        unsigned char *to = !block->output ? m->scratch : pattern == FACTS_PATTERN_B ? block->second : block->host;
        TRY(fattn_buffer_read(context, to, block->device, block->image.bytes));
        overrun[id] = block->output ? facts_image_overrun(&block->image, pattern, to) : bytes_that_differ(to, block->host, block->image.bytes);
    }
    unsigned char expected[WORKSPACE_GUARD];
    memset(expected, facts_pattern_byte(pattern), sizeof expected);
    TRY(fattn_buffer_read(context, m->scratch, (unsigned char *)m->workspace + m->workspace_bytes, WORKSPACE_GUARD));
    overrun[FACTS_TENSOR_COUNT] = bytes_that_differ(m->scratch, expected, WORKSPACE_GUARD);
    return FATTN_OK;
}
