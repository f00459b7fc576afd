/* Products as a tensor core adds them: `chunk` products at a time, exactly, then into a narrow accumulator. */
#ifndef FACTS_EMULATION_PRODUCT_H
#define FACTS_EMULATION_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct facts_adder {
    int64_t chunk;  /* products between two roundings of the accumulator; 1: fp32 units */
    bool truncates; /* the accumulator toward zero, otherwise to nearest even */
    int bits;       /* its significant bits: 24 is fp32; fewer always truncate */
} facts_adder;

/* Rows are multiples of 8 long where they are columns of C: the caller pads. */
typedef struct facts_operands {
    int64_t rows, columns, inner;
    const double *a;
    int64_t a_row, a_inner; /* element (m, k) at a + m a_row + k a_inner */
    const double *b;
    int64_t b_inner; /* element (k, n) at b + k b_inner + n */
    float *c;
    int64_t c_row;
} facts_operands;

/* C += A B. The instruction set changes nothing: the products are exact, and a chunk's sum is added in one order. */
void facts_add_product(const facts_operands *x, facts_adder adder);

#endif
