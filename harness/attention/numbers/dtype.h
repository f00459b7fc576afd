/* Encodes and decodes the element types with integer operations only, so that every machine gets
 * the same bits. Encoding rounds to nearest even and keeps subnormals. It saturates in the 8-bit
 * types (448, 57344); in other types an overflow becomes Inf. Decoding is exact. FATTN_BOOL is 1
 * for everything except 0. `bits` has the code in its low bits. An invalid dtype has 0 bytes and
 * value 0. Compiled by C and by CUDA C++. */
#ifndef FACTS_DTYPE_H
#define FACTS_DTYPE_H

#include <fattn/fattn.h>
#include <string.h>

#include "problem/host_device.h"

/* A binary float type. `largest` is the code of the largest finite value, `inf` the code of Inf (or
 * `largest` when there is none).
 */
typedef struct facts_format {
    int32_t bytes, exponent_bits, fraction_bits, saturates;
    uint32_t largest, inf, nan;
} facts_format;

FACTS_BOTH facts_format facts_format_of(int32_t dtype)
{
    const facts_format bf16 = { 2, 8, 7, 0, 0x7F7F, 0x7F80, 0x7FC0 },
                       f16 = { 2, 5, 10, 0, 0x7BFF, 0x7C00, 0x7E00 };
    const facts_format f32 = { 4, 8, 23, 0, 0x7F7FFFFF, 0x7F800000, 0x7FC00000 };
    const facts_format e4m3 = { 1, 4, 3, 1, 0x7E, 0x7E, 0x7F },
                       e5m2 = { 1, 5, 2, 1, 0x7B, 0x7C, 0x7F }, none = { 0, 0, 0, 0, 0, 0, 0 };
    const facts_format reference = { 1, 0, 0, 1, 1, 1, 1 };
    return dtype == FATTN_BF16  ? bf16
           : dtype == FATTN_F16 ? f16
           : dtype == FATTN_F32 ? f32
           : dtype == FATTN_E4M3 || dtype == FATTN_MXE4M3
               ? e4m3 /* the codes of block-scaled types, without their factors */
           : dtype == FATTN_E5M2 || dtype == FATTN_MXE5M2 ? e5m2
           : dtype == FATTN_BOOL                          ? reference
                                                          : none;
}

FACTS_BOTH int facts_format_bias(facts_format f)
{
    return (1 << (f.exponent_bits - 1)) - 1;
}

/* Unit roundoff: half of the step beside 1. */
FACTS_BOTH double facts_dtype_roundoff(int32_t dtype)
{
    return 0.5 / (double)(INT64_C(1) << facts_format_of(dtype).fraction_bits);
}

/* Is it a floating-point type of one byte? */
FACTS_BOTH int facts_dtype_is_8_bit(int32_t dtype)
{
    return dtype == FATTN_E4M3 || dtype == FATTN_E5M2 || dtype == FATTN_MXE4M3 ||
           dtype == FATTN_MXE5M2;
}

/* Bytes of one element. */
FACTS_BOTH size_t facts_dtype_bytes(int32_t dtype)
{
    return (size_t)facts_format_of(dtype).bytes;
}

/* The codes of Inf (or of the largest value, if the type has no Inf) and of the canonical NaN. */
FACTS_BOTH uint32_t facts_dtype_inf(int32_t dtype)
{
    return facts_format_of(dtype).inf;
}

FACTS_BOTH uint32_t facts_dtype_nan(int32_t dtype)
{
    return facts_format_of(dtype).nan;
}

/* value >> shift, to nearest even; 1 <= shift. */
FACTS_BOTH uint64_t facts_shift_right_even(uint64_t value, int shift)
{
    if (shift > 54)
        return 0; /* value < 2^53: less than half */
    uint64_t kept = value >> shift, lost = value & ((UINT64_C(1) << shift) - 1),
             half = UINT64_C(1) << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)) ? 1 : 0);
}

/* The same for a value < 2^22: a significand without the lowest 31 of its 53 bits. Its last bit is
 * set if one of those was. */
FACTS_BOTH uint32_t facts_shift_right_even_short(uint32_t value, int shift)
{
    if (shift > 22)
        return 0;
    uint32_t kept = value >> shift, lost = value & ((UINT32_C(1) << shift) - 1),
             half = UINT32_C(1) << (shift - 1);
    return kept + (lost > half || (lost == half && (kept & 1)) ? 1 : 0);
}

