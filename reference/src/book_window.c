/* Sums over a range of items, code by code. A range that moves on adds what it gains and takes away what it loses; now and then,
 * and where it has lost more than half, it is built again from whole blocks, so that what was taken away leaves no trace. */
#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "book.h"

#define MOVED_AT_MOST 2048

int fref__items_create(fref__items *out, const fref__book *book, fref__item item, bool of_keys, int64_t width)
{
    const fref_problem *p = book->shape->problem;
    *out = (fref__items){ .book = book,
                          .item = item,
                          .of_keys = of_keys,
                          .count = of_keys ? p->keys : p->rows,
                          .codes = book->codes->count,
                          .width = width };
    int64_t blocks = out->count / FREF__BOOK_BLOCK + 1;
    out->block = malloc((size_t)(blocks * out->codes * (width + 1)) * sizeof *out->block);
    out->ones = malloc((size_t)(omp_get_max_threads() * (width + 1)) * sizeof *out->ones);
    return out->block && out->ones ? 0 : ENOMEM;
}

void fref__items_destroy(fref__items *items)
{
    free(items->block);
    free(items->ones);
}

FREF__CLONES static void add(double *restrict to, const double *restrict one, int64_t n, double sign)
{
    for (int64_t c = 0; c < n; c++)
        to[c] += sign * one[c];
}

static void add_item(const fref__items *items, double *sums, double *one, int64_t n, double sign)
{
    if (!items->item(one, items->book, n))
        return;
    one[items->width] = 1.0;
    add(sums + items->code[n] * (items->width + 1), one, items->width + 1, sign);
}

void fref__items_fill(fref__items *items)
{
    const fref__book *book = items->book;
    int64_t size = items->codes * (items->width + 1);
    items->code = items->of_keys ? book->code_k : book->code_q;
#pragma omp parallel for schedule(dynamic)
    for (int64_t block = 0; block < items->count / FREF__BOOK_BLOCK; block++) {
        double *sums = items->block + block * size, *one = items->ones + omp_get_thread_num() * (items->width + 1);
        memset(sums, 0, (size_t)size * sizeof *sums);
        for (int64_t n = block * FREF__BOOK_BLOCK; n < (block + 1) * FREF__BOOK_BLOCK; n++)
            add_item(items, sums, one, n, 1.0);
    }
}

int64_t fref__window_doubles(const fref__items *items)
{
    return (items->codes + 1) * (items->width + 1);
}

void fref__window_start(fref__window *out, const fref__items *items, double *memory)
{
    *out = (fref__window){ .sums = memory, .one = memory + items->codes * (items->width + 1) };
    memset(out->sums, 0, (size_t)(items->codes * (items->width + 1)) * sizeof *out->sums);
}

static void build(fref__window *w, const fref__items *items, fref__range to)
{
    int64_t size = items->codes * (items->width + 1);
    memset(w->sums, 0, (size_t)size * sizeof *w->sums);
    for (int64_t n = to.first; n < to.last;) {
        if (n % FREF__BOOK_BLOCK == 0 && n + FREF__BOOK_BLOCK <= to.last) {
            add(w->sums, items->block + n / FREF__BOOK_BLOCK * size, size, 1.0);
            n += FREF__BOOK_BLOCK;
        } else {
            add_item(items, w->sums, w->one, n++, 1.0);
        }
    }
    w->built = to.last - to.first;
}

void fref__window_move(fref__window *w, const fref__items *items, fref__range to)
{
    fref__range from = w->range;
    int64_t moved = llabs(to.first - from.first) + llabs(to.last - from.last);
    w->range = to;
    if (to.first >= from.last || to.last <= from.first || moved > MOVED_AT_MOST || 2 * (to.last - to.first) < w->built) {
        build(w, items, to);
        return;
    }
    for (int64_t n = from.last; n < to.last; n++)
        add_item(items, w->sums, w->one, n, 1.0);
    for (int64_t n = to.first; n < from.first; n++)
        add_item(items, w->sums, w->one, n, 1.0);
    for (int64_t n = from.first; n < to.first; n++)
        add_item(items, w->sums, w->one, n, -1.0);
    for (int64_t n = to.last; n < from.last; n++)
        add_item(items, w->sums, w->one, n, -1.0);
}
