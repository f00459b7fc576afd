/* The functions that a callback may call. The first failure stays. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "problem/layout.h"
#include "recording.h"

/* A value is tag * 4096 + place. */
enum { PLACE_BITS = 12, TAG_COUNT = 1 << 18 };
_Static_assert(FATTN__MOD_BUILDER_NODES <= 1 << PLACE_BITS, "a place does not fit its bits");

static atomic_uint next_tag;

void fattn__recorder_open(fattn_recorder *recorder, fattn_score_mod *mod,
                          fattn__mod_builder *builder)
{
    *recorder = (fattn_recorder){ .mod = mod, .builder = builder };
    recorder->tag = (int32_t)(1 + atomic_fetch_add(&next_tag, 1) % (TAG_COUNT - 1));
}

fattn_value fattn__recorder_value(const fattn_recorder *recorder, int place)
{
    return recorder->tag << PLACE_BITS | place;
}

__attribute__((format(printf, 2, 3))) static fattn_value fail(fattn_recorder *recorder,
                                                              const char *format, ...)
{
    va_list arguments;
    if (recorder->failed)
        return -1;
    recorder->failed = true;
    va_start(arguments, format);
    vsnprintf(recorder->message, sizeof recorder->message, format, arguments);
    va_end(arguments);
    return -1;
}

static bool is_ours(const fattn_recorder *recorder, fattn_value value)
{
    return value >= 0 && value >> PLACE_BITS == recorder->tag &&
           (value & ((1 << PLACE_BITS) - 1)) < recorder->builder->count;
}

static int place_of(fattn_value value)
{
    return value & ((1 << PLACE_BITS) - 1);
}

/* Counts what the callback records; false: nothing may be recorded (any more). */
static bool begin(fattn_recorder *recorder, const char *what)
{
    if (recorder == NULL || recorder->failed)
        return false;
    if (++recorder->operations > FATTN_MOD_MAX_OPERATIONS)
        return fail(recorder, "operation %d (%s): more than %d operations", recorder->operations,
                    what, FATTN_MOD_MAX_OPERATIONS) >= 0;
    return true;
}

static fattn_value done(fattn_recorder *recorder, int place)
{
    if (recorder->builder->full)
        return fail(recorder, "operation %d: the recording is too long", recorder->operations);
    return fattn__recorder_value(recorder, place);
}

fattn_value fattn_record(fattn_recorder *recorder, fattn_mod_op op, fattn_value a, fattn_value b,
                         fattn_value c)
{
    const int inputs = fattn__mod_inputs((int)op);
    const fattn_value given[3] = { a, b, c };
    int places[3] = { 0, 0, 0 };
    if (!begin(recorder, fattn__mod_word((int)op)))
        return -1;
    if (inputs == 0)
        return fail(recorder, "operation %d: %d is no operation; want one of FATTN_MOD_OP_LIST",
                    recorder->operations, (int)op);
    for (int i = 0; i < inputs; i++) {
        if (!is_ours(recorder, given[i]))
            return fail(recorder,
                        "operation %d (%s): input %c, %" PRId32
                        ", is not a value of this recording",
                        recorder->operations, fattn__mod_word((int)op), "abc"[i], given[i]);
        places[i] = place_of(given[i]);
    }
    return done(recorder, fattn__mod_apply(recorder->builder, op, places[0], places[1], places[2]));
}

fattn_value fattn_record_constant(fattn_recorder *recorder, double value)
{
    if (!begin(recorder, "constant"))
        return -1;
    const float rounded = (float)value;
    if (isnan(value))
        return fail(recorder, "operation %d (constant): not a number", recorder->operations);
    if (!isinf(value) && (isinf(rounded) || (rounded == 0.0f && value != 0)))
        return fail(recorder, "operation %d (constant): %g does not fit fp32", recorder->operations,
                    value);
    return done(recorder, fattn__mod_constant(recorder->builder, rounded));
}

fattn_value fattn_record_index(fattn_recorder *recorder, fattn_mod_axis axis)
{
    if (!begin(recorder, "index"))
        return -1;
    if ((int)axis < FATTN_MOD_BATCH || (int)axis > FATTN_MOD_KEY)
        return fail(recorder,
                    "operation %d (index): axis %d is not allowed; want 0 (batch) to 3 (key)",
                    recorder->operations, (int)axis);
    return done(recorder, fattn__mod_leaf(recorder->builder, FATTN__MOD_INDEX, (int)axis));
}

