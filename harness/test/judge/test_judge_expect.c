#include <criterion/criterion.h>

#include "../case/resolved.h"
#include "../numbers/checking.h"
#include "../numbers/numbers.h"
#include "numbers/fill/score_inputs.h"

static const shape small = { FATTN_BF16, 2, 2, 1, 1, 24, 40, 32, 32 };

/* Inputs filled, the reference asked; the caller frees with leave(). */
typedef struct scene {
    facts_problem p;
    facts_storages in;
    facts_expectation e;
} scene;

static void add_row_tensors(facts_problem *p)
{
    p->tensor[FACTS_TENSOR_MAX] = p->tensor[FACTS_TENSOR_SUM_EXP] = p->tensor[FACTS_TENSOR_STATS];
}

static void expect(scene *x, int32_t version)
{
    static const facts_tensor_id read[] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
    for (int i = 0; i < 3; i++)
        x->in.at[read[i]] = filled(&x->p, read[i]);
    cr_assert_eq(facts_expect_forward(&x->e, &x->p, &x->in, version), 0);
}

static void leave(scene *x)
{
    facts_expectation_destroy(&x->e);
    for (int i = 0; i < FACTS_TENSOR_COUNT; i++)
        free((void *)x->in.at[i]);
}

static facts_verdict judge(const scene *x, facts_tensor_id id, const void *storage)
{
    facts_rule rule = facts_expectation_rule(&x->e, id, FACTS_PATTERN_A);
    facts_judgement j = facts_judge_tensor(&x->p.tensor[id], storage, &rule);
    return facts_judgement_verdict(&j);
}

Test(expect, the_reference_rounded_to_its_type_passes)
{
    scene x = { .p = problem_of(small, BSHD, 3, true, FACTS_FILL_GAUSS) };
    expect(&x, 0);
    const facts_tensor *o = &x.p.tensor[FACTS_TENSOR_O];
    void *storage = calloc((size_t)o->elements, 2);
    facts_round_into(o, x.e.answer[FACTS_TENSOR_O].want, 1.0, storage);
    cr_expect_eq(judge(&x, FACTS_TENSOR_O, storage), FACTS_VERDICT_PASS);
    free(storage);
    leave(&x);
}

Test(expect, what_padded_rows_owe)
{
    scene x = { .p = problem_of(small, BSHD, 0, false, FACTS_FILL_GAUSS) };
    x.p.has_lengths = true;
    x.p.len_q[0] = 24, x.p.len_q[1] = 5, x.p.len_kv[0] = x.p.len_kv[1] = 40;
    expect(&x, 91400);
    cr_expect_eq(x.e.expects[FACTS_TENSOR_O][24 + 4], FACTS_EXPECTS_VALUE);
    cr_expect_eq(x.e.expects[FACTS_TENSOR_O][24 + 5], FACTS_EXPECTS_ZERO_OR_POISON);
    cr_expect_eq(x.e.expects[FACTS_TENSOR_STATS][24 + 5], FACTS_EXPECTS_VALUE);
    cr_expect(isinf(x.e.answer[FACTS_TENSOR_STATS].want[24 * 2 + 5]), "-inf is due");
    leave(&x);
    expect(&x, 91301);
    cr_expect_eq(x.e.expects[FACTS_TENSOR_STATS][24 + 5], FACTS_EXPECTS_ANYTHING,
                 "unspecified before 9.14");
    leave(&x);
}

/* A kernel that reports a maximum `below` under the true one, with the Sum_exp that belongs to it
 * times `factor`. */
static void lazy(const scene *x, double below, double factor, float *max, float *sum)
{
    for (int64_t i = 0; i < 2 * 2 * 24; i++) {
        max[i] = (float)(x->e.true_max[i] - below);
        sum[i] = (float)(exp(x->e.answer[FACTS_TENSOR_STATS].want[i] - (double)max[i]) * factor);
    }
}

typedef struct lazy_case {
    double below, factor;
    facts_verdict max, sum;
} lazy_case;

