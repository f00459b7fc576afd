#include "tile.h"

#include <math.h>
#include <string.h>

/* Compiled for the newest vector units as well; the loader picks. Sums keep their order, so every clone gives nearly, not exactly, the same
 * bits: fused multiply-add differs. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

static const int64_t FAR = INT64_MAX / 4;

static int64_t clamp(int64_t x)
{
    return x > FAR ? FAR : x < -FAR ? -FAR : x;
}

fattn__band fattn__band_of(const fattn_problem *p, const fattn_tensors *t, int64_t b)
{
    fattn__band band = { .len_q = p->seq_q, .len_kv = p->seq_kv, .left = FAR, .right = FAR };
    if (p->padding) {
        band.len_q = t->seq_len_q[b];
        band.len_kv = t->seq_len_kv[b];
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

void fattn__tile_load(float *dst, const fattn__view *from, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim)
{
    for (int64_t i = 0; i < count; i++, dst += dim) {
        int64_t at = offset_of(from, b, h, s + i);
        if (from->dtype == FATTN_F32) {
            memcpy(dst, (const float *)(const void *)from->data + at, (size_t)dim * sizeof *dst);
            continue;
        }
        const uint16_t *src = (const uint16_t *)(const void *)from->data + at;
        if (from->dtype == FATTN_F16)
            for (int64_t d = 0; d < dim; d++)
                dst[d] = from_f16(src[d]);
        else
            for (int64_t d = 0; d < dim; d++)
                dst[d] = from_bf16(src[d]);
    }
}

void fattn__tile_store(const fattn__view *to, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim, const float *src)
{
    for (int64_t i = 0; i < count; i++, src += dim) {
        int64_t at = offset_of(to, b, h, s + i);
        if (to->dtype == FATTN_F32) {
            memcpy((float *)(void *)to->data + at, src, (size_t)dim * sizeof *src);
            continue;
        }
        uint16_t *dst = (uint16_t *)(void *)to->data + at;
        for (int64_t d = 0; d < dim; d++)
            dst[d] = to->dtype == FATTN_F16 ? to_f16(src[d]) : to_bf16(src[d]);
    }
}

/* Sixteen partial sums: the vector units fill, and the rounding error grows with the root of dim/16. */
CLONES void fattn__tile_dot(float *out, const float *a, const float *b, int64_t rows, int64_t keys, int64_t dim, float factor)
{
    int64_t whole = dim - dim % 16;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            const float *x = a + i * dim, *y = b + j * dim;
            float lane[16] = { 0 }, sum = 0;
            for (int64_t d = 0; d < whole; d += 16)
                for (int l = 0; l < 16; l++)
                    lane[l] += x[d + l] * y[d + l];
            for (int64_t d = whole; d < dim; d++)
                lane[d - whole] += x[d] * y[d];
            for (int l = 0; l < 16; l++)
                sum += lane[l];
            out[i * FATTN__KEYS + j] = sum * factor;
        }
}

CLONES void fattn__tile_add(float *acc, const float *weight, const float *b, int64_t rows, int64_t keys, int64_t dim)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            float w = weight[i * FATTN__KEYS + j];
            if (w == 0.0f)
                continue; /* a masked key may hold anything: 0 times NaN must not reach the row */
            for (int64_t d = 0; d < dim; d++)
                acc[i * dim + d] += w * b[j * dim + d];
        }
}

CLONES void fattn__tile_add_transposed(float *acc, const float *weight, const float *a, int64_t rows, int64_t keys, int64_t dim)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < keys; j++) {
            float w = weight[i * FATTN__KEYS + j];
            if (w == 0.0f)
                continue;
            for (int64_t d = 0; d < dim; d++)
                acc[j * dim + d] += w * a[i * dim + d];
        }
}

bool fattn__tile_touches(const fattn__band *band, int64_t row0, int64_t rows, int64_t key0, int64_t keys)
{
    for (int64_t i = row0; i < row0 + rows; i++) {
        int64_t first, last;
        fattn__band_keys(band, i, &first, &last);
        if (first < last && first < key0 + keys && last > key0)
            return true;
    }
    return false;
}

bool fattn__tile_mask(float *scores, const fattn__band *band, int64_t row0, int64_t rows, int64_t key0, int64_t keys)
{
    bool any = false;
    for (int64_t i = 0; i < rows; i++) {
        int64_t first, last;
        fattn__band_keys(band, row0 + i, &first, &last);
        for (int64_t j = 0; j < keys; j++) {
            bool visible = key0 + j >= first && key0 + j < last;
            any |= visible;
            if (!visible)
                scores[i * FATTN__KEYS + j] = -INFINITY;
        }
    }
    return any;
}
