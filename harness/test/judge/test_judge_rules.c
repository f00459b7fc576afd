#include <criterion/criterion.h>

#include "../numbers/numbers.h"
#include "numbers/fill/places.h"
#include "numbers/fill/storage_image.h"

/* ---- determinism ---- */

Test(judge_rules, a_step_is_the_distance_to_the_next_number)
{
    cr_expect_float_eq(facts_step_of(FATTN_BF16, facts_encode(FATTN_BF16, 1.0)), 0x1p-7, 0);
    cr_expect_float_eq(facts_step_of(FATTN_BF16, facts_encode(FATTN_BF16, -1.5)), 0x1p-7, 0);
    cr_expect_float_eq(facts_step_of(FATTN_F16, facts_encode(FATTN_F16, 0.0)), 0x1p-24, 0);
    cr_expect_float_eq(facts_step_of(FATTN_F16, facts_encode(FATTN_F16, 65504)), 32, 0);
    cr_expect_float_eq(facts_step_of(FATTN_F32, facts_encode(FATTN_F32, 2.0)), 0x1p-22, 0);
    cr_expect_float_eq(facts_step_of(FATTN_E4M3, facts_encode(FATTN_E4M3, 448)), 32, 0);
    cr_expect_float_eq(facts_step_of(FATTN_BF16, facts_dtype_nan(FATTN_BF16)), 0, 0);
}

Test(judge_rules, sums_in_any_order_may_differ_by_a_step_and_their_share)
{
    facts_tensor t;
    uint16_t a[4], b[4];
    const double bound[4] = { 0, 0, 1, 1 };
    const facts_slack slack = { bound, 0x1p-7, NULL };
    int64_t first[4];
    set_tensor(&t, FATTN_BF16, BHSD, 1, 1, 2, 2, 0);
    for (int i = 0; i < 4; i++)
        a[i] = b[i] = (uint16_t)facts_encode(FATTN_BF16, 1.0);
    cr_expect_eq(facts_judge_repeat_close(&t, a, b, NULL, &slack, first), 0);
    b[1] = (uint16_t)facts_encode(FATTN_BF16, 1.0 + 0x1p-7);
    cr_expect_eq(facts_judge_repeat(&t, a, b, NULL, first), 1);
    cr_expect_eq(facts_judge_repeat_close(&t, a, b, NULL, &slack, first), 0, "one step");
    b[1] = b[3] = (uint16_t)facts_encode(FATTN_BF16, 1.0 + 0x1p-6);
    cr_expect_eq(facts_judge_repeat_close(&t, a, b, NULL, &slack, first), 1,
                 "two: where the terms are large they may");
    cr_expect(first[2] == 0 && first[3] == 1);
    b[1] = a[1], b[2] = (uint16_t)facts_dtype_nan(FATTN_BF16);
    cr_expect_eq(facts_judge_repeat_close(&t, a, b, NULL, &slack, first), 1,
                 "a NaN in one of them");
    const facts_row_expects expects[2] = { FACTS_EXPECTS_VALUE, FACTS_EXPECTS_ZERO_OR_POISON };
    cr_expect_eq(facts_judge_repeat_close(&t, a, b, expects, &slack, first), 0,
                 "nothing is due there");
}

/* ---- verdicts ---- */

Test(judge_rules, verdicts_stand_in_one_order)
{
    const facts_verdict chain[] = {
        FACTS_VERDICT_OVERRUN,      FACTS_VERDICT_UNWRITTEN,      FACTS_VERDICT_NAN,
        FACTS_VERDICT_WRONG,        FACTS_VERDICT_GRAPH_MISMATCH, FACTS_VERDICT_NONDETERMINISTIC,
        FACTS_VERDICT_INCONCLUSIVE, FACTS_VERDICT_MISTRUSTED,     FACTS_VERDICT_PASS
    };
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++)
        for (size_t k = i; k < sizeof chain / sizeof *chain; k++) {
            cr_expect_eq(facts_verdict_worse(chain[i], chain[k]), chain[i]);
            cr_expect_eq(facts_verdict_worse(chain[k], chain[i]), chain[i]);
        }
    facts_judgement j = {
        .overrun = 1, .unwritten = 1, .not_finite = 1, .wrong = 1, .ratio = INFINITY
    };
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_OVERRUN);
    j.overrun = 0;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_UNWRITTEN);
    j.unwritten = 0;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_NAN);
    j.not_finite = 0;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    j.wrong = 0, j.ratio = 1.01;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG,
                 "a gate of rows, where no element is wrong by itself");
    j.ratio = 1;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    j.no_memory = true;
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_INCONCLUSIVE);
}

/* ---- amax ---- */

static facts_judgement amax(facts_amax rule, double got)
{
    return facts_judge_amax(&rule, facts_encode(FATTN_F32, got), FACTS_PATTERN_A);
}

