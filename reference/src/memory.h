/* Memory for doubles, and how it is cut up. */
#ifndef FREF_MEMORY_H
#define FREF_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Zeros, from the start of a cache line on: what is loaded 64 bytes at a time then never straddles
 * two. NULL: there is no memory. */
double *fref__allocate(int64_t doubles);
void fref__release(double *memory); /* NULL: nothing */

/* A piece of a larger one. */
typedef struct fref__part {
    double **out;
    int64_t size; /* doubles; 0: it is NULL */
} fref__part;

/* Cuts `base` into the parts, each from the start of a cache line on if `base` is, and returns the
 * doubles used, whole cache lines; with NULL it only counts. */
int64_t fref__cut(const fref__part *parts, size_t count, double *base);

#endif
