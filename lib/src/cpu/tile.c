#include "tile.h"

#include <math.h>
#include <string.h>

static const int64_t FAR = INT64_MAX / 4;

static int64_t clamp(int64_t x)
{
    return x > FAR ? FAR : x < -FAR ? -FAR : x;
}

fattn__band fattn__band_of(const fattn_problem *p, const fattn_tensors *t, int64_t b)
{
    fattn__band band = { .len_q = p->seq_q, .len_kv = p->seq_kv, .left = FAR, .right = FAR };
    if (p->padding) {
        band.len_q = t->seq_len_q[p->len_broadcast ? 0 : b];
        band.len_kv = t->seq_len_kv[p->len_broadcast ? 0 : b];
    }
    band.shift = p->align == FATTN_BOTTOM_RIGHT ? band.len_kv - band.len_q : 0;
    if (p->has_left)
        band.left = clamp(p->window_left);
    if (p->has_right)
        band.right = clamp(p->window_right);
    return band;
}

void fattn__band_keys(const fattn__band *band, int64_t row, int64_t *first, int64_t *last)
{
    int64_t diagonal = row + band->shift;
    int64_t lo = diagonal - band->left + 1, hi = diagonal + band->right + 1;
    *first = lo < 0 ? 0 : lo;
    *last = hi > band->len_kv ? band->len_kv : hi;
    if (row >= band->len_q || *last <= *first)
        *first = *last = 0;
}

static float from_bf16(uint16_t code)
{
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* a NaN stays one */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static float from_f16(uint16_t code)
{
    uint32_t exponent = (code >> 10) & 31u, fraction = code & 1023u, sign = (uint32_t)(code & 0x8000u) << 16, bits;
    float x;
    if (exponent == 0) {
        x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112u) << 23) | fraction << 13;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t to_f16(float x)
{
    uint32_t bits, magnitude;
    memcpy(&bits, &x, sizeof bits);
    uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* subnormal: let the fp32 adder round at 2^-24 */
        float a;
        memcpy(&a, &magnitude, sizeof a);
        a = (a + 0.5f) - 0.5f; /* 0.5 has an ulp of 2^-24 below it and 2^-24 above */
        return (uint16_t)(sign | (uint16_t)(a * 0x1p24f));
    }
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | (uint16_t)((magnitude >> 13) - (112u << 10)));
}

static int64_t offset_of(const fattn__view *v, int64_t b, int64_t h, int64_t s)
{
    return b * v->stride[0] + h * v->stride[1] + s * v->stride[2];
}

void fattn__tile_load(float *dst, int64_t step, const fattn__view *from, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim)
{
    for (int64_t i = 0; i < count; i++, dst += step) {
        int64_t at = offset_of(from, b, h, s + i);
        const uint16_t *src = (const uint16_t *)(const void *)from->data + at;
        if (from->dtype == FATTN_F32)
            memcpy(dst, (const float *)(const void *)from->data + at, (size_t)dim * sizeof *dst);
        else if (from->dtype == FATTN_F16)
            for (int64_t d = 0; d < dim; d++)
                dst[d] = from_f16(src[d]);
        else
            for (int64_t d = 0; d < dim; d++)
                dst[d] = from_bf16(src[d]);
        for (int64_t d = dim; d < step; d++)
            dst[d] = 0.0f;
    }
}

void fattn__element_store(void *data, int32_t dtype, int64_t at, float x)
{
    if (dtype == FATTN_F32)
        ((float *)data)[at] = x;
    else
        ((uint16_t *)data)[at] = dtype == FATTN_F16 ? to_f16(x) : to_bf16(x);
}

void fattn__tile_store(const fattn__view *to, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim, const float *src, int64_t step)
{
    for (int64_t i = 0; i < count; i++, src += step) {
        int64_t at = offset_of(to, b, h, s + i);
        if (to->dtype == FATTN_F32) {
            memcpy((float *)(void *)to->data + at, src, (size_t)dim * sizeof *src);
            continue;
        }
        for (int64_t d = 0; d < dim; d++)
            fattn__element_store(to->data, to->dtype, at + d, src[d]);
    }
}

void fattn__tile_transpose(float *dst, int64_t dst_step, const float *src, int64_t src_step, int64_t count, int64_t dim)
{
    const int64_t whole = fattn__padded(count);
    for (int64_t d0 = 0; d0 < dim; d0 += 16)
        for (int64_t i = 0; i < whole; i++)
            for (int64_t d = d0; d < dim && d < d0 + 16; d++)
                dst[d * dst_step + i] = i < count ? src[i * src_step + d] : 0.0f;
}

fattn__sight fattn__tile_sight(const fattn__band *band, int64_t row0, int64_t rows, int64_t key0, int64_t keys)
{
    fattn__sight sight = { .first = rows, .last = 0, .whole = true };
    const int64_t end = key0 + keys;
    if (band->left == FAR && band->right == FAR && row0 + rows <= band->len_q && end <= band->len_kv)
        return (fattn__sight){ 0, rows, true };
    for (int64_t i = 0; i < rows; i++) {
        int64_t first, last;
        fattn__band_keys(band, row0 + i, &first, &last);
        if (first < last && first < end && last > key0) {
            sight.first = i < sight.first ? i : sight.first;
            sight.last = i + 1;
        }
        sight.whole = sight.whole && first <= key0 && last >= end;
    }
    return sight;
}

void fattn__tile_mask(float *scores, int64_t row_step, int64_t key_step, const fattn__band *band, int64_t row0, int64_t rows, int64_t key0,
                      int64_t keys)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t first, last;
        fattn__band_keys(band, row0 + i, &first, &last);
        for (int64_t j = 0; j < keys; j++)
            if (key0 + j < first || key0 + j >= last)
                scores[i * row_step + j * key_step] = -INFINITY;
    }
}