static facts_verdict verdict_of_amax(facts_amax rule, double got)
{
    facts_judgement j = amax(rule, got);
    return facts_judgement_verdict(&j);
}

Test(judge_rules, amax_lies_between_what_a_right_kernel_may_say)
{
    const facts_amax rule = {
        .want = 4.0, .least = 3.99, .most = 4.02, .stored = NAN, .u = 0x1p-4
    };
    cr_expect_eq(verdict_of_amax(rule, 4.0), FACTS_VERDICT_PASS);
    cr_expect_eq(verdict_of_amax(rule, 4.0195), FACTS_VERDICT_PASS);
    cr_expect_eq(verdict_of_amax(rule, 4.03), FACTS_VERDICT_WRONG);
    cr_expect_eq(verdict_of_amax(rule, 3.985), FACTS_VERDICT_WRONG,
                 "the larger side does not lend");
    cr_expect_float_eq(amax(rule, 4.01).ratio, 0.5, 1e-4);
    cr_expect_eq(amax(rule, 4.01).gate, FACTS_GATE_AMAX);
    cr_expect_eq(verdict_of_amax(rule, INFINITY), FACTS_VERDICT_NAN);
    cr_expect_eq(verdict_of_amax((facts_amax){ .stored = NAN }, 0.0), FACTS_VERDICT_PASS,
                 "of a tensor of zeros");
    cr_expect_eq(verdict_of_amax((facts_amax){ .stored = NAN }, 0x1p-100), FACTS_VERDICT_WRONG);
}

Test(judge_rules, amax_agrees_with_what_is_stored)
{
    facts_amax rule = { .want = 4.0, .least = 3.0, .most = 5.0, .stored = 4.0, .u = 0x1p-4 };
    cr_expect_eq(verdict_of_amax(rule, 4.2), FACTS_VERDICT_PASS);
    cr_expect_eq(verdict_of_amax(rule, 4.4), FACTS_VERDICT_WRONG);
    rule.stored = 8.0; /* as an engine that stores more than it counts */
    cr_expect_float_eq(amax(rule, 4.0).want, 8.0, 0,
                       "what it disagrees with is named, not what it agrees with");
    cr_expect_float_eq(amax(rule, 4.0).bound, 0.25, 0);
    rule.stored = 4.0;
    rule.saturated = true;
    cr_expect_eq(verdict_of_amax(rule, 4.4), FACTS_VERDICT_PASS, "what was cut off says nothing");
}

Test(judge_rules, amax_of_what_is_too_small_to_be_stored)
{
    facts_amax rule = { .want = 0x1p-11,
                        .least = 0x1p-12,
                        .most = 0x1p-9,
                        .stored = 0.0,
                        .u = 0x1p-4,
                        .half = 0x1p-10 };
    cr_expect_eq(verdict_of_amax(rule, 0x1p-11), FACTS_VERDICT_PASS, "half a step is stored as 0");
    cr_expect_eq(verdict_of_amax(rule, 0x1.8p-10), FACTS_VERDICT_WRONG, "more is not");
}

Test(judge_rules, a_scalar_that_still_is_poison_was_not_written)
{
    const facts_amax rule = { .want = 4.0, .least = 3.0, .most = 5.0, .stored = NAN, .u = 0x1p-4 };
    for (facts_pattern p = FACTS_PATTERN_A; p <= FACTS_PATTERN_B; p++) {
        facts_judgement j = facts_judge_amax(&rule, facts_pattern_scalar(p), p);
        cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_UNWRITTEN);
        cr_expect_eq(j.gate, FACTS_GATE_POISON);
    }
    cr_expect_float_eq(facts_decode(FATTN_F32, facts_pattern_scalar(FACTS_PATTERN_B)), 1e30, 1e23);
}

Test(judge_rules, the_largest_is_of_rows_that_owe_a_value)
{
    facts_tensor t;
    unsigned char x[8] = { 0 };
    const facts_row_expects expects[2] = { FACTS_EXPECTS_VALUE, FACTS_EXPECTS_ANYTHING };
    bool saturated;
    set_tensor(&t, FATTN_E4M3, BHSD, 1, 2, 2, 2, 0);
    x[5] = (unsigned char)facts_encode(FATTN_E4M3, -3.0);
    x[3] = (unsigned char)facts_encode(FATTN_E4M3, 448);
    x[4] = (unsigned char)facts_dtype_nan(FATTN_E4M3);
    cr_expect_float_eq(facts_judge_largest(&t, x, expects, 0.5, &saturated), 1.5, 0);
    cr_expect_not(saturated);
    cr_expect_float_eq(facts_judge_largest(&t, x, NULL, 0.5, &saturated), 224, 0);
    cr_expect(saturated);
    uint16_t half[8] = { 0 };
    set_tensor(&t, FATTN_F16, BHSD, 1, 2, 2, 2, 0);
    half[2] = (uint16_t)facts_encode(FATTN_F16, 7.0),
    half[6] = (uint16_t)facts_dtype_inf(FATTN_F16);
    cr_expect_float_eq(facts_judge_largest(&t, half, NULL, 1.0, NULL), 7.0, 0,
                       "Inf is told of elsewhere");
}