/* By constants with that threshold, log2. */
static void check_lazy(double thr, const lazy_case *cases, size_t count)
{
    scene x = { .p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS) };
    facts_constants constants = facts_constants_start(FATTN_BF16);
    float max[96], sum[96];
    constants.thr = thr;
    x.in.constants = &constants;
    add_row_tensors(&x.p);
    expect(&x, 0);
    for (size_t i = 0; i < count; i++) {
        lazy(&x, cases[i].below, cases[i].factor, max, sum);
        facts_expect_pair(&x.e, &x.p, max);
        cr_expect_eq(judge(&x, FACTS_TENSOR_MAX, max), cases[i].max, "thr %g: max %zu", thr, i);
        cr_expect_eq(judge(&x, FACTS_TENSOR_SUM_EXP, sum), cases[i].sum, "thr %g: sum %zu", thr, i);
    }
    leave(&x);
}

#define PASS FACTS_VERDICT_PASS
#define WRONG FACTS_VERDICT_WRONG

Test(expect, a_lazy_maximum_passes_with_the_sum_that_belongs_to_it)
{
    static const lazy_case cases[] = { { 0, 1, PASS, PASS },      { 2.7, 1, PASS, PASS },
                                       { 0, 1.001, PASS, WRONG }, { 2.7, 1.001, PASS, WRONG },
                                       { 2.8, 1, WRONG, WRONG }, /* 4 ln 2 is 2.773 */
                                       { 9, 1, WRONG, WRONG },    { -1, 1, WRONG, WRONG },
                                       { 0, 1, PASS, PASS } };
    check_lazy(4, cases, sizeof cases / sizeof *cases);
}

Test(expect, a_kernel_that_is_not_lazy_owes_the_true_maximum)
{
    static const lazy_case cases[] = { { 0, 1, PASS, PASS },
                                       { 0.001, 1, WRONG, WRONG },
                                       { 3, 1, WRONG, WRONG },
                                       { 0, 1, PASS, PASS } };
    check_lazy(0, cases, sizeof cases / sizeof *cases);
}

Test(expect, sum_exp_alone_is_judged_by_the_lse)
{
    scene x = { .p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS) };
    x.p.tensor[FACTS_TENSOR_SUM_EXP] = x.p.tensor[FACTS_TENSOR_STATS];
    x.p.tensor[FACTS_TENSOR_STATS].present = false;
    expect(&x, 0);
    float sum[96];
    for (int i = 0; i < 96; i++)
        sum[i] = (float)x.e.answer[FACTS_TENSOR_SUM_EXP].want[i];
    cr_expect_eq(judge(&x, FACTS_TENSOR_SUM_EXP, sum), FACTS_VERDICT_PASS);
    sum[7] *= 1.001f;
    cr_expect_eq(judge(&x, FACTS_TENSOR_SUM_EXP, sum), FACTS_VERDICT_WRONG);
    leave(&x);
}

Test(expect, an_unknown_type_is_refused)
{
    facts_problem p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS);
    facts_expectation e;
    facts_storages in = { .oracle = NULL };
    p.tensor[FACTS_TENSOR_Q].dtype = FATTN_BOOL;
    cr_expect_neq(facts_expect_forward(&e, &p, &in, 0), 0);
    facts_expectation_destroy(&e);
}

Test(expect, two_keys_make_scores_matter)
{
    facts_problem p = problem_of(small, BHSD, 0, true, FACTS_FILL_GAUSS);
    cr_expect(facts_oracle_two_keys(&p));
    p.ask.has_left = 1;
    p.ask.window_left = 1;
    cr_expect_not(facts_oracle_two_keys(&p), "the diagonal alone");
}

Test(expect, what_two_runs_owe_each_other)
{
    facts_problem p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS);
    double share;
    p.ask.pass = FATTN_BACKWARD;
    cr_expect_eq(facts_expect_alike(&p, FACTS_TENSOR_DQ, &share), FACTS_ALIKE_SUMS);
    cr_expect_float_eq(share, 0x1p-13, 0, "2^-21 of a sum that is B/u at most, u = 2^-8");
    cr_expect_eq(facts_expect_alike(&p, FACTS_TENSOR_DBIAS, &share), FACTS_ALIKE_RIGHT);
    cr_expect_eq(facts_expect_alike(&p, FACTS_TENSOR_DK, &share), FACTS_ALIKE_BITS);
    p.ask.deterministic = 1;
    cr_expect_eq(facts_expect_alike(&p, FACTS_TENSOR_DQ, &share), FACTS_ALIKE_BITS);
    cr_expect_eq(facts_expect_alike(&p, FACTS_TENSOR_DBIAS, &share), FACTS_ALIKE_BITS);
}

