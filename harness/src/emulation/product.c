#include "product.h"

#include <string.h>

/* Eight doubles; narrower machines take them in pieces. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t eight_bits __attribute__((vector_size(64), aligned(8), may_alias));
typedef float eight_floats __attribute__((vector_size(32), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE void add_row(const facts_operands *x, facts_adder adder, int64_t m, int64_t n)
{
    float *c = x->c + m * x->c_row + n;
    const double *a = x->a + m * x->a_row, *b = x->b + n;
    eight sum = __builtin_convertvector(*(const eight_floats *)c, eight);
    /* Toward zero: the end of the double is cut off. */
    uint64_t kept = ~((UINT64_C(1) << (53 - adder.bits)) - 1);
    for (int64_t k = 0; k < x->inner;) {
        int64_t last = k + adder.chunk < x->inner ? k + adder.chunk : x->inner;
        eight part = { 0 };
        for (; k < last; k++)
            part += a[k * x->a_inner] * *(const eight *)(b + k * x->b_inner);
        sum += part;
        if (adder.truncates || adder.bits < 24)
            sum = (eight)((eight_bits)sum & kept);
        else
            sum = __builtin_convertvector(__builtin_convertvector(sum, eight_floats), eight);
    }
    *(eight_floats *)c = __builtin_convertvector(sum, eight_floats);
}

INLINE void add_product(const facts_operands *x, facts_adder adder)
{
    for (int64_t n = 0; n < x->columns; n += 8)
        for (int64_t m = 0; m < x->rows; m++)
            add_row(x, adder, m, n);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void add_product_avx512(const facts_operands *x, facts_adder adder)
{
    add_product(x, adder);
}

__attribute__((target("avx2"))) static void add_product_avx2(const facts_operands *x, facts_adder adder)
{
    add_product(x, adder);
}
#endif

void facts_add_product(const facts_operands *x, facts_adder adder)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        add_product_avx512(x, adder);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_product_avx2(x, adder);
        return;
    }
#endif
    add_product(x, adder);
}