/* ---- Stats in base 2 ---- */

Test(judge_rules, base_2_stats_are_natural_ones_converted)
{
    double want[2] = { 3.0, -INFINITY }, bound[2] = { 0x1p-20, 0 };
    facts_answer a = { .want = want, .bound = bound };
    facts_tensor t;
    set_tensor(&t, FATTN_F32, BHSD, 1, 1, 2, 1, 0);
    facts_answer_to_log2(&a, 2);
    facts_rule rule = { .expected = { .want = want, .bound = bound } };
    float right[2] = { (float)(3.0 / 0.69314718055994531), -INFINITY },
          natural[2] = { 3.0f, -INFINITY };
    facts_judgement j = facts_judge_tensor(&t, right, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    j = facts_judge_tensor(&t, natural, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_WRONG);
    cr_expect(bound[0] < 0x1p-18);
}

/* ---- packed sequences ---- */

typedef struct packed {
    facts_tensor storage; /* as one long sequence */
    facts_image image;
    unsigned char *bytes;
} packed;

/* 2 heads, 10 tokens, 4 channels; sequences [1, 4) and [4, 4) and [6, 9). */
static packed pack(void)
{
    packed x;
    const int64_t from[3] = { 1, 4, 6 };
    const int32_t len[3] = { 3, 0, 3 };
    set_tensor(&x.storage, FATTN_F16, BSHD, 1, 2, 10, 4, 0);
    const facts_tensor *list[] = { &x.storage };
    cr_assert(facts_image_create(&x.image, list, 1));
    cr_assert(facts_image_pack(&x.image, &x.storage, from, len, 3));
    x.bytes = malloc(x.image.bytes);
    facts_image_poison(&x.image, FACTS_PATTERN_A, x.bytes);
    return x;
}

Test(judge_rules, what_lies_between_packed_sequences_must_not_change)
{
    packed x = pack();
    void *storage = facts_image_storage(&x.image, x.bytes);
    for (int64_t token = 0; token < 10; token++) {
        bool of_one = (token >= 1 && token < 4) || (token >= 6 && token < 9);
        for (int64_t h = 0; h < 2; h++) {
            int64_t at = token * x.storage.stride[2] + h * x.storage.stride[1] + 3;
            uint32_t before = facts_load(FATTN_F16, storage, at);
            facts_store(FATTN_F16, storage, at, 0);
            cr_expect_eq(facts_image_overrun(&x.image, FACTS_PATTERN_A, x.bytes), of_one ? 0 : 1,
                         "token %d", (int)token);
            facts_store(FATTN_F16, storage, at, before);
        }
    }
    const int64_t outside[1] = { 8 };
    const int32_t three[1] = { 3 };
    cr_expect_not(facts_image_pack(&x.image, &x.storage, outside, three, 1));
    facts_image_destroy(&x.image);
    free(x.bytes);
}

Test(judge_rules, a_packed_row_is_judged_where_it_lies)
{
    packed x = pack();
    void *storage = facts_image_storage(&x.image, x.bytes);
    facts_tensor t = x.storage;
    t.dim[0] = 2, t.dim[2] = 3;
    const int64_t start[2] = { 1, 6 };
    const int32_t live[2] = { 2, 3 };
    t.start = start, t.live = live;
    double want[2 * 2 * 3 * 4], sigma[2 * 2 * 3 * 4], bound[2 * 2 * 3 * 4];
    for (int64_t i = 0; i < 48; i++) {
        int64_t d = i % 4, s = i / 4 % 3, h = i / 12 % 2, b = i / 24;
        want[i] = (double)i, sigma[i] = 0.01, bound[i] = 0.1;
        if (facts_row_exists(&t, b, s))
            facts_store(FATTN_F16, storage, facts_row_place(&t, b, h, s) + d,
                        facts_encode(FATTN_F16, (double)i));
    }
    facts_rule rule = { .expected = { .want = want, .sigma = sigma, .bound = bound } };
    facts_judgement j = facts_judge_tensor(&t, storage, &rule);
    cr_expect_eq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    cr_expect_eq(j.checked, 5 * 2 * 4, "the row that the first sequence does not have is not read");
    cr_expect_eq(j.padded_poison, 0);
    bool saturated;
    cr_expect_float_eq(facts_judge_largest(&t, storage, NULL, 1.0, &saturated), 47.0, 0);
    t.start = NULL;
    j = facts_judge_tensor(&t, storage, &rule);
    cr_expect_neq(facts_judgement_verdict(&j), FACTS_VERDICT_PASS);
    facts_image_destroy(&x.image);
    free(x.bytes);
}