FACTS_BOTH uint32_t facts_encode(int32_t dtype, double value)
{
    const facts_format f = facts_format_of(dtype);
    if (f.bytes == 0)
        return 0;
    if (dtype == FATTN_BOOL)
        return value != 0;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t high = (uint32_t)(bits >> 32), sign = high >> 31 << (8 * f.bytes - 1),
             over = sign | (f.saturates ? f.largest : f.inf);
    int exponent = (int)(high >> 20 & 0x7FF);
    if (exponent == 0x7FF)
        return bits << 12 ? f.nan : over;
    if (exponent == 0)
        return sign; /* a subnormal double is below half of every type's smallest value */

    /* `place` is the exponent field of the result; below 1 it is subnormal and loses 1 - place more
     * bits. */
    int place = exponent - 1023 + facts_format_bias(f), shift = 52 - f.fraction_bits,
        more = place >= 1 ? 0 : 1 - place;
    if (place >= 1 << f.exponent_bits)
        return over;
    uint32_t code = place >= 1 ? (uint32_t)(place - 1) << f.fraction_bits : 0;
    if (f.fraction_bits > 20) /* more bits than the high half has */
        code += (uint32_t)facts_shift_right_even(
            (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52, shift + more);
    else
        code += facts_shift_right_even_short(
            (high & 0xFFFFF) << 1 | 1 << 21 | ((uint32_t)bits != 0), shift - 31 + more);
    return code > f.largest ? over : sign | code;
}

/* facts_encode of a float that is not NaN, as bf16: the rounded upper half of the float. */
FACTS_BOTH uint32_t facts_encode_bf16_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

FACTS_BOTH double facts_decode(int32_t dtype, uint32_t bits)
{
    const facts_format f = facts_format_of(dtype);
    if (f.bytes == 0)
        return 0.0;
    if (dtype == FATTN_BOOL)
        return bits != 0 ? 1.0 : 0.0;
    uint32_t magnitude = bits & ((UINT32_C(1) << (8 * f.bytes - 1)) - 1),
             fraction = magnitude & ((UINT32_C(1) << f.fraction_bits) - 1);
    uint32_t high = bits >> (8 * f.bytes - 1) << 31,
             low = 0; /* halves of the double; for most types the high half is enough */
    int exponent = (int)(magnitude >> f.fraction_bits), bias = facts_format_bias(f);
    if (magnitude > f.largest) {
        bool infinite = f.inf != f.largest && magnitude == f.inf;
        high |= UINT32_C(0x7FF) << 20 | (infinite ? 0 : UINT32_C(1) << 19);
    } else if (exponent > 0 || fraction) {
        if (exponent == 0)
            for (exponent = 1; !(fraction >> f.fraction_bits);
                 exponent--) /* the leading bit becomes the implicit one */
                fraction <<= 1;
        fraction &= (UINT32_C(1) << f.fraction_bits) - 1;
        high |= (uint32_t)(exponent - bias + 1023) << 20 |
                (f.fraction_bits > 20 ? fraction >> (f.fraction_bits - 20)
                                      : fraction << (20 - f.fraction_bits));
        low = f.fraction_bits > 20 ? fraction << (52 - f.fraction_bits) : 0;
    }
    uint64_t out = (uint64_t)high << 32 | low;
    double value;
    memcpy(&value, &out, sizeof value);
    return value;
}

/* The largest finite value. */
FACTS_BOTH double facts_dtype_max(int32_t dtype)
{
    return facts_decode(dtype, facts_format_of(dtype).largest);
}

/* Reads element i of `memory`, which need not be aligned. Aligned memory is read in one access,
 * also on a GPU. */
FACTS_BOTH uint32_t facts_load(int32_t dtype, const void *memory, int64_t i)
{
    const unsigned char *at = (const unsigned char *)memory;
    uint32_t wide;
    uint16_t narrow;
    switch (facts_dtype_bytes(dtype)) {
    case 4:
        if ((uintptr_t)at % 4 == 0)
            memcpy(&wide, __builtin_assume_aligned(at + i * 4, 4), sizeof wide);
        else
            memcpy(&wide, at + i * 4, sizeof wide);
        return wide;
    case 2:
        if ((uintptr_t)at % 2 == 0)
            memcpy(&narrow, __builtin_assume_aligned(at + i * 2, 2), sizeof narrow);
        else
            memcpy(&narrow, at + i * 2, sizeof narrow);
        return narrow;
    case 1:
        return at[i];
    default:
        return 0;
    }
}

FACTS_BOTH void facts_store(int32_t dtype, void *memory, int64_t i, uint32_t bits)
{
    unsigned char *at = (unsigned char *)memory;
    uint16_t narrow = (uint16_t)bits;
    switch (facts_dtype_bytes(dtype)) {
    case 4:
        if ((uintptr_t)at % 4 == 0)
            memcpy(__builtin_assume_aligned(at + i * 4, 4), &bits, sizeof bits);
        else
            memcpy(at + i * 4, &bits, sizeof bits);
        break;
    case 2:
        if ((uintptr_t)at % 2 == 0)
            memcpy(__builtin_assume_aligned(at + i * 2, 2), &narrow, sizeof narrow);
        else
            memcpy(at + i * 2, &narrow, sizeof narrow);
        break;
    case 1:
        at[i] = (unsigned char)bits;
        break;
    default:
        break;
    }
}

#endif
