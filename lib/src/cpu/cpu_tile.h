/* A tile of rows times a tile of keys: the functions that forward and backward share. */
#ifndef FATTN_CPU_TILE_H
#define FATTN_CPU_TILE_H

#include <fattn/fattn.h>

#include "liars/lies.h"

#ifdef FATTN_LIARS
enum { FATTN__ROWS = 64, FATTN__KEYS = 256 };
#else
enum { FATTN__ROWS = 192, FATTN__KEYS = 64 }; /* multiples of 16, as the kernels need */
#endif

/* The keys of a tile, FATTN__KEYS at most. */
static inline int64_t fattn__tile_keys(void)
{
    return !FATTN__TESTING ? FATTN__KEYS : fattn__like_gpu.on ? fattn__like_gpu.tile : 64;
}

static inline int64_t fattn__padded(int64_t extent)
{
    return (extent + 15) / 16 * 16;
}

/* The keys [first, last) that a row of a batch entry may read. */
typedef struct fattn__band {
    int64_t len_q, len_kv, shift;
    int64_t left, right; /* clamped; INT64_MAX/4: no bound */
    int64_t lost;        /* no key from here on is read; INT64_MAX, except in a planted fault */
    int64_t exist;       /* keys in memory: len_kv, except in a planted fault */
} fattn__band;

fattn__band fattn__band_of(const fattn_problem *p, const fattn_tensors *t, int64_t b);
void fattn__band_keys(const fattn__band *band, int64_t row, int64_t *first, int64_t *last);

/* dst[dim][dst_step] = src[count][src_step] transposed; columns from count to the next multiple of
 * 16 become 0. */
void fattn__tile_transpose(float *dst, int64_t dst_step, const float *src, int64_t src_step,
                           int64_t count, int64_t dim);

/* A tile of scores: rows [row0, row0 + rows) of (b, h) and keys [key0, key0 + keys). Element (i, j)
 * is at i * row_step + j * key_step. */
typedef struct fattn__scores {
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__band *band;
    int64_t b, h, row0, rows, key0, keys;
    int64_t row_step, key_step;
} fattn__scores;

/* The rows [first, last), from row0, of a tile that see any of its keys (none: last is 0), and
 * whether every row sees every key. */
typedef struct fattn__sight {
    int64_t first, last;
    bool whole;
} fattn__sight;

fattn__sight fattn__tile_sight(const fattn__scores *at);
/* Scores of keys that a row may not read become -inf. */
void fattn__tile_mask(const fattn__scores *at, float *scores);

#endif
