/* What follows from a problem alone: which keys a row may read, which rows and keys are answered,
 * how heads go together. */
#ifndef FREF_REF_SHAPE_H
#define FREF_REF_SHAPE_H

#include <fref/fref.h>

/* Keys (or rows) [first, last). */
typedef struct fref__range {
    int64_t first, last;
} fref__range;

/* Ascending places, or all of them in order (`at` NULL). */
typedef struct fref__list {
    const int64_t *at;
    int64_t count;
} fref__list;

static inline int64_t fref__place(const fref__list *list, int64_t n)
{
    return list->at ? list->at[n] : n;
}

/* Everything that follows from the problem alone. Rows and keys are counted as they are listed, but
 * where a comment says `in the problem`. */
typedef struct fref__shape {
    const fref_problem *problem;
    fref__list rows, keys;
    int64_t group_k, group_v;      /* query heads that share a key head, a value head */
    int64_t span, span_k, span_v;  /* query, key and value heads of a unit */
    int64_t units, units_of_batch; /* in all, and in one batch entry */
    int64_t ld_qk, ld_v;           /* doubles from row to row */
    int64_t keys_padded;
} fref__shape;

fref__shape fref__shape_of(const fref_problem *problem, fref__list rows, fref__list keys);

fref__list fref__all(int64_t count);
fref__list fref__sample(const int64_t *at, int64_t count, int64_t all); /* `at` NULL: all */

/* Where listed places `in` the problem's [first, last) lie in the list. */
fref__range fref__listed(const fref__list *list, fref__range in);

/* Widens `range`, empty at first, so that it holds `one`, which is not. */
void fref__include(fref__range *range, fref__range one);

/* Zeros in the columns of `span` that are not in `own`; row[j]: column j. */
void fref__clear_outside(double *row, fref__range own, fref__range span);

#endif
