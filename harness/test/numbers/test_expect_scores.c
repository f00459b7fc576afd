/* Bias, its gradient, and gradients that are sums: fills, what is due, what is told apart. */
#include "../case/asked_problem.h"
#include "case/language/case.h"
#include "case/problem/case_problem.h"
#include "numbers.h"

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

static facts_verdict judge(const scene *x, facts_tensor_id id, const double *answer)
{
    const facts_tensor *t = &x->p.tensor[id];
    void *storage = calloc((size_t)t->elements, facts_dtype_bytes(t->dtype));
    facts_round_into(t, answer, 1.0, storage);
    facts_rule rule = facts_expectation_rule(&x->e, id, FACTS_PATTERN_A);
    facts_judgement j = facts_judge_tensor(t, storage, &rule);
    free(storage);
    return facts_judgement_verdict(&j);
}

static int64_t count_of(const facts_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

Test(sums, are_those_of_the_elements_and_a_part_is_told_apart)
{
    static const struct {
        const char *each, *sum;
        facts_tensor_id id;
        int axis;
    } rows[] = { { "broadcast:k.b", "broadcast:k.b;sum:dk.b", FACTS_TENSOR_DK, 0 },
                 { "broadcast:v.h", "broadcast:v.h;sum:dv.h", FACTS_TENSOR_DV, 1 },
                 { "broadcast:q.s", "broadcast:q.s;sum:dq.s", FACTS_TENSOR_DQ, 2 },
                 { "broadcast:bias.h", "broadcast:bias.h;sum:dbias.h", FACTS_TENSOR_DBIAS, 1 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        scene each, sum;
        snprintf(text, sizeof text, "pass=bwd b=3 h=4 s=24/40 d=16 bias=bhss dbias=1 stride=%s",
                 rows[i].each);
        enter(&each, text);
        snprintf(text, sizeof text, "pass=bwd b=3 h=4 s=24/40 d=16 bias=bhss dbias=1 stride=%s",
                 rows[i].sum);
        enter(&sum, text);
        const facts_tensor *t = &sum.p.tensor[rows[i].id], *whole = &each.p.tensor[rows[i].id];
        cr_assert_eq(t->dim[rows[i].axis], 1);
        double *by_hand = calloc((size_t)count_of(t), sizeof *by_hand),
               *part = calloc((size_t)count_of(t), sizeof *part);
        for (int64_t n = 0; n < count_of(whole); n++) {
            int64_t at[4] = { n / (whole->dim[3] * whole->dim[2] * whole->dim[1]),
                              n / (whole->dim[3] * whole->dim[2]) % whole->dim[1],
                              n / whole->dim[3] % whole->dim[2], n % whole->dim[3] };
            bool last = at[rows[i].axis] == whole->dim[rows[i].axis] - 1;
            at[rows[i].axis] = 0;
            int64_t to = ((at[0] * t->dim[1] + at[1]) * t->dim[2] + at[2]) * t->dim[3] + at[3];
            double value = facts_decode(
                whole->dtype,
                facts_encode(whole->dtype,
                             each.e.answer[rows[i].id].want[n])); /* a rounded partial */
            by_hand[to] += value;
            part[to] += last ? 0.0 : value;
        }
        cr_expect_eq(judge(&sum, rows[i].id, by_hand), FACTS_VERDICT_PASS, "%s", rows[i].sum);
        cr_expect_eq(judge(&sum, rows[i].id, part), FACTS_VERDICT_WRONG,
                     "%s: the last one is missing", rows[i].sum);
        free(by_hand);
        free(part);
        leave(&each);
        leave(&sum);
    }
}

Test(dbias, is_due_in_its_own_type_and_a_scaled_one_is_wrong)
{
    static const char *const shapes[] = { "11ss", "1hss", "b1ss", "bhss",
                                          "111s", "b11s", "bh1s", "1h1s" };
    for (size_t i = 0; i < 8; i++) {
        char text[200];
        scene x;
        snprintf(text, sizeof text,
                 "pass=bwd b=2 h=4/2 s=24/40 d=16 mask=causal bias=%s dbias=1 bias_dtype=f16",
                 shapes[i]);
        enter(&x, text);
        const facts_tensor *t = &x.p.tensor[FACTS_TENSOR_DBIAS];
        double *want = x.e.answer[FACTS_TENSOR_DBIAS].want,
               *scaled = calloc((size_t)count_of(t), sizeof *scaled);
        for (int64_t n = 0; n < count_of(t); n++)
            scaled[n] = want[n] * 0.3;
        cr_expect_eq(judge(&x, FACTS_TENSOR_DBIAS, want), FACTS_VERDICT_PASS, "%s", text);
        cr_expect_eq(judge(&x, FACTS_TENSOR_DBIAS, scaled), FACTS_VERDICT_WRONG, "%s", text);
        facts_rule rule = facts_expectation_rule(&x.e, FACTS_TENSOR_DBIAS, FACTS_PATTERN_A);
        cr_expect(facts_judge_trusts(t, &rule), "%s", text);
        free(scaled);
        leave(&x);
    }
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
