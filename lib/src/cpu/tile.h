/* A tile of rows against a tile of keys: the pieces that forward and backward share. */
#ifndef FATTN_CPU_TILE_H
#define FATTN_CPU_TILE_H

#include <fattn/fattn.h>

enum { FATTN__ROWS = 32, FATTN__KEYS = 64 };

/* One tensor's place in memory. */
typedef struct fattn__view {
    char *data;
    int32_t dtype;
    const int64_t *stride; /* b,h,s,d */
} fattn__view;

/* What row i of a batch entry may read: keys [first, last). */
typedef struct fattn__band {
    int64_t len_q, len_kv, shift;
    int64_t left, right; /* clamped; INT64_MAX/4 when absent */
} fattn__band;

fattn__band fattn__band_of(const fattn_problem *p, const fattn_tensors *t, int64_t b);
void fattn__band_keys(const fattn__band *band, int64_t row, int64_t *first, int64_t *last);

/* Copies `count` rows from (b,h,s) into dst[count][dim] as fp32. */
void fattn__tile_load(float *dst, const fattn__view *from, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim);
/* Stores dst[count][dim], rounded to nearest even. */
void fattn__tile_store(const fattn__view *to, int64_t b, int64_t h, int64_t s, int64_t count, int64_t dim, const float *src);

/* out[rows][FATTN__KEYS] = a[rows][dim] . b[keys][dim] * factor */
void fattn__tile_dot(float *out, const float *a, const float *b, int64_t rows, int64_t keys, int64_t dim, float factor);
/* acc[rows][dim] += weight[rows][FATTN__KEYS] * b[keys][dim] */
void fattn__tile_add(float *acc, const float *weight, const float *b, int64_t rows, int64_t keys, int64_t dim);
/* acc[keys][dim] += weight[rows][FATTN__KEYS]^T * a[rows][dim] */
void fattn__tile_add_transposed(float *acc, const float *weight, const float *a, int64_t rows, int64_t keys, int64_t dim);
/* Scores of keys that a row may not read become -inf. Returns false when no row of the tile may read any of its keys. */
bool fattn__tile_mask(float *scores, const fattn__band *band, int64_t row0, int64_t rows, int64_t key0, int64_t keys);
/* Whether any row of the tile may read any key of the tile. */
bool fattn__tile_touches(const fattn__band *band, int64_t row0, int64_t rows, int64_t key0, int64_t keys);

#endif
