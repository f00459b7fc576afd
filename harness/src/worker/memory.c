#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../numbers/bits.h"
#include "../numbers/dtype.h"
#include "memory_side.h"

#define WORKSPACE_GUARD ((size_t)1024)
#define CHUNK ((size_t)1 << 20)

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

size_t facts_memory_list(const facts_memory *m, facts_tensor_id owner, const facts_tensor *out[FACTS_TENSOR_COUNT])
{
    size_t count = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[owner].tensors >> id & 1)
            out[count++] = &m->problem->tensor[id];
    return count;
}

bool facts_memory_is_given(facts_tensor_id id)
{
    return id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS;
}

static void plan_blocks(facts_memory *m)
{
    const facts_problem *p = m->problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present) {
            facts_block *block = &m->block[owner_of(p, id)];
            block->tensors |= 1u << id;
            block->output = block->output || facts_tensor_is_output(p, id);
        }
}

fattn_status facts_memory_create(facts_memory *out, facts_worker *worker, const facts_problem *problem, bool here, char error[256])
{
    size_t most = CHUNK;
    *out = (facts_memory){ .problem = problem, .worker = worker, .gpu = here ? NULL : worker->gpu };
    out->side = out->gpu ? &facts_side_gpu : &facts_side_host;
    out->set = &out->first;
    plan_blocks(out);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (out->block[id].tensors) {
            TRY(out->side->begin(out, id, error));
            most = !out->gpu && out->block[id].image.bytes > most ? out->block[id].image.bytes : most;
        }
    out->scratch = malloc(most);
    if (!out->scratch) {
        snprintf(error, 256, "no memory for the tensors of this case");
        return FATTN_NO_MEMORY;
    }
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
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && m->side; id++)
        if (m->block[id].tensors)
            m->side->end(m, id);
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

void *facts_memory_storage(facts_memory *m, facts_tensor_id id, facts_pattern pattern)
{
    facts_tensor_id owner = owner_of(m->problem, id);
    return m->side->storage(m, owner, m->block[owner].output ? pattern : FACTS_PATTERN_A);
}

/* Tensors that this pass reads. */
static bool is_read(const facts_memory *m, facts_tensor_id id)
{
    return m->problem->tensor[id].present && !facts_tensor_is_output(m->problem, id);
}

facts_storages facts_memory_storages(facts_memory *m)
{
    facts_storages out = { .oracle = NULL };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (is_read(m, id))
            out.at[id] = facts_memory_storage(m, id, FACTS_PATTERN_A);
    return out;
}

void *facts_memory_address(const facts_memory *m, facts_tensor_id id, facts_pattern pattern)
{
    facts_tensor_id owner = owner_of(m->problem, id);
    const facts_block *block = &m->block[owner];
    bool live = block->output && pattern == FACTS_PATTERN_B;
    return facts_image_storage(&block->image, live ? m->set->device[owner] : block->kept);
}

facts_storages facts_memory_addresses(const facts_memory *m)
{
    facts_storages out = { .oracle = NULL };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (is_read(m, id))
            out.at[id] = facts_memory_address(m, id, FACTS_PATTERN_A);
    return out;
}

fattn_status facts_memory_push(facts_memory *m)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors && !m->block[id].output)
            TRY(m->side->push(m, id));
    return FATTN_OK;
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
    for (facts_tensor_id id = FACTS_TENSOR_O; id <= FACTS_TENSOR_STATS; id++) {
        facts_tensor_id owner = owner_of(m->problem, id);
        TRY(m->side->produce(m, owner));
        m->block[owner].output = true;
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

static fattn_status arm_workspace(facts_memory *m, facts_pattern pattern, uint64_t garbage)
{
    unsigned char *workspace = m->set->workspace;
    TRY(m->side->set(m, workspace, workspace_whole(m), facts_pattern_byte(pattern)));
    return garbage ? m->side->noise(m, workspace + m->problem->workspace_offset, m->workspace_bytes, garbage) : FATTN_OK;
}

fattn_status facts_memory_arm(facts_memory *m, facts_pattern pattern, uint64_t garbage)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(m->side->arm(m, id, pattern));
    TRY(arm_workspace(m, pattern, garbage));
    return m->gpu ? facts_gpu_wait(m->gpu) : FATTN_OK; /* the call may be on another stream */
}

fattn_status facts_memory_spoil(facts_memory *m)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(m->side->spoil(m, id));
    return arm_workspace(m, FACTS_PATTERN_A, 0);
}

fattn_status facts_memory_untouched(facts_memory *m, int64_t *changed)
{
    *changed = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        int64_t own = 0;
        if (m->block[id].tensors)
            TRY(m->side->untouched(m, id, &own));
        *changed += own;
    }
    return FATTN_OK;
}

fattn_status facts_memory_disturb(facts_memory *m, uint64_t garbage)
{
    const size_t count = sizeof m->between / sizeof *m->between, kept = garbage % count;
    for (size_t i = 0; i < count; i++) {
        size_t bytes = ((size_t)64 << 10) << (facts_mix(garbage + i) % 8);
        if (i == kept) { /* freed in another order than it was made */
            fattn_buffer_destroy(m->worker->context, m->between[i]);
            m->between[i] = NULL;
        }
        void *buffer;
        TRY(fattn_buffer_create(&buffer, m->worker->context, bytes));
        fattn_status status = m->side->noise(m, buffer, bytes, garbage + i);
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
    m->fetches++;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        overrun[id] = 0;
        if (m->block[id].tensors)
            TRY(m->side->fetch(m, id, pattern, &overrun[id]));
    }
    return fetch_workspace(m, pattern, &overrun[FACTS_TENSOR_COUNT]);
}
