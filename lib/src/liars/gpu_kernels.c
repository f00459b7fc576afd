/* The inner loops of a kernel that works as a GPU's (gpu_like.h). Not fast: every product is a
 * double, and the sum of a chunk has one order, whatever the instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/cpu_kernels.h"
#include "lies.h"

fattn__gpu_like fattn__like_gpu;

static fattn__adder adder; /* of the call */

/* Four doubles: what AVX2 has. Of wider vectors gcc 12 compares each element by itself on a machine
 * without AVX-512, five times as slow. */
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t four_bits __attribute__((vector_size(32), aligned(8), may_alias));
typedef float four_floats __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline))

#define EXPONENT (UINT64_C(0x7FF) << 52)
#define SIGN (UINT64_C(1) << 63)

/* The operands as doubles: a[m][k], b[k][n]. */
typedef struct operands {
    const double *a, *b;
    int64_t inner, columns;
    const fattn__adder *adder;
} operands;

/* x, below `top` in size, toward zero to what `kept` leaves of the bits under top's first. */
INLINE void cut(four *x, const four *top, uint64_t kept)
{
    four_bits sign = (four_bits)*x & SIGN;
    four size = (four)((four_bits)*x & ~SIGN) + *top;
    size = (four)((four_bits)size & kept) - *top;
    *x = (four)((four_bits)size | sign);
}

/* The powers of two of all that is added: a product's is that of its factors. */
INLINE void find_top(four *top, const operands *x, const double *a, const double *b, int64_t first,
                     int64_t last)
{
    *top = (four)((four_bits)*top & EXPONENT);
    for (int64_t k = first; k < last; k++) {
        four power = { 0 };
        power += a[k];
        power = (four)((four_bits)power & EXPONENT) *
                (four)(*(const four_bits *)(b + k * x->columns) & EXPONENT);
        four_bits larger = (four_bits)(power > *top);
        *top = (four)(((four_bits)power & larger) | ((four_bits)*top & ~larger));
    }
}

/* The sum so far and the products of a chunk, each cut to the same unit. A product is below 4 times
 * its power. */
INLINE void add_aligned(four *sum, const operands *x, const double *a, const double *b,
                        int64_t first, int64_t last)
{
    const uint64_t kept = ~((UINT64_C(1) << (50 - x->adder->aligned)) - 1);
    four top = *sum;
    find_top(&top, x, a, b, first, last);
    top *= 4.0;
    cut(sum, &top, kept);
    for (int64_t k = first; k < last; k++) {
        four product = a[k] * *(const four *)(b + k * x->columns);
        cut(&product, &top, kept);
        *sum += product;
    }
}

INLINE void add_exactly(four *sum, const operands *x, const double *a, const double *b,
                        int64_t first, int64_t last)
{
    four part = { 0 };
    for (int64_t k = first; k < last; k++)
        part += a[k] * *(const four *)(b + k * x->columns);
    *sum += part;
}

INLINE void add_row(const operands *x, float *c, const double *a, const double *b)
{
    const fattn__adder how = *x->adder;
    four_floats total = *(const four_floats *)c;
    four sum = how.run ? (four){ 0 } : __builtin_convertvector(total, four);
    /* Toward zero: the end of the double is cut off. */
    const uint64_t kept = ~((UINT64_C(1) << (53 - how.bits)) - 1);
    for (int64_t k = 0; k < x->inner;) {
        const int64_t last = k + how.chunk < x->inner ? k + how.chunk : x->inner;
        if (how.aligned)
            add_aligned(&sum, x, a, b, k, last);
        else
            add_exactly(&sum, x, a, b, k, last);
        k = last;
        if (how.truncates || how.bits < 24)
            sum = (four)((four_bits)sum & kept);
        else
            sum = __builtin_convertvector(__builtin_convertvector(sum, four_floats), four);
        if (how.run && (k % how.run == 0 || k == x->inner)) {
            total += __builtin_convertvector(sum, four_floats);
            sum = (four){ 0 };
        }
    }
    *(four_floats *)c = how.run ? total : __builtin_convertvector(sum, four_floats);
}

