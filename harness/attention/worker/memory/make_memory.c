#include "case_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "memory_side.h"
#include "numbers/bits.h"
#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"
#include "numbers/judge/judge.h"
#include "worker/gpu/worker_gpu.h"

#define WORKSPACE_GUARD ((size_t)1024)
#define FRONT ((size_t)256) /* keeps the alignment of the allocation */
#define BACK ((size_t)1024)
#define CHUNK ((size_t)1 << 20)

/* On the device, for the engine. Never memory of another case, whose work may still run. */
static fattn_status make_there(facts_memory *m, void **out, size_t bytes)
{
    fattn_status status = fattn_buffer_create(out, m->worker->context, bytes);
    if (status == FATTN_NO_MEMORY && m->gpu && facts_gpu_trim(m->gpu))
        status = fattn_buffer_create(out, m->worker->context, bytes);
    return status;
}

static fattn_status make_buffer(void **out, facts_memory *m, const facts_set *set, size_t bytes)
{
    return m->gpu && set == &m->first ? facts_gpu_make_exact(m->gpu, out, bytes)
                                      : make_there(m, out, bytes);
}

static void release_buffer(const facts_memory *m, void *memory)
{
    if (m->gpu)
        facts_gpu_free(m->gpu, memory);
    else
        fattn_buffer_destroy(m->worker->context, memory);
}

static fattn_status read_back(facts_memory *m, void *to_host, const void *from, size_t bytes)
{
    return m->gpu ? facts_gpu_collect(m->gpu, to_host, from, bytes)
                  : fattn_buffer_read(m->worker->context, to_host, from, bytes);
}

/* ---- the small arrays of a call: lengths, offsets, tables, scalars, scale factors
 * -----
 * Each has its own block of device memory with guards around it, for inputs and for outputs. */

static size_t bytes_of(const facts_memory *m, facts_array_id id)
{
    return facts_array_bytes(&m->problem->array[id]);
}

static size_t whole_of(const facts_memory *m, facts_array_id id)
{
    return FRONT + bytes_of(m, id) + BACK;
}

static bool is_there(const facts_memory *m, facts_array_id id)
{
    return m->problem->array[id].count > 0;
}

static fattn_status arrays_begin(facts_memory *m, facts_error *error)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        if (!is_there(m, id))
            continue;
        m->array[id] = calloc(2, bytes_of(m, id));
        m->read[id] = malloc(whole_of(m, id));
        if (!m->array[id] || !m->read[id])
            return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error,
                                               "no memory for the arrays of this case");
        if (!m->problem->array[id].output)
            facts_array_fill(m->problem, id, m->array[id]);
    }
    return FATTN_OK;
}

static void arrays_end(facts_memory *m)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++) {
        free(m->array[id]);
        free(m->read[id]);
        m->array[id] = m->read[id] = NULL;
    }
}

static fattn_status arrays_create(facts_set *set, facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(make_buffer(&set->array[id], m, set, whole_of(m, id)));
    return FATTN_OK;
}

static void arrays_drop(facts_set *set, const facts_memory *m)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++)
        release_buffer(m, set->array[id]);
}

void *facts_memory_array_address(const facts_memory *m, facts_array_id id)
{
    return (unsigned char *)m->set->array[id] + FRONT;
}

static void arrays_bind(const facts_memory *m, fattn_tensors *out)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id)) {
            void *address = facts_memory_array_address(m, id);
            memcpy((unsigned char *)out + facts_array_place(id), &address, sizeof address);
        }
}

/* ---- before and after a run
 * ---------------------------------------------------------------------------------------------------
 */

