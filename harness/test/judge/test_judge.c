#include <criterion/criterion.h>

#include "../numbers/numbers.h"
#include "problem/philox.h"

#define B 2
#define H 2
#define S 24
#define D 16
#define N (B * H * S * D)

/* A right answer, its rule, and room to spoil it. The storage has gaps of 4 elements between
 * tokens. */
typedef struct scene {
    facts_tensor tensor;
    facts_image image;
    unsigned char *bytes;
    double want[N], sigma[N], bound[N];
    facts_row_expects expects[B * S];
    facts_rule rule;
} scene;

static int64_t logical(int64_t b, int64_t h, int64_t s, int64_t d)
{
    return ((b * H + h) * S + s) * D + d;
}

static void put(scene *x, int64_t b, int64_t h, int64_t s, int64_t d, double value)
{
    const facts_tensor *t = &x->tensor;
    int64_t at = b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
    facts_store(t->dtype, facts_image_storage(&x->image, x->bytes), at,
                facts_encode(t->dtype, value));
}

static void restore(scene *x, facts_pattern pattern)
{
    x->rule.pattern = pattern;
    facts_image_poison(&x->image, pattern, x->bytes);
    for (int64_t i = 0; i < N; i++) {
        double noise = (double)facts_uniform(
            facts_draw_at(5, FACTS_STREAM_BIAS, FACTS_LANE_VALUE, (uint64_t)i));
        int64_t b = i / (H * S * D), h = i / (S * D) % H, s = i / D % S;
        if (x->expects[b * S + s] == FACTS_EXPECTS_VALUE)
            put(x, b, h, s, i % D, x->want[i] + noise * x->sigma[i]);
    }
}

/* Rows 22 and 23 of batch 1 are padded; row 0 of batch 0 is dead. */
static scene *scene_of(facts_pattern pattern)
{
    scene *x = calloc(1, sizeof *x);
    set_tensor(&x->tensor, FATTN_BF16, BSHD, B, H, S, D, 4);
    const facts_tensor *list[] = { &x->tensor };
    cr_assert(facts_image_create(&x->image, list, 1));
    x->bytes = malloc(x->image.bytes);
    x->expects[S + 22] = x->expects[S + 23] = FACTS_EXPECTS_ZERO_OR_POISON;
    for (int64_t i = 0; i < N; i++) {
        bool dead = i / (H * S * D) == 0 && i / D % S == 0;
        x->want[i] = dead ? 0
                          : (double)facts_normal(
                                facts_draw_at(3, FACTS_STREAM_V, FACTS_LANE_VALUE, (uint64_t)i));
        x->sigma[i] = dead ? 0 : 0x1p-9 * fabs(x->want[i]) + 0x1p-10;
        x->bound[i] = 4 * x->sigma[i];
    }
    x->rule = (facts_rule){ .expected = { x->want, x->sigma, x->bound }, .expects = x->expects };
    restore(x, pattern);
    return x;
}

static facts_judgement judge(scene *x)
{
    facts_judgement j =
        facts_judge_tensor(&x->tensor, facts_image_storage(&x->image, x->bytes), &x->rule);
    facts_judgement_overrun(&j, facts_image_overrun(&x->image, x->rule.pattern, x->bytes));
    return j;
}

static facts_verdict verdict(scene *x)
{
    facts_judgement j = judge(x);
    return facts_judgement_verdict(&j);
}

static void leave(scene *x)
{
    facts_image_destroy(&x->image);
    free(x->bytes);
    free(x);
}

Test(judge, a_right_answer_passes_under_both_poisons_and_swapped_rows_do_not)
{
    for (facts_pattern p = FACTS_PATTERN_A; p <= FACTS_PATTERN_B; p++) {
        scene *x = scene_of(p);
        facts_judgement j = judge(x);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
        cr_expect(j.ratio > 0 && j.ratio <= 1, "%g", j.ratio);
        cr_expect(j.rms > 0.2 && j.rms < 2, "%g", j.rms);
        cr_expect_eq(j.checked, N - 2 * H * D);
        cr_expect_eq(j.padded_poison, 2 * H * D);
        cr_expect_eq(j.gate, FACTS_GATE_T1);
        for (int64_t d = 0; d < 2 * D; d++)
            put(x, 0, 0, 3 + d / D, d % D, x->want[logical(0, 0, 4 - d / D, d % D)]);
        cr_expect_eq(verdict(x), FACTS_VERDICT_WRONG, "two rows are swapped");
        leave(x);
    }
}

