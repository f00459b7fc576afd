#include "layout.h"
#include "liars/lies.h"

#include <stddef.h>
#include <string.h>

enum { B, H, S, D };

static const int64_t span_limit = (int64_t)1 << 62;
static const int64_t search_limit = (int64_t)1 << 24;

void fattn__dense_strides(const int64_t dim[4], const char *order, int64_t out[4])
{
    static const char axes[] = "bhsd";
    int64_t step = 1;
    for (int place = 3; place >= 0; place--) {
        const ptrdiff_t axis = strchr(axes, order[place]) - axes;
        out[axis] = step;
        step *= dim[axis];
    }
}

/* A dimension of stride 0 or extent 1 has no place in the memory order of the input. */
static bool is_loose(const int64_t dim[4], const int64_t like_strides[4], int axis)
{
    return dim[axis] == 1 || (like_strides[axis] == 0 && !FATTN__LIE(LAYOUT_ZERO_AS_ONE));
}

static bool is_outside(const int64_t dim[4], const int64_t like_strides[4], int a, int b)
{
    const bool loose_a = is_loose(dim, like_strides, a), loose_b = is_loose(dim, like_strides, b);
    if (loose_a || loose_b)
        return loose_a && !loose_b;
    return like_strides[a] > like_strides[b];
}

void fattn_match_layout(const int64_t dim[4], const int64_t like_strides[4], int64_t out[4])
{
    int order[3] = { B, H, S }; /* outermost first; equals keep this order */
    for (int i = 1; i < 3; i++) {
        const int axis = order[i];
        int place = i;
        for (; place > 0 && is_outside(dim, like_strides, axis, order[place - 1]); place--)
            order[place] = order[place - 1];
        order[place] = axis;
    }
    const int64_t extents[4] = { dim[B], dim[H], dim[S],
                                 dim[D] }; /* `out` may be `dim` or `like_strides` */
    int64_t step = extents[D];
    out[D] = 1;
    for (int i = 2; i >= 0; i--) {
        out[order[i]] = step;
        step *= extents[order[i]];
    }
}

bool fattn__fits(const int64_t *extents, int count)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        if (__builtin_mul_overflow(product, extents[i], &product) || product >= span_limit)
            return false;
    return true;
}

bool fattn__layout_span(const int64_t dim[4], const int64_t strides[4], int64_t *out)
{
    int64_t last = 0;
    for (int axis = 0; axis < 4; axis++) {
        int64_t reach;
        if (__builtin_mul_overflow(dim[axis] - 1, strides[axis], &reach) ||
            __builtin_add_overflow(last, reach, &last))
            return false;
    }
    if (last >= span_limit - 1)
        return false;
    *out = last + 1;
    return true;
}

/* Nested: sorted by stride, every dimension steps over everything inside it. This is sufficient,
 * and nearly every layout has it. */
static bool is_nested(const int64_t dim[4], const int64_t strides[4])
{
    bool used[4] = { false };
    int64_t inside = 1;
    for (int round = 0; round < 4; round++) {
        int least = -1;
        for (int axis = 0; axis < 4; axis++)
            if (!used[axis] && dim[axis] > 1 && (least < 0 || strides[axis] < strides[least]))
                least = axis;
        if (least < 0)
            return true;
        if (strides[least] < inside)
            return false;
        used[least] = true;
        inside += (dim[least] - 1) * strides[least];
    }
    return true;
}

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Is there a step n with |n| < extent and |offset + n * stride| < width <= stride? The values
 * nearest to 0 decide. */
static bool reaches(int64_t offset, int64_t stride, int64_t extent, int64_t width)
{
    const int64_t nearest = -offset / stride;
    for (int64_t n = nearest - 1; n <= nearest + 1; n++)
        if (magnitude(n) < extent && magnitude(offset + n * stride) < width)
            return true;
    return false;
}

/* Two elements coincide iff a difference of index tuples, not all zero, has offset 0. The innermost
 * dimension has stride 1, so it covers every offset below its extent; the longest of the others is
 * solved for, the remaining two are tried. */
bool fattn__layout_overlaps(const int64_t dim[4], const int64_t strides[4])
{
    if (is_nested(dim, strides))
        return false;
    int solved = B;
    for (int axis = H; axis <= S; axis++)
        if (dim[axis] > dim[solved])
            solved = axis;
    const int one = solved == B ? H : B, two = solved == S ? H : S;
    if (dim[one] > search_limit || dim[two] > search_limit ||
        dim[one] * (2 * dim[two] - 1) > search_limit)
        return true;
    if (dim[solved] > 1 && strides[solved] < dim[D])
        return true;
    for (int64_t i = 0; i < dim[one];
         i++) /* differences come in pairs of opposite sign, so one half is enough */
        for (int64_t j = i == 0 ? 1 : 1 - dim[two]; j < dim[two]; j++)
            if (reaches(i * strides[one] + j * strides[two], strides[solved], dim[solved], dim[D]))
                return true;
    return false;
}

bool fattn__layout_aligned(const int64_t dim[4], const int64_t strides[4], int64_t element_bytes)
{
    for (int axis = 0; axis < 4; axis++)
        if (dim[axis] > 1 && strides[axis] != 1 && strides[axis] % 16 * element_bytes % 16 != 0)
            return false;
    return true;
}

int64_t fattn__dtype_bytes(int32_t dtype)
{
    switch ((fattn_dtype)dtype) {
    case FATTN_F32:
        return 4;
    case FATTN_BF16:
    case FATTN_F16:
        return 2;
    case FATTN_E4M3:
    case FATTN_E5M2:
    case FATTN_MXE4M3:
    case FATTN_MXE5M2:
    case FATTN_BOOL:
        return 1;
    case FATTN_DTYPE_DEFAULT:
        break;
    }
    return 0;
}
