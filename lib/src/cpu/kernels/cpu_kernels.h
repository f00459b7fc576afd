/* The loops that take the time, compiled for several vector units; the machine's best is chosen when the program runs. The sums are formed in
 * the same order in each, so units with and without a fused multiply-add give nearly, not exactly, the same bits. */
#ifndef FATTN_CPU_KERNELS_H
#define FATTN_CPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* c[m][n] = factor * a[m][k] b[k][n], or c += it. Rows of b and c are contiguous; n is a multiple of 16, and so much of b and c exists. */
typedef struct fattn__product {
    float *c;
    const float *a, *b;
    int64_t c_row, a_row, a_column, b_row; /* steps in elements */
    int64_t m, n, k;
    float factor;
    bool accumulate;
} fattn__product;

/* A tile of scores, transposed: s[keys][step], `rows` of each line are used; `step` and all arrays hold a multiple of 16. */
typedef struct fattn__soft {
    float *s, *max, *sum, *rescale;
    int64_t keys, rows, step;
} fattn__soft;

typedef struct fattn__kernels {
    void (*multiply)(const fattn__product *p);
    /* The online softmax: s becomes exp(s - max) with the new row maximum, sum is brought up to date, and what was accumulated under the old
     * maximum must be multiplied with `rescale`. A row that has seen -inf only has max -inf, sum 0, s 0. */
    void (*soften)(const fattn__soft *p);
    /* x = exp(x - shift), `count` a multiple of 16. Below 2 ulp; 0 where exp is below 2^-126; of a NaN a NaN. */
    void (*exponential)(float *x, int64_t count, float shift);
    /* y = tanh(x); below 4 ulp. */
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