/* The name, shortened to keep the sentence readable. */
#define SHORT(name) (int)strnlen((name), 64), (name)

static bool check_tensor(fattn_recorder *recorder, const char *name, const fattn_mod_tensor *t)
{
    const int64_t limit = (int64_t)1 << 62;
    int64_t product = 1, span = 0;
    if (t->dtype != FATTN_BF16 && t->dtype != FATTN_F16 && t->dtype != FATTN_F32)
        return fail(recorder,
                    "tensor \"%.*s\": dtype %" PRId32 " is not allowed; want bf16, f16 or f32",
                    SHORT(name), t->dtype) >= 0;
    for (int i = 0; i < 4; i++) {
        if (t->dim[i] < 1)
            return fail(recorder, "tensor \"%.*s\": extent %d is %" PRId64 "; want 1 or more",
                        SHORT(name), i, t->dim[i]) >= 0;
        if (t->strides[i] < 0)
            return fail(recorder, "tensor \"%.*s\": stride %d is %" PRId64 "; want 0 or more",
                        SHORT(name), i, t->strides[i]) >= 0;
        if (__builtin_mul_overflow(product, t->dim[i], &product) || product >= limit)
            return fail(recorder,
                        "tensor \"%.*s\": the product of its extents must stay below 2^62",
                        SHORT(name)) >= 0;
    }
    if (!fattn__layout_span(t->dim, t->strides, &span))
        return fail(recorder, "tensor \"%.*s\": the last element must lie below 2^62",
                    SHORT(name)) >= 0;
    return true;
}

static fattn_value add_tensor(fattn_recorder *recorder, const char *name, fattn_mod_tensor tensor)
{
    fattn_score_mod *mod = recorder->mod;
    for (int i = 0; i < mod->tensor_count; i++) {
        const fattn_mod_tensor *t = &mod->tensors[i];
        if (strcmp(t->name, name) != 0)
            continue;
        if (t->dtype != tensor.dtype || memcmp(t->dim, tensor.dim, sizeof t->dim) != 0 ||
            memcmp(t->strides, tensor.strides, sizeof t->strides) != 0)
            return fail(recorder,
                        "tensor \"%.*s\" was recorded before with another type, extents or strides",
                        SHORT(name));
        return done(recorder, fattn__mod_leaf(recorder->builder, FATTN__MOD_TENSOR, i));
    }
    if (mod->tensor_count == FATTN_MOD_MAX_TENSORS)
        return fail(recorder, "tensor \"%.*s\": more than %d tensors", SHORT(name),
                    FATTN_MOD_MAX_TENSORS);
    if ((tensor.name = strdup(name)) == NULL) {
        recorder->no_memory = true;
        return fail(recorder, "no memory");
    }
    mod->tensors[mod->tensor_count] = tensor;
    return done(recorder,
                fattn__mod_leaf(recorder->builder, FATTN__MOD_TENSOR, mod->tensor_count++));
}

fattn_value fattn_record_tensor(fattn_recorder *recorder, const char *name, fattn_dtype dtype,
                                const int64_t dim[4], const int64_t strides[4])
{
    fattn_mod_tensor tensor = { .dtype = (int32_t)dtype };
    if (recorder == NULL || recorder->failed)
        return -1;
    if (name == NULL || *name == '\0')
        return fail(recorder, "a tensor has no name");
    if (dim == NULL)
        return fail(recorder, "tensor \"%.*s\": no extents", SHORT(name));
    memcpy(tensor.dim, dim, sizeof tensor.dim);
    if (strides != NULL)
        memcpy(tensor.strides, strides, sizeof tensor.strides);
    if (!check_tensor(recorder, name, &tensor))
        return -1;
    if (strides == NULL)
        fattn__dense_strides(tensor.dim, "bhsd", tensor.strides);
    return add_tensor(recorder, name, tensor);
}

fattn_status fattn__recorder_close(fattn_recorder *recorder, fattn_value returned,
                                   const char *callback, int *place)
{
    if (!recorder->failed && !is_ours(recorder, returned))
        fail(recorder, "%" PRId32 ", which the callback returned, is not a value of this recording",
             returned);
    if (recorder->failed)
        return fattn__fail(recorder->no_memory ? FATTN_NO_MEMORY : FATTN_BAD_PROBLEM, "%s: %s",
                           callback, recorder->message);
    *place = fattn__mod_as_result(recorder->builder, place_of(returned));
    return FATTN_OK;
}
