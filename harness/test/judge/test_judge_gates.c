#include <criterion/criterion.h>
#include <omp.h>

#include "../numbers/numbers.h"
#include "problem/philox.h"

#define B 2
#define H 2
#define S 40
#define D 64
#define ROWS (B * H * S)
#define N (ROWS * D)

/* Answers in f32, so that nothing is rounded here: want + noise of exactly sigma. */
typedef struct scene {
    facts_tensor tensor;
    float got[N];
    double want[N], sigma[N], bound[N], nu[ROWS], neff[ROWS];
    facts_rule rule;
} scene;

static double normal(uint64_t seed, int32_t stream, int64_t i)
{
    return (double)facts_normal(facts_draw_at(seed, stream, FACTS_LANE_VALUE, (uint64_t)i));
}

/* A model pass: every error is sigma times a normal number, so a row of D channels has D degrees of
 * freedom. */
static void answer(scene *x, uint64_t seed, double louder, double gain)
{
    for (int64_t i = 0; i < N; i++)
        x->got[i] = (float)(x->want[i] * (1 + gain) +
                            louder * normal(seed, FACTS_STREAM_BIAS, i) * x->sigma[i]);
}

static scene *scene_of(void)
{
    scene *x = calloc(1, sizeof *x);
    set_tensor(&x->tensor, FATTN_F32, BHSD, B, H, S, D, 0);
    for (int64_t i = 0; i < N; i++) {
        x->want[i] = normal(3, FACTS_STREAM_V, i);
        x->sigma[i] = 0x1p-9 * fabs(x->want[i]) + 0x1p-10;
        x->bound[i] = 20 * x->sigma[i];
    }
    for (int64_t i = 0; i < ROWS; i++)
        x->nu[i] = D, x->neff[i] = 30;
    x->rule = (facts_rule){ .expected = { x->want, x->sigma, x->bound, x->nu, x->neff },
                            .dense = true,
                            .gain = 0x1p-13 };
    answer(x, 1, 1, 0);
    return x;
}

static facts_judgement judge(const scene *x)
{
    return facts_judge_tensor(&x->tensor, x->got, &x->rule);
}

/* `gate` refuses, and no other. */
static void expect_only(const scene *x, facts_gate gate, const char *what)
{
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG, "%s", what);
    cr_expect_eq(j.gate, gate, "%s: %s", what, facts_gate_words[j.gate]);
    for (facts_gate g = FACTS_GATE_T1; g <= FACTS_GATE_TG; g++)
        cr_expect((j.gates[g] > 1) == (g == gate), "%s: %s %g", what, facts_gate_words[g],
                  j.gates[g]);
}

Test(judge_gates, right_answers_pass_every_gate)
{
    scene *x = scene_of();
    for (uint64_t seed = 1; seed <= 200; seed++) {
        answer(x, seed, 1, 0);
        facts_judgement j = judge(x);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS, "seed %d: %s %g", (int)seed,
                     facts_gate_words[j.gate], j.ratio);
        cr_expect(j.gates[FACTS_GATE_T1] > 0.3 && j.gates[FACTS_GATE_T2] > 0.3 &&
                  j.gates[FACTS_GATE_T3] > 0.8 && j.gates[FACTS_GATE_TG] > 0);
        cr_expect_float_eq(j.rms, 1.0, 0.05);
    }
    free(x);
}

Test(judge_gates, a_rows_degrees_of_freedom_are_believed)
{
    scene *x = scene_of();
    for (int64_t i = 0; i < ROWS; i++)
        x->nu[i] = 1;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        /* All channels of a row share one error: one degree of freedom. */
        for (int64_t i = 0; i < N; i++)
            x->got[i] = (float)(x->want[i] + normal(seed, FACTS_STREAM_BIAS, i / D) * x->sigma[i]);
        facts_judgement j = judge(x);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS, "seed %d: %s %g", (int)seed,
                     facts_gate_words[j.gate], j.ratio);
    }
    for (int64_t i = 0; i < ROWS; i++)
        x->nu[i] = D;
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG,
                 "with D of them such rows are too far out");
    free(x);
}

Test(judge_gates, t1_finds_one_element)
{
    scene *x = scene_of();
    int64_t at = ((1 * H + 0) * S + 7) * D + 3;
    x->got[at] = (float)(x->want[at] + 9.5 * x->sigma[at]);
    expect_only(x, FACTS_GATE_T1, "one element");
    facts_judgement j = judge(x);
    cr_expect(j.worst[0] == 1 && j.worst[1] == 0 && j.worst[2] == 7 && j.worst[3] == 3);
    cr_expect(j.wrong == 1 && j.want == x->want[at]);
    free(x);
}

Test(judge_gates, t1_is_strict_once_calibrated)
{
    scene *x = scene_of();
    x->got[5] = (float)(x->want[5] + 7.7 * x->sigma[5]); /* z is 7.53 here, 7.91 with the factor of
                                                            constants that are not calibrated */
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    x->rule.calibrated = true;
    expect_only(x, FACTS_GATE_T1, "calibrated");
    free(x);
}

