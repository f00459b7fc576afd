/* Problems with many rows: the reference results of a sample equal those of the whole problem. */
#include "../case/asked_problem.h"
#include "numbers.h"
#include "numbers/expect/expect_whole.h"
#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"
#include "problem/huge.h"

typedef struct room {
    facts_problem p;
    void *at[FACTS_TENSOR_COUNT];
    facts_expectation e;
} room;

static facts_storages storages_of(const room *x)
{
    facts_storages in = { .at = { 0 } };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        in.at[id] = x->at[id];
    return in;
}

/* Inputs; of a backward O and Stats are 0. */
static void make(room *x, const char *text)
{
    *x = (room){ .p = problem_asked(text) };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &x->p.tensor[id];
        if (!t->present || facts_tensor_is_output(&x->p, id))
            continue;
        x->at[id] = calloc((size_t)t->elements + 1, facts_dtype_bytes(t->dtype));
        cr_assert(id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS ||
                  facts_fill_tensor(&x->p, id, x->at[id]));
    }
}

static void answer_forward(room *x)
{
    facts_storages in = storages_of(x);
    cr_assert_eq(facts_expect_forward(&x->e, &x->p, &in, 0), 0);
}

static void leave(room *x)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        free(x->at[id]);
    facts_expectation_destroy(&x->e);
}

Test(expect_big, a_sample_has_the_edges_and_its_share_of_everything)
{
    facts_problem p = problem_asked("pass=fwd b=2 h=2 s=100000 d=64 lens=70000+31111/100000+50000");
    static const int64_t expects[] = { 0,     1,     63,    64,    65,    127,   128,   129,  69999,
                                       70000, 69951, 69952, 69887, 69888, 31110, 31111, 99999 };
    int64_t count, *at = facts_big_sample(&p, false, &count);
    cr_assert(count > 64 && count < 200, "%d", (int)count);
    for (size_t i = 0; i < sizeof expects / sizeof *expects; i++) {
        bool found = false;
        for (int64_t n = 0; n < count; n++)
            found = found || at[n] == expects[i];
        cr_expect(found, "%d", (int)expects[i]);
    }
    for (int64_t n = 1; n < count; n++)
        cr_expect_lt(at[n - 1], at[n]);
    for (int64_t part = 0; part < 64; part++) {
        int64_t inside = 0;
        for (int64_t n = 0; n < count; n++)
            inside += at[n] >= 100000 * part / 64 && at[n] < 100000 * (part + 1) / 64;
        cr_expect_geq(inside, 1, "part %d", (int)part);
    }
    free(at);
}

static double score(const room *x, int64_t h, int64_t i, int64_t j)
{
    double sum = 0.0;
    for (int64_t d = 0; d < x->p.ask.dim_qk; d++)
        sum += value_at(&x->p.tensor[FACTS_TENSOR_Q], x->at[FACTS_TENSOR_Q], 0, h, i, d) *
               value_at(&x->p.tensor[FACTS_TENSOR_K], x->at[FACTS_TENSOR_K], 0, h, j, d);
    return sum * facts_oracle_scale(&x->p);
}

#define HUGE_FORWARD "pass=fwd b=1 h=8 s=70000 d=8 want=stats mask=causal dtype=f32"

/* O of channel 0 and the LSE of a row, as plain sums. */
static double plain_row(const room *x, int64_t h, int64_t i, double *lse)
{
    double sum = 0.0, weighed = 0.0;
    for (int64_t j = 0; j <= i; j++) {
        double e = exp(score(x, h, i, j));
        sum += e;
        weighed += e * value_at(&x->p.tensor[FACTS_TENSOR_V], x->at[FACTS_TENSOR_V], 0, h, j, 0);
    }
    *lse = log(sum);
    return weighed / sum;
}

Test(expect_big, a_huge_forward_is_due_a_sample_of_its_rows_and_numbers_elsewhere)
{
    room x;
    make(&x, HUGE_FORWARD);
    cr_assert(facts_is_huge(&x.p));
    answer_forward(&x);
    int64_t count, *at = facts_big_sample(&x.p, false, &count), values = 0;
    for (int64_t s = 0; s < 70000; s++) {
        const bool looked_at = x.e.expects[FACTS_TENSOR_O][s] == FACTS_EXPECTS_VALUE;
        values += looked_at;
        cr_expect(looked_at || x.e.answer[FACTS_TENSOR_O].want[s * 8] == 0, "row %d of head 0",
                  (int)s);
    }
    cr_expect_eq(values, count);
    for (int64_t n = 0; n < count; n += 7) {
        double lse, o = plain_row(&x, 3, at[n], &lse);
        int64_t row = 3 * 70000 + at[n];
        cr_expect_eq(x.e.expects[FACTS_TENSOR_O][at[n]], FACTS_EXPECTS_VALUE);
        cr_expect_float_eq(x.e.answer[FACTS_TENSOR_STATS].want[row], lse, 1e-9, "row %d",
                           (int)at[n]);
        cr_expect_float_eq(x.e.answer[FACTS_TENSOR_O].want[row * 8], o, 1e-9, "row %d", (int)at[n]);
        cr_expect_gt(x.e.answer[FACTS_TENSOR_O].bound[row * 8], 0);
    }
    free(at);
    leave(&x);
}

