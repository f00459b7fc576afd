/* The one inner loop of the reference: C += A f(B) in double.
 *
 * Every sum runs over its index in order, each product added to it unrounded (a fused
 * multiplication and addition), whatever the tile or the instruction set; so blocks, threads and
 * processors cannot change a bit.
 */
#ifndef FREF_REF_PRODUCT_H
#define FREF_REF_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

/* Leading dimensions of B and C, and the number of columns, are multiples of this. */
#define FREF__LANES 16

static inline int64_t fref__padded(int64_t n)
{
    return (n + FREF__LANES - 1) / FREF__LANES * FREF__LANES;
}

/* What is done to an element of B before it is multiplied. */
typedef enum fref__of { FREF__OF_VALUE, FREF__OF_MAGNITUDE, FREF__OF_SQUARE } fref__of;

/* C[m][n] += sum_k A[m][k] f(B[k][n]). Element (m,k) of A is at a[m * a_row + k * a_inner], (k,n)
 * of B at b[n / 16 * b_panel + k * b_inner + n % 16]. */
typedef struct fref__operands {
    int64_t rows, columns, inner;
    const double *a;
    int64_t a_row, a_inner;
    const double *b;
    int64_t b_panel, b_inner;
    double *c;
    int64_t c_row;
    bool from_zero; /* C begins at 0, whatever lies there */
} fref__operands;

/* On the best instruction set that the processor has. */
void fref__add_product(const fref__operands *x, fref__of of);

/* The same on one of them. Returns false, with nothing done, where the processor lacks it. */
typedef enum fref__processor {
    FREF__PROCESSOR_ANY,
    FREF__PROCESSOR_AVX2,
    FREF__PROCESSOR_AVX512
} fref__processor;
bool fref__add_product_on(const fref__operands *x, fref__of of, fref__processor processor);

#endif
