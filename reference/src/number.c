#include "number.h"

#include <math.h>
#include <string.h>

fref__precision fref__precision_of(fref_type type)
{
    switch (type) {
    case FREF_BF16:
        return (fref__precision){
            .unit_roundoff = 0x1p-8, .eta = 0x1p-126, .tiny = 0x1p-126, .max = INFINITY
        };
    case FREF_F16:
        return (fref__precision){
            .unit_roundoff = 0x1p-11, .eta = 0x1p-25, .tiny = 0x1p-14, .max = INFINITY
        };
    case FREF_E4M3:
        return (fref__precision){
            .unit_roundoff = 0x1p-4, .eta = 0x1p-10, .tiny = 0x1p-6, .max = 448.0
        };
    case FREF_E5M2:
        return (fref__precision){
            .unit_roundoff = 0x1p-3, .eta = 0x1p-17, .tiny = 0x1p-14, .max = 57344.0
        };
    case FREF_F32:
    default:
        return (fref__precision){
            .unit_roundoff = 0x1p-24, .eta = 0x1p-126, .tiny = 0x1p-126, .max = INFINITY
        };
    }
}

fref__precision fref__precision_scaled(fref_type type, double scale)
{
    fref__precision p = fref__precision_of(type);
    p.eta = fmax(p.eta / fref__or_1(scale), 0x1p-126);
    p.tiny /= fref__or_1(scale);
    p.max /= fref__or_1(scale);
    return p;
}

int64_t fref__bytes_of(fref_type type)
{
    return type == FREF_F32 ? 4 : type == FREF_E4M3 || type == FREF_E5M2 ? 1 : 2;
}

static double from_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* A half's exponent and significand move to their places in a double; 2^(1023-15) mends the
 * exponent's bias and makes subnormals normal in one exact multiplication. */
static double from_f16(uint16_t half)
{
    uint64_t exponent_and_significand = (uint64_t)(half & 0x7fffU) << 42;
    if ((half & 0x7c00U) == 0x7c00U)
        exponent_and_significand |= (uint64_t)0x7ff << 52;
    uint64_t bits = exponent_and_significand | (uint64_t)(half & 0x8000U) << 48;
    double value;
    memcpy(&value, &bits, sizeof value);
    return (half & 0x7c00U) == 0x7c00U ? value : value * 0x1p1008;
}

/* An e5m2 is the upper half of an f16; an e4m3 too, except for its exponent's bias, and it has one
 * NaN and no infinity. */
static double from_e4m3(uint8_t bits)
{
    if ((bits & 0x7fU) == 0x7fU)
        return NAN;
    return from_f16((uint16_t)((bits & 0x80U) << 8 | (bits & 0x7fU) << 7)) * 0x1p8;
}

static int64_t place_of(const fref_tensor *t, int64_t b, int64_t h, int64_t s)
{
    int64_t start = t->first ? t->first[b] : b * t->stride[0], row = s;
    if (t->pages) {
        start = t->pages[b * t->pages_of_batch + s / t->page_size] * t->stride[0];
        row = s % t->page_size;
    }
    return start + h * t->stride[1] + row * t->stride[2];
}

static void decode(double *out, const fref_tensor *tensor, int64_t at, int64_t n)
{
    const int64_t stride = tensor->stride[3];
    const uint8_t *bytes = (const uint8_t *)tensor->data + at * fref__bytes_of(tensor->type);
    const uint16_t *halves = (const void *)bytes;
    const uint32_t *words = (const void *)bytes;
    switch (tensor->type) {
    case FREF_F16:
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f16(halves[c * stride]);
        return;
    case FREF_BF16:
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f32((uint32_t)halves[c * stride] << 16);
        return;
    case FREF_E4M3:
        for (int64_t c = 0; c < n; c++)
            out[c] = from_e4m3(bytes[c * stride]);
        return;
    case FREF_E5M2:
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f16((uint16_t)(bytes[c * stride] << 8));
        return;
    case FREF_F32:
    default:
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f32(words[c * stride]);
        return;
    }
}

void fref__read_row(double *out, const fref_tensor *tensor, int64_t b, int64_t h, int64_t s,
                    int64_t n)
{
    decode(out, tensor, place_of(tensor, b, h, s), n);
    double descale = fref__or_1(tensor->descale);
    for (int64_t c = 0; descale != 1.0 && c < n; c++)
        out[c] *= descale;
}

/* Hopper's fp8 tensor cores add 32 products into an accumulator of few bits. */
static fref_rounding rounding_of_fp8(fref_type in, fref_type out)
{
    return (fref_rounding){
        .in = in,
        .out = out,
        .ds = in,
        .ua = 0x1p-13,
        .chunk = 32.0,
        .cw = 4.0,
        .cl = 6.0,
        .acc_pv = 0x1p-13,
        .acc_run = 128.0,
        .thr = 4.0,
        .bias = out,
        .own_o = true,
        .bias_parts_cast = true,
    };
}

fref_rounding fref_rounding_of(fref_type in, fref_type out)
{
    if (fref__bytes_of(in) == 1)
        return rounding_of_fp8(in, out);
    return (fref_rounding){
        .in = in,
        .out = out,
        .ds = in,
        .ua = 0x1p-23,
        .chunk = in == FREF_F32
                     ? 1.0
                     : 16.0, /* fp32 units add one product at a time, tensor cores sixteen */
        .cw = 1.0,
        .cl = 1.0,
        .acc_pv = 0.0,
        .eps_exp = 0.0,
        .thr = 0.0,
        .eps_mod = 0.0,
        .bias = out,
        .own_o = true,
        .partials_cast = true,
        .bias_parts_cast = true,
    };
}
