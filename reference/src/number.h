/* What the types of a tensor can hold, and how their bits are read. */
#ifndef FREF_NUMBER_H
#define FREF_NUMBER_H

#include <fref/fref.h>

/* eta is what a value may lose when it is subnormal: half the smallest subnormal step, but never
 * below 2^-126, because fp32 arithmetic on the way may flush to zero. */
typedef struct fref__precision {
    double unit_roundoff;
    double eta;
    double tiny; /* the smallest normal number */
    double max;  /* where a cast saturates: 8 bit types; INFINITY */
} fref__precision;

fref__precision fref__precision_of(fref_type type);
/* The same of what is multiplied by `scale` (0: 1) before its cast, in its own unit. */
fref__precision fref__precision_scaled(fref_type type, double scale);

int64_t fref__bytes_of(fref_type type);

/* What a scale or descale that is not given stands for. */
static inline double fref__or_1(double scale)
{
    return scale != 0.0 ? scale : 1.0;
}

/* A cast that saturates; a NaN stays. */
static inline double fref__clamped(double x, double max)
{
    return x > max ? max : x < -max ? -max : x;
}

/* Reads `n` elements (b,h,s,0..n) as doubles, exactly, times descale. */
void fref__read_row(double *out, const fref_tensor *tensor, int64_t b, int64_t h, int64_t s,
                    int64_t n);

#endif