Test(judge_gates, t2_finds_one_row)
{
    scene *x = scene_of();
    for (int64_t d = 0, row = (0 * H + 1) * S + 33; d < D; d++) {
        int64_t i = row * D + d;
        x->got[i] = (float)(x->want[i] + (d % 2 ? 2.0 : -2.0) * x->sigma[i]);
    }
    expect_only(x, FACTS_GATE_T2, "one row");
    facts_judgement j = judge(x);
    cr_expect(j.worst[0] == 0 && j.worst[1] == 1 && j.worst[2] == 33,
              "an element of that row is shown");
    cr_expect_eq(j.wrong, 0, "none of its elements is wrong by itself");
    free(x);
}

Test(judge_gates, t3_finds_what_is_spread_over_all_rows)
{
    scene *x = scene_of();
    answer(x, 1, 1.2, 0);
    expect_only(x, FACTS_GATE_T3, "all rows");
    free(x);
}

Test(judge_gates, t3_finds_what_is_spread_over_one_head)
{
    scene *x = scene_of();
    for (int64_t i = 1 * S * D; i < 2 * S * D; i++)
        x->got[i] = (float)(x->want[i] + 1.12 * (x->got[i] - x->want[i]));
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    cr_expect_eq(j.gate, FACTS_GATE_T3);
    free(x);
}

Test(judge_gates, tg_finds_a_factor)
{
    scene *x = scene_of();
    answer(x, 1, 1, 6e-4);
    expect_only(x, FACTS_GATE_TG, "all of it times 1.0006");
    answer(x, 1, 1, -6e-4);
    expect_only(x, FACTS_GATE_TG, "all of it times 0.9994");
    free(x);
}

Test(judge_gates, tg_finds_rows_that_have_a_factor_each)
{
    scene *x = scene_of();
    for (int64_t i = 0; i < N; i++)
        x->got[i] += (float)(x->want[i] * (i / D % 2 ? 6e-4 : -6e-4));
    expect_only(x, FACTS_GATE_TG, "rows times 1.0006 and 0.9994");
    x->rule.by_row = 0x1p-9;
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS, "as much as rows may differ by");
    free(x);
}

Test(judge_gates, ts_finds_errors_of_one_sign)
{
    scene *x = scene_of();
    for (int64_t i = 0; i < N; i++)
        x->got[i] += (float)(0.25 * x->sigma[i]);
    expect_only(x, FACTS_GATE_TS, "a quarter of sigma too much, whatever the sign of the answer");
    x->rule.means = 1;
    x->rule.shared = 0x1p-5;
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS,
                 "rows that share a cast err alike");
    free(x);
}

Test(judge_gates, tg_allows_more_where_rows_share_the_last_cast)
{
    scene *x = scene_of();
    answer(x, 1, 1, 1.5e-3);
    x->rule.means = 4;
    cr_expect_gt(judge(x).gates[FACTS_GATE_TG], 1.0);
    x->rule.shared = 2e-4 * sqrt(D);
    cr_expect_lt(judge(x).gates[FACTS_GATE_TG], 1.0,
                 "8 times its rms over D channels, and half of that over 4 D");
    free(x);
}

Test(judge_gates, tg_wants_many_rows_with_many_keys_and_an_allowance)
{
    scene *x = scene_of();
    answer(x, 1, 1, 6e-4);
    x->rule.gain = 0;
    cr_expect_eq(judge(x).gates[FACTS_GATE_TG], 0, "a type without");
    x->rule.gain = 0x1p-13;
    for (int64_t i = 0; i < ROWS; i++)
        x->neff[i] = i % (S + 9) == 0 ? 16 : 15;
    cr_expect_eq(judge(x).gates[FACTS_GATE_TG], 0, "four rows have keys enough");
    for (int64_t i = 0; i < ROWS; i++)
        x->neff[i] = i % 5 ? 15 : 16;
    cr_expect(judge(x).gates[FACTS_GATE_TG] > 0, "32 rows of all slices together");
    for (int64_t i = 0; i < N; i++)
        x->want[i] *= 1e-4;
    cr_expect_eq(judge(x).gates[FACTS_GATE_TG], 0, "answers below their errors");
    free(x);
}

/* An H200's dQ of f16 under a sink that takes nearly all of P: every dS below 2^-25 is cast to 0,
 * so that whole rows are. */
Test(judge_gates, tg_and_ts_leave_out_what_f16_rounds_to_zero)
{
    scene *x = scene_of();
    uint16_t *zeros = calloc(N, sizeof *zeros);
    set_tensor(&x->tensor, FATTN_F16, BHSD, B, H, S, D, 0);
    for (int large = 0; large < 2; large++) {
        for (int64_t i = 0; i < N; i++) {
            x->want[i] = (large ? 0.03 : 3e-8) * (i % 2 ? 1 : -1);
            x->sigma[i] = 0.5 * fabs(x->want[i]);
        }
        const facts_judgement j = facts_judge_tensor(&x->tensor, zeros, &x->rule);
        cr_expect_eq(j.gates[FACTS_GATE_TG] > 1, large, "%g", j.gates[FACTS_GATE_TG]);
    }
    free(zeros);
    free(x);
}

