#include "ref_product.h"

#include <math.h>

/* One source for every instruction set: a vector, and what is done to it. A fused multiplication
 * and addition rounds once, which IEEE 754 defines to the bit, so it is the same on all of them;
 * what the compiler may not do is choose where one is. */
#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))
#define NAME(x) x##_avx512
#define VECTOR __m512d
#define WIDTH 8
#define ROWS 8
#define PER_PANEL 2
#define LOAD(p) _mm512_loadu_pd(p)
#define STORE(p, x) _mm512_storeu_pd(p, x)
#define ALL(x) _mm512_set1_pd(x)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#define SQUARE(x) _mm512_mul_pd(x, x)
#define MAGNITUDE(x) _mm512_abs_pd(x)
#include "ref_product_tiles.h"

#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_avx2
#define VECTOR __m256d
#define WIDTH 4
#define ROWS 3
#define PER_PANEL 4
#define LOAD(p) _mm256_loadu_pd(p)
#define STORE(p, x) _mm256_storeu_pd(p, x)
#define ALL(x) _mm256_set1_pd(x)
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#define SQUARE(x) _mm256_mul_pd(x, x)
#define MAGNITUDE(x) _mm256_andnot_pd(_mm256_set1_pd(-0.0), x)
#include "ref_product_tiles.h"
#endif

#define TARGET
#define NAME(x) x##_any
#define VECTOR double
#define WIDTH 1
#define ROWS 1
#define PER_PANEL 16
#define LOAD(p) (*(p))
#define STORE(p, x) (*(p) = (x))
#define ALL(x) (x)
#define FMA(a, b, c) fma(a, b, c)
#define SQUARE(x) ((x) * (x))
#define MAGNITUDE(x) fabs(x)
#include "ref_product_tiles.h"

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
        if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
            return false;
        add_product_avx2(x, of);
        return true;
    }
#endif
    if (processor != FREF__PROCESSOR_ANY)
        return false;
    add_product_any(x, of);
    return true;
}

void fref__add_product(const fref__operands *x, fref__of of)
{
    if (!fref__add_product_on(x, of, FREF__PROCESSOR_AVX512) &&
        !fref__add_product_on(x, of, FREF__PROCESSOR_AVX2))
        fref__add_product_on(x, of, FREF__PROCESSOR_ANY);
}
