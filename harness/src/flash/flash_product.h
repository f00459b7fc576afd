/* Products and sums as in a tensor core: `chunk` products and the accumulator are added at a time,
 * aligned or exactly. The sum is then rounded to a narrow accumulator. */
#ifndef FACTS_FLASH_PRODUCT_H
#define FACTS_FLASH_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct facts_adder {
    int64_t chunk;  /* products between two roundings of the accumulator; 1: as fp32 units do */
    bool truncates; /* the accumulator is rounded toward zero, otherwise to nearest even */
    int bits; /* significant bits of the accumulator: 24 is fp32; with fewer it always truncates */
    int aligned; /* fraction bits that each product and the accumulator keeps relative to the largest exponent; the rest is cut off.
                    0: all of them */
    int64_t run; /* products that it adds before its sum is moved to fp32 and it starts again from
                    0; 0: no limit */
} facts_adder;

/* Hopper's: the published model of its tensor cores that agrees with an H100 and an H200 bit by bit
 * (Khattak and Mikaitis, arXiv 2512.07004). */
#define FACTS_HOPPER_16 ((facts_adder){ .chunk = 16, .truncates = true, .bits = 24, .aligned = 25 })
#define FACTS_HOPPER_8                                                                             \
    ((facts_adder){ .chunk = 32, .truncates = true, .bits = 14, .aligned = 13, .run = 128 })

/* The operands. Rows that are columns of C have a multiple of 8 elements: the caller pads them. */
typedef struct facts_operands {
    int64_t rows, columns, inner;
    const double *a;
    int64_t a_row, a_inner; /* element (m, k) at a + m a_row + k a_inner */
    const double *b;
    int64_t b_inner; /* element (k, n) at b + k b_inner + n */
    float *c;
    int64_t c_row;
} facts_operands;

/* C += A B. The result does not depend on the instruction set: products are exact, and the sum of a
 * chunk has one order. Aligned: factors have at most 12 bits. */
void facts_add_product(const facts_operands *x, facts_adder adder);

#endif
