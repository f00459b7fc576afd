/* The layouts of a problem's tensors: fills in the strides that the caller leaves out, and refuses
 * impossible ones. */
#include <inttypes.h>

#include "core/error.h"
#include "layout.h"
#include "resolved_problem.h"

static bool is_bias(fattn__role which)
{
    return which == FATTN__ROLE_BIAS || which == FATTN__ROLE_DBIAS;
}

static void derive_strides(fattn_problem *p, fattn__role which)
{
    int64_t *strides = fattn__problem_strides(p, which);
    const fattn__shape shape = fattn__problem_page(p, which) != 0
                                   ? fattn__problem_bytes_of(p, which)
                                   : fattn__problem_shape(p, which);
    if ((strides[0] | strides[1] | strides[2] | strides[3]) != 0)
        return;
    if (fattn__problem_input(which) != FATTN__ROLE_COUNT && !is_bias(which))
        fattn_match_layout(shape.dim, fattn__problem_strides(p, fattn__problem_input(which)),
                           strides);
    else if (is_bias(which) || (which == FATTN__ROLE_STATS && !fattn__problem_ragged(p, which)))
        fattn__dense_strides(shape.dim, "bhsd", strides);
    else
        fattn__dense_strides(shape.dim, "bshd", strides);
}

/* The stride of b of a ragged tensor is not read. It becomes the stride of entries that are all as
 * long as the longest. */
static fattn_status settle_packing(fattn_problem *p, fattn__role which)
{
    int64_t *strides = fattn__problem_strides(p, which);
    const int64_t tokens[2] = { strides[2], fattn__problem_shape(p, which).dim[2] };
    if (!fattn__problem_ragged(p, which) || strides[2] < 0)
        return FATTN_OK;
    if (strides[2] == 0)
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "%s_strides[2]: 0 is not allowed; tokens of a packed tensor lie one behind the other",
            fattn__role_name(which));
    if (!fattn__fits(tokens, 2))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s_strides: the last element must lie below 2^62",
                           fattn__role_name(which));
    strides[0] = tokens[0] * tokens[1];
    return FATTN_OK;
}

static fattn_status check_strides(const fattn_problem *p, fattn__role which)
{
    const fattn__shape shape = fattn__problem_bytes_of(p, which);
    const char *name = fattn__role_name(which);
    for (int axis = 0; axis < 4; axis++)
        if (shape.strides[axis] < 0)
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "%s_strides[%d]: %" PRId64 " is not allowed; want 0 or more", name,
                               axis, shape.strides[axis]);
    if (shape.strides[3] != 1 && !(is_bias(which) && shape.dim[3] == 1))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "%s_strides[3]: %" PRId64 " is not allowed; the last stride must be 1",
                           name, shape.strides[3]);
    int64_t span;
    if (!fattn__layout_span(shape.dim, shape.strides, &span))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s_strides: the last element must lie below 2^62",
                           name);
    if (!shape.written)
        return FATTN_OK;
    for (int axis = 0; axis < 3; axis++)
        if (shape.strides[axis] == 0 && shape.dim[axis] > 1)
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "%s_strides[%d]: 0 is not allowed; only an input can be broadcast, "
                               "or the gradient of one",
                               name, axis);
    if (fattn__layout_overlaps(shape.dim, shape.strides))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s_strides: elements of an output overlap", name);
    return FATTN_OK;
}

fattn_status fattn__problem_lay_out(fattn_problem *p)
{
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++) {
        if (is_bias(which) && !p->has_bias)
            continue;
        derive_strides(p, which);
        TRY(settle_packing(p, which));
        TRY(check_strides(p, which));
    }
    return FATTN_OK;
}
