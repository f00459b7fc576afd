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
    return FATTN_OK;
}

static fattn_status fill_block(facts_memory *m, facts_tensor_id owner, char error[256])
{
    const facts_problem *p = m->problem;
    facts_block *block = &m->block[owner];
    void *storage = facts_image_storage(&block->image, block->host);
    facts_fill_gaps(p, block->image.dtype, storage, block->image.elements);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        bool given = id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS; /* of a backward: the reference's */
        if (!given && (block->tensors >> id & 1) && !facts_fill_tensor(p, id, storage))
            return no_memory(error);
    }
    return FATTN_OK;
}

static fattn_status create_lengths(facts_set *set, const facts_memory *m)
{
    const facts_problem *p = m->problem;
    fattn_context *context = m->worker->context;
    const size_t bytes = (size_t)p->ask.batch * sizeof *p->len_q;
    if (!p->has_lengths)
        return FATTN_OK;
    TRY(fattn_buffer_create(&set->len_q, context, bytes));
    TRY(fattn_buffer_create(&set->len_kv, context, bytes));
    TRY(fattn_buffer_write(context, set->len_q, p->len_q, bytes));
    return fattn_buffer_write(context, set->len_kv, p->len_kv, bytes);
}

static fattn_status create_set(facts_set *set, facts_memory *m, bool own_inputs)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_block *block = &m->block[id];
        if (!block->tensors)
            continue;
        if (block->output || own_inputs) {
            TRY(fattn_buffer_create(&set->device[id], m->worker->context, block->image.bytes));
        } else {
            set->device[id] = m->first.device[id];
            set->borrowed |= 1u << id;
        }
    }
    if (own_inputs)
        return create_lengths(set, m);
    set->len_q = m->first.len_q;
    set->len_kv = m->first.len_kv;
    return FATTN_OK;
}

static size_t workspace_whole(const facts_memory *m)
{
    return (size_t)m->problem->workspace_offset + m->workspace_bytes + WORKSPACE_GUARD;
}

fattn_status facts_memory_create(facts_memory *out, facts_worker *worker, const facts_problem *problem, char error[256])
{
    *out = (facts_memory){ .problem = problem, .worker = worker };
    out->set = &out->first;
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
        largest = out->block[id].image.bytes > largest ? out->block[id].image.bytes : largest;
        if (!out->block[id].output)
            TRY(fill_block(out, id, error));
    }
    out->scratch = malloc(largest > CHUNK ? largest : CHUNK);
    if (!out->scratch)
        return no_memory(error);
    fattn_status status = create_set(&out->first, out, true);
    if (status != FATTN_OK)
        snprintf(error, 256, "%.250s", fattn_last_error());
    return status;
}

void facts_memory_drop(facts_set *set, facts_memory *m)
{
    fattn_context *context = m->worker->context;
    bool lost = m->worker->lost; /* a dead context releases by dying */
    for (int id = 0; id < FACTS_TENSOR_COUNT && !lost; id++)
        if (!(set->borrowed >> id & 1))
            fattn_buffer_destroy(context, set->device[id]);
    if (!lost && set->len_q != m->first.len_q)
        fattn_buffer_destroy(context, set->len_q);
    if (!lost && set->len_kv != m->first.len_kv)
        fattn_buffer_destroy(context, set->len_kv);
    if (!lost)
        fattn_buffer_destroy(context, set->workspace);
    if (m->set == set)
        m->set = &m->first;
    *set = (facts_set){ 0 };
}

void facts_memory_destroy(facts_memory *m)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_image_destroy(&m->block[id].image);
        free_bytes(m->block[id].host, &m->block[id]);
        free_bytes(m->block[id].second, &m->block[id]);
    }
    free(m->scratch);
    if (m->worker) {
        facts_set first = m->first;
        m->first = (facts_set){ 0 }; /* its lengths are its own */
        for (size_t i = 0; i < sizeof m->between / sizeof *m->between && !m->worker->lost; i++)
            fattn_buffer_destroy(m->worker->context, m->between[i]);
        facts_memory_drop(&first, m);
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
    facts_storages out = { .oracle = NULL };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->problem->tensor[id].present && !facts_tensor_is_output(m->problem, id))
            out.at[id] = facts_memory_storage(m, id, FACTS_PATTERN_A);
    return out;
}

