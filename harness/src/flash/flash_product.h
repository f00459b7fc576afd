/* Products as a tensor core adds them: `chunk` products and the accumulator at a time, aligned or exactly, then into a narrow accumulator. */
#ifndef FACTS_FLASH_PRODUCT_H
#define FACTS_FLASH_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct facts_adder {
    int64_t chunk;  /* products between two roundings of the accumulator; 1: fp32 units */
    bool truncates; /* the accumulator toward zero, otherwise to nearest even */
    int bits;       /* its significant bits: 24 is fp32; fewer always truncate */
    int aligned;    /* fraction bits that each product and the accumulator keeps beside the largest one's exponent, the rest cut off; 0: all of them */
    int64_t run;    /* products that it adds before its sum moves to fp32 and it starts again from 0; 0: never */
} facts_adder;

/* Hopper's: the published model of its tensor cores that agrees with an H100 and an H200 bit by bit (Khattak and Mikaitis, arXiv 2512.07004). */
#define FACTS_HOPPER_16 ((facts_adder){ .chunk = 16, .truncates = true, .bits = 24, .aligned = 25 })
#define FACTS_HOPPER_8 ((facts_adder){ .chunk = 32, .truncates = true, .bits = 14, .aligned = 13, .run = 128 })

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

/* C += A B. The instruction set changes nothing: the products are exact, and a chunk's sum is added in one order. Aligned: factors of 12 bits at most. */
void facts_add_product(const facts_operands *x, facts_adder adder);

#endif
