#include "product.h"

/* Eight doubles; narrower machines take them in pieces. */
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t eight_bits __attribute__((vector_size(64), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* A tile of `rows` x `wide` vectors of C stays in registers while k runs. The counts are constants where this is inlined. */
INLINE void add_tile(const fref__operands *x, const fref__of of, const int rows, const int wide, int64_t m, int64_t n)
{
    eight sum[8][2];
    const double *a[8];
    for (int r = 0; r < rows; r++) {
        a[r] = x->a + (m + r) * x->a_row;
        for (int w = 0; w < wide; w++)
            sum[r][w] = *(const eight *)(x->c + (m + r) * x->c_row + n + 8 * w);
    }
    const double *b = x->b + n / FREF__LANES * x->b_panel + n % FREF__LANES;
    for (int64_t k = 0; k < x->inner; k++, b += x->b_inner) {
        eight factor[2];
        for (int w = 0; w < wide; w++) {
            factor[w] = *(const eight *)(b + 8 * w);
            if (of == FREF__OF_MAGNITUDE)
                factor[w] = (eight)((eight_bits)factor[w] & INT64_MAX);
            else if (of == FREF__OF_SQUARE)
                factor[w] = factor[w] * factor[w];
        }
        for (int r = 0; r < rows; r++) {
            double one = a[r][k * x->a_inner];
            eight all = { one, one, one, one, one, one, one, one };
            for (int w = 0; w < wide; w++)
                sum[r][w] += all * factor[w];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++)
            *(eight *)(x->c + (m + r) * x->c_row + n + 8 * w) = sum[r][w];
}

INLINE void add_tiles(const fref__operands *x, const fref__of of, const int rows, const int wide)
{
    for (int64_t n = 0; n < x->columns; n += 8 * wide) {
        int64_t m = 0;
        for (; m + rows <= x->rows; m += rows)
            add_tile(x, of, rows, wide, m, n);
        for (; m < x->rows; m++)
            add_tile(x, of, 1, wide, m, n);
    }
}

INLINE void add_product(const fref__operands *x, fref__of of, const int rows, const int wide)
{
    switch (of) {
    case FREF__OF_VALUE:
        add_tiles(x, FREF__OF_VALUE, rows, wide);
        break;
    case FREF__OF_MAGNITUDE:
        add_tiles(x, FREF__OF_MAGNITUDE, rows, wide);
        break;
    case FREF__OF_SQUARE:
        add_tiles(x, FREF__OF_SQUARE, rows, wide);
        break;
    }
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static void add_product_avx512(const fref__operands *x, fref__of of)
{
    add_product(x, of, 8, 2);
}

__attribute__((target("avx2"))) static void add_product_avx2(const fref__operands *x, fref__of of)
{
    add_product(x, of, 4, 1);
}
#endif

bool fref__add_product_on(const fref__operands *x, fref__of of, fref__processor processor)
{
#if defined(__x86_64__)
    if (processor == FREF__PROCESSOR_AVX512) {
        if (!__builtin_cpu_supports("avx512f"))
            return false;
        add_product_avx512(x, of);
        return true;
    }
    if (processor == FREF__PROCESSOR_AVX2) {
        if (!__builtin_cpu_supports("avx2"))
            return false;
        add_product_avx2(x, of);
        return true;
    }
#endif
    if (processor != FREF__PROCESSOR_ANY)
        return false;
    add_product(x, of, 2, 1);
    return true;
}

void fref__add_product(const fref__operands *x, fref__of of)
{
    if (!fref__add_product_on(x, of, FREF__PROCESSOR_AVX512) && !fref__add_product_on(x, of, FREF__PROCESSOR_AVX2))
        fref__add_product_on(x, of, FREF__PROCESSOR_ANY);
}