fattn_status facts_memory_workspace(facts_memory *m, size_t bytes)
{
    fattn_buffer_destroy(m->worker->context, m->first.workspace);
    m->first.workspace = NULL;
    m->workspace_bytes = bytes;
    return fattn_buffer_create(&m->first.workspace, m->worker->context, workspace_whole(m));
}

fattn_status facts_memory_produce(facts_memory *m)
{
    static const facts_tensor_id produced[] = { FACTS_TENSOR_O, FACTS_TENSOR_STATS };
    for (size_t i = 0; i < sizeof produced / sizeof *produced; i++) {
        facts_block *block = &m->block[owner_of(m->problem, produced[i])];
        if (!block->second && !make_bytes(&block->second, block))
            return FATTN_NO_MEMORY;
        block->output = true;
    }
    return FATTN_OK;
}

void facts_memory_give(facts_memory *m)
{
    for (facts_tensor_id id = FACTS_TENSOR_O; id <= FACTS_TENSOR_STATS; id++)
        m->block[owner_of(m->problem, id)].output = false;
}

fattn_status facts_memory_add(facts_set *out, facts_memory *m, bool own_inputs)
{
    *out = (facts_set){ 0 };
    TRY(create_set(out, m, own_inputs));
    return fattn_buffer_create(&out->workspace, m->worker->context, workspace_whole(m));
}

void facts_memory_use(facts_memory *m, facts_set *set)
{
    m->set = set ? set : &m->first;
}

static void *address(const facts_memory *m, facts_tensor_id id)
{
    const facts_tensor *t = &m->problem->tensor[id];
    if (!t->present)
        return NULL;
    facts_tensor_id owner = owner_of(m->problem, id);
    return (unsigned char *)m->set->device[owner] + m->block[owner].image.front + t->first * (int64_t)facts_dtype_bytes(t->dtype);
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
    out.bias = address(m, FACTS_TENSOR_BIAS);
    out.dbias = address(m, FACTS_TENSOR_DBIAS);
    m->set->mod[0] = address(m, FACTS_TENSOR_MOD_A);
    m->set->mod[1] = address(m, FACTS_TENSOR_MOD_B);
    out.mod_tensors = m->set->mod[0] ? m->set->mod : NULL;
    out.seq_len_q = m->set->len_q;
    out.seq_len_kv = m->set->len_kv;
    out.workspace = m->set->workspace ? (unsigned char *)m->set->workspace + m->problem->workspace_offset : NULL;
    out.workspace_bytes = m->workspace_bytes;
    return out;
}

/* ---- before and after a run ----------------------------------------------------------------------------------------------------- */

static uint64_t noise(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static fattn_status write_all(facts_memory *m, void *to, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += CHUNK)
        TRY(fattn_buffer_write(m->worker->context, (unsigned char *)to + at, m->scratch, bytes - at < CHUNK ? bytes - at : CHUNK));
    return FATTN_OK;
}

static void make_noise(facts_memory *m, size_t bytes, uint64_t garbage)
{
    size_t whole = (bytes < CHUNK ? bytes : CHUNK) / sizeof garbage;
    for (size_t i = 0; i < whole; i++) {
        uint64_t word = noise(&garbage);
        memcpy(m->scratch + i * sizeof word, &word, sizeof word);
    }
}

static fattn_status arm_workspace(facts_memory *m, facts_pattern pattern, uint64_t garbage)
{
    size_t whole = workspace_whole(m);
    memset(m->scratch, facts_pattern_byte(pattern), whole < CHUNK ? whole : CHUNK);
    TRY(write_all(m, m->set->workspace, whole));
    if (!garbage)
        return FATTN_OK;
    make_noise(m, m->workspace_bytes, garbage);
    return write_all(m, (unsigned char *)m->set->workspace + m->problem->workspace_offset, m->workspace_bytes);
}

