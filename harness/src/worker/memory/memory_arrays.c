/* The small arrays of a call: lengths, offsets, tables, scalars, scale factors. Each has its own
 * block of device memory with guards around it, for inputs and for outputs. */
#include "memory_arrays.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "memory_side.h"
#include "numbers/fill/arrays.h"
#include "numbers/judge/judge.h"
#include "worker/gpu/try.h"

#define FRONT ((size_t)256) /* keeps the alignment of the allocation */
#define BACK ((size_t)1024)

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

fattn_status facts_arrays_begin(facts_memory *m, facts_error *error)
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

void facts_arrays_end(facts_memory *m)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++) {
        free(m->array[id]);
        free(m->read[id]);
        m->array[id] = m->read[id] = NULL;
    }
}

fattn_status facts_arrays_create(facts_set *set, facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(facts_memory_make(&set->array[id], m, set, whole_of(m, id)));
    return FATTN_OK;
}

void facts_arrays_drop(facts_set *set, const facts_memory *m)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++)
        facts_memory_release(m, set->array[id]);
}

void *facts_memory_array_address(const facts_memory *m, facts_array_id id)
{
    return (unsigned char *)m->set->array[id] + FRONT;
}

void facts_arrays_bind(const facts_memory *m, fattn_tensors *out)
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

fattn_status facts_arrays_arm(facts_memory *m, facts_pattern pattern)
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

fattn_status facts_memory_read(facts_memory *m, void *to_host, const void *from, size_t bytes)
{
    return m->gpu ? facts_gpu_collect(m->gpu, to_host, from, bytes)
                  : fattn_buffer_read(m->worker->context, to_host, from, bytes);
}

fattn_status facts_arrays_read(facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_there(m, id))
            TRY(facts_memory_read(m, m->read[id], m->set->array[id], whole_of(m, id)));
    return FATTN_OK;
}

fattn_status facts_arrays_fetch(facts_memory *m, facts_pattern pattern,
                                int64_t overrun[FACTS_ARRAY_COUNT])
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        overrun[id] = 0;
        if (is_there(m, id))
            TRY(fetch(m, id, pattern, &overrun[id]));
    }
    return FATTN_OK;
}

fattn_status facts_arrays_send_other(facts_memory *m)
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

fattn_status facts_arrays_spoil(facts_memory *m)
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

fattn_status facts_arrays_untouched(facts_memory *m, int64_t *changed)
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