/* Outputs are numbers of 32 bits: a scalar, or one for each head. */
static void poison(unsigned char *bytes, size_t count, facts_array_id id, facts_pattern pattern)
{
    for (size_t at = 0; at + sizeof(uint32_t) <= count; at += sizeof(uint32_t)) {
        const uint32_t code =
            id == FACTS_ARRAY_DSINK
                ? facts_pattern_code(FATTN_F32, pattern, (int64_t)(at / sizeof code))
                : facts_pattern_scalar(pattern);
        memcpy(bytes + at, &code, sizeof code);
    }
}

/* The contents of a block on the device: guards around `inside` (NULL: poison). */
static unsigned char *image_of(const facts_memory *m, facts_array_id id,
                               const unsigned char *inside, facts_pattern pattern)
{
    const size_t bytes = bytes_of(m, id);
    unsigned char *out = malloc(whole_of(m, id));
    if (!out)
        return NULL;
    memset(out, FACTS_GUARD_FILLER, whole_of(m, id));
    if (inside)
        memcpy(out + FRONT, inside, bytes);
    else
        poison(out + FRONT, bytes, id, pattern);
    return out;
}

/* On a GPU in the order of the worker's stream, as the poison of the tensors: the caller waits once
 * for all of it. */
static fattn_status send(facts_memory *m, facts_array_id id, unsigned char *image)
{
    const size_t whole = whole_of(m, id);
    fattn_status status = FATTN_NO_MEMORY;
    if (image)
        status = m->gpu ? facts_gpu_send(m->gpu, m->set->array[id], image, whole)
                        : fattn_buffer_write(m->worker->context, m->set->array[id], image, whole);
    free(image);
    return status;
}

static fattn_status arrays_arm(facts_memory *m, facts_pattern pattern)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(send(m, id,
                     image_of(m, id, m->problem->array[id].output ? NULL : m->array[id], pattern)));
    return FATTN_OK;
}

static int64_t differing(const unsigned char *a, const unsigned char *b, size_t from, size_t to)
{
    int64_t different = 0;
    for (size_t i = from; i < to; i++)
        different += a[i] != b[i];
    return different;
}

static fattn_status fetch(facts_memory *m, facts_array_id id, facts_pattern pattern,
                          int64_t *changed)
{
    const bool output = m->problem->array[id].output,
               may_change = output || m->problem->array[id].of_forward;
    const size_t bytes = bytes_of(m, id);
    const unsigned char *now = m->read[id];
    unsigned char *before = image_of(m, id, output ? NULL : m->array[id], pattern);
    if (!before)
        return FATTN_NO_MEMORY;
    *changed =
        differing(now, before, 0, FRONT) + differing(now, before, FRONT + bytes, whole_of(m, id));
    *changed += may_change ? 0 : differing(now, before, FRONT, FRONT + bytes);
    if (output)
        memcpy(facts_memory_array(m, id, pattern), now + FRONT, bytes);
    free(before);
    return FATTN_OK;
}

static fattn_status arrays_read(facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(read_back(m, m->read[id], m->set->array[id], whole_of(m, id)));
    return FATTN_OK;
}

static fattn_status arrays_fetch(facts_memory *m, facts_pattern pattern,
                                 int64_t overrun[FACTS_ARRAY_COUNT])
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        overrun[id] = 0;
        if (is_there(m, id))
            TRY(fetch(m, id, pattern, &overrun[id]));
    }
    return FATTN_OK;
}

static fattn_status arrays_send_other(facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        if (!is_there(m, id) || m->problem->array[id].output)
            continue;
        unsigned char *image = image_of(m, id, m->array[id], FACTS_PATTERN_A);
        if (image && !facts_array_fill_other(m->problem, id, image + FRONT)) {
            free(image);
            image = NULL;
        }
        TRY(send(m, id, image));
    }
    return FATTN_OK;
}

/* A read of the old numbers changes the answer. Integers are 0, because any other offset could be
 * an invalid address. */