/* Two batch entries that share Q: dQ is the sum of their gradients, each cast to f16 before. */
#define SHARED "pass=bwd dtype=f16 b=2 h=4/2 s=13/20 d=16 layout=bhsd stride=broadcast:q.b+k.b+v.b"

static world expected(const char *text)
{
    world w = { .p = problem_asked(text) };
    world_fill(&w);
    world_given(&w);
    facts_storages in = world_storages(&w);
    cr_assert_eq(facts_expect_backward(&w.expectation, &w.p, &in), 0);
    return w;
}

/* Both parts as they round, or a step larger each: then cast, summed, cast. */
static uint32_t sum_of_parts(const world *parts, int64_t i, int64_t half, uint32_t steps)
{
    double sum = 0.0;
    for (int n = 0; n < 2; n++)
        sum += facts_decode(
            FATTN_F16,
            facts_encode(FATTN_F16, parts->expectation.answer[FACTS_TENSOR_DQ].want[i + n * half]) +
                steps);
    return facts_encode(FATTN_F16, sum);
}

Test(expect, parts_of_a_sum_may_each_differ_by_their_own_step)
{
    world sum = expected(SHARED ";sum:dq.b"), parts = expected(SHARED);
    const facts_tensor *t = &sum.p.tensor[FACTS_TENSOR_DQ];
    const facts_answer *a = &sum.expectation.answer[FACTS_TENSOR_DQ];
    const int64_t half = t->dim[1] * t->dim[2] * t->dim[3];
    int64_t at[4], far = 0;
    uint16_t *x = calloc((size_t)t->elements, 2), *y = calloc((size_t)t->elements, 2);
    cr_assert(t->dim[0] == 1 && t->elements == half && a->parts);
    cr_expect_null(sum.expectation.answer[FACTS_TENSOR_DK].parts, "nothing is summed");
    for (uint32_t steps = 1; steps < 4; steps += 2) {
        for (int64_t i = 0; i < half; i++) { /* layout bhsd: dense */
            x[i] = (uint16_t)sum_of_parts(&parts, i, half, 0);
            y[i] = (uint16_t)sum_of_parts(&parts, i, half, steps);
        }
        const facts_slack slack = { a->bound, 0x1p-10, a->parts },
                          without = { a->bound, 0x1p-10, NULL };
        far = facts_judge_repeat_close(t, x, y, NULL, &slack, at);
        cr_expect(steps == 1 ? far == 0 : far > 0, "%u steps: %ld", steps, (long)far);
        cr_expect_gt(facts_judge_repeat_close(t, x, y, NULL, &without, at), 0);
    }
    free(x);
    free(y);
    world_leave(&sum);
    world_leave(&parts);
}

Test(expect, only_roundings_that_are_independent_are_dense)
{
    scene x = { .p = problem_of(small, BSHD, 0, true, FACTS_FILL_GAUSS) };
    expect(&x, 0);
    cr_expect(x.e.dense);
    cr_expect_float_eq(x.e.gain, 0x1p-13 + 0x1p-29 * (double)x.p.ask.seq_kv, 0);
    facts_rule rule = facts_expectation_rule(&x.e, FACTS_TENSOR_O, FACTS_PATTERN_A);
    cr_expect(rule.dense && rule.gain > 0 && rule.expected.nu && rule.expected.nu[5] > 0 &&
              rule.expected.neff[5] > 1);
    cr_expect_null(facts_expectation_rule(&x.e, FACTS_TENSOR_STATS, FACTS_PATTERN_A).expected.nu);
    leave(&x);
    x.p.ask.attn_scale = 1e-3;
    expect(&x, 0);
    cr_expect_not(x.e.dense, "scores that hardly differ");
    leave(&x);
    x.p.ask.attn_scale = 0.2, x.p.fill = FACTS_FILL_NEEDLE;
    expect(&x, 0);
    cr_expect_not(x.e.dense);
    leave(&x);
    x.p.fill = FACTS_FILL_GAUSS, x.p.tensor[FACTS_TENSOR_Q].stride[1] = 0;
    expect(&x, 0);
    cr_expect_not(x.e.dense, "heads that are copies");
    leave(&x);
}

