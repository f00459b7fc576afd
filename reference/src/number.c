#include "number.h"

#include <string.h>

fref__precision fref__precision_of(fref_type type)
{
    switch (type) {
    case FREF_BF16:
        return (fref__precision){ .unit_roundoff = 0x1p-8, .eta = 0x1p-126, .tiny = 0x1p-126 };
    case FREF_F16:
        return (fref__precision){ .unit_roundoff = 0x1p-11, .eta = 0x1p-25, .tiny = 0x1p-14 };
    case FREF_F32:
    default:
        return (fref__precision){ .unit_roundoff = 0x1p-24, .eta = 0x1p-126, .tiny = 0x1p-126 };
    }
}

static double from_f32(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* A half's exponent and significand move to their places in a double; 2^(1023-15) mends the exponent's bias and makes subnormals
 * normal in one exact multiplication. */
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

void fref__read_row(double *out, const fref_tensor *tensor, int64_t b, int64_t h, int64_t s, int64_t n)
{
    const int64_t *stride = tensor->stride;
    int64_t at = b * stride[0] + h * stride[1] + s * stride[2];
    switch (tensor->type) {
    case FREF_F16: {
        const uint16_t *data = (const uint16_t *)tensor->data + at;
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f16(data[c * stride[3]]);
        return;
    }
    case FREF_BF16: {
        const uint16_t *data = (const uint16_t *)tensor->data + at;
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f32((uint32_t)data[c * stride[3]] << 16);
        return;
    }
    case FREF_F32:
    default: {
        const uint32_t *data = (const uint32_t *)tensor->data + at;
        for (int64_t c = 0; c < n; c++)
            out[c] = from_f32(data[c * stride[3]]);
        return;
    }
    }
}

fref_rounding fref_rounding_of(fref_type in, fref_type out)
{
    return (fref_rounding){
        .in = in,
        .out = out,
        .ua = 0x1p-23,
        .chunk = in == FREF_F32 ? 1.0 : 16.0, /* fp32 units add one product at a time, tensor cores sixteen */
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
