#include "picture.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP_ROWS 24
#define MAP_COLUMNS 64
#define SPARSE 0.05 /* of a region: less is "scattered" */

/* Text, cut off at the end of the buffer. */
typedef struct page {
    char *text;
    size_t room, used;
} page;

static void put(page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(p->text + p->used, p->room - p->used, format, arguments);
    va_end(arguments);
    p->used += n < 0 ? 0 : (size_t)n;
    if (p->used >= p->room)
        p->used = p->room - 1;
}

static int64_t elements_of(const facts_marks *m)
{
    return m->dim[0] * m->dim[1] * m->dim[2] * m->dim[3];
}

static int64_t index_on(const facts_marks *m, int64_t i, int axis)
{
    for (int n = 3; n > axis; n--)
        i /= m->dim[n];
    return i % m->dim[axis];
}

/* ---- one dimension
 * ---------------------------------------------------------------------------------------------------------------
 */

typedef enum shape { NONE, ALL, ONE, RANGE, STEPS, SEVERAL } shape;

/* The indices of one dimension with a wrong element. */
typedef struct along {
    shape shape;
    int64_t first, last, step, count; /* step: of every n-th */
} along;

static along describe(const facts_marks *m, int axis)
{
    int64_t n = m->dim[axis], previous = -1;
    unsigned char *hit = calloc((size_t)n + 1, 1);
    along out = { .shape = NONE, .first = -1 };
    bool steady = true;
    if (!hit)
        return out;
    for (int64_t i = 0; i < elements_of(m); i++)
        if (m->at[i] != FACTS_RIGHT)
            hit[index_on(m, i, axis)] = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!hit[i])
            continue;
        if (out.count == 0)
            out.first = i;
        else if (out.count == 1)
            out.step = i - previous;
        else
            steady = steady && i - previous == out.step;
        previous = out.last = i;
        out.count++;
    }
    free(hit);
    bool to_the_end =
        out.step > 1 && out.first < out.step && out.last + out.step >= n && out.count > 2;
    out.shape = out.count == 0                          ? NONE
                : out.count == n                        ? ALL
                : out.count == 1                        ? ONE
                : out.last - out.first + 1 == out.count ? RANGE
                : steady && to_the_end                  ? STEPS
                                                        : SEVERAL;
    return out;
}

static const char *ordinal(int64_t n)
{
    return n % 100 >= 11 && n % 100 <= 13 ? "th"
           : n % 10 == 1                  ? "st"
           : n % 10 == 2                  ? "nd"
           : n % 10 == 3                  ? "rd"
                                          : "th";
}

/* Kernels work on 64 or 128 rows at a time: whole tiles, or the rest of the last one. */
static void name_tile(page *p, const along *a, int64_t n, const char *word)
{
    for (int64_t tile = 128; tile >= 64; tile /= 2) {
        if (a->first % tile != 0)
            continue;
        if (a->last == n - 1 && a->count < tile) {
            put(p, "the last, partial tile of %" PRId64 " (%ss %" PRId64 " to %" PRId64 ")", tile,
                word, a->first, a->last);
            return;
        }
        if (a->count == tile) {
            put(p, "a tile of %" PRId64 " (%ss %" PRId64 " to %" PRId64 ")", tile, word, a->first,
                a->last);
            return;
        }
    }
    if (a->last == n - 1)
        put(p, "from %s %" PRId64 " on", word, a->first);
    else if (a->first == 0)
        put(p, "up to %s %" PRId64, word, a->last);
    else
        put(p, "%ss %" PRId64 " to %" PRId64, word, a->first, a->last);
}

static void name_along(page *p, const along *a, int64_t n, const char *word, bool tiles)
{
    if (a->shape == ALL)
        return;
    put(p, "%s", p->used ? ", " : "");
    if (a->shape == ONE)
        put(p, "one %s (%" PRId64 ")", word, a->first);
    else if (a->shape == STEPS)
        put(p, "every %" PRId64 "%s %s, from %" PRId64 " on", a->step, ordinal(a->step), word,
            a->first);
    else if (a->shape == SEVERAL)
        put(p, "%" PRId64 " of %" PRId64 " %ss, %" PRId64 " to %" PRId64, a->count, n, word,
            a->first, a->last);
    else if (tiles)
        name_tile(p, a, n, word);
    else if (a->last == n - 1)
        put(p, "from %s %" PRId64 " on", word, a->first);
    else
        put(p, "%ss %" PRId64 " to %" PRId64, word, a->first, a->last);
}

/* ---- the name
 * --------------------------------------------------------------------------------------------------------------------
 */

static int64_t count_wrong(const facts_marks *m)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < elements_of(m); i++)
        wrong += m->at[i] != FACTS_RIGHT;
    return wrong;
}