fattn_status facts_memory_arm(facts_memory *m, facts_pattern pattern, uint64_t garbage)
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
        TRY(fattn_buffer_write(m->worker->context, m->set->device[id], bytes, block->image.bytes));
    }
    return arm_workspace(m, pattern, garbage);
}

fattn_status facts_memory_spoil(facts_memory *m)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++) {
        facts_block *block = &m->block[id];
        if (!block->tensors)
            continue;
        facts_image_poison(&block->image, FACTS_PATTERN_A, m->scratch);
        TRY(fattn_buffer_write(m->worker->context, m->set->device[id], m->scratch, block->image.bytes));
    }
    return arm_workspace(m, FACTS_PATTERN_A, 0);
}

static int64_t bytes_that_differ(const unsigned char *a, const unsigned char *b, size_t count)
{
    int64_t different = 0;
    if (memcmp(a, b, count) != 0)
        for (size_t i = 0; i < count; i++)
            different += a[i] != b[i];
    return different;
}

fattn_status facts_memory_untouched(facts_memory *m, int64_t *changed)
{
    fattn_status status = FATTN_OK;
    *changed = 0;
    for (int id = 0; id < FACTS_TENSOR_COUNT && status == FATTN_OK; id++) {
        facts_block *block = &m->block[id];
        if (!block->tensors)
            continue;
        unsigned char *found = malloc(block->image.bytes);
        status = found ? fattn_buffer_read(m->worker->context, found, m->set->device[id], block->image.bytes) : FATTN_NO_MEMORY;
        if (status == FATTN_OK) {
            facts_image_poison(&block->image, FACTS_PATTERN_A, m->scratch);
            *changed += bytes_that_differ(found, m->scratch, block->image.bytes);
        }
        free(found);
    }
    return status;
}

fattn_status facts_memory_disturb(facts_memory *m, uint64_t garbage)
{
    const size_t count = sizeof m->between / sizeof *m->between, kept = garbage % count;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = ((size_t)64 << 10) << (noise(&garbage) % 8);
        if (i == kept) { /* freed in another order than it was made */
            fattn_buffer_destroy(m->worker->context, m->between[i]);
            m->between[i] = NULL;
        }
        void *buffer;
        TRY(fattn_buffer_create(&buffer, m->worker->context, bytes));
        make_noise(m, bytes, garbage + 1);
        fattn_status status = write_all(m, buffer, bytes);
        if (status == FATTN_OK && i == kept)
            m->between[i] = buffer;
        else
            fattn_buffer_destroy(m->worker->context, buffer);
        if (status != FATTN_OK)
            return status;
    }
    return FATTN_OK;
}

/* Around the workspace: bytes that are no more what they were. */
static fattn_status fetch_workspace(facts_memory *m, facts_pattern pattern, int64_t *changed)
{
    const size_t before = (size_t)m->problem->workspace_offset, sizes[] = { before, WORKSPACE_GUARD };
    const unsigned char *from[] = { m->set->workspace, (unsigned char *)m->set->workspace + before + m->workspace_bytes };
    *changed = 0;
    for (int i = 0; i < 2; i++) {
        TRY(fattn_buffer_read(m->worker->context, m->scratch, from[i], sizes[i]));
        for (size_t at = 0; at < sizes[i]; at++)
            *changed += m->scratch[at] != facts_pattern_byte(pattern);
    }
    return FATTN_OK;
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
        TRY(fattn_buffer_read(context, to, m->set->device[id], block->image.bytes));
        overrun[id] = block->output ? facts_image_overrun(&block->image, pattern, to) : bytes_that_differ(to, block->host, block->image.bytes);
    }
    return fetch_workspace(m, pattern, &overrun[FACTS_TENSOR_COUNT]);
}
