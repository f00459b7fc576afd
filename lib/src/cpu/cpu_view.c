#include "cpu_view.h"

#include <math.h>

#include "cpu/kernels/cpu_number.h"
#include "liars/lies.h"
#include "problem/auxiliary.h"

static void add_offsets(fattn__view *v, const fattn_problem *p, const fattn_tensors *t,
                        fattn__role which)
{
    const void *const table[] = {
#define AS_OFFSETS(symbol, name, bit) t->name##_offsets,
        FATTN_RAGGED_LIST(AS_OFFSETS)
#undef AS_OFFSETS
    };
    v->offsets = table[which];
    v->offset_bits = p->ragged_bits;
    v->unit = p->ragged_tokens ? v->stride[2] : 1;
}

static void add_pages(fattn__view *v, const fattn_problem *p, const fattn_tensors *t,
                      fattn__role which)
{
    const bool k = which == FATTN__ROLE_K;
    v->table = k ? t->page_table_k : t->page_table_v;
    v->page = fattn__problem_page(p, which);
    v->pages = k ? p->table_k : p->table_v;
    v->offset_bits = p->ragged_bits == 64 ? 64 : 32;
    v->table_offsets = !p->packed_table ? NULL : k ? t->table_offsets_k : t->table_offsets_v;
}

static const void *own_data(const fattn_tensors *t, fattn__role which)
{
    const void *const table[FATTN__ROLE_COUNT] = { t->q,  t->k,  t->v,  t->o,    t->stats, t->d_o,
                                                   t->dq, t->dk, t->dv, t->bias, t->dbias };
    return table[which];
}

fattn__view fattn__view_of(const fattn_problem *p, const fattn_tensors *t, fattn__role which,
                           const void *data)
{
    const fattn__shape shape = fattn__problem_shape(p, which);
    fattn__view v = { .dtype = shape.dtype,
                      .role = (int32_t)which,
                      .stride = fattn__problem_strides((fattn_problem *)(uintptr_t)p, which) };
    v.data =
        (char *)(uintptr_t)(data != NULL ? data
                                         : own_data(t, which)); /* views of inputs are only read */
    if (fattn__problem_ragged(p, which))
        add_offsets(&v, p, t, which);
    if (fattn__problem_page(p, which) != 0)
        add_pages(&v, p, t, which);
    return v;
}

static int64_t row_at(const fattn__view *v, int64_t b, int64_t h, int64_t s)
{
    const int64_t within = h * v->stride[1];
    if (FATTN__LIE(BATCH_16_BITS))
        b &= 0xffff;
    if (v->offsets != NULL)
        return fattn__integer_at(v->offsets, v->offset_bits, b) * v->unit + within +
               s * v->stride[2];
    if (v->table == NULL)
        return b * v->stride[0] + within + s * v->stride[2];
    const int64_t first = v->table_offsets != NULL
                              ? fattn__integer_at(v->table_offsets, v->offset_bits, b)
                              : b * v->pages;
    return v->table[first + s / v->page] * v->stride[0] + within + s % v->page * v->stride[2];
}

int64_t fattn__view_row(const fattn__view *v, int64_t b, int64_t h, int64_t s)
{
    const int64_t row = row_at(v, b, h, s);
    return FATTN__LIE(OFFSET_INT32) ? row & 0xfffff : row;
}

void fattn__rotate(float *row, int64_t dim, const float *angles, int64_t lanes, bool back)
{
    float *x1 = row + dim - lanes, *x2 = x1 + lanes / 2;
    for (int64_t i = 0; i < lanes / 2; i++) {
        const float c = cosf(angles[i]), s = back ? -sinf(angles[i]) : sinf(angles[i]), a = x1[i],
                    b = x2[i];
        x1[i] = a * c - b * s;
        x2[i] = b * c + a * s;
    }
}

static float block_factor(const fattn__blocks *x, int64_t b, int64_t h, int64_t line,
                          int64_t column)
{
    const int64_t tile = line / 128 * x->column_tiles + column / 4;
    const uint8_t *matrix = x->factors + (b * x->heads + h) * x->matrix;
    return fattn__number_factor(
        matrix[tile * 512 + line % 32 * 16 + line / 32 % 4 * 4 + column % 4]);
}

static void scale_row(const fattn__blocks *x, int64_t b, int64_t h, int64_t s, float *row,
                      int64_t dim)
{
    if (x->along_rows) {
        for (int64_t d = 0; d < dim; d++)
            row[d] *= block_factor(x, b, h, d, s / 32);
        return;
    }
    for (int64_t d0 = 0; d0 < dim; d0 += 32) {
        const float factor = block_factor(x, b, h, s, d0 / 32);
        for (int64_t d = d0; d < dim && d < d0 + 32; d++)
            row[d] *= factor;
    }
}

void fattn__view_load(float *dst, int64_t step, const fattn__view *from, int64_t b, int64_t h,
                      int64_t s, int64_t count, int64_t dim)
{
    for (int64_t i = 0; i < count; i++, dst += step) {
        fattn__numbers_load(dst, from->data, from->dtype, fattn__view_row(from, b, h, s + i), dim);
        fattn__liar_bend_input(from, dst, dim);
        for (int64_t d = dim; d < step; d++)
            dst[d] = 0.0f;
        if (from->blocks.factors != NULL)
            scale_row(&from->blocks, b, h, s + i, dst, dim);
        if (from->angles == NULL)
            continue;
        fattn__rotate(dst, dim, from->angles + (s + i) * from->lanes, from->lanes, false);
        if (FATTN__LIE(ROPE_PAIR) && s + i == 5)
            fattn__rotate(dst + dim - from->lanes, 2, (const float[2]){ 1.0f, 1.0f }, 2, true);
        /* As cuDNN's rotation, which writes a tensor of this type. */
        for (int64_t d = dim - from->lanes; d < dim && from->blocks.factors == NULL; d++) {
            uint32_t code;
            fattn__number_store(&code, from->dtype, 0, dst[d]);
            dst[d] = fattn__number_load(&code, from->dtype, 0);
        }
    }
}

void fattn__view_store(const fattn__view *to, int64_t b, int64_t h, int64_t s, int64_t count,
                       int64_t dim, const float *src, int64_t step)
{
    for (int64_t i = 0; i < count; i++, src += step) {
        const int64_t row = fattn__view_row(to, b, h, s + i);
        fattn__numbers_store(to->data, to->dtype, row, src, dim);
        fattn__liar_bend_stored(to, row, src, dim);
    }
}
