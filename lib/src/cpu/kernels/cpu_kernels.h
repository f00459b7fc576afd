/* The inner loops of the CPU backend, compiled for several vector units. The program selects the
 * best one for the machine when it runs. All form their sums in the same order. Only some use a
 * fused multiply-add, so their results may differ in the last bits. */
#ifndef FATTN_CPU_KERNELS_H
#define FATTN_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* c[m][n] = factor * a[m][k] b[k][n], or the same added to c. Rows of b and c are contiguous. n is
 * a multiple of 16, and b and c have that many columns. */
typedef struct fattn__product {
    float *c;
    const float *a, *b;
    int64_t c_row, a_row, a_column, b_row; /* steps in elements */
    int64_t m, n, k;
    float factor;
    bool accumulate;
} fattn__product;

/* A tile of scores, transposed: s[keys][step]. `rows` elements of each line are used. `step` and
 * the length of all arrays are multiples of 16. */
typedef struct fattn__soft {
    float *s, *max, *sum, *rescale;
    int64_t keys, rows, step;
    float *peak; /* the row's largest score so far: kernels whose `max` may stay below it */
} fattn__soft;

typedef struct fattn__kernels {
    void (*multiply)(const fattn__product *p);
    /* The online softmax. s becomes exp(s - max) with the new row maximum, and sum is updated. The caller multiplies values
     * accumulated under the old maximum by `rescale`. A row whose scores were all -inf so far has max -inf, sum 0 and s 0. */
    void (*soften)(const fattn__soft *p);
    /* x = exp(x - shift); `count` is a multiple of 16. Error below 2 ulp. The result is 0 if exp is below 2^-126, and NaN for a
     * NaN. */
    void (*exponential)(float *x, int64_t count, float shift);
    /* y = tanh(x). Error below 4 ulp. */
    void (*hyperbolic_tangent)(float *y, const float *x, int64_t count);
    bool (*is_finite)(const float *x, int64_t count);
    /* x[rows][step] *= factor[row]; `step` a multiple of 16. */
    void (*scale_rows)(float *x, int64_t rows, int64_t step, const float *factor);
    /* dp = s (dp - shift), and 0 where s is 0; `count` a multiple of 16. */
    void (*slope)(float *dp, const float *s, int64_t count, float shift);
    /* The sum of x y; `count` a multiple of 16. */
    float (*dot)(const float *x, const float *y, int64_t count);
} fattn__kernels;

const fattn__kernels *fattn__cpu_kernels(void);

extern const fattn__kernels fattn__kernels_base, fattn__kernels_v3, fattn__kernels_v4;

#endif