Test(judge_gates, discrete_fills_are_judged_element_by_element)
{
    scene *x = scene_of();
    answer(x, 1, 1.2, 6e-4);
    x->rule.dense = false;
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.gates[FACTS_GATE_T2] + j.gates[FACTS_GATE_T3] + j.gates[FACTS_GATE_TG], 0);
    free(x);
}

Test(judge_gates, dead_rows_have_no_say)
{
    scene *x = scene_of();
    for (int64_t row = 0; row < S; row++)
        for (int64_t d = 0; d < D; d++) {
            int64_t i = row * D + d;
            x->want[i] = x->sigma[i] = x->bound[i] = 0, x->got[i] = 0;
            x->nu[row] = x->neff[row] = 0;
        }
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_float_eq(j.rms, 1.0, 0.05);
    x->got[3 * D] = 1e-30f;
    j = judge(x);
    cr_expect_eq(j.gate, FACTS_GATE_T0);
    free(x);
}

Test(judge_gates, data_that_only_t2_and_t3_can_tell_are_trusted)
{
    scene *x = scene_of();
    for (int64_t i = 0; i < N; i++)
        x->sigma[i] = 0.5; /* zeros are 2 sigma away, neighbours 2.8: T1 sees neither */
    cr_expect(facts_judge_trusts(&x->tensor, &x->rule));
    x->rule.dense = false;
    for (int64_t i = 0; i < N; i++)
        x->bound[i] = 6;
    cr_expect_not(facts_judge_trusts(&x->tensor, &x->rule));
    free(x);
}

Test(judge_gates, eight_bit_answers_are_judged_in_real_units)
{
    facts_tensor t;
    unsigned char got[4];
    double want[4] = { 1.0, 2.0, 896.0, 896.0 }, sigma[4] = { 0.05, 0.05, 1, 1 },
           bound[4] = { 0.2, 0.2, 1, 1 };
    set_tensor(&t, FATTN_E4M3, BHSD, 1, 1, 1, 4, 0);
    facts_rule rule = { .expected = { .want = want, .sigma = sigma, .bound = bound }, .unit = 2.0 };
    for (int i = 0; i < 4; i++)
        got[i] = (unsigned char)facts_encode(FATTN_E4M3, want[i] / 2.0);
    facts_judgement j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    got[0] = (unsigned char)facts_encode(FATTN_E4M3, 1.0);
    j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG,
                 "the code itself is not the value");
    cr_expect_float_eq(j.got, 2.0, 0);
    got[0] = (unsigned char)facts_encode(FATTN_E4M3, 0.5),
    got[3] = (unsigned char)facts_dtype_nan(FATTN_E4M3);
    rule.pattern = FACTS_PATTERN_B;
    j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_NAN, "an 8 bit type saturates");
}

/* 8192 rows in 8 slices, enough for several threads. */
Test(gates, any_number_of_threads_says_the_same)
{
    enum { SLICES = 8, OF_SLICE = 1024, MANY = SLICES * OF_SLICE };
    facts_judged_row *rows = calloc(MANY, sizeof *rows);
    double *nu = calloc(2 * MANY, sizeof *nu);
    facts_judgement reported[2];
    for (int64_t i = 0; i < MANY; i++) {
        const double z = normal(5, FACTS_STREAM_V, i);
        rows[i] = (facts_judged_row){ .squares = D * (1 + 0.1 * z),
                                      .gain = z,
                                      .power = 100 + z,
                                      .ratio = fabs(z) / 8,
                                      .weighed = D,
                                      .gate = FACTS_GATE_T1,
                                      .checked = D };
        nu[i] = D, nu[MANY + i] = 30;
    }
    const facts_tensor tensor = { .present = true, .dim = { 2, SLICES / 2, OF_SLICE, D } };
    const facts_rule rule = { .expected = { .nu = nu, .neff = nu + MANY },
                              .dense = true,
                              .gain = 0x1p-13 };
    for (int i = 0; i < 2; i++) {
        omp_set_num_threads(1 + 2 * i);
        reported[i] = facts_judge_rows(&tensor, &rule, rows);
    }
    cr_expect(reported[0].checked == (int64_t)MANY * D && reported[0].gates[FACTS_GATE_T3] > 0 &&
              reported[0].gates[FACTS_GATE_TG] > 0);
    cr_expect_eq(memcmp(reported[0].gates, reported[1].gates, sizeof reported[0].gates), 0);
    cr_expect(reported[0].rms == reported[1].rms && reported[0].ratio == reported[1].ratio &&
              memcmp(reported[0].worst, reported[1].worst, sizeof reported[0].worst) == 0);
    free(rows);
    free(nu);
}