INLINE void add_rows(const fattn__product *p, const operands *x)
{
    for (int64_t n = 0; n < p->n; n += 4)
        for (int64_t m = 0; m < p->m; m++)
            add_row(x, p->c + m * p->c_row + n, x->a + m * x->inner, x->b + n);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_rows_avx2(const fattn__product *p,
                                                          const operands *x)
{
    add_rows(p, x);
}
#endif

static void multiply(const fattn__product *p)
{
    double *a = malloc((size_t)((p->m + p->n) * p->k + 1) * sizeof *a), *b = a + p->m * p->k;
    const operands x = { a, b, p->k, p->n, &adder };
    if (a == NULL)
        abort();
    for (int64_t m = 0; m < p->m; m++)
        for (int64_t k = 0; k < p->k; k++)
            a[m * p->k + k] = (double)p->a[m * p->a_row + k * p->a_column];
    for (int64_t k = 0; k < p->k; k++)
        for (int64_t n = 0; n < p->n; n++)
            b[k * p->n + n] = (double)p->b[k * p->b_row + n];
    for (int64_t m = 0; m < p->m && !p->accumulate; m++)
        memset(p->c + m * p->c_row, 0, (size_t)p->n * sizeof *p->c);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        add_rows_avx2(p, &x);
    else
#endif
        add_rows(p, &x);
    for (int64_t m = 0; m < p->m && p->factor != 1.0F; m++)
        for (int64_t n = 0; n < p->n; n++)
            p->c[m * p->c_row + n] *= p->factor;
    free(a);
}

/* ---- exponentials, in base 2
 * ---------------------------------------------------------------------------------------------
 */

#define LOG2E 0x1.715476p+0F /* rounded to fp32 */

static float exponential_of(float x, float shift)
{
    const float log2e = FATTN__LIE(LOG2E_SHORT) ? 1.4427F : LOG2E;
    const float power = x * log2e - shift * log2e;
    return FATTN__LIE(EXP_CUT) && power < -10.0F * LOG2E ? 0.0F : exp2f(power);
}

static void exponential(float *x, int64_t count, float shift)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = exponential_of(x[i], shift);
}

/* What the sums of the row so far are multiplied with; its maximum rises to `top`, or stays below
 * it. */
static float raise(float *max, float top)
{
    const float before = *max;
    if (isnan(top) ||
        (before == -INFINITY ? top > before : (top - before) * LOG2E > fattn__like_gpu.lazy))
        *max = top;
    return before == *max ? 1.0F : before == -INFINITY ? 0.0F : exponential_of(before, *max);
}

static void soften_row(const fattn__soft *p, int64_t i)
{
    const int64_t lanes = fattn__like_gpu.one_lane ? 1 : 8;
    float top = p->max[i], lane[8] = { 0 };
    float *edge = p->s + (p->keys - 1) * p->step + i;
    for (int64_t j = 0; j < p->keys; j++) {
        const float s = p->s[j * p->step + i];
        top = s > top || isnan(s) ? s : top;
    }
    p->peak[i] = fmaxf(p->peak[i], top);
    if (FATTN__LIE(TILE_EDGE_MAX) && p->keys == fattn__like_gpu.tile && *edge == top)
        *edge = -INFINITY;
    p->rescale[i] = raise(&p->max[i], top);
    if (lanes == 1) { /* it goes on where the last tile ended */
        lane[0] = p->sum[i] * p->rescale[i];
        p->sum[i] = 0.0F;
    }
    for (int64_t j = 0; j < p->keys; j++) {
        float *s = &p->s[j * p->step + i];
        *s = p->max[i] == -INFINITY ? 0.0F : exponential_of(*s, p->max[i]);
        lane[j % lanes] += *s;
    }
    p->sum[i] = p->sum[i] * p->rescale[i] + (((lane[0] + lane[1]) + (lane[2] + lane[3])) +
                                             ((lane[4] + lane[5]) + (lane[6] + lane[7])));
}

static void soften(const fattn__soft *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        soften_row(p, i);
}

const fattn__kernels *fattn__gpu_kernels(int32_t dtype)
{
    static fattn__kernels kernels;
    adder = fattn__like_gpu.adder;
    if (adder.chunk == 0)
        adder = (fattn__adder){ .chunk = dtype == FATTN_F32 ? 1 : 16, .bits = 24 };
    if (FATTN__LIE(ACC_RUN) || FATTN__LIE(B_ACC_RUN))
        adder.run = 0;
    if (kernels.multiply == NULL) {
        kernels = fattn__kernels_base;
        kernels.soften = soften;
        kernels.exponential = exponential;
        kernels.multiply = multiply;
    }
    return &kernels;
}