static double gain_of(const char *name)
{
    facts_problem *p = resolved(name);
    facts_expectation e = { 0 };
    const fref_rounding rounding = { 0 };
    facts_expect_gain(&e, p, &rounding);
    free(p);
    return e.gain;
}

/* Our own backward of these 2,048 keys was called wrong: nearly every P is below half of e4m3's
 * smallest step of 2^-9. */
Test(expect, no_gain_is_judged_where_p_of_a_backward_becomes_zero)
{
    cr_expect_eq(gain_of("pass=bwd dtype=e4m3 s=513"), 0, "an average P is a step of 2^-9");
    cr_expect_gt(gain_of("pass=bwd dtype=e4m3 s=512"), 0);
    cr_expect_eq(gain_of("pass=bwd dtype=e4m3 s=205 fill=offset_v"), 0, "or 5/2 of it");
    cr_expect_gt(gain_of("pass=bwd dtype=e4m3 s=204 fill=offset_v"), 0);
    cr_expect_gt(gain_of("pass=bwd dtype=e4m3 s=1024 mask=causal"), 0,
                 "a row sees half of the keys");
    cr_expect_gt(gain_of("pass=bwd dtype=e4m3 s=2048 scales=odd"), 0, "scale_s keeps P up");
    cr_expect_gt(gain_of("pass=bwd dtype=e5m2 s=2048"), 0, "its smallest step is 2^-16");
    cr_expect_gt(gain_of("pass=fwd dtype=e4m3 s=2048"), 0, "the largest P of a row is 1");
    cr_expect_gt(gain_of("pass=bwd dtype=bf16 s=2048"), 0);
}

Test(expect, a_forward_that_broke_is_no_input_of_a_backward)
{
    scene x = { .p = problem_of(small, BSHD, 0, true, FACTS_FILL_GAUSS) };
    x.p.has_lengths = true;
    x.p.len_q[0] = 24, x.p.len_q[1] = 5, x.p.len_kv[0] = x.p.len_kv[1] = 40;
    expect(&x, 0);
    const facts_tensor *o = &x.p.tensor[FACTS_TENSOR_O], *stats = &x.p.tensor[FACTS_TENSOR_STATS];
    uint16_t *o_bits = calloc((size_t)o->elements, 2);
    float *lse = calloc((size_t)stats->elements, 4);
    bool near;
    cr_assert_eq(facts_expect_inputs(&x.p, &x.in, o_bits, lse), 0);
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && near);
    lse[24 * 2 + 7] = NAN; /* batch 1, head 0, row 7: padded */
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && near);
    lse[24 * 2 + 3] += 0.5f;
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && near, "a little wrong");
    lse[24 * 2 + 3] += 2;
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && !near);
    lse[24 * 2 + 3] = NAN;
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && !near);
    cr_assert_eq(facts_expect_inputs(&x.p, &x.in, o_bits, lse), 0);
    o_bits[o->stride[2] * 2 + 1] = (uint16_t)facts_dtype_nan(FATTN_BF16);
    cr_expect(facts_expect_near(&x.p, &x.in, o_bits, lse, &near) == 0 && !near);
    free(o_bits);
    free(lse);
    leave(&x);
}

Test(expect, constants_of_an_engine_move_what_is_due_of_it)
{
    scene x = { .p = problem_of(small, BHSD, 0, false, FACTS_FILL_GAUSS) };
    expect(&x, 0);
    double tau = x.e.answer[FACTS_TENSOR_STATS].bound[7],
           want = x.e.answer[FACTS_TENSOR_STATS].want[7];
    cr_expect_not(facts_expectation_rule(&x.e, FACTS_TENSOR_O, FACTS_PATTERN_A).calibrated);
    leave(&x);
    facts_constants constants = facts_constants_start(FATTN_BF16);
    constants.eps_exp = 1e-4;
    constants.calibrated = true;
    x.in.constants = &constants;
    expect(&x, 0);
    cr_expect_eq(x.e.answer[FACTS_TENSOR_STATS].want[7], want);
    cr_expect_gt(x.e.answer[FACTS_TENSOR_STATS].bound[7], tau + 1e-5);
    cr_expect(facts_expectation_rule(&x.e, FACTS_TENSOR_O, FACTS_PATTERN_A).calibrated);
    leave(&x);
}
