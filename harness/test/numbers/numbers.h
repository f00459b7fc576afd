/* Problems for the tests of the numbers: small, dense, made by hand so that they do not depend on
 * the case language. */
#ifndef FACTS_TEST_NUMBERS_H
#define FACTS_TEST_NUMBERS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/expect/expectation.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/storage_image.h"
#include "numbers/judge/judge.h"

typedef enum order { BSHD, BHSD, SBHD } order;

static inline void set_tensor(facts_tensor *t, int32_t dtype, order o, int64_t b, int64_t h,
                              int64_t s, int64_t d, int64_t gap)
{
    *t = (facts_tensor){ .present = true, .dtype = dtype, .dim = { b, h, s, d } };
    static const int inner_first[3][4] = { { 3, 1, 2, 0 }, { 3, 2, 1, 0 }, { 3, 1, 0, 2 } };
    int64_t step = 1;
    for (int i = 0; i < 4; i++) {
        int axis = inner_first[o][i];
        t->stride[axis] = step;
        step *= t->dim[axis];
        if (axis == 3)
            step += gap;
    }
    t->elements = step;
}

/* Of 2 batches, 3 heads, 7 rows and 8 channels, with gaps, an offset and a start that is not
 * aligned. */
static inline facts_tensor gappy(int32_t dtype, int64_t skew)
{
    facts_tensor t;
    set_tensor(&t, dtype, BSHD, 2, 3, 7, 8, 5);
    t.first = 11;
    t.elements += 11;
    t.skew_bytes = skew;
    return t;
}

typedef struct shape {
    int32_t dtype;
    int64_t b, hq, hk, hv, sq, skv, dqk, dv;
} shape;

/* Forward with Stats; causal when asked. */
static inline facts_problem problem_of(shape n, order o, int64_t gap, bool causal, facts_fill fill)
{
    facts_problem p = { .fill = fill, .seed = 1, .engine = FACTS_ENGINE_AUTO, .repeat = 1 };
    p.ask = (fattn_problem)FATTN_PROBLEM_INIT;
    p.ask.dtype = p.ask.o_dtype = p.ask.grad_dtype = n.dtype;
    p.ask.batch = n.b, p.ask.heads_q = n.hq, p.ask.heads_k = n.hk, p.ask.heads_v = n.hv;
    p.ask.seq_q = n.sq, p.ask.seq_kv = n.skv, p.ask.dim_qk = n.dqk, p.ask.dim_v = n.dv;
    p.ask.has_attn_scale = 1;
    p.ask.attn_scale = 1.0 / sqrt((double)n.dqk);
    p.ask.has_right = causal;
    set_tensor(&p.tensor[FACTS_TENSOR_Q], n.dtype, o, n.b, n.hq, n.sq, n.dqk, gap);
    set_tensor(&p.tensor[FACTS_TENSOR_K], n.dtype, o, n.b, n.hk, n.skv, n.dqk, gap);
    set_tensor(&p.tensor[FACTS_TENSOR_V], n.dtype, o, n.b, n.hv, n.skv, n.dv, gap);
    set_tensor(&p.tensor[FACTS_TENSOR_O], n.dtype, o, n.b, n.hq, n.sq, n.dv, gap);
    set_tensor(&p.tensor[FACTS_TENSOR_STATS], FATTN_F32, BHSD, n.b, n.hq, n.sq, 1, 0);
    set_tensor(&p.tensor[FACTS_TENSOR_DO], n.dtype, o, n.b, n.hq, n.sq, n.dv, gap);
    return p;
}

static inline double value_at(const facts_tensor *t, const void *storage, int64_t b, int64_t h,
                              int64_t s, int64_t d)
{
    int64_t at =
        t->first + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
    return facts_decode(t->dtype, facts_load(t->dtype, storage, at));
}

/* Q, K, V or dO filled into fresh memory. */
static inline void *filled(const facts_problem *p, facts_tensor_id id)
{
    const facts_tensor *t = &p->tensor[id];
    void *storage = calloc((size_t)t->elements + 1, facts_dtype_bytes(t->dtype));
    return facts_fill_tensor(p, id, storage) ? storage : NULL;
}

#endif