Test(judge, nan_and_inf_never_pass)
{
    const double bad[] = { NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 3; i++) {
        scene *x = scene_of(FACTS_PATTERN_A);
        put(x, 0, 1, 5, 0, bad[i]);
        facts_judgement j = judge(x);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_NAN);
        cr_expect(isinf(j.ratio));
        leave(x);
    }
}

Test(judge, inf_is_right_where_the_value_leaves_the_type)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    x->want[logical(0, 1, 5, 0)] = 1e39;
    put(x, 0, 1, 5, 0, INFINITY);
    cr_expect_eq(verdict(x), FACTS_VERDICT_PASS);
    put(x, 0, 1, 5, 0, -INFINITY);
    cr_expect_eq(verdict(x), FACTS_VERDICT_NAN);
    x->want[logical(0, 1, 5, 0)] = -1e39;
    cr_expect_eq(verdict(x), FACTS_VERDICT_PASS);
    put(x, 0, 1, 5, 0, NAN);
    cr_expect_eq(verdict(x), FACTS_VERDICT_NAN);
    leave(x);
}

/* An overflow that comes out as a number hides from whoever looks for Inf. */
Test(judge, no_finite_number_is_right_where_the_value_leaves_the_type)
{
    static const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32 };
    for (int i = 0; i < 3; i++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const double most = facts_dtype_max(dtypes[i]), u = i == 0   ? 0x1p-8
                                                                : i == 1 ? 0x1p-11
                                                                         : 0x1p-24;
            const double want = sign * most * (1 + 4 * u), sigma = u * most, bound = 2 * u * most;
            facts_tensor t = { 0 };
            set_tensor(&t, dtypes[i], BSHD, 1, 1, 1, 1, 0);
            facts_rule rule = { .expected = { &want, &sigma, &bound }, .pattern = FACTS_PATTERN_A };
            const double answers[] = { sign * most, 0.0, -sign * most, sign * (double)INFINITY };
            for (int n = 0; n < 4; n++) {
                uint32_t storage = 0;
                facts_store(dtypes[i], &storage, 0, facts_encode(dtypes[i], answers[n]));
                facts_judgement j = facts_judge_tensor(&t, &storage, &rule);
                cr_expect_eq(facts_judgement_verdict(&j),
                             n == 3 ? FACTS_VERDICT_PASS : FACTS_VERDICT_WRONG,
                             "type %d: %g for %g", i, answers[n], want);
            }
        }
}

Test(judge, poison_that_survived_is_unwritten_and_comes_before_nan)
{
    for (facts_pattern p = FACTS_PATTERN_A; p <= FACTS_PATTERN_B; p++) {
        scene *x = scene_of(p);
        put(x, 0, 0, 9, 1, NAN);
        int64_t at = x->tensor.stride[2] * 11 + 4;
        facts_store(FATTN_BF16, facts_image_storage(&x->image, x->bytes), at,
                    facts_pattern_code(FATTN_BF16, p, at));
        facts_judgement j = judge(x);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_UNWRITTEN);
        cr_expect_eq(j.gate, FACTS_GATE_POISON);
        cr_expect(j.unwritten == 1 && j.not_finite == 1);
        cr_expect(j.worst[2] == 11 && j.worst[3] == 4,
                  "the unwritten element is shown, not the NaN");
        leave(x);
    }
}

Test(judge, a_changed_guard_or_gap_is_an_overrun_and_comes_first)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    put(x, 0, 0, 9, 1, NAN);
    x->bytes[x->image.bytes - 1] ^= 1;
    cr_expect_eq(verdict(x), FACTS_VERDICT_OVERRUN);
    restore(x, FACTS_PATTERN_B);
    cr_expect_eq(verdict(x), FACTS_VERDICT_PASS);
    /* The room after the channels of a head. */
    facts_store(FATTN_BF16, facts_image_storage(&x->image, x->bytes), D, 0);
    cr_expect_eq(verdict(x), FACTS_VERDICT_OVERRUN);
    leave(x);
}

