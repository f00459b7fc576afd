/* Bias, and the tensors of score modifications. */
#include <math.h>

#include "dtype.h"
#include "fill.h"
#include "mod.h"
#include "oracle.h"
#include "philox.h"

#define STREAM_OF_MOD FACTS_STREAM_SINK /* no case has both */

static facts_draw draw_of(const facts_problem *p, facts_stream stream, facts_lane lane, const facts_tensor *t, const int64_t at[4])
{
    return facts_draw_at(p->seed, stream, lane, (uint64_t)(((at[0] * t->dim[1] + at[1]) * t->dim[2] + at[2]) * t->dim[3] + at[3]));
}

static bool in_band(const facts_problem *p, const facts_tensor *t, const int64_t at[4])
{
    int64_t row = t->dim[2] > 1 ? at[2] : 0;
    return (double)at[3] <= (double)row + p->bias_parameter[1] && (double)at[3] > (double)row - p->bias_parameter[0];
}

/* Key 0 stays, and the key of the row's own number: with lengths, causal masks and left bounds alike every row keeps a key. */
static bool hidden_at_random(const facts_problem *p, const facts_tensor *t, const int64_t at[4])
{
    bool kept = at[3] == 0 || (t->dim[2] > 1 && at[3] == at[2]);
    return !kept && draw_of(p, FACTS_STREAM_BIAS, FACTS_LANE_CHOICE, t, at).r[0] >> 31 != 0;
}

/* A quarter of the rows, the first of several always. */
static bool row_is_hidden(const facts_problem *p, const facts_tensor *t, const int64_t at[4])
{
    const int64_t row[4] = { at[0], at[1], at[2], 0 };
    return (at[2] == 0 && t->dim[2] > 1) || draw_of(p, FACTS_STREAM_BIAS, FACTS_LANE_CHOICE, t, row).r[0] >> 30 == 0;
}

static double bias_value(const facts_problem *p, const facts_tensor *t, const int64_t at[4])
{
    switch (p->bias_fill) {
    case FACTS_BIAS_ZERO:
        return 0.0;
    case FACTS_BIAS_RANDOM:
        return hidden_at_random(p, t, at) ? -INFINITY : 0.0;
    case FACTS_BIAS_ROWS_MASKED:
        return row_is_hidden(p, t, at) ? -INFINITY : 0.0;
    case FACTS_BIAS_WINDOW:
        return in_band(p, t, at) ? 0.0 : -INFINITY;
    case FACTS_BIAS_FINITE_MIN:
        return hidden_at_random(p, t, at) ? -facts_dtype_max(t->dtype) : 0.0;
    default:
        return (double)facts_normal(draw_of(p, FACTS_STREAM_BIAS, FACTS_LANE_VALUE, t, at));
    }
}

static double value_at(const facts_problem *p, facts_tensor_id id, const int64_t at[4])
{
    const facts_tensor *t = &p->tensor[id];
    if (id == FACTS_TENSOR_BIAS)
        return bias_value(p, t, at);
    if (p->mod == FACTS_MOD_RELPOS)
        return facts_mod_slope(t->dim[1], at[1]);
    if (p->mod == FACTS_MOD_DOCUMENT)
        return (double)facts_mod_document(p, at[0], id == FACTS_TENSOR_MOD_A ? at[2] : at[3], id == FACTS_TENSOR_MOD_B);
    return (double)facts_normal(draw_of(p, STREAM_OF_MOD, FACTS_LANE_VALUE, t, at));
}

void facts_fill_scores(const facts_problem *p, facts_tensor_id id, void *storage)
{
    const facts_tensor *t = &p->tensor[id];
    int64_t extent[4]; /* of the places that are not shared */
    for (int d = 0; d < 4; d++)
        extent[d] = t->stride[d] == 0 && t->dim[d] > 1 ? 1 : t->dim[d];
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < extent[0] * extent[1] * extent[2]; row++) {
        int64_t at[4] = { row / (extent[1] * extent[2]), row / extent[2] % extent[1], row % extent[2], 0 };
        for (at[3] = 0; at[3] < extent[3]; at[3]++) {
            int64_t place = t->first + at[0] * t->stride[0] + at[1] * t->stride[1] + at[2] * t->stride[2] + at[3] * t->stride[3];
            facts_store(t->dtype, storage, place, facts_encode(t->dtype, value_at(p, id, at)));
        }
    }
}
