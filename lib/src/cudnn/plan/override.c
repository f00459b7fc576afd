/* Extents and strides that are given at the call. cuDNN's C API takes them as the address of a C++
 * object, a vector of vectors of int64. This file builds that object by hand, in the layout of the
 * C++ library of every Linux compiler. */
#include <string.h>

#include "cudnn_plan.h"
#include "problem/resolved_problem.h"

typedef struct vector {
    const void *begin, *end, *limit;
} vector;

enum { MOST = 32 };

typedef struct overrides {
    int count;
    int64_t uids[MOST];
    int64_t dims[MOST][4], strides[MOST][4];
} overrides;

static fattn__role role_of(fattn__slot slot)
{
    switch (slot) {
    case FATTN__SLOT_Q:
        return FATTN__ROLE_Q;
    case FATTN__SLOT_K:
        return FATTN__ROLE_K;
    case FATTN__SLOT_V:
        return FATTN__ROLE_V;
    case FATTN__SLOT_O:
        return FATTN__ROLE_O;
    case FATTN__SLOT_BIAS:
        return FATTN__ROLE_BIAS;
    case FATTN__SLOT_STATS:
    case FATTN__SLOT_MAX:
    case FATTN__SLOT_SUM_EXP:
        return FATTN__ROLE_STATS;
    default:
        return FATTN__ROLE_COUNT;
    }
}

/* Lengths and offsets: as many as there are entries, or one more. 0: no such tensor. */
static int64_t count_of(fattn__slot slot, const fattn_problem *p)
{
    if (slot == FATTN__SLOT_SEQ_LEN_Q)
        return p->batch + ((p->cumulative & FATTN_CUMULATIVE_Q) != 0);
    if (slot == FATTN__SLOT_SEQ_LEN_KV)
        return p->batch + ((p->cumulative & FATTN_CUMULATIVE_KV) != 0);
    return slot >= FATTN__SLOT_Q_OFFSETS && slot <= FATTN__SLOT_DV_OFFSETS ? p->batch + 1 : 0;
}

static void add(overrides *out, const fattn__binding *binding, const fattn_problem *p)
{
    const fattn__slot slot = (fattn__slot)binding->slot;
    const fattn__role role = role_of(slot);
    const int64_t count = count_of(slot, p),
                  step = p->len_broadcast && slot < FATTN__SLOT_Q_OFFSETS ? 0 : 1;
    if (out->count == MOST || (role == FATTN__ROLE_COUNT && count == 0))
        return;
    const fattn__shape shape =
        role != FATTN__ROLE_COUNT
            ? fattn__problem_shape(p, role)
            : (fattn__shape){ .dim = { count, 1, 1, 1 }, .strides = { step, 1, 1, 1 } };
    out->uids[out->count] = binding->uid;
    memcpy(out->dims[out->count], shape.dim, sizeof shape.dim);
    memcpy(out->strides[out->count], shape.strides, sizeof shape.strides);
    out->count++;
}

static vector of_rows(vector *rows, const int64_t at[][4], int count)
{
    for (int i = 0; i < count; i++)
        rows[i] = (vector){ at[i], at[i] + 4, at[i] + 4 };
    return (vector){ rows, rows + count, rows + count };
}

void fattn__overrides_give(fattn__steps *steps, fattn__desc pack, const fattn__compiled *compiled,
                           const fattn_problem *problem)
{
    overrides given = { .count = 0 };
    vector dims[MOST], strides[MOST];
    for (int i = 0; i < compiled->binding_count; i++)
        add(&given, &compiled->bindings[i], problem);
    const vector all_dims = of_rows(dims, (const int64_t (*)[4])given.dims, given.count);
    const vector all_strides = of_rows(strides, (const int64_t (*)[4])given.strides, given.count);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, DNN_TYPE_INT64,
                    given.count, given.uids);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_SHAPES, DNN_TYPE_VOID_PTR, 1,
                    &all_dims);
    fattn__step_set(steps, pack, DNN_ATTR_VARIANT_PACK_OVERRIDE_STRIDES, DNN_TYPE_VOID_PTR, 1,
                    &all_strides);
}
