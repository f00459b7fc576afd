/* The tensors of a resolved problem: extents, strides, types, and what is summed. */
#include <string.h>

#include "layout.h"
#include "resolved_problem.h"

int64_t *fattn__problem_strides(fattn_problem *p, fattn__role which)
{
#define AS_STRIDES(symbol, name) [FATTN__ROLE_##symbol] = p->name##_strides,
    int64_t *const table[FATTN__ROLE_COUNT] = { FATTN__ROLE_LIST(AS_STRIDES) };
#undef AS_STRIDES
    return which < FATTN__ROLE_COUNT ? table[which] : NULL;
}

const char *fattn__role_name(fattn__role which)
{
#define AS_NAME(symbol, name) [FATTN__ROLE_##symbol] = #name,
    static const char *const table[FATTN__ROLE_COUNT] = { FATTN__ROLE_LIST(AS_NAME) };
#undef AS_NAME
    return table[which];
}

fattn__shape fattn__problem_shape(const fattn_problem *p, fattn__role which)
{
    const bool backward = p->pass == FATTN_BACKWARD;
    fattn__shape shape = { .dim = { p->batch, p->heads_q, p->seq_q, p->dim_qk },
                           .dtype = p->dtype,
                           .used = true };
    switch (which) {
    case FATTN__ROLE_DK:
    case FATTN__ROLE_K:
        shape.dim[1] = p->heads_k, shape.dim[2] = p->seq_kv;
        break;
    case FATTN__ROLE_DV:
    case FATTN__ROLE_V:
        shape.dim[1] = p->heads_v, shape.dim[2] = p->seq_kv, shape.dim[3] = p->dim_v;
        break;
    case FATTN__ROLE_DO:
        shape.dim[3] = p->dim_v, shape.dtype = p->do_dtype;
        break;
    case FATTN__ROLE_O:
        shape.dim[3] = p->dim_v, shape.dtype = p->o_dtype;
        break;
    case FATTN__ROLE_STATS:
        shape.dim[3] = 1, shape.dtype = p->stats_dtype;
        break;
    case FATTN__ROLE_BIAS:
    case FATTN__ROLE_DBIAS:
        memcpy(shape.dim, p->bias_dim, sizeof shape.dim), shape.dtype = p->bias_dtype;
        break;
    case FATTN__ROLE_Q:
    case FATTN__ROLE_DQ:
    case FATTN__ROLE_COUNT:
        break;
    }
    if (which == FATTN__ROLE_DQ || which == FATTN__ROLE_DK || which == FATTN__ROLE_DV)
        shape.dtype = p->grad_dtype, shape.written = shape.used = backward;
    else if (which == FATTN__ROLE_DO)
        shape.used = backward;
    else if (which == FATTN__ROLE_O)
        shape.written = !backward;
    else if (which == FATTN__ROLE_STATS)
        shape.written = (p->outputs & ~FATTN_WANT_RNG_DUMP) != 0,
        shape.used = backward || shape.written;
    else if (which == FATTN__ROLE_BIAS)
        shape.used = p->has_bias != 0;
    else if (which == FATTN__ROLE_DBIAS)
        shape.used = shape.written = p->dbias != 0;
    fattn_problem copy = *p;
    memcpy(shape.strides, fattn__problem_strides(&copy, which), sizeof shape.strides);
    bool summed[4];
    if (fattn__problem_sums(p, which, summed))
        for (int axis = 0; axis < 4; axis++)
            shape.dim[axis] = summed[axis] ? 1 : shape.dim[axis];
    return shape;
}

bool fattn__problem_ragged(const fattn_problem *p, fattn__role which)
{
    _Static_assert(FATTN__ROLE_Q == 0 && FATTN__ROLE_STATS == 4 && FATTN__ROLE_DV == 8,
                   "the order of FATTN_RAGGED_LIST");
    return which <= FATTN__ROLE_DV && (p->ragged >> which & 1u) != 0;
}

int64_t fattn__problem_page(const fattn_problem *p, fattn__role which)
{
    return which == FATTN__ROLE_K ? p->page_size_k : which == FATTN__ROLE_V ? p->page_size_v : 0;
}

fattn__shape fattn__problem_bytes_of(const fattn_problem *p, fattn__role which)
{
    fattn__shape shape = fattn__problem_shape(p, which);
    const int64_t page = fattn__problem_page(p, which);
    if (fattn__problem_ragged(p, which))
        shape.dim[0] = shape.dim[2] = 1;
    if (page != 0) {
        shape.dim[0] = which == FATTN__ROLE_K ? p->pages_k : p->pages_v;
        shape.dim[2] = page;
    }
    return shape;
}

fattn__role fattn__problem_input(fattn__role output)
{
    static const fattn__role table[FATTN__ROLE_COUNT] = {
        [FATTN__ROLE_Q] = FATTN__ROLE_COUNT,     [FATTN__ROLE_K] = FATTN__ROLE_COUNT,
        [FATTN__ROLE_V] = FATTN__ROLE_COUNT,     [FATTN__ROLE_O] = FATTN__ROLE_Q,
        [FATTN__ROLE_STATS] = FATTN__ROLE_COUNT, [FATTN__ROLE_DO] = FATTN__ROLE_O,
        [FATTN__ROLE_DQ] = FATTN__ROLE_Q,        [FATTN__ROLE_DK] = FATTN__ROLE_K,
        [FATTN__ROLE_DV] = FATTN__ROLE_V,        [FATTN__ROLE_BIAS] = FATTN__ROLE_COUNT,
        [FATTN__ROLE_DBIAS] = FATTN__ROLE_BIAS
    };
    return table[output];
}

bool fattn__problem_sums(const fattn_problem *p, fattn__role gradient, bool summed[4])
{
    bool any = false, unread[4];
    bool *out = summed != NULL ? summed : unread;
    memset(out, 0, 4 * sizeof *out);
    const fattn__role input = fattn__problem_input(gradient);
    if (input == FATTN__ROLE_COUNT || gradient == FATTN__ROLE_O || gradient == FATTN__ROLE_DO)
        return false;
    const fattn__shape shape = fattn__problem_shape(p, input);
    fattn_problem copy = *p;
    const int64_t *strides = fattn__problem_strides(&copy, gradient);
    if ((strides[0] | strides[1] | strides[2] | strides[3]) == 0) /* not derived yet */
        return false;
    for (int axis = 0; axis < 4; axis++) { /* the stride of b of a ragged tensor is not read, and is
                                              not 0 in a resolved problem */
        out[axis] = shape.dim[axis] > 1 && shape.strides[axis] == 0 && strides[axis] == 0;
        any = any || out[axis];
    }
    return any;
}

fattn__role fattn__problem_misaligned(const fattn_problem *resolved)
{
    fattn__role which = 0;
    for (; which < FATTN__ROLE_COUNT; which++) {
        const fattn__shape shape = fattn__problem_shape(resolved, which);
        if (shape.used && which != FATTN__ROLE_STATS && which != FATTN__ROLE_BIAS &&
            which != FATTN__ROLE_DBIAS &&
            !fattn__layout_aligned(shape.dim, shape.strides, fattn__dtype_bytes(shape.dtype)))
            break;
    }
    return which;
}
