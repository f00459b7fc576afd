/* A tensor in memory: dense, ragged (each entry starts at an offset of its own) or paged. It also
 * has the conversions that elements need when they are loaded. Only this code computes the address
 * of token t of entry b. */
#ifndef FATTN_CPU_VIEW_H
#define FATTN_CPU_VIEW_H

#include <fattn/fattn.h>

#include "problem/resolved_problem.h"

/* Scale factors of blocks of 32, along the channels or along the rows: one matrix for each (b, h),
 * in 128 x 4 tiles of 512 bytes. */
typedef struct fattn__blocks {
    const uint8_t *factors;              /* NULL: there are none */
    int64_t heads, matrix, column_tiles; /* bytes of a matrix; tiles in a row of tiles */
    bool along_rows;
} fattn__blocks;

typedef struct fattn__view {
    char *data;
    int32_t dtype;
    const int64_t *stride; /* b,h,s,d */
    const void
        *offsets; /* ragged: entry b starts at offsets[b] times `unit` elements; NULL: not ragged */
    int32_t offset_bits; /* of offsets and table_offsets */
    int32_t role;        /* fattn__role; read by planted faults alone */
    int64_t unit;
    const int32_t *table; /* paged: row s of entry b is row s % page of page table[b * pages + s /
                             page]; NULL: not paged */
    const void *table_offsets; /* ragged table: the pages of entry b start at table_offsets[b] */
    int64_t page, pages;
    const float *angles; /* [row][lanes]: the last `lanes` channels are rotated and rounded to the
                            type again; NULL: no rotation */
    int64_t lanes;
    fattn__blocks blocks;
} fattn__view;

/* A tensor of a call. `data` is its address if it is not that of the role. */
fattn__view fattn__view_of(const fattn_problem *p, const fattn_tensors *t, fattn__role which,
                           const void *data);
/* Where row s of (b, h) begins, in elements from `data`. */
int64_t fattn__view_row(const fattn__view *v, int64_t b, int64_t h, int64_t s);

/* Copies `count` rows from (b,h,s) into dst[count][step] as fp32; columns dim..step become 0. */
void fattn__view_load(float *dst, int64_t step, const fattn__view *from, int64_t b, int64_t h,
                      int64_t s, int64_t count, int64_t dim);
/* Stores src[count][step], rounded to nearest even. */
void fattn__view_store(const fattn__view *to, int64_t b, int64_t h, int64_t s, int64_t count,
                       int64_t dim, const float *src, int64_t step);

/* Rotates the last `lanes` of `dim` channels of one row by its angles: (x1, x2) becomes (x1 cos -
 * x2 sin, x2 cos + x1 sin). x1 is in the first half of the lanes, x2 in the second, and the angle
 * is that of x1. `back` uses the negative angles. */
void fattn__rotate(float *row, int64_t dim, const float *angles, int64_t lanes, bool back);

/* Entry `at` of an array of 32 or 64 bit integers. */
static inline int64_t fattn__integer_at(const void *data, int32_t bits, int64_t at)
{
    return bits == 64 ? ((const int64_t *)data)[at] : ((const int32_t *)data)[at];
}

#endif
