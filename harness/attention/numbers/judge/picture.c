#include "picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers/fill/places.h"

#define SPARSE 0.05 /* of a region: less is "scattered" */

/* Text, cut off at the end of the buffer. */
typedef struct page {
    char *text;
    size_t used;
} page;

static void put(page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(p->text + p->used, FACTS_PICTURE_TEXT - p->used, format, arguments);
    va_end(arguments);
    p->used += n < 0 ? 0 : (size_t)n;
    if (p->used >= FACTS_PICTURE_TEXT)
        p->used = FACTS_PICTURE_TEXT - 1;
}

/* The indices of one dimension with a wrong element. */
typedef struct along {
    int64_t first, last, step, count;
    bool steady; /* every `step`-th from the first on, to the end */
} along;

static along describe(const facts_marks *m, int axis)
{
    const int64_t n = m->dim[axis];
    unsigned char *hit = calloc((size_t)n + 1, 1);
    along out = { .steady = true };
    for (int64_t i = 0; hit && i < facts_elements(m->dim); i++) {
        int64_t at[4];
        facts_index_of(m->dim, i, at);
        hit[at[axis]] |= m->at[i] != FACTS_RIGHT;
    }
    for (int64_t i = 0; hit && i < n; i++) {
        if (!hit[i])
            continue;
        if (out.count == 0)
            out.first = i;
        else if (out.count == 1)
            out.step = i - out.last;
        else
            out.steady = out.steady && i - out.last == out.step;
        out.last = i;
        out.count++;
    }
    free(hit);
    out.steady = out.steady && out.count > 2 && out.first < out.step && out.last + out.step >= n;
    return out;
}

/* Kernels work on 64 or 128 rows at a time: whole tiles, or the rest of the last one. 0: neither. */
static int64_t tile_of(const along *a, int64_t n)
{
    for (int64_t tile = 128; tile >= 64; tile /= 2)
        if (a->first % tile == 0 && (a->count == tile || (a->last == n - 1 && a->count < tile)))
            return tile;
    return 0;
}

static void name_along(page *p, const along *a, int64_t n, const char *word, bool tiles)
{
    const bool range = a->last - a->first + 1 == a->count;
    const int64_t tile = tiles && range ? tile_of(a, n) : 0;
    if (a->count == n)
        return;
    put(p, "%s", p->used ? ", " : "");
    if (a->count == 1)
        put(p, "one %s (%" PRId64 ")", word, a->first);
    else if (tile)
        put(p, "%s tile of %" PRId64 " (%ss %" PRId64 " to %" PRId64 ")",
            a->count < tile ? "the last, partial" : "a", tile, word, a->first, a->last);
    else if (range && a->last == n - 1)
        put(p, "from %s %" PRId64 " on", word, a->first);
    else if (range)
        put(p, "%ss %" PRId64 " to %" PRId64, word, a->first, a->last);
    else if (a->steady)
        put(p, "one %s in %" PRId64 ", from %" PRId64 " on", word, a->step, a->first);
    else
        put(p, "%" PRId64 " of %" PRId64 " %ss, %" PRId64 " to %" PRId64, a->count, n, word,
            a->first, a->last);
}

static void name(page *p, const facts_marks *m, int64_t wrong)
{
    const char *const words[4] = { "batch", "head", m->keys ? "key" : "row", "column" };
    int64_t region = 1;
    along a[4];
    for (int axis = 0; axis < 4; axis++) {
        a[axis] = describe(m, axis);
        region *= a[axis].count;
    }
    if (wrong <= 1) {
        put(p, wrong ? "one element" : "none");
        return;
    }
    if ((double)wrong < SPARSE * (double)region) {
        put(p, "scattered");
        return;
    }
    for (int axis = 0; axis < 4; axis++)
        name_along(p, &a[axis], m->dim[axis], words[axis], axis == 2);
    if (p->used == 0)
        put(p, "all");
    if ((double)wrong < 0.5 * (double)region)
        put(p, ": %.0f %% of it", 100.0 * (double)wrong / (double)region);
}

const char *facts_picture(const facts_marks *m, char out[FACTS_PICTURE_TEXT])
{
    page p = { out, 0 };
    int64_t kind[FACTS_UNWRITTEN + 1] = { 0 };
    for (int64_t i = 0; i < facts_elements(m->dim); i++)
        kind[m->at[i]]++;
    const int64_t wrong = facts_elements(m->dim) - kind[FACTS_RIGHT];
    name(&p, m, wrong);
    put(&p, "\n  %" PRId64 " of %" PRId64 " elements", wrong, facts_elements(m->dim));
    if (kind[FACTS_NOT_FINITE])
        put(&p, ", %" PRId64 " of them NaN or Inf", kind[FACTS_NOT_FINITE]);
    if (kind[FACTS_UNWRITTEN])
        put(&p, ", %" PRId64 " never written", kind[FACTS_UNWRITTEN]);
    put(&p, "\n");
    return out;
}
