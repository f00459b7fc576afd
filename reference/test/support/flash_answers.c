#include "flash_answers.h"

#include <stdlib.h>

static void *memory(int64_t n, size_t size)
{
    void *x = calloc((size_t)n + 1, size);
    if (!x)
        abort();
    return x;
}

/* ---- one tensor that the kernel writes ---- */

static facts_slot slot_of(fref_type type, int64_t batch, int64_t heads, int64_t s, int64_t dim)
{
    facts_slot slot = { .type = type, .dim = { batch, heads, s, dim } };
    dense_strides(slot.stride, heads, s, dim);
    slot.data = memory(batch * heads * s * dim, sizeof(float));
    return slot;
}

static int64_t count_of(const facts_slot *slot)
{
    return slot->dim[0] * slot->dim[1] * slot->dim[2] * slot->dim[3];
}

static double *take(facts_slot *slot)
{
    const fref_tensor flat = { .data = slot->data, .type = slot->type, .stride = { 0, 0, 0, 1 } };
    double *out = memory(count_of(slot), sizeof *out);
    for (int64_t n = 0; n < count_of(slot); n++)
        out[n] = element(&flat, 0, 0, 0, n);
    free(slot->data);
    return out;
}

/* ---- dBias ---- */

static void cast_all(double *x, int64_t count, fref_type type)
{
    for (int64_t n = 0; n < count; n++)
        x[n] = rounded_to(type, x[n]);
}

/* [outer, count, inner] to [outer, inner], in place, in fp32. */
static void sum_over(double *x, int64_t outer, int64_t count, int64_t inner)
{
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            float sum = 0.0F;
            for (int64_t n = 0; n < count; n++)
                sum += (float)x[(o * count + n) * inner + i];
            x[o * inner + i] = (double)sum;
        }
}

/* dX, [batch, heads_q, rows, keys], summed to dBias, in place, one dimension after the other. A
 * kernel that casts does so before the first and after each. */
static void reduce_bias(double *parts, const data *d, bool cast)
{
    const fref_problem *p = &d->problem;
    int64_t dim[4] = { p->batch, p->heads_q, p->rows, p->keys };
    for (int axis = 0; axis < 4; axis++) {
        int64_t outer = 1, inner = 1, count = dim[axis];
        if (d->dbias_dim[axis] == count)
            continue;
        for (int other = 0; other < 4; other++)
            *(other < axis ? &outer : &inner) *= other == axis ? 1 : dim[other];
        if (cast)
            cast_all(parts, outer * count * inner, d->type);
        sum_over(parts, outer, count, inner);
        dim[axis] = 1;
    }
    cast_all(parts, dim[0] * dim[1] * dim[2] * dim[3], d->type);
}

/* ---- both passes ---- */

void flash_answers_create(flash_answers *out, const data *d, const facts_kernel *kernel,
                          const fref_problem *believed)
{
    const fref_problem *p = believed ? believed : &d->problem;
    facts_launch forward = { .problem = p, .type = d->type, .q = &d->q, .k = &d->k, .v = &d->v };
    facts_launch backward = forward;
    backward.o = &d->o;
    backward.stats = &d->stats;
    backward.d_o = &d->d_o;
    backward.workspace = memory((int64_t)facts_emulation_workspace(p), 1);
    facts_slot *f = forward.out, *b = backward.out;
    f[FACTS_SLOT_O] = slot_of(d->type, p->batch, p->heads_q, p->rows, p->dim_v);
    f[FACTS_SLOT_STATS] = slot_of(FREF_F32, p->batch, p->heads_q, p->rows, 1);
    f[FACTS_SLOT_MAX] = slot_of(FREF_F32, p->batch, p->heads_q, p->rows, 1);
    b[FACTS_SLOT_DQ] = slot_of(d->type, p->batch, p->heads_q, p->rows, p->dim_qk);
    b[FACTS_SLOT_DK] = slot_of(d->type, p->batch, p->heads_k, p->keys, p->dim_qk);
    b[FACTS_SLOT_DV] = slot_of(d->type, p->batch, p->heads_v, p->keys, p->dim_v);
    b[FACTS_SLOT_DBIAS] = slot_of(FREF_F32, p->batch, p->heads_q, p->rows, p->keys);
    if (!facts_emulate_forward(kernel, &forward) || !facts_emulate_backward(kernel, &backward))
        abort();
    *out = (flash_answers){ .o = take(&f[FACTS_SLOT_O]),
                            .lse = take(&f[FACTS_SLOT_STATS]),
                            .max = take(&f[FACTS_SLOT_MAX]),
                            .dq = take(&b[FACTS_SLOT_DQ]),
                            .dk = take(&b[FACTS_SLOT_DK]),
                            .dv = take(&b[FACTS_SLOT_DV]),
                            .dbias = take(&b[FACTS_SLOT_DBIAS]) };
    reduce_bias(out->dbias, d, !kernel->partials_fp32);
    free(backward.workspace);
}

void flash_answers_destroy(flash_answers *a)
{
    double *const owned[] = { a->o, a->lse, a->max, a->dq, a->dk, a->dv, a->dbias };
    for (size_t n = 0; n < sizeof owned / sizeof owned[0]; n++)
        free(owned[n]);
}

void flash_answers_feed(const flash_answers *a, data *d)
{
    const fref_problem *p = &d->problem;
    for (int64_t row = 0; row < p->batch * p->heads_q * p->rows; row++) {
        int64_t b = row / p->rows / p->heads_q, h = row / p->rows % p->heads_q, i = row % p->rows;
        set_element(&d->stats, b, h, i, 0, a->lse[row]);
        for (int64_t c = 0; c < p->dim_v; c++)
            set_element(&d->o, b, h, i, c, a->o[row * p->dim_v + c]);
    }
}
