#include "dtype.h"

#include <string.h>

/* A binary float type. `largest` is the code of the largest finite value, `inf` the code of Inf (or `largest` when there is none). */
typedef struct format {
    uint8_t bytes, exponent_bits, fraction_bits;
    bool saturates;
    uint32_t largest, inf, nan;
} format;

static const format formats[] = {
    [FATTN_BF16] = { 2, 8, 7, false, 0x7F7F, 0x7F80, 0x7FC0 },
    [FATTN_F16] = { 2, 5, 10, false, 0x7BFF, 0x7C00, 0x7E00 },
    [FATTN_F32] = { 4, 8, 23, false, 0x7F7FFFFF, 0x7F800000, 0x7FC00000 },
    [FATTN_E4M3] = { 1, 4, 3, true, 0x7E, 0x7E, 0x7F },
    [FATTN_E5M2] = { 1, 5, 2, true, 0x7B, 0x7C, 0x7F },
};

static const format *format_of(int32_t dtype)
{
    static const format none = { 0 };
    return dtype >= FATTN_BF16 && dtype <= FATTN_E5M2 ? &formats[dtype] : &none;
}

static int bias_of(const format *f)
{
    return (1 << (f->exponent_bits - 1)) - 1;
}

size_t facts_dtype_bytes(int32_t dtype)
{
    return format_of(dtype)->bytes;
}

double facts_dtype_max(int32_t dtype)
{
    return facts_decode(dtype, format_of(dtype)->largest);
}

uint32_t facts_dtype_inf(int32_t dtype)
{
    return format_of(dtype)->inf;
}

uint32_t facts_dtype_nan(int32_t dtype)
{
    return format_of(dtype)->nan;
}

/* value >> shift, to nearest even; 1 <= shift. */
static uint64_t shift_right_even(uint64_t value, int shift)
{
    if (shift > 54)
        return 0; /* value < 2^53: less than half */
    uint64_t kept = value >> shift, lost = value & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)));
}

uint32_t facts_encode(int32_t dtype, double value)
{
    const format *f = format_of(dtype);
    if (f->bytes == 0)
        return 0;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 63) << (8 * f->bytes - 1);
    int exponent = (int)(bits >> 52 & 0x7FF);
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7FF)
        return fraction ? f->nan : sign | (f->saturates ? f->largest : f->inf);
    if (exponent == 0)
        return sign; /* a subnormal double is below half of every type's smallest value */

    /* `place` is the exponent field that the value would have; below 1 it is subnormal and loses 1 - place more bits. */
    int place = exponent - 1023 + bias_of(f), shift = 52 - f->fraction_bits;
    if (place >= 1 << f->exponent_bits)
        return sign | (f->saturates ? f->largest : f->inf);
    uint64_t significand = fraction | UINT64_C(1) << 52;
    uint64_t code = place >= 1 ? ((uint64_t)(place - 1) << f->fraction_bits) + shift_right_even(significand, shift)
                               : shift_right_even(significand, shift + 1 - place);
    if (code > f->largest)
        return sign | (f->saturates ? f->largest : f->inf);
    return sign | (uint32_t)code;
}

double facts_decode(int32_t dtype, uint32_t bits)
{
    const format *f = format_of(dtype);
    if (f->bytes == 0)
        return 0.0;
    uint32_t magnitude = bits & ((UINT32_C(1) << (8 * f->bytes - 1)) - 1);
    uint64_t sign = (uint64_t)(bits >> (8 * f->bytes - 1) & 1) << 63;
    uint64_t fraction = magnitude & ((UINT32_C(1) << f->fraction_bits) - 1);
    int exponent = (int)(magnitude >> f->fraction_bits);
    uint64_t out = sign;
    if (magnitude > f->largest) {
        bool infinite = !(f->inf == f->largest) && magnitude == f->inf;
        out |= UINT64_C(0x7FF) << 52 | (infinite ? 0 : UINT64_C(1) << 51);
    } else if (exponent > 0) {
        out |= (uint64_t)(exponent - bias_of(f) + 1023) << 52 | fraction << (52 - f->fraction_bits);
    } else if (fraction) {
        int top = 63 - __builtin_clzll(fraction); /* the leading bit becomes the implicit one */
        out |= (uint64_t)(top + 1 - bias_of(f) - f->fraction_bits + 1023) << 52;
        out |= (fraction ^ UINT64_C(1) << top) << (52 - top);
    }
    double value;
    memcpy(&value, &out, sizeof value);
    return value;
}

uint32_t facts_load(int32_t dtype, const void *memory, int64_t i)
{
    const unsigned char *at = memory;
    uint32_t wide;
    uint16_t narrow;
    switch (format_of(dtype)->bytes) {
    case 4:
        memcpy(&wide, at + i * 4, sizeof wide);
        return wide;
    case 2:
        memcpy(&narrow, at + i * 2, sizeof narrow);
        return narrow;
    case 1:
        return at[i];
    default:
        return 0;
    }
}

void facts_store(int32_t dtype, void *memory, int64_t i, uint32_t bits)
{
    unsigned char *at = memory;
    uint16_t narrow = (uint16_t)bits;
    switch (format_of(dtype)->bytes) {
    case 4:
        memcpy(at + i * 4, &bits, sizeof bits);
        break;
    case 2:
        memcpy(at + i * 2, &narrow, sizeof narrow);
        break;
    case 1:
        at[i] = (unsigned char)bits;
        break;
    default:
        break;
    }
}
