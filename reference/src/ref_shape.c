#include "ref_shape.h"

#include <string.h>

#include "ref_product.h"

/* Bounds beyond this mask nothing, and sums with them must not overflow. */
#define FAR ((int64_t)1 << 40)

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void fref_keys_of_row(const fref_problem *p, int64_t b, int64_t i, int64_t *first, int64_t *last)
{
    int64_t len_q = p->len_q ? p->len_q[b] : p->rows;
    int64_t len_kv = p->len_kv ? p->len_kv[b] : p->keys;
    int64_t diagonal = i + (p->bottom_right ? len_kv - len_q : 0);
    *first = 0;
    *last = larger(0, smaller(len_kv, p->keys));
    if (p->has_left)
        *first = larger(*first, diagonal - smaller(p->left, FAR) + 1);
    if (p->has_right)
        *last = smaller(*last, diagonal + smaller(p->right, FAR) + 1);
    if (i >= len_q || *first >= *last)
        *first = *last = 0;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

fref__shape fref__shape_of(const fref_problem *p, fref__list rows, fref__list keys)
{
    fref__shape s = { .problem = p,
                      .rows = rows,
                      .keys = keys,
                      .group_k = p->heads_q / p->heads_k,
                      .group_v = p->heads_q / p->heads_v };
    s.span = common_multiple(s.group_k, s.group_v);
    s.span_k = s.span / s.group_k;
    s.span_v = s.span / s.group_v;
    s.units_of_batch = p->heads_q / s.span;
    s.units = p->batch * s.units_of_batch;
    s.ld_qk = fref__padded(p->dim_qk);
    s.ld_v = fref__padded(p->dim_v);
    s.keys_padded = fref__padded(keys.count);
    return s;
}

fref__list fref__all(int64_t count)
{
    return (fref__list){ .count = count };
}

fref__list fref__sample(const int64_t *at, int64_t count, int64_t all)
{
    return at ? (fref__list){ at, count } : fref__all(all);
}

/* The first listed place at or after `from`. */
static int64_t first_from(const fref__list *list, int64_t from)
{
    int64_t low = 0, high = list->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (list->at[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

fref__range fref__listed(const fref__list *list, fref__range in)
{
    if (list->at)
        in = (fref__range){ first_from(list, in.first), first_from(list, in.last) };
    return in.first < in.last ? in : (fref__range){ 0, 0 };
}

void fref__include(fref__range *range, fref__range one)
{
    bool none_yet = range->first == range->last;
    range->first = none_yet || one.first < range->first ? one.first : range->first;
    range->last = none_yet || one.last > range->last ? one.last : range->last;
}

void fref__clear_outside(double *row, fref__range own, fref__range span)
{
    int64_t first = own.first > span.first ? own.first : span.first,
            last = own.last < span.last ? own.last : span.last;
    if (first >= last)
        first = last = span.last;
    memset(row + span.first, 0, (size_t)(first - span.first) * sizeof *row);
    memset(row + last, 0, (size_t)(span.last - last) * sizeof *row);
}
