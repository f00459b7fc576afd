/* The functions of cpu_kernels.h, included once for each vector unit: WIDTH floats a register, TALL
 * x WIDE registers of sums. No include guard. */
#include <math.h>
#include <string.h>

#include "cpu_kernels.h"

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

typedef float vec __attribute__((vector_size(WIDTH * 4)));
typedef int32_t ivec __attribute__((vector_size(WIDTH * 4)));
typedef uint32_t uvec __attribute__((vector_size(WIDTH * 4)));
typedef float loose
    __attribute__((vector_size(WIDTH * 4), aligned(4), may_alias)); /* at any address */

#define INLINE static inline __attribute__((always_inline))

INLINE vec load(const float *x)
{
    return *(const loose *)x;
}

INLINE void store(float *x, vec v)
{
    *(loose *)x = v;
}

INLINE vec all(float x)
{
    return x - (vec){ 0 };
}

/* Set where x is a NaN. */
INLINE ivec is_nan(vec x)
{
    const vec itself = x;
    return x != itself;
}

/* a where the mask is set, b elsewhere. */
INLINE vec choose(ivec mask, vec a, vec b)
{
    return (vec)((mask & (ivec)a) | (~mask & (ivec)b));
}

/* ---- product
 * ------------------------------------------------------------------------------------------------------------------
 */

/* `tall` rows and `wide` registers of c at row i, column j, for columns [from, to) of a. */
INLINE void block(const fattn__product *p, int64_t i, int64_t j, int64_t from, int64_t to, bool add,
                  const int tall, const int wide)
{
    vec sum[8][4];
    const float *a = p->a + i * p->a_row + from * p->a_column, *b = p->b + from * p->b_row + j;
    float *c = p->c + i * p->c_row + j;
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            sum[r][v] = (vec){ 0 };
    for (int64_t k = from; k < to; k++, a += p->a_column, b += p->b_row) {
        vec line[4];
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++)
            line[v] = load(b + v * WIDTH);
#pragma GCC unroll 8
        for (int r = 0; r < tall; r++) {
            const vec x = all(a[r * p->a_row]);
#pragma GCC unroll 4
            for (int v = 0; v < wide; v++)
                sum[r][v] += x * line[v];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < tall; r++)
#pragma GCC unroll 4
        for (int v = 0; v < wide; v++) {
            float *to_c = c + r * p->c_row + v * WIDTH;
            store(to_c, add ? load(to_c) + sum[r][v] * p->factor : sum[r][v] * p->factor);
        }
}

/* All rows of one panel of `wide` registers. */
INLINE void panel(const fattn__product *p, int64_t j, int64_t from, int64_t to, bool add,
                  const int wide)
{
    int64_t i = 0;
    for (; i + TALL <= p->m; i += TALL)
        block(p, i, j, from, to, add, TALL, wide);
    if (i + 4 <= p->m)
        block(p, i, j, from, to, add, 4, wide), i += 4;
    if (i + 2 <= p->m)
        block(p, i, j, from, to, add, 2, wide), i += 2;
    if (i < p->m)
        block(p, i, j, from, to, add, 1, wide);
}

/* Long sums are formed in pieces of DEEP: the panel of b stays in the nearest cache, and the
 * rounding error stays small. */
enum { DEEP = 128 };

static void multiply(const fattn__product *p)
{
    for (int64_t from = 0; from < p->k; from += DEEP) {
        const int64_t to = from + DEEP < p->k ? from + DEEP : p->k;
        const bool add = p->accumulate || from > 0;
        int64_t j = 0;
        for (; j + WIDE * WIDTH <= p->n; j += WIDE * WIDTH)
            panel(p, j, from, to, add, WIDE);
#if WIDE > 2
        if (j + 2 * WIDTH <= p->n)
            panel(p, j, from, to, add, 2), j += 2 * WIDTH;
#endif
        if (j < p->n)
            panel(p, j, from, to, add, 1);
    }
}

/* ---- exponential
 * ---------------------------------------------------------------------------------------------------------------
 */

/* 2^n e^r with n the nearest integer to x / ln 2 and |r| <= ln(2)/2; the polynomial's relative
 * error is below 2^-25. */
