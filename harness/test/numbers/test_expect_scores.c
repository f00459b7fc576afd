/* Bias, its gradient, and gradients that are sums: fills, what is due, what is told apart. */
#include "../case/asked_problem.h"
#include "language/case.h"
#include "numbers.h"
#include "problem/case_problem.h"

/* One backward case with everything that it reads. */
typedef struct scene {
    facts_problem p;
    facts_storages in;
    facts_expectation e;
} scene;

static void enter(scene *x, const char *text)
{
    *x = (scene){ .p = problem_asked(text) };
    x->p.ask.has_attn_scale = 1;
    x->p.ask.attn_scale = 0.3;
    void *o = NULL, *stats = NULL;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &x->p.tensor[id];
        if (!t->present || facts_tensor_is_output(&x->p, id))
            continue;
        if (id == FACTS_TENSOR_O)
            x->in.at[id] = o = calloc((size_t)t->elements, facts_dtype_bytes(t->dtype));
        else if (id == FACTS_TENSOR_STATS)
            x->in.at[id] = stats = calloc((size_t)t->elements, 4);
        else
            x->in.at[id] = filled(&x->p, id);
    }
    cr_assert_eq(facts_expect_inputs(&x->p, &x->in, o, stats), 0);
    cr_assert_eq(facts_expect_backward(&x->e, &x->p, &x->in), 0);
}

static void leave(scene *x)
{
    facts_expectation_destroy(&x->e);
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        free((void *)(uintptr_t)x->in.at[id]);
}

static double bias_at(const scene *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    return value_at(&x->p.tensor[FACTS_TENSOR_BIAS], x->in.at[FACTS_TENSOR_BIAS], b, h, i, j);
}

Test(bias, holds_what_its_fill_says)
{
    scene x;
    enter(&x, "pass=bwd b=2 h=2 s=24/40 d=16 bias=bhss bias_fill=random");
    int hidden = 0;
    for (int64_t i = 0; i < 24; i++)
        for (int64_t j = 0; j < 40; j++) {
            double value = bias_at(&x, 1, 1, i, j);
            cr_assert(value == 0.0 || (isinf(value) && value < 0.0));
            hidden += isinf(value) != 0;
            cr_assert(!isinf(value) || (j != 0 && j != i), "keys 0 and i stay");
        }
    cr_expect(hidden > 350 && hidden < 600, "%d of 960", hidden);
    leave(&x);
    enter(&x, "pass=bwd b=2 h=2 s=24/40 d=16 bias=b11s bias_fill=finite_min");
    int lowest = 0;
    for (int64_t j = 0; j < 40; j++)
        lowest += bias_at(&x, 1, 0, 0, j) == -facts_dtype_max(FATTN_BF16);
    cr_expect(lowest > 5 && lowest < 35, "%d of 40", lowest);
    leave(&x);
    enter(&x, "pass=bwd b=1 h=1 s=24/40 d=16 bias=11ss bias_fill=window:3:1");
    for (int64_t i = 0; i < 24; i++)
        for (int64_t j = 0; j < 40; j++)
            cr_assert_eq(bias_at(&x, 0, 0, i, j) == 0.0, j <= i + 1 && j > i - 3);
    leave(&x);
    enter(&x, "pass=bwd b=1 h=1 s=24/40 d=16 bias=11ss bias_fill=rows_masked dbias=1");
    for (int64_t j = 0; j < 40; j++)
        cr_expect(isinf(bias_at(&x, 0, 0, 0, j)), "the first row always");
    cr_expect_eq(x.e.answer[FACTS_TENSOR_DQ].bound[3], 0.0, "and it is dead");
    leave(&x);
    enter(&x, "pass=bwd b=2 h=3 s=24/40 d=16 bias=bhss stride=broadcast:bias.h");
    cr_expect_eq(bias_at(&x, 1, 0, 3, 4), bias_at(&x, 1, 2, 3, 4));
    cr_expect_neq(bias_at(&x, 0, 0, 3, 4), bias_at(&x, 1, 0, 3, 4));
    leave(&x);
}

Test(poison, of_a_shared_place_lies_only_where_no_batch_entry_reads)
{
    scene x;
    enter(&x, "pass=bwd b=2 h=1 s=24/40 d=16 lens=5+20/7+30 poison=nan stride=broadcast:k.b");
    const facts_tensor *k = &x.p.tensor[FACTS_TENSOR_K];
    cr_expect(isfinite(value_at(k, x.in.at[FACTS_TENSOR_K], 0, 0, 29, 0)),
              "the second entry reads it");
    cr_expect(isnan(value_at(k, x.in.at[FACTS_TENSOR_K], 0, 0, 30, 0)));
    leave(&x);
}
