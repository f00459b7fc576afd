/* Layouts, held against brute force: every permutation, with and without broadcast and extent-1
 * dimensions. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "problem/layout.h"

static const int permutations[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                        { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

/* The same rule said the slow way: of all orders of b,h,s, the first (in b,h,s order) that puts
 * broadcast and extent-1 dimensions outside and has the others by falling stride. */
static void match_by_search(const int64_t dim[4], const int64_t like[4], int64_t out[4])
{
    for (int p = 0; p < 6; p++) {
        const int *order = permutations[p];
        bool right = true;
        for (int i = 0; i < 3; i++)
            for (int j = i + 1; j < 3; j++) {
                const int a = order[i], b = order[j];
                const bool loose_a = dim[a] == 1 || like[a] == 0,
                           loose_b = dim[b] == 1 || like[b] == 0;
                if (loose_b ? (!loose_a || a > b) : (!loose_a && like[a] < like[b]))
                    right = false;
            }
        if (!right)
            continue;
        out[3] = 1;
        out[order[2]] = dim[3];
        out[order[1]] = dim[3] * dim[order[2]];
        out[order[0]] = dim[3] * dim[order[2]] * dim[order[1]];
        return;
    }
    cr_assert(false, "no order is right");
}

Test(match_layout, follows_every_order_with_broadcast_and_extent_one_dimensions_outermost)
{
    for (int p = 0; p < 6; p++)
        for (int broadcast = 0; broadcast < 8; broadcast++)
            for (int single = 0; single < 8; single++) {
                const int64_t full[3] = { 3, 5, 7 };
                int64_t dim[4] = { 3, 5, 7, 16 }, like[4] = { 0, 0, 0, 1 }, got[4], want[4];
                int64_t step = 24; /* with a gap after each token */
                for (int i = 2; i >= 0; i--) {
                    const int axis = permutations[p][i];
                    like[axis] = step;
                    step *= full[axis];
                }
                for (int axis = 0; axis < 3; axis++) {
                    dim[axis] = single >> axis & 1 ? 1 : dim[axis];
                    like[axis] = broadcast >> axis & 1 ? 0 : like[axis];
                }
                fattn_match_layout(dim, like, got);
                match_by_search(dim, like, want);
                cr_expect_arr_eq(got, want, sizeof got, "order %d broadcast %d single %d", p,
                                 broadcast, single);
                cr_expect_not(fattn__layout_overlaps(dim, got));
            }
}

Test(dense_strides, are_those_of_the_named_order)
{
    const int64_t dim[4] = { 2, 3, 5, 8 };
    const struct {
        const char *order;
        int64_t want[4];
    } rows[] = { { "bshd", { 120, 8, 24, 1 } },
                 { "bhsd", { 120, 40, 8, 1 } },
                 { "sbhd", { 24, 8, 48, 1 } } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t got[4];
        fattn__dense_strides(dim, rows[i].order, got);
        cr_expect_arr_eq(got, rows[i].want, sizeof got, "%s", rows[i].order);
    }
}

/* 0: it does not fit. A dimension of extent 1 is never stepped over. */
Test(span, counts_from_the_first_to_the_last_element)
{
    static const struct {
        int64_t dim[4], strides[4], want;
    } rows[] = { { { 2, 3, 5, 8 }, { 120, 8, 24, 1 }, 240 },
                 { { 2, 3, 5, 8 }, { 0, 8, 24, 1 }, 120 },
                 { { 1, 1, 1, 1 }, { INT64_MAX, 7, 7, 1 }, 1 },
                 { { 2, 1, 1, 1 }, { (int64_t)1 << 62, 1, 1, 1 }, 0 },
                 { { 3, 1, 1, 1 }, { INT64_MAX / 2 + 1, 1, 1, 1 }, 0 },
                 { { 2, 2, 2, 1 }, { INT64_MAX, INT64_MAX, 1, 1 }, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t span = 0;
        const bool fits = fattn__layout_span(rows[i].dim, rows[i].strides, &span);
        cr_expect_eq(fits, rows[i].want != 0, "row %zu", i);
        cr_expect(!fits || span == rows[i].want, "row %zu", i);
    }
}

/* Marks every element; true when one is marked twice. */
static bool overlaps_by_marking(const int64_t dim[4], const int64_t strides[4])
{
    int64_t span;
    cr_assert(fattn__layout_span(dim, strides, &span));
    char *marked = calloc((size_t)span, 1);
    bool twice = false;
    for (int64_t b = 0; b < dim[0]; b++)
        for (int64_t h = 0; h < dim[1]; h++)
            for (int64_t s = 0; s < dim[2]; s++)
                for (int64_t d = 0; d < dim[3]; d++) {
                    char *mark =
                        marked + b * strides[0] + h * strides[1] + s * strides[2] + d * strides[3];
                    twice |= *mark;
                    *mark = 1;
                }
    free(marked);
    return twice;
}

Test(overlap, agrees_with_marking_every_element)
{
    unsigned seed = 7;
    int overlapping = 0, apart = 0;
    for (int round = 0; round < 20000; round++) {
        int64_t dim[4], strides[4] = { 0, 0, 0, 1 };
        for (int axis = 0; axis < 4; axis++)
            dim[axis] = 1 + (int64_t)((unsigned)rand_r(&seed) % 5);
        for (int axis = 0; axis < 3; axis++)
            strides[axis] = (int64_t)((unsigned)rand_r(&seed) % 40);
        const bool want = overlaps_by_marking(dim, strides);
        cr_assert_eq(fattn__layout_overlaps(dim, strides), want, "%ld,%ld,%ld,%ld by %ld,%ld,%ld",
                     dim[0], dim[1], dim[2], dim[3], strides[0], strides[1], strides[2]);
        overlapping += want;
        apart += !want;
    }
    cr_expect_gt(overlapping, 1000);
    cr_expect_gt(apart, 1000);
}

Test(aligned, asks_only_for_strides_that_are_stepped_over)
{
    static const struct {
        bool want;
        int64_t dim[4], strides[4], bytes;
    } rows[] = { { true, { 2, 3, 5, 64 }, { 960, 64, 192, 1 }, 2 },
                 { false, { 2, 3, 5, 68 }, { 1020, 68, 204, 1 }, 2 }, /* 68 * 2 = 136 */
                 { true, { 2, 3, 5, 68 }, { 1020, 68, 204, 1 }, 4 },
                 { true, { 1, 1, 1, 64 }, { 3, 5, 7, 1 }, 2 },
                 { true, { 2, 3, 5, 64 }, { 0, 0, 64, 1 }, 2 } }; /* a broadcast */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(fattn__layout_aligned(rows[i].dim, rows[i].strides, rows[i].bytes),
                     rows[i].want, "row %zu", i);
}
