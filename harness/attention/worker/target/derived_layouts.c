#include "derived_layouts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* May b, h, s be in this order, outermost first? Dimensions with stride 0 in the input come first,
 * in the order b,h,s. The others follow by decreasing stride, equal strides in the order b,h,s. */
static bool is_order(const int order[3], const int64_t dim[4], const int64_t like[4])
{
    for (int i = 0; i + 1 < 3; i++) {
        int a = order[i], b = order[i + 1];
        bool loose_a = dim[a] == 1 || like[a] == 0, loose_b = dim[b] == 1 || like[b] == 0;
        if (loose_a != loose_b              ? loose_b
            : loose_a || like[a] == like[b] ? a > b
                                            : like[a] < like[b])
            return false;
    }
    return true;
}

/* The dense strides of the only order of six that the rule allows. */
static void expects(const int64_t dim[4], const int64_t like[4], int64_t out[4])
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
    for (int i = 0; i < 6; i++) {
        if (!is_order(orders[i], dim, like))
            continue;
        out[3] = 1;
        out[orders[i][2]] = dim[3];
        out[orders[i][1]] = dim[3] * dim[orders[i][2]];
        out[orders[i][0]] = dim[3] * dim[orders[i][2]] * dim[orders[i][1]];
    }
}

bool facts_layouts_hold(const facts_problem *p, facts_error *error)
{
    static const struct {
        facts_tensor_id input;
        const char *words;
        bool of_v; /* has V's channels */
    } pairs[] = { { FACTS_TENSOR_Q, "O (and dO) behind Q", true },
                  { FACTS_TENSOR_Q, "dQ behind Q", false },
                  { FACTS_TENSOR_K, "dK behind K", false },
                  { FACTS_TENSOR_V, "dV behind V", false } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const facts_tensor *input = &p->tensor[pairs[i].input];
        int64_t dim[4], got[4], want[4] = { 0 };
        memcpy(dim, input->dim, sizeof dim);
        if (pairs[i].of_v)
            dim[3] = p->ask.dim_v;
        if (input->stride[0] != 0 && input->stride[1] != 0 && input->stride[2] != 0)
            continue;
        fattn_match_layout(dim, input->stride, got);
        expects(dim, input->stride, want);
        if (memcmp(got, want, sizeof got) == 0)
            continue;
        return facts_fail(error,
                          "layout: %s has strides %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                          "; its rule gives %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                          pairs[i].words, got[0], got[1], got[2], got[3], want[0], want[1], want[2],
                          want[3]);
    }
    return true;
}