static fattn_status spoil(facts_memory *m, facts_array_id id, unsigned char **image)
{
    const facts_array_type type = m->problem->array[id].type;
    *image = image_of(m, id, NULL, FACTS_PATTERN_A);
    if (*image && (type == FACTS_ARRAY_I32 || type == FACTS_ARRAY_I64))
        memset(*image + FRONT, 0, bytes_of(m, id));
    return *image ? FATTN_OK : FATTN_NO_MEMORY;
}

static fattn_status arrays_spoil(facts_memory *m)
{
    unsigned char *image;
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id)) {
            TRY(spoil(m, id, &image));
            TRY(send(m, id, image));
        }
    return FATTN_OK;
}

static fattn_status untouched(facts_memory *m, facts_array_id id, int64_t *changed)
{
    unsigned char *before;
    const fattn_status status = spoil(m, id, &before);
    if (status == FATTN_OK)
        *changed += differing(m->read[id], before, 0, whole_of(m, id));
    free(before);
    return status;
}

static fattn_status arrays_untouched(facts_memory *m, int64_t *changed)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(untouched(m, id, changed));
    return FATTN_OK;
}

void *facts_memory_array(facts_memory *m, facts_array_id id, facts_pattern pattern)
{
    const bool second = m->problem->array[id].output && pattern == FACTS_PATTERN_B;
    return m->array[id] ? m->array[id] + (second ? bytes_of(m, id) : 0) : NULL;
}

/* ---- the tensors
 * -----
 */

static facts_tensor_id owner_of(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].shares ? (facts_tensor_id)(p->tensor[id].shares - 1) : id;
}

/* The places of ragged sequences, for kernels. */
static fattn_status send_rows(facts_memory *m)
{
    const facts_problem *p = m->problem;
    const size_t starts = (size_t)(p->ask.batch + 1) * sizeof *p->start_q,
                 lengths = (size_t)p->ask.batch * sizeof *p->len_q;
    const struct {
        const void *from;
        size_t bytes;
    } rows[4] = { { p->start_q, starts },
                  { p->start_kv, starts },
                  { p->len_q, lengths },
                  { p->len_kv, lengths } };
    bool packed = false;
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        packed = packed || (p->tensor[id].present && p->tensor[id].packed != FACTS_PACKED_NOT);
    for (int i = 0; i < 4 && packed && m->gpu; i++) {
        TRY(facts_gpu_make(m->gpu, &m->rows[i], rows[i].bytes));
        TRY(facts_gpu_send(m->gpu, m->rows[i], rows[i].from, rows[i].bytes));
    }
    return FATTN_OK;
}

facts_tensor facts_memory_seen(const facts_memory *m, facts_tensor_id id)
{
    facts_tensor t = facts_tensor_seen(m->problem, id);
    if (t.start && m->gpu) {
        t.start = m->rows[t.packed == FACTS_PACKED_Q ? 0 : 1];
        t.live = m->rows[t.packed == FACTS_PACKED_Q ? 2 : 3];
    }
    return t;
}

static fattn_status create_set(facts_set *set, facts_memory *m)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(make_buffer(&set->device[id], m, set, m->block[id].image.bytes));
    return arrays_create(set, m);
}

static size_t workspace_whole(const facts_memory *m)
{
    return m->workspace_bytes + WORKSPACE_GUARD;
}

size_t facts_memory_list(const facts_memory *m, facts_tensor_id owner, bool stored, facts_list *out)
{
    size_t count = 0;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[owner].tensors >> id & 1) {
            out->tensor[count] =
                stored ? facts_tensor_stored(m->problem, id) : facts_memory_seen(m, id);
            out->at[count] = &out->tensor[count];
            out->packed[count] = m->problem->tensor[id].packed;
            count++;
        }
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

