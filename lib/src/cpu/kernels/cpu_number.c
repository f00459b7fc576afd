#include "cpu_number.h"
#include "problem/layout.h"

#include <math.h>
#include <string.h>

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float from_bf16(uint16_t code)
{
    return float_of((uint32_t)code << 16);
}

static uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((bits >> 16) | 0x40u); /* a NaN stays one */
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

static float from_f16(uint16_t code)
{
    const uint32_t exponent = (code >> 10) & 31u, fraction = code & 1023u,
                   sign = (uint32_t)(code & 0x8000u) << 16;
    if (exponent == 0) {
        const float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    return float_of(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112u) << 23) |
                    fraction << 13);
}

static uint16_t to_f16(float x)
{
    uint32_t magnitude = bits_of(x) & 0x7fffffffu;
    const uint16_t sign = (uint16_t)((bits_of(x) >> 16) & 0x8000u);
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* subnormal: let the fp32 adder round at 2^-24 */
        float a = float_of(magnitude);
        a = (a + 0.5f) - 0.5f; /* 0.5 has an ulp of 2^-24 below it and 2^-24 above */
        return (uint16_t)(sign | (uint16_t)(a * 0x1p24f));
    }
    magnitude += 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | (uint16_t)((magnitude >> 13) - (112u << 10)));
}

/* An 8-bit type: bits of its fraction, its exponent's bias, its largest code and what that stands
 * for. */
typedef struct narrow {
    uint32_t fraction, bias, last;
    float most;
} narrow;

static narrow narrow_of(int32_t dtype)
{
    if (dtype == FATTN_E5M2 || dtype == FATTN_MXE5M2)
        return (narrow){ 2, 15, 0x7b, 57344.0f };
    return (narrow){ 3, 7, 0x7e, 448.0f };
}

static float from_narrow(const narrow *n, uint8_t code)
{
    const uint32_t magnitude = code & 0x7fu, exponent = magnitude >> n->fraction,
                   fraction = magnitude & ((1u << n->fraction) - 1u);
    float x;
    if (magnitude > n->last)
        x = n->fraction == 2 && magnitude == 0x7c ? INFINITY : NAN;
    else if (exponent == 0)
        x = (float)fraction * float_of((127u + 1u - n->bias - n->fraction) << 23);
    else
        x = float_of((exponent + 127u - n->bias) << 23 | fraction << (23u - n->fraction));
    return (code & 0x80u) != 0 ? -x : x;
}

static uint8_t to_narrow(const narrow *n, float x)
{
    const uint8_t sign = (uint8_t)((bits_of(x) >> 24) & 0x80u);
    const float size = fabsf(x),
                least = float_of((128u - n->bias) << 23); /* the smallest normal number */
    if (isnan(x))
        return (uint8_t)(sign | 0x7fu);
    if (size >= n->most)
        return (uint8_t)(sign | n->last);
    if (size < least) { /* subnormal: the fp32 adder rounds at its step */
        const float step = float_of((128u - n->bias - n->fraction) << 23), magic = step * 0x1p23f;
        return (uint8_t)(sign | (uint8_t)(((size + magic) - magic) / step));
    }
    const uint32_t shift = 23u - n->fraction, bits = bits_of(size),
                   rounded = (bits + (1u << (shift - 1u)) - 1u + (bits >> shift & 1u)) >> shift;
    return (uint8_t)(sign | (uint8_t)(rounded - ((127u - n->bias) << n->fraction)));
}

void fattn__numbers_load(float *to, const void *data, int32_t dtype, int64_t at, int64_t count)
{
    const uint16_t *codes = (const uint16_t *)data + at;
    if (dtype == FATTN_F32)
        memcpy(to, (const float *)data + at, (size_t)count * sizeof *to);
    else if (fattn__dtype_is_fp8(dtype) || fattn__dtype_is_mx(dtype)) {
        const narrow n = narrow_of(dtype);
        for (int64_t i = 0; i < count; i++)
            to[i] = from_narrow(&n, ((const uint8_t *)data)[at + i]);
    } else if (dtype == FATTN_F16)
        for (int64_t i = 0; i < count; i++)
            to[i] = from_f16(codes[i]);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = from_bf16(codes[i]);
}

float fattn__number_load(const void *data, int32_t dtype, int64_t at)
{
    float x;
    fattn__numbers_load(&x, data, dtype, at, 1);
    return x;
}

void fattn__number_store(void *data, int32_t dtype, int64_t at, float x)
{
    if (dtype == FATTN_F32)
        ((float *)data)[at] = x;
    else if (fattn__dtype_is_fp8(dtype) || fattn__dtype_is_mx(dtype)) {
        const narrow n = narrow_of(dtype);
        ((uint8_t *)data)[at] = to_narrow(&n, x);
    } else
        ((uint16_t *)data)[at] = dtype == FATTN_F16 ? to_f16(x) : to_bf16(x);
}

void fattn__numbers_store(void *data, int32_t dtype, int64_t at, const float *from, int64_t count)
{
    if (dtype == FATTN_F32) {
        memcpy((float *)data + at, from, (size_t)count * sizeof *from);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        fattn__number_store(data, dtype, at + i, from[i]);
}

float fattn__number_round(int32_t dtype, float x)
{
    if (fattn__dtype_is_fp8(dtype) || fattn__dtype_is_mx(dtype)) {
        const narrow n = narrow_of(dtype);
        return from_narrow(&n, to_narrow(&n, x));
    }
    return dtype == FATTN_F32   ? x
           : dtype == FATTN_F16 ? from_f16(to_f16(x))
                                : from_bf16(to_bf16(x));
}

float fattn__number_most(int32_t dtype)
{
    return narrow_of(dtype).most;
}

float fattn__number_factor(uint8_t code)
{
    return code == 0xff ? NAN : ldexpf(1.0f, (int)code - 127);
}
