/* What the types of a tensor can hold, and how their bits are read. */
#ifndef FREF_NUMBER_H
#define FREF_NUMBER_H

#include <fref/fref.h>

/* eta is what a value may lose when it is subnormal: half the smallest subnormal step, but never below 2^-126, because fp32
 * arithmetic on the way may flush to zero. */
typedef struct fref__precision {
    double unit_roundoff;
    double eta;
    double tiny; /* the smallest normal number */
} fref__precision;

fref__precision fref__precision_of(fref_type type);

/* Reads `n` elements (b,h,s,0..n) as doubles, exactly. */
void fref__read_row(double *out, const fref_tensor *tensor, int64_t b, int64_t h, int64_t s, int64_t n);

#endif