/* One launch of each kernel fills everything on the GPU. */
fattn_status facts_memory_fill(facts_memory *m, facts_error *error)
{
    fattn_status status = FATTN_OK;
    if (m->gpu)
        facts_gpu_together_begin(m->gpu);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && status == FATTN_OK; id++)
        if (m->block[id].tensors && !m->block[id].output)
            status = m->side->fill(m, id);
    const fattn_status ended = m->gpu ? facts_gpu_together_end(m->gpu) : FATTN_OK;
    status = status == FATTN_OK ? ended : status;
    if (status != FATTN_OK)
        facts_fail(error, "%s",
                   m->gpu ? facts_gpu_error(m->gpu) : "no memory for the tensors of this case");
    return status;
}

/* If everything is on a GPU, only the bytes behind a workspace are read on the host. */
static size_t scratch_of(const facts_memory *m)
{
    size_t most = m->gpu ? WORKSPACE_GUARD : CHUNK;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT && !m->gpu; id++)
        if (m->block[id].tensors && m->block[id].image.bytes > most)
            most = m->block[id].image.bytes;
    return most;
}

fattn_status facts_memory_create(facts_memory *out, facts_worker *worker,
                                 const facts_problem *problem, bool here, facts_error *error)
{
    *out = (facts_memory){ .problem = problem, .worker = worker, .gpu = here ? NULL : worker->gpu };
    out->side = out->gpu ? &facts_side_gpu : &facts_side_host;
    out->set = &out->first;
    plan_blocks(out);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (out->block[id].tensors)
            TRY(out->side->begin(out, id, error));
    out->scratch = malloc(scratch_of(out));
    if (!out->scratch)
        return (fattn_status)facts_fail_as(FATTN_NO_MEMORY, error,
                                           "no memory for the tensors of this case");
    TRY(arrays_begin(out, error));
    fattn_status status = create_set(&out->first, out);
    if (status != FATTN_OK)
        facts_fail(error, "%.250s", fattn_last_error());
    if (status == FATTN_OK && (status = send_rows(out)) != FATTN_OK)
        facts_fail(error, "%.250s", facts_gpu_error(out->gpu));
    return status;
}

