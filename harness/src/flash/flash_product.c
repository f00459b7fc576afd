#include "flash_product.h"

#include <string.h>

/* Four doubles: what AVX2 has. Of wider vectors gcc 12 compares each element by itself on a machine
 * without AVX-512, five times as slow. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t four_bits __attribute__((vector_size(32), aligned(8), may_alias));
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

#define EXPONENT (UINT64_C(0x7FF) << 52)
#define SIGN (UINT64_C(1) << 63)

/* x, below `top` in size, toward zero to what `kept` leaves of the bits under top's first. */
INLINE void cut(four *x, const four *top, uint64_t kept)
{
    four_bits sign = (four_bits)*x & SIGN;
    four size = (four)((four_bits)*x & ~SIGN) + *top;
    size = (four)((four_bits)size & kept) - *top;
    *x = (four)((four_bits)size | sign);
}

/* The powers of two of all that is added: a product's is that of its factors. */
INLINE void find_top(four *top, const facts_operands *x, const double *a, const double *b,
                     int64_t first, int64_t last)
{
    *top = (four)((four_bits)*top & EXPONENT);
    for (int64_t k = first; k < last; k++) {
        four power = { 0 };
        power += a[k * x->a_inner];
        power = (four)((four_bits)power & EXPONENT) *
                (four)(*(const four_bits *)(b + k * x->b_inner) & EXPONENT);
        four_bits larger = (four_bits)(power > *top);
        *top = (four)(((four_bits)power & larger) | ((four_bits)*top & ~larger));
    }
}

/* The sum so far and the products of a chunk, each cut to the same unit. A product is below 4 times
 * its power. */
INLINE void add_aligned(four *sum, const facts_operands *x, int aligned, const double *a,
                        const double *b, int64_t first, int64_t last)
{
    const uint64_t kept = ~((UINT64_C(1) << (50 - aligned)) - 1);
    four top = *sum;
    find_top(&top, x, a, b, first, last);
    top *= 4.0;
    cut(sum, &top, kept);
    for (int64_t k = first; k < last; k++) {
        four product = a[k * x->a_inner] * *(const four *)(b + k * x->b_inner);
        cut(&product, &top, kept);
        *sum += product;
    }
}

INLINE void add_exactly(four *sum, const facts_operands *x, const double *a, const double *b,
                        int64_t first, int64_t last)
{
    four part = { 0 };
    for (int64_t k = first; k < last; k++)
        part += a[k * x->a_inner] * *(const four *)(b + k * x->b_inner);
    *sum += part;
}

INLINE void add_row(const facts_operands *x, facts_adder adder, int64_t m, int64_t n)
{
    float *c = x->c + m * x->c_row + n;
    const double *a = x->a + m * x->a_row, *b = x->b + n;
    four_floats total = *(const four_floats *)c;
    four sum = adder.run ? (four){ 0 } : __builtin_convertvector(total, four);
    /* Toward zero: the end of the double is cut off. */
    uint64_t kept = ~((UINT64_C(1) << (53 - adder.bits)) - 1);
    for (int64_t k = 0; k < x->inner;) {
        int64_t last = k + adder.chunk < x->inner ? k + adder.chunk : x->inner;
        if (adder.aligned)
            add_aligned(&sum, x, adder.aligned, a, b, k, last);
        else
            add_exactly(&sum, x, a, b, k, last);
        k = last;
        if (adder.truncates || adder.bits < 24)
            sum = (four)((four_bits)sum & kept);
        else
            sum = __builtin_convertvector(__builtin_convertvector(sum, four_floats), four);
        if (adder.run && (k % adder.run == 0 || k == x->inner)) {
            total += __builtin_convertvector(sum, four_floats);
            sum = (four){ 0 };
        }
    }
    *(four_floats *)c = adder.run ? total : __builtin_convertvector(sum, four_floats);
}

INLINE void add_product(const facts_operands *x, facts_adder adder)
{
    for (int64_t n = 0; n < x->columns; n += 4)
        for (int64_t m = 0; m < x->rows; m++)
            add_row(x, adder, m, n);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_product_avx2(const facts_operands *x,
                                                             facts_adder adder)
{
    add_product(x, adder);
}
#endif

void facts_add_product(const facts_operands *x, facts_adder adder)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_product_avx2(x, adder);
        return;
    }
#endif
    add_product(x, adder);
}
