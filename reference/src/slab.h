/* A problem cut into pieces of bounded size.
 *
 * A unit is one batch entry with the fewest query heads whose key and value heads no other unit
 * reads. A slab is as many consecutive units as fit the memory that is meant for them; its tensors
 * lie decoded: Q and dO in contiguous rows, and, where they are multiplied with weights of rows, in
 * panels of 16 channels with the row outermost; K and V in such panels with the key outermost, and,
 * where they are the right-hand side of q.k or dO.v, in panels of 16 keys with the channel
 * outermost.
 */
#ifndef FREF_SLAB_H
#define FREF_SLAB_H

#include "memory.h"
#include "number.h"
#include "ref_product.h"
#include "ref_shape.h"

#define FREF__TILE_ROWS 64  /* rows that share one pass over the keys */
#define FREF__TILE_KEYS 128 /* keys that are weighed at a time */
#define FREF__PEAK_KEYS 128 /* keys whose largest norm is kept */

/* The tensors that are decoded; NULL: not needed. */
typedef struct fref__inputs {
    const fref_tensor *q, *k, *v, *o, *stats, *d_o;
    bool freedom; /* the effective channels are wanted */
    bool entries; /* P and dS are to be kept, where they fit */
} fref__inputs;

/* Norms of all keys of the problem, and the largest of each FREF__PEAK_KEYS. */
typedef struct fref__norms {
    double *of, *peak;
} fref__norms;

/* Owner of the decoded units first .. first + count - 1. `o` is not kept. Dead rows and dead keys
 * hold zeros, whatever the caller's memory holds there. */
typedef struct fref__slab {
    int64_t capacity, first, count;
    double *q, *d_o;               /* [unit, span, rows, ld] */
    double *k, *v;                 /* [unit, span_k or span_v, ld / 16, keys, 16] */
    double *k_panels, *v_panels;   /* [unit, span_k or span_v, keys_padded / 16, channel, 16] */
    fref__norms norms_k, norms_v;  /* [unit, span_k or span_v] */
    double *stats;                 /* [unit, span, rows] */
    double *q_panels, *d_o_panels; /* [unit, span, ld / 16, rows, 16]; of a backward pass */
    double *p, *ds;     /* [unit, span, keys / TILE_KEYS, rows, TILE_KEYS]; NULL: not kept */
    fref__range *range; /* [unit, span, rows]; empty: a dead row, or one that reads no listed key */
    bool *finite;       /* [unit, part] */
    double *channels;   /* [unit, part]: effective channels of the live rows or keys; freedom.h */
    double *channels_d_o; /* [unit, span] */
    double *scratch;      /* of every thread */
    double *memory;       /* of all of these doubles */
} fref__slab;

/* Doubles of a row with a place for each listed key (and a panel more, so that rows do not lie a
 * power of two apart). */
static inline int64_t fref__ld_entries(const fref__shape *shape)
{
    return shape->keys_padded + FREF__LANES;
}

/* Where P or dS of row i and key j is kept; the next row TILE_KEYS further. */
static inline int64_t fref__entry_at(const fref__shape *shape, int64_t i, int64_t j)
{
    return (j / FREF__TILE_KEYS * shape->rows.count + i) * FREF__TILE_KEYS + j % FREF__TILE_KEYS;
}

/* Doubles of scratch that a thread decodes with. */
int64_t fref__slab_scratch(const fref__shape *shape, bool freedom);

/* Returns 0 or ENOMEM. For a backward pass `inputs` has o, stats and d_o, and V's panels are kept
 * beside the rest. */
int fref__slab_create(fref__slab *slab, const fref__shape *shape, const fref__inputs *inputs);
void fref__slab_destroy(fref__slab *slab);

/* Decodes the units from `first` on, as many as fit. */
void fref__slab_load(fref__slab *slab, const fref__shape *shape, const fref__inputs *inputs,
                     int64_t first);

/* False when a NaN or an infinity is in what live rows and keys hold. Then tiles shrink to one row
 * or key, so that 0 * NaN reaches no answer that it should not reach. */
bool fref__slab_is_finite(const fref__slab *slab, const fref__shape *shape, int64_t unit);

/* One query head of a unit, and where its decoded parts and its answers lie. */
typedef struct fref__head {
    int64_t b, h; /* in the problem */
    int64_t slot; /* (unit, head) in arrays [unit, span, ...] */
    const double *q, *d_o;
    const double *k, *k_panels, *v, *v_panels;
    fref__norms norms_k, norms_v;
    const double *stats;
    const double *q_panels, *d_o_panels;
    double *p, *ds;
    const fref__range *range;
    double channels_q, channels_d_o, channels_k, channels_v; /* effective; freedom.h */
} fref__head;

/* `unit` counts from the slab's first, `head` from the unit's first. */
fref__head fref__head_of(const fref__slab *slab, const fref__shape *shape, int64_t unit,
                         int64_t head);

/* The largest norm of keys [first, last) in the problem. */
double fref__longest(const fref__norms *norms, fref__range keys);

/* The keys that any of the rows i .. i+rows-1 may read. */
fref__range fref__keys_of_rows(const fref__head *head, int64_t i, int64_t rows);
/* The rows between the first and the last that may read any of these keys. */
fref__range fref__rows_of_keys(const fref__head *head, int64_t rows, fref__range keys);

/* tile[r][j - from] = x_(row + r) . (key j), for all keys of the panels that hold `keys`; from =
 * keys.first rounded down to a panel, which is returned. The tile's rows are `ld` doubles long. */
int64_t fref__dot_panels(double *tile, int64_t ld, const double *x, int64_t ld_x, int64_t rows,
                         int64_t dim, const double *panels, fref__range keys);

#endif
