/* layout.h: questions about where the elements of a rank-4 tensor lie. Pure functions of extents
 * and strides (in elements). */
#ifndef FATTN_LAYOUT_H
#define FATTN_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "fattn/fattn.h"

/* Strides of a tensor without gaps; `order` names the dimensions from the outermost to the
 * innermost, for example "bshd". */
void fattn__dense_strides(const int64_t dim[4], const char *order, int64_t out[4]);

/* Do the extents multiply to less than 2^62? */
bool fattn__fits(const int64_t *extents, int count);

/* The number of elements from the first to the last, both included. False if it is 2^62 or more.
 * Extents >= 1, strides >= 0. */
bool fattn__layout_span(const int64_t dim[4], const int64_t strides[4], int64_t *out);

/* Do two index tuples share an element? The answer is exact for layouts with extents of usual size.
 * A layout that would take too long to search (more than 2^24 differences, and not nested) counts
 * as overlapping. Needs a last stride of 1 and a span that fits. */
bool fattn__layout_overlaps(const int64_t dim[4], const int64_t strides[4]);

/* Is every stride a multiple of 16 bytes? Strides of dimensions of extent 1 and strides of 1
 * element do not count. cuDNN does not check this: its kernels load 16 bytes at once, and give
 * wrong results or fault. */
bool fattn__layout_aligned(const int64_t dim[4], const int64_t strides[4], int64_t element_bytes);

static inline int64_t fattn__least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Bytes of one element; 0 for a dtype that is not known. */
int64_t fattn__dtype_bytes(int32_t dtype);
/* 8-bit types with one scale for the whole tensor, and 8-bit types with a scale for each block
 * of 32. */
static inline bool fattn__dtype_is_fp8(int32_t dtype)
{
    return dtype == FATTN_E4M3 || dtype == FATTN_E5M2;
}
static inline bool fattn__dtype_is_mx(int32_t dtype)
{
    return dtype == FATTN_MXE4M3 || dtype == FATTN_MXE5M2;
}

#endif
