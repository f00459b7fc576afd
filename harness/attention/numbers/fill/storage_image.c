#include "storage_image.h"

#include <stdlib.h>
#include <string.h>

static size_t bytes_of(int32_t dtype)
{
    const size_t bytes = facts_dtype_bytes(dtype);
    return bytes > 0 ? bytes : 1;
}

static int64_t guard_elements(int32_t dtype)
{
    int64_t least = FACTS_GUARD_BYTES / (int64_t)bytes_of(dtype);
    return least > FACTS_GUARD_ELEMENTS ? least : FACTS_GUARD_ELEMENTS;
}

/* The last element of a tensor; -1 if it has none. */
static int64_t reach(const facts_tensor *t)
{
    int64_t at = t->first;
    for (int i = 0; i < 4; i++) {
        if (t->dim[i] <= 0)
            return -1;
        at += (t->dim[i] - 1) * t->stride[i];
    }
    return at;
}

static void own(facts_image *image, const facts_tensor *t)
{
    for (int64_t b = 0; b < (t->stride[0] ? t->dim[0] : 1); b++)
        for (int64_t h = 0; h < (t->stride[1] ? t->dim[1] : 1); h++)
            for (int64_t s = 0; s < (t->stride[2] ? t->dim[2] : 1); s++)
                for (int64_t d = 0; d < t->dim[3]; d++) {
                    int64_t at = t->first + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] +
                                 d * t->stride[3];
                    image->owned[at / 64] |= UINT64_C(1) << (at % 64);
                }
}

bool facts_image_measure(facts_image *out, const facts_tensor *const tensors[], size_t count)
{
    const facts_tensor *lead = tensors[0];
    size_t size = facts_dtype_bytes(lead->dtype);
    *out = (facts_image){ .dtype = lead->dtype };
    if (size == 0 || lead->elements < 0 || lead->skew_bytes < 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (tensors[i]->elements > out->elements)
            out->elements = tensors[i]->elements;
    }
    for (size_t i = 0; i < count; i++)
        if (tensors[i]->first < 0 || reach(tensors[i]) >= out->elements)
            return false;
    size_t guard = (size_t)guard_elements(lead->dtype) * size;
    out->front = guard + (size_t)lead->skew_bytes;
    out->bytes = out->front + (size_t)out->elements * size + guard;
    return true;
}

bool facts_image_create(facts_image *out, const facts_tensor *const tensors[], size_t count)
{
    if (!facts_image_measure(out, tensors, count))
        return false;
    out->owned = calloc((size_t)out->elements / 64 + 1, sizeof *out->owned);
    if (!out->owned)
        return false;
    for (size_t i = 0; i < count; i++)
        if (reach(tensors[i]) >= 0)
            own(out, tensors[i]);
    return true;
}

void facts_image_destroy(facts_image *image)
{
    free(image->owned);
    *image = (facts_image){ 0 };
}

void *facts_image_storage(const facts_image *image, void *bytes)
{
    return (unsigned char *)bytes + image->front;
}

int64_t facts_image_before(const facts_image *image)
{
    return (int64_t)(image->front / bytes_of(image->dtype));
}

int64_t facts_image_after(const facts_image *image)
{
    return guard_elements(image->dtype);
}

size_t facts_image_odd(const facts_image *image)
{
    return image->front % bytes_of(image->dtype);
}

void facts_image_guard(const facts_image *image, facts_pattern pattern, void *bytes)
{
    void *storage = facts_image_storage(image, bytes);
    memset(bytes, FACTS_GUARD_FILLER, facts_image_odd(image));
    for (int64_t i = -facts_image_before(image); i < 0; i++)
        facts_store(image->dtype, storage, i, facts_pattern_code(image->dtype, pattern, i));
    for (int64_t i = image->elements; i < image->elements + facts_image_after(image); i++)
        facts_store(image->dtype, storage, i, facts_pattern_code(image->dtype, pattern, i));
}

/* facts_pattern_code repeats after 7: the codes, once. */
static void period(int32_t dtype, facts_pattern pattern, uint32_t out[7])
{
    for (int64_t i = 0; i < 7; i++)
        out[i] = facts_pattern_code(dtype, pattern, i);
}

void facts_image_poison(const facts_image *image, facts_pattern pattern, void *bytes)
{
    uint32_t codes[7];
    void *storage = facts_image_storage(image, bytes);
    facts_image_guard(image, pattern, bytes);
    period(image->dtype, pattern, codes);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < image->elements; i++)
        facts_store(image->dtype, storage, i, codes[i % 7]);
}

int64_t facts_image_overrun(const facts_image *image, facts_pattern pattern, const void *bytes)
{
    uint32_t codes[7];
    const unsigned char *head = bytes, *storage = head + image->front;
    int64_t changed = 0;
    period(image->dtype, pattern, codes);
    for (size_t i = 0; i < facts_image_odd(image); i++)
        changed += head[i] != FACTS_GUARD_FILLER;
    for (int64_t i = -facts_image_before(image); i < 0; i++)
        changed += facts_load(image->dtype, storage, i) != codes[(i % 7 + 7) % 7];
    for (int64_t i = image->elements; i < image->elements + facts_image_after(image); i++)
        changed += facts_load(image->dtype, storage, i) != codes[i % 7];
#pragma omp parallel for schedule(static) reduction(+ : changed)
    for (int64_t i = 0; i < image->elements; i++)
        if (!(image->owned[i / 64] >> (i % 64) & 1))
            changed += facts_load(image->dtype, storage, i) != codes[i % 7];
    return changed;
}

/* ---- ragged tensors
 * -----
 */

static void disown(facts_image *image, const facts_tensor *t, int64_t token)
{
    for (int64_t h = 0; h < t->dim[1]; h++)
        for (int64_t d = 0; d < t->dim[3]; d++) {
            int64_t at = t->first + h * t->stride[1] + token * t->stride[2] + d * t->stride[3];
            image->owned[at / 64] &= ~(UINT64_C(1) << (at % 64));
        }
}

static bool is_of_a_sequence(int64_t token, const int64_t *from, const int32_t *len, int64_t batch)
{
    for (int64_t b = 0; b < batch; b++)
        if (token >= from[b] && token < from[b] + len[b])
            return true;
    return false;
}

bool facts_image_pack(facts_image *image, const facts_tensor *tensor, const int64_t *from,
                      const int32_t *len, int64_t batch)
{
    if (!image->owned || tensor->dim[0] != 1)
        return false;
    for (int64_t b = 0; b < batch; b++)
        if (len[b] < 0 || from[b] < 0 || from[b] + len[b] > tensor->dim[2])
            return false;
    for (int64_t token = 0; token < tensor->dim[2]; token++)
        if (!is_of_a_sequence(token, from, len, batch))
            disown(image, tensor, token);
    return true;
}
