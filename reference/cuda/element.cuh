/* Elements of a tensor as doubles, exactly; where an element lies. */
#pragma once
#include "ptx.cuh"

namespace fref
{

__device__ __forceinline__ int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

__device__ __forceinline__ int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

__device__ __forceinline__ double infinity()
{
    return __longlong_as_double(0x7ff0000000000000LL);
}

/* Bits of a small float with `fraction` bits of fraction: the exponent's bias is half its range.
 * Brought to a float's place they differ from it by a power of two alone, subnormals too. */
__device__ __forceinline__ double from_bits(uint32_t bits, int exponent_bits, int fraction_bits,
                                            bool has_infinity)
{
    const uint32_t magnitude = bits & ((1u << (exponent_bits + fraction_bits)) - 1),
                   all_ones = (1u << exponent_bits) - 1;
    const uint32_t special = has_infinity ? all_ones << fraction_bits
                                          : all_ones << fraction_bits | ((1u << fraction_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    float value = __uint_as_float(magnitude << (23 - fraction_bits)) *
                  __uint_as_float((uint32_t)(254 - bias) << 23);
    if (magnitude >= special)
        value = __uint_as_float(has_infinity && magnitude == special ? 0x7f800000 : 0x7fc00000);
    return (double)(bits >> (exponent_bits + fraction_bits) & 1 ? -value : value);
}

/* An element's bits, and the number that they are. */
__device__ __forceinline__ uint32_t bits_at(const void *data, fref_type type, int64_t at)
{
    switch (type) {
    case FREF_F16:
    case FREF_BF16:
        return ((const uint16_t *)data)[at];
    case FREF_E4M3:
    case FREF_E5M2:
        return ((const uint8_t *)data)[at];
    default:
        return ((const uint32_t *)data)[at];
    }
}

__device__ __forceinline__ double value_of(uint32_t bits, fref_type type)
{
    switch (type) {
    case FREF_F16:
        return from_bits(bits, 5, 10, true);
    case FREF_BF16:
        return (double)__uint_as_float(bits << 16);
    case FREF_E4M3:
        return from_bits(bits, 4, 3, false);
    case FREF_E5M2:
        return from_bits(bits, 5, 2, true);
    default:
        return (double)__uint_as_float(bits);
    }
}

__device__ __forceinline__ double load(const void *data, fref_type type, int64_t at)
{
    return value_of(bits_at(data, type, at), type);
}

/* Written as one. */
struct alignas(16) pair {
    double x[2];
};

/* A head, counted over batch and head: there are fewer than 2^31 (gpu_run.c). */
struct batch_head {
    int32_t b, h;
};

__device__ __forceinline__ batch_head batch_head_of(int64_t head, int64_t heads)
{
    const uint32_t b = (uint32_t)head / (uint32_t)heads;
    return { (int32_t)b, (int32_t)((uint32_t)head - b * (uint32_t)heads) };
}

/* Where (b,h,s,0) lies; fref.h says how. */
__device__ __forceinline__ int64_t place(const fref_tensor &t, int64_t b, int64_t h, int64_t s)
{
    int64_t batch = t.first != nullptr ? t.first[b] : b * t.stride[0];
    if (t.pages != nullptr) {
        batch = (int64_t)t.pages[b * t.pages_of_batch + s / t.page_size] * t.stride[0];
        s %= t.page_size;
    }
    return batch + h * t.stride[1] + s * t.stride[2];
}

/* Of the row that lies at `row`. */
__device__ __forceinline__ double element_at(const fref_tensor &t, int64_t row, int64_t c)
{
    const double value = load(t.data, t.type, row + c * t.stride[3]);
    return t.descale != 0.0 ? value * t.descale : value;
}

__device__ __forceinline__ double element(const fref_tensor &t, int64_t b, int64_t h, int64_t s,
                                          int64_t c)
{
    return element_at(t, place(t, b, h, s), c);
}

/* The keys that row i may read. */
__device__ __forceinline__ fref__span keys_of_row(const fref_problem &p, int64_t b, int64_t i)
{
    const int64_t far = (int64_t)1 << 40;
    const int64_t len_q = p.len_q != nullptr ? p.len_q[b] : p.rows,
                  len_kv = p.len_kv != nullptr ? p.len_kv[b] : p.keys;
    const int64_t diagonal = i + (p.bottom_right ? len_kv - len_q : 0);
    int64_t first = 0, last = larger(0, smaller(len_kv, p.keys));
    if (p.has_left)
        first = larger(first, diagonal - smaller(p.left, far) + 1);
    if (p.has_right)
        last = smaller(last, diagonal + smaller(p.right, far) + 1);
    if (i >= len_q || first >= last)
        return { 0, 0 };
    return { (int32_t)first, (int32_t)last };
}

/* The keys that any row reads: both ends rise with the row. */
__device__ __forceinline__ fref__span keys_of_all(const fref_problem &p, int64_t b)
{
    const int64_t far = (int64_t)1 << 40,
                  rows = smaller(p.rows, p.len_q != nullptr ? p.len_q[b] : p.rows);
    const int64_t len_kv = p.len_kv != nullptr ? p.len_kv[b] : p.keys,
                  shift = p.bottom_right ? len_kv - (p.len_q != nullptr ? p.len_q[b] : p.rows) : 0;
    const int64_t top = p.has_right ? larger(0, -shift - smaller(p.right, far))
                                    : 0; /* the rows above it read none, */
    const int64_t end =
        p.has_left ? smaller(rows, smaller(len_kv, p.keys) - shift + smaller(p.left, far) - 1)
                   : rows; /* nor do those from here on */
    if (top >= end)
        return { 0, 0 };
    const fref__span first = keys_of_row(p, b, top), last = keys_of_row(p, b, end - 1);
    return { first.first, last.last };
}

/* `count` keys from n on; empty past the end. */
__device__ __forceinline__ fref__span keys_of_tile(const fref__call &c, int64_t n, int64_t count)
{
    return { (int32_t)n, (int32_t)smaller(n + count, c.keys) };
}

__device__ __forceinline__ bool meet(fref__span a, fref__span b)
{
    return a.first < b.last && b.first < a.last;
}

__device__ __forceinline__ fref__span both(fref__span a, fref__span b)
{
    if (a.first >= a.last)
        return b;
    if (b.first >= b.last)
        return a;
    return { a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last };
}

/* Shorter than fmax; y is no NaN. */
__device__ __forceinline__ double larger_of(double x, double y)
{
    return y > x ? y : x;
}

/* Over each `lanes` of a warp. */
template <int lanes> __device__ __forceinline__ double sum_of_lanes(double x)
{
    static_assert(lanes <= 32 && 32 % lanes == 0, "");
    for (int mask = lanes / 2; mask > 0; mask /= 2)
        x += __shfl_xor_sync(0xffffffff, x, mask);
    return x;
}

__device__ __forceinline__ double sum_of_warp(double x)
{
    return sum_of_lanes<32>(x);
}

__device__ __forceinline__ double largest_of_warp(double x)
{
    for (int mask = 16; mask > 0; mask /= 2)
        x = fmax(x, __shfl_xor_sync(0xffffffff, x, mask));
    return x;
}

} // namespace fref