void facts_memory_drop(facts_set *set, facts_memory *m)
{
    bool lost = m->worker->lost; /* a dead context has released its memory */
    if (!lost) /* before memory that may be reused: freeing waits for all streams */
        fattn_buffer_destroy(m->worker->context, set->workspace);
    for (int id = 0; id < FACTS_TENSOR_COUNT && !lost; id++)
        release_buffer(m, set->device[id]);
    if (!lost)
        arrays_drop(set, m);
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
    arrays_end(m);
    for (size_t i = 0; i < sizeof m->rows / sizeof *m->rows && m->gpu && !m->worker->lost; i++)
        facts_gpu_free(m->gpu, m->rows[i]);
    if (m->worker) {
        facts_set first = m->first;
        m->first = (facts_set){ 0 };
        if (!m->worker->lost)
            fattn_buffer_destroy(m->worker->context, m->between);
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

void *facts_memory_address(facts_memory *m, facts_tensor_id id, facts_pattern pattern)
{
    facts_tensor_id owner = owner_of(m->problem, id);
    return m->side->address(m, owner, m->block[owner].output ? pattern : FACTS_PATTERN_A);
}

facts_storages facts_memory_addresses(facts_memory *m)
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
    return make_there(m, &m->first.workspace, workspace_whole(m));
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

fattn_status facts_memory_add(facts_set *out, facts_memory *m)
{
    *out = (facts_set){ 0 };
    TRY(create_set(out, m));
    return make_there(m, &out->workspace, workspace_whole(m));
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
    return (unsigned char *)m->set->device[owner] + m->block[owner].image.front +
           t->first * (int64_t)facts_dtype_bytes(t->dtype);
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
    out.rng_dump = address(m, FACTS_TENSOR_RNG_DUMP);
    out.dropout_mask = address(m, FACTS_TENSOR_DROPOUT_MASK);
    out.q_t = address(m, FACTS_TENSOR_Q_T);
    out.k_t = address(m, FACTS_TENSOR_K_T);
    out.do_t = address(m, FACTS_TENSOR_DO_T);
    out.do_16 = address(m, FACTS_TENSOR_DO_16);
    arrays_bind(m, &out);
    out.workspace = m->set->workspace;
    out.workspace_bytes = m->workspace_bytes;
    return out;
}

/* ---- before and after a run
 * -----------------------------------------------------------------------------------------------------
 */

static fattn_status arm_workspace(facts_memory *m, facts_pattern pattern, uint64_t garbage)
{
    void *workspace = m->set->workspace;
    TRY(m->side->set(m, workspace, workspace_whole(m), facts_pattern_byte(pattern)));
    return garbage ? m->side->noise(m, workspace, m->workspace_bytes, garbage) : FATTN_OK;
}

fattn_status facts_memory_arm(facts_memory *m, facts_pattern pattern, uint64_t garbage)
{
    if (m->gpu)
        facts_gpu_together_begin(m->gpu);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(m->side->arm(m, id, pattern));
    if (m->gpu)
        TRY(facts_gpu_together_end(m->gpu));
    TRY(arrays_arm(m, pattern));
    return arm_workspace(m, pattern, garbage);
}

fattn_status facts_memory_spoil(facts_memory *m)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(m->side->spoil(m, id));
    TRY(arrays_spoil(m));
    return arm_workspace(m, FACTS_PATTERN_A, 0);
}

fattn_status facts_memory_mislead(facts_memory *m)
{
    TRY(facts_memory_spoil(m));
    TRY(arrays_send_other(m));
    return m->gpu ? facts_gpu_wait(m->gpu) : FATTN_OK;
}

fattn_status facts_memory_untouched(facts_memory *m, int64_t *changed)
{
    int64_t own[FACTS_TENSOR_COUNT] = { 0 };
    *changed = 0;
    if (m->gpu)
        TRY(facts_gpu_watch_begin(m->gpu));
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (m->block[id].tensors)
            TRY(m->side->untouched(m, id, &own[id]));
    TRY(arrays_read(m));
    if (m->gpu)
        TRY(facts_gpu_watch_end(m->gpu));
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        *changed += own[id];
    return arrays_untouched(m, changed);
}

fattn_status facts_memory_disturb(facts_memory *m, uint64_t garbage)
{
    const size_t bytes = ((size_t)64 << 10) << (facts_mix(garbage) % 8);
    void *buffer;
    TRY(fattn_buffer_create(&buffer, m->worker->context, bytes));
    fattn_buffer_destroy(m->worker->context, m->between); /* only now: the new one lies elsewhere */
    m->between = buffer;
    return m->side->noise(m, m->between, bytes, garbage);
}

static int64_t changed_behind_workspace(const facts_memory *m, facts_pattern pattern)
{
    int64_t changed = 0;
    for (size_t at = 0; at < WORKSPACE_GUARD; at++)
        changed += m->scratch[at] != facts_pattern_byte(pattern);
    return changed;
}

fattn_status facts_memory_fetch(facts_memory *m, facts_pattern pattern,
                                int64_t overrun[FACTS_PLACES])
{
    m->fetches++;
    if (m->gpu)
        TRY(facts_gpu_watch_begin(m->gpu));
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        overrun[id] = 0;
        if (m->block[id].tensors)
            TRY(m->side->fetch(m, id, pattern, &overrun[id]));
    }
    TRY(arrays_read(m));
    /* Last: on the host the tensors use m->scratch too. */
    TRY(read_back(m, m->scratch, (const unsigned char *)m->set->workspace + m->workspace_bytes,
                  WORKSPACE_GUARD));
    if (m->gpu)
        TRY(facts_gpu_watch_end(m->gpu));
    overrun[FACTS_PLACE_WORKSPACE] = changed_behind_workspace(m, pattern);
    return arrays_fetch(m, pattern, overrun + FACTS_PLACE_ARRAYS);
}