INLINE vec exp_of(vec x)
{
    const float magic =
        0x1.8p23f; /* its last bit has the value 1: a sum with it is rounded to an integer */
    const vec shifted = x * 0x1.715476p+0f + magic, n = shifted - magic;
    const vec r = (x - n * 0x1.62e4p-1f) -
                  n * 0x1.7f7d1cp-20f; /* ln 2 in two parts: n times the first is exact */
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    const vec scaled = (vec)((uvec)p + ((uvec)shifted << 23));
    const vec low = choose(x < -0x1.5d589ep+6f, (vec){ 0 }, scaled); /* ln 2^-126 */
    const vec high = choose(x > 0x1.62e42ep+6f, all(INFINITY), low); /* ln FLT_MAX */
    return choose(is_nan(x), x, high);
}

static void exponential(float *x, int64_t count, float shift)
{
    for (int64_t i = 0; i < count; i += WIDTH)
        store(x + i, exp_of(load(x + i) - shift));
}

static void soften(const fattn__soft *p)
{
    for (int64_t i = 0; i < p->rows; i += WIDTH) {
        const vec before = load(p->max + i);
        vec top = before, sum = { 0 };
        for (int64_t j = 0; j < p->keys; j++) {
            const vec s = load(p->s + j * p->step + i);
            top = choose((s > top) | is_nan(s), s, top);
        }
        const ivec dead = top == -INFINITY;
        const vec base = choose(dead, (vec){ 0 }, top), rescale = exp_of(before - base);
        for (int64_t j = 0; j < p->keys; j++) {
            const vec e = exp_of(load(p->s + j * p->step + i) - base);
            store(p->s + j * p->step + i, e);
            sum += e;
        }
        store(p->max + i, top);
        store(p->rescale + i, rescale);
        store(p->sum + i, load(p->sum + i) * rescale + sum);
    }
}

/* ---- the rest
 * ------------------------------------------------------------------------------------------------------------------
 */

/* Near 0 an odd polynomial; elsewhere 1 - 2 / (exp(2x) + 1), which is accurate there. */
INLINE vec tanh_of(vec x)
{
    const vec size = (vec)((ivec)x & 0x7fffffff), sign = (vec)((ivec)x & (ivec)all(-0.0f)),
              z = x * x;
    vec p = z * -5.70498872745e-3f + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    const vec small = p * z * x + x;
    const vec large = 1.0f - 2.0f / (exp_of(size + size) + 1.0f);
    const vec y = (vec)((ivec)choose(size < 0.625f, small, large) | (ivec)sign);
    return choose(is_nan(x), x, y);
}

static void hyperbolic_tangent(float *y, const float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i += WIDTH)
        store(y + i, tanh_of(load(x + i)));
}

static bool is_finite(const float *x, int64_t count)
{
    ivec bad = { 0 };
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) {
        const vec v = load(x + i);
        bad |= ~(ivec)(v * 0.0f == (vec){ 0 });
    }
    for (int l = 0; l < WIDTH; l++)
        if (bad[l] != 0)
            return false;
    for (; i < count; i++)
        if (!(x[i] - x[i] == 0.0f))
            return false;
    return true;
}

static void scale_rows(float *x, int64_t rows, int64_t step, const float *factor)
{
    for (int64_t i = 0; i < rows; i++) {
        if (factor[i] == 1.0f)
            continue;
        for (int64_t d = 0; d < step; d += WIDTH)
            store(x + i * step + d, load(x + i * step + d) * factor[i]);
    }
}

static void slope(float *dp, const float *s, int64_t count, float shift)
{
    for (int64_t i = 0; i < count; i += WIDTH) {
        const vec p = load(s + i);
        store(dp + i, choose(p == 0.0f, (vec){ 0 }, p * (load(dp + i) - shift)));
    }
}

/* Sixteen partial sums, whatever the vector unit. */
static float dot(const float *x, const float *y, int64_t count)
{
    vec lane[16 / WIDTH];
    float sum = 0;
    for (int v = 0; v < 16 / WIDTH; v++)
        lane[v] = (vec){ 0 };
    for (int64_t i = 0; i < count; i += 16)
        for (int v = 0; v < 16 / WIDTH; v++)
            lane[v] += load(x + i + v * WIDTH) * load(y + i + v * WIDTH);
    for (int l = 0; l < 16; l++)
        sum += lane[l / WIDTH][l % WIDTH];
    return sum;
}

const fattn__kernels KERNELS = { multiply,  soften,     exponential, hyperbolic_tangent,
                                 is_finite, scale_rows, slope,       dot };