const char *facts_picture_name(const facts_marks *m, char out[FACTS_PICTURE_NAME])
{
    const char *const words[4] = { "batch", "head", m->keys ? "key" : "row", "column" };
    page p = { out, FACTS_PICTURE_NAME, 0 };
    int64_t wrong = count_wrong(m), region = 1;
    along a[4];
    out[0] = '\0';
    if (wrong == 0) {
        put(&p, "none");
        return out;
    }
    for (int axis = 0; axis < 4; axis++) {
        a[axis] = describe(m, axis);
        region *= a[axis].count;
    }
    if (wrong == 1) {
        put(&p, "one element");
        return out;
    }
    if ((double)wrong < SPARSE * (double)region) {
        put(&p, "scattered: %" PRId64 " of %" PRId64 " elements", wrong, elements_of(m));
        return out;
    }
    for (int axis = 0; axis < 4; axis++)
        if (m->dim[axis] > 1)
            name_along(&p, &a[axis], m->dim[axis], words[axis], axis == 2);
    if (p.used == 0)
        put(&p, "all");
    if ((double)wrong < 0.5 * (double)region)
        put(&p, ": %.0f %% of it", 100.0 * (double)wrong / (double)region);
    return out;
}

/* ---- the maps
 * --------------------------------------------------------------------------------------------------------------------
 */

/* Cells of a map: the wrong and all elements of each. */
typedef struct map {
    int64_t per_row, per_column; /* indices that share a cell */
    int rows, columns;
    int64_t wrong[MAP_ROWS][MAP_COLUMNS], all[MAP_ROWS][MAP_COLUMNS];
} map;

/* Indices that share one of at most `most` cells: a power of two, so that tiles stay visible. */
static int64_t share(int64_t n, int64_t most)
{
    int64_t each = 1;
    while ((n + each - 1) / each > most)
        each *= 2;
    return each;
}

static void count(map *out, const facts_marks *m, int down, int across)
{
    *out = (map){ .per_row = share(m->dim[down], MAP_ROWS),
                  .per_column = share(m->dim[across], MAP_COLUMNS) };
    out->rows = (int)((m->dim[down] + out->per_row - 1) / out->per_row);
    out->columns = (int)((m->dim[across] + out->per_column - 1) / out->per_column);
    int64_t head = m->dim[2] * m->dim[3];
    for (int64_t slice = 0; slice < m->dim[0] * m->dim[1]; slice++) {
        int64_t any = 0;
        for (int64_t i = slice * head; i < (slice + 1) * head; i++)
            any += m->at[i] != FACTS_RIGHT;
        if (any == 0 && down == 2) /* correct heads would only dilute the others */
            continue;
        for (int64_t i = slice * head; i < (slice + 1) * head; i++) {
            int64_t r = index_on(m, i, down) / out->per_row,
                    c = index_on(m, i, across) / out->per_column;
            out->wrong[r][c] += m->at[i] != FACTS_RIGHT;
            out->all[r][c]++;
        }
    }
}

static char shade(int64_t wrong, int64_t all)
{
    if (wrong == 0)
        return '.';
    return wrong == all ? '@' : wrong * 2 >= all ? '#' : wrong * 10 >= all ? '+' : '-';
}

static void draw(page *p, const map *m, const char *down, const char *across, int64_t n)
{
    put(p, "  %s down, %s across", down, across);
    if (m->per_row > 1 || m->per_column > 1)
        put(p, "; a sign is %" PRId64 " %s by %" PRId64 " %s", m->per_row, down, m->per_column,
            across);
    put(p, "\n");
    for (int r = 0; r < m->rows; r++) {
        int64_t first = r * m->per_row,
                last = first + m->per_row - 1 < n ? first + m->per_row - 1 : n - 1;
        char label[48], line[MAP_COLUMNS + 1];
        if (first == last)
            snprintf(label, sizeof label, "%" PRId64, first);
        else
            snprintf(label, sizeof label, "%" PRId64 "-%" PRId64, first, last);
        for (int c = 0; c < m->columns; c++)
            line[c] = shade(m->wrong[r][c], m->all[r][c]);
        line[m->columns] = '\0';
        put(p, "  %13s |%s|\n", label, line);
    }
}

const char *facts_picture_draw(const facts_marks *m, char out[FACTS_PICTURE_TEXT])
{
    char name[FACTS_PICTURE_NAME];
    page p = { out, FACTS_PICTURE_TEXT, 0 };
    int64_t kind[FACTS_UNWRITTEN + 1] = { 0 };
    map *maps = calloc(1, sizeof *maps);
    for (int64_t i = 0; i < elements_of(m); i++)
        kind[m->at[i]]++;
    put(&p, "  %s\n  %" PRId64 " of %" PRId64 " elements", facts_picture_name(m, name),
        elements_of(m) - kind[FACTS_RIGHT], elements_of(m));
    if (kind[FACTS_NOT_FINITE])
        put(&p, ", %" PRId64 " of them NaN or Inf", kind[FACTS_NOT_FINITE]);
    if (kind[FACTS_UNWRITTEN])
        put(&p, ", %" PRId64 " never written", kind[FACTS_UNWRITTEN]);
    put(&p, "\n");
    if (maps && kind[FACTS_RIGHT] != elements_of(m)) {
        put(&p, "  . none   - below 10 %%   + below half   # half and more   @ all\n");
        count(maps, m, 0, 1);
        draw(&p, maps, "batches", "heads", m->dim[0]);
        count(maps, m, 2, 3);
        draw(&p, maps, m->keys ? "keys" : "rows", "columns", m->dim[2]);
    }
    free(maps);
    return out;
}