Test(judge, dead_rows_are_exactly_zero)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    put(x, 0, 1, 0, 2, -0.0);
    cr_expect_eq(verdict(x), FACTS_VERDICT_PASS, "the sign of zero is ignored");
    put(x, 0, 1, 0, 2, 0x1p-120);
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    cr_expect_eq(j.gate, FACTS_GATE_T0);
    leave(x);
}

Test(judge, padded_rows_hold_zero_or_poison)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    put(x, 1, 0, 23, 0, 0.0);
    facts_judgement j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.padded_zero, 1);
    put(x, 1, 0, 23, 0, 0.5);
    cr_expect_eq(verdict(x), FACTS_VERDICT_WRONG);
    x->expects[S + 23] = FACTS_EXPECTS_ANYTHING;
    j = judge(x);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.padded_other, 1);
    leave(x);
}

Test(judge, dead_stats_are_exactly_minus_inf)
{
    facts_tensor t;
    set_tensor(&t, FATTN_F32, BHSD, 1, 1, 2, 1, 0);
    float got[2] = { 1.5f, -INFINITY };
    double want[2] = { 1.5 + 0x1p-20, -INFINITY }, tau[2] = { 0x1p-19, 0 };
    facts_rule rule = { .expected = { want, NULL, tau } };
    facts_judgement j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.gate, FACTS_GATE_TL);
    cr_expect_float_eq(j.ratio, 0.5, 1e-9);
    got[1] = -3.4e38f;
    j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    got[1] = -INFINITY, got[0] = -INFINITY;
    j = facts_judge_tensor(&t, got, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_NAN);
}

Test(judge, data_that_cannot_tell_is_mistrusted)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    cr_expect(facts_judge_trusts(&x->tensor, &x->rule));
    for (int64_t i = 0; i < N; i++)
        if (x->sigma[i] > 0)
            x->sigma[i] = x->bound[i] = 10; /* a bound that lets everything pass */
    cr_expect_not(facts_judge_trusts(&x->tensor, &x->rule));
    leave(x);
}

Test(judge, equal_rows_are_told_apart_by_their_channels)
{
    scene *x = scene_of(FACTS_PATTERN_A);
    for (int64_t i = 0; i < N; i++) {
        bool dead = x->sigma[i] == 0;
        x->want[i] = dead ? 0 : 1.0 + 0.5 * (double)(i % D);
    }
    cr_expect(facts_judge_trusts(&x->tensor, &x->rule));
    for (int64_t i = 0; i < N; i++)
        if (x->sigma[i] > 0)
            x->bound[i] = x->sigma[i] =
                1.0 + (double)(i % D) / 4; /* tells zero, does not tell a neighbour */
    for (int64_t i = 0; i < N; i++)
        x->want[i] = x->sigma[i] == 0 ? 0 : 100.0 + 0.01 * (double)(i % D);
    cr_expect_not(facts_judge_trusts(&x->tensor, &x->rule));
    leave(x);
}

Test(judge, a_second_run_must_give_the_same_bits)
{
    scene *x = scene_of(FACTS_PATTERN_A), *y = scene_of(FACTS_PATTERN_B);
    const void *a = facts_image_storage(&x->image, x->bytes),
               *b = facts_image_storage(&y->image, y->bytes);
    int64_t first[4] = { 0 };
    cr_expect_eq(facts_judge_repeat(&x->tensor, a, b, x->expects, first), 0,
                 "padded rows differ and do not count");
    put(y, 1, 1, 2, 3, 1.0);
    cr_expect_eq(facts_judge_repeat(&x->tensor, a, b, x->expects, first), 1);
    cr_expect(first[0] == 1 && first[1] == 1 && first[2] == 2 && first[3] == 3);
    leave(x);
    leave(y);
}