Test(expect_big, a_row_outside_the_sample_has_to_be_written_and_finite)
{
    room x;
    make(&x, HUGE_FORWARD);
    answer_forward(&x);
    const facts_tensor *t = &x.p.tensor[FACTS_TENSOR_O];
    void *storage = calloc((size_t)t->elements, 4);
    facts_rule rule = facts_expectation_rule(&x.e, FACTS_TENSOR_O, FACTS_PATTERN_A);
    facts_round_into(t, x.e.answer[FACTS_TENSOR_O].want, 1.0, storage);
    facts_judgement right = facts_judge_tensor(t, storage, &rule);
    cr_expect_eq(facts_judgement_verdict(&right), FACTS_VERDICT_PASS, "ratio %g, gate %s",
                 right.ratio, facts_gate_words[right.gate]);
    int64_t row = 66666, place = t->first + 5 * t->stride[1] + row * t->stride[2];
    cr_assert_eq(x.e.expects[FACTS_TENSOR_O][row], FACTS_EXPECTS_NUMBER);
    facts_store(FATTN_F32, storage, place, 0x7F800000u);
    facts_judgement nan = facts_judge_tensor(t, storage, &rule);
    cr_expect_eq(facts_judgement_verdict(&nan), FACTS_VERDICT_NAN);
    facts_store(FATTN_F32, storage, place, facts_pattern_code(FATTN_F32, FACTS_PATTERN_A, place));
    facts_judgement poison = facts_judge_tensor(t, storage, &rule);
    cr_expect_eq(facts_judgement_verdict(&poison), FACTS_VERDICT_UNWRITTEN);
    cr_expect(poison.worst[1] == 5 && poison.worst[2] == row);
    free(storage);
    leave(&x);
}

Test(expect_big, a_huge_backward_reads_its_own_forward_and_is_due_samples_of_rows_and_keys)
{
    room x;
    make(&x, "pass=bwd b=1 h=4 s=60000 d=8 dtype=f32");
    cr_assert(facts_is_huge(&x.p) && x.p.own_forward);
    for (int64_t i = 0; i < 60000 * 4; i++)
        ((float *)x.at[FACTS_TENSOR_STATS])[i] =
            11.5F; /* about ln(60000) + 1/2: whatever was given is what counts */
    facts_storages in = storages_of(&x);
    cr_assert_eq(facts_expect_backward(&x.e, &x.p, &in), 0);
    int64_t count, *at = facts_big_sample(&x.p, true, &count);
    for (int64_t n = 0; n < count; n += 31) { /* dV_j0 = sum_i exp(s_ij - Stats_i) dO_i0 */
        double sum = 0.0;
        for (int64_t i = 0; i < 60000; i++)
            sum += exp(score(&x, 2, i, at[n]) - 11.5) *
                   value_at(&x.p.tensor[FACTS_TENSOR_DO], x.at[FACTS_TENSOR_DO], 0, 2, i, 0);
        cr_expect_float_eq(x.e.answer[FACTS_TENSOR_DV].want[(2 * 60000 + at[n]) * 8], sum, 1e-9,
                           "key %d", (int)at[n]);
        cr_expect_eq(x.e.expects[FACTS_TENSOR_DV][at[n]], FACTS_EXPECTS_VALUE);
    }
    cr_expect_eq(x.e.expects[FACTS_TENSOR_DK][44444], FACTS_EXPECTS_NUMBER);
    free(at);
    leave(&x);
}

Test(expect_big, small_problems_are_no_sample)
{
    facts_problem small = problem_asked("pass=bwd b=2 h=8 s=2048 d=128"),
                  window = problem_asked("pass=fwd b=1 h=1 s=131072 d=64 window=128:0"),
                  whole = problem_asked("pass=fwd b=1 h=1 s=131072 d=64");
    cr_expect(!facts_is_huge(&small) && !facts_is_huge(&window));
    cr_expect(facts_is_huge(&whole));
}
