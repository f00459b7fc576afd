#include "expect_arrays.h"

#include <stdlib.h>

#include "numbers/fill/scalars.h"

/* The factor of a tensor before its cast. */
static double unit_of(const facts_problem *p, facts_tensor_id id)
{
    static const facts_array_id scales[FACTS_TENSOR_COUNT] = {
        [FACTS_TENSOR_O] = FACTS_ARRAY_SCALE_O,
        [FACTS_TENSOR_DQ] = FACTS_ARRAY_SCALE_DQ,
        [FACTS_TENSOR_DK] = FACTS_ARRAY_SCALE_DK,
        [FACTS_TENSOR_DV] = FACTS_ARRAY_SCALE_DV
    };
    const facts_array_id scale = scales[id];
    return scale != 0 && p->array[scale].count ? 1.0 / facts_array_scalar(p, scale) : 1.0;
}

bool facts_expect_arrays(facts_expectation *out, const facts_problem *p)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        out->unit[id] = unit_of(p, id);
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        if (!p->array[id].output || p->array[id].count == 0)
            continue;
        out->array[id] = calloc((size_t)p->array[id].count * 3, sizeof *out->array[id]);
        if (!out->array[id])
            return false;
    }
    return true;
}

void facts_expect_arrays_forward(const facts_expectation *e, const facts_problem *p,
                                 fref_forward_out *out)
{
    (void)p;
    out->amax_s = e->array[FACTS_ARRAY_AMAX_S];
    out->amax_o = e->array[FACTS_ARRAY_AMAX_O];
}

void facts_expect_arrays_backward(const facts_expectation *e, const facts_problem *p,
                                  fref_backward_out *out)
{
    double *dsink = e->array[FACTS_ARRAY_DSINK];
    out->amax_dp = e->array[FACTS_ARRAY_AMAX_DP];
    out->amax_dq = e->array[FACTS_ARRAY_AMAX_DQ];
    out->amax_dk = e->array[FACTS_ARRAY_AMAX_DK];
    out->amax_dv = e->array[FACTS_ARRAY_AMAX_DV];
    out->dsink = dsink;
    out->dsink_bound = dsink ? dsink + p->ask.heads_q : NULL;
}

void facts_expect_arrays_destroy(facts_expectation *e)
{
    for (int id = 0; id < FACTS_ARRAY_COUNT; id++) {
        free(e->array[id]);
        e->array[id] = NULL;
    }
}

facts_tensor_id facts_amax_of(facts_array_id id)
{
    switch (id) {
    case FACTS_ARRAY_AMAX_O:
        return FACTS_TENSOR_O;
    case FACTS_ARRAY_AMAX_DQ:
        return FACTS_TENSOR_DQ;
    case FACTS_ARRAY_AMAX_DK:
        return FACTS_TENSOR_DK;
    case FACTS_ARRAY_AMAX_DV:
        return FACTS_TENSOR_DV;
    default:
        return FACTS_TENSOR_COUNT;
    }
}
