/* The kernels that judge an answer, run without a GPU, against the C functions that they stand for.
 */
#include "emulated.h"

#include "../../../test/numbers/numbers.h"

typedef struct judged {
    facts_tensor tensor;
    size_t elements, rows;
    double *want, *sigma, *bound;
    unsigned char *storage;
    int32_t expects[2 * 7];
} judged;

/* Where element n lies: of channel n % 8, row n / 8 % 7, head n / 56 % 3. */
static int64_t place_of(const facts_tensor *t, int64_t n)
{
    return t->first + n / 168 * t->stride[0] + n / 56 % 3 * t->stride[1] +
           n / 8 % 7 * t->stride[2] + n % 8;
}

/* An answer within its bounds except for faults of every kind. */
static judged make_judged(void)
{
    judged j = { .tensor = gappy(FATTN_F16, 0), .elements = 2 * 3 * 7 * 8, .rows = 2 * 3 * 7 };
    j.want = malloc(j.elements * sizeof(double));
    j.sigma = malloc(j.elements * sizeof(double));
    j.bound = malloc(j.elements * sizeof(double));
    j.storage = malloc((size_t)j.tensor.elements * 2);
    for (int64_t i = 0; i < j.tensor.elements; i++)
        facts_store(FATTN_F16, j.storage, i, facts_pattern_code(FATTN_F16, FACTS_PATTERN_A, i));
    for (int64_t n = 0; n < (int64_t)j.elements; n++) {
        j.want[n] = n % 8 == 7 && n / 8 % 7 == 2 ? 0.0 : sin((double)n);
        j.sigma[n] = j.want[n] == 0.0 ? 0.0 : 0.001;
        j.bound[n] = j.want[n] == 0.0 ? 0.0 : 0.01;
        double got = j.want[n] + (n % 31 == 0 ? 0.5 : 0.0005) * cos((double)n);
        if (n % 53 != 0)
            facts_store(FATTN_F16, j.storage, place_of(&j.tensor, n),
                        n % 47 == 0 ? 0x7C00 : facts_encode(FATTN_F16, got));
    }
    j.expects[5] = FACTS_EXPECTS_ANYTHING;
    j.expects[13] = FACTS_EXPECTS_ZERO_OR_POISON;
    return j;
}

static void free_judged(judged *j)
{
    free(j->want);
    free(j->sigma);
    free(j->bound);
    free(j->storage);
}

static void same_rows(const facts_judged_row *a, const facts_judged_row *b)
{
    facts_judged_row x = *a, y = *b;
    cr_expect_float_eq(x.squares, y.squares, 1e-12 * (1 + fabs(x.squares)));
    cr_expect_float_eq(x.gain, y.gain, 1e-12 * (1 + fabs(x.power)));
    cr_expect_float_eq(x.power, y.power, 1e-12 * (1 + fabs(x.power)));
    x.squares = y.squares = x.gain = y.gain = x.power = y.power = 0;
    cr_expect(memcmp(&x.ratio, &y.ratio, 4 * sizeof(double)) == 0);
    cr_expect_eq(x.worst, y.worst);
    cr_expect_eq(x.weighed, y.weighed);
    cr_expect(x.rank == y.rank && x.gate == y.gate && x.checked == y.checked &&
              x.not_finite == y.not_finite && x.unwritten == y.unwritten);
    cr_expect(x.wrong == y.wrong && x.padded_poison == y.padded_poison &&
              x.padded_zero == y.padded_zero && x.padded_other == y.padded_other);
}

/* Row n of the tensor as C judges it. */
static facts_judged_row row_in_c(const judged *j, const facts_limits *limits, int64_t n,
                                 const void *storage, facts_lie lie)
{
    const int64_t s = n % 7, b = n / 21;
    facts_judged_row row;
    facts_judged_row_begin(&row);
    for (int64_t d = 0; d < 8; d++) {
        facts_judged_element at = { .want = j->want[8 * n + d],
                                    .sigma = j->sigma[8 * n + d],
                                    .bound = j->bound[8 * n + d],
                                    .channel = (int32_t)d,
                                    .expects = j->expects[b * 7 + s] };
        at.place = place_of(&j->tensor, 8 * n + d);
        if (storage) {
            at.code = facts_load(FATTN_F16, storage, at.place);
            facts_judged_row_add(&row, limits, &at);
        } else {
            facts_judged_row_add_lie(
                &row, limits, &at, (int32_t)lie,
                j->want[(n - s) * 8 + facts_lie_from((int32_t)lie, s, d, 7, 8)]);
        }
    }
    return row;
}

TestSuite(emulated, .init = open_emulated, .fini = close_emulated);

Test(emulated, rows_are_judged_alike)
{
    judged j = make_judged();
    facts_rule rule = { .expected = { j.want, j.sigma, j.bound, NULL, NULL },
                        .pattern = FACTS_PATTERN_A };
    facts_limits limits = facts_judge_limits(&j.tensor, &rule);
    facts_part all = {
        .batches = 2, .heads = 3, .want = j.want, .sigma = j.sigma, .bound = j.bound
    };
    facts_judged_row rows[2 * 3 * 7];
    facts_asked asked = { .tensor = &j.tensor,
                          .storage = j.storage,
                          .limits = limits,
                          .expects = j.expects,
                          .part = all };
    uint64_t bits = 0;
    cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
    for (int64_t n = 0; n < 42; n++) {
        facts_judged_row want = row_in_c(&j, &limits, n, j.storage, FACTS_LIE_COUNT);
        same_rows(&rows[n], &want);
        bits += rows[n].bits;
    }
    cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
    asked.storage = NULL;
    for (asked.lie = 0; asked.lie < FACTS_LIE_COUNT; asked.lie++) {
        cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
        for (int64_t n = 0; n < 42; n++) {
            facts_judged_row want = row_in_c(&j, &limits, n, NULL, asked.lie);
            same_rows(&rows[n], &want);
        }
    }
    free_judged(&j);
}

static void same_judgement(const facts_judgement *a, const facts_judgement *b)
{
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        if (a->gates[gate] != b->gates[gate])
            cr_expect_float_eq(a->gates[gate], b->gates[gate], 1e-12 * a->gates[gate], "%s: %g %g",
                               facts_gate_words[gate], a->gates[gate], b->gates[gate]);
    cr_expect(a->gate == b->gate &&
              (a->ratio == b->ratio || fabs(a->ratio - b->ratio) < 1e-12 * a->ratio));
    cr_expect_float_eq(a->rms, b->rms, 1e-12 * a->rms);
    cr_expect_arr_eq(a->worst, b->worst, sizeof a->worst);
    cr_expect(memcmp(&a->got, &b->got, 3 * sizeof(double)) == 0, "%g %g", a->got, b->got);
    cr_expect(a->checked == b->checked && a->not_finite == b->not_finite &&
              a->unwritten == b->unwritten && a->wrong == b->wrong);
    cr_expect(a->padded_poison == b->padded_poison && a->padded_zero == b->padded_zero &&
              a->padded_other == b->padded_other);
}

/* An answer that no single element gives away: too large by a factor, or one row that scatters. */
static judged make_subtle(bool gain)
{
    judged j = make_judged();
    j.expects[13] = FACTS_EXPECTS_ANYTHING;
    for (int64_t n = 0; n < (int64_t)j.elements; n++) {
        const double size = gain || n / 8 != 20 ? 1.0 : 3.0;
        j.want[n] = 2.0 * sin(1.0 + (double)n), j.sigma[n] = 0.01, j.bound[n] = 0.1;
        const double got = j.want[n] * (gain ? 1.01 : 1.0) + 0.01 * size * cos(7.0 * (double)n);
        facts_store(FATTN_F16, j.storage, place_of(&j.tensor, n), facts_encode(FATTN_F16, got));
    }
    return j;
}

#define MANY_QUESTIONS 15 /* more than one launch answers */

Test(emulated, slices_say_what_their_rows_say)
{
    for (int kind = 0; kind < 3; kind++) {
        judged j = kind == 0 ? make_judged() : make_subtle(kind == 1);
        double nu[42], neff[42];
        facts_judged_slice slices[6];
        facts_judged_row rows[42];
        for (int n = 0; n < 42; n++)
            nu[n] = n == 9 ? 0.0 : 200.0 + n % 5, neff[n] = n % 17 == 3 ? 2.0 : 20.0 + n;
        facts_rule rule = { .expected = { j.want, j.sigma, j.bound, nu, neff },
                            .pattern = FACTS_PATTERN_A,
                            .dense = true,
                            .gain = 0x1p-13 };
        const facts_limits limits = facts_judge_limits(&j.tensor, &rule);
        const facts_judged_rows weights = facts_judge_weights(&j.tensor, &rule);
        const facts_part all = {
            .batches = 2, .heads = 3, .want = j.want, .sigma = j.sigma, .bound = j.bound
        };
        facts_judged_slice reported[1];
        facts_asked asked[MANY_QUESTIONS];
        /* The last is about the answer, the others about a lie in the first head. */
        for (int n = 0; n < MANY_QUESTIONS; n++) {
            asked[n] = (facts_asked){ .tensor = &j.tensor,
                                      .lie = FACTS_LIE_ROW,
                                      .limits = limits,
                                      .expects = j.expects,
                                      .part = all,
                                      .out = reported };
            asked[n].part.batches = asked[n].part.heads = 1;
        }
        facts_asked *answer = &asked[MANY_QUESTIONS - 1];
        answer->storage = j.storage, answer->lie = FACTS_LIE_COUNT, answer->part = all;
        answer->weights = weights, answer->out = slices;
        cr_assert_eq(facts_gpu_judge(gpu, &asked[0], rows), FATTN_OK);
        int64_t moved = 0, refused = 0;
        for (int n = 0; n < 7; n++)
            moved += rows[n].checked, refused += rows[n].wrong;
        cr_assert_eq(facts_gpu_judge(gpu, &asked[MANY_QUESTIONS - 1], rows), FATTN_OK);
        cr_assert_eq(facts_gpu_slices(gpu, asked, MANY_QUESTIONS), FATTN_OK);
        cr_expect(reported[0].sums.checked == moved && reported[0].sums.wrong == refused &&
                  moved > 0 && refused > 0);
        const facts_judgement here = facts_judge_rows(&j.tensor, &rule, rows),
                              there = facts_judge_slices(&j.tensor, &rule, slices);
        same_judgement(&here, &there);
        uint64_t bits = 0;
        for (int n = 0; n < 6; n++)
            bits += slices[n].sums.bits;
        cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
        cr_expect(here.gates[FACTS_GATE_T2] > 0 && here.gates[FACTS_GATE_T3] > 0 &&
                  here.gates[FACTS_GATE_TG] > 0);
        cr_expect(kind == 0 || (here.ratio > 1 && here.wrong == 0));
        free_judged(&j);
    }
}

Test(emulated, other_bits_hashes_and_what_was_never_written)
{
    judged j = make_judged();
    size_t bytes = (size_t)j.tensor.elements * 2;
    unsigned char *other = malloc(bytes);
    int64_t first_c[4];
    uint64_t bits;
    facts_found found;
    memcpy(other, j.storage, bytes);
    for (int64_t i = 40; i < 300; i += 13)
        other[2 * i] ^= 1;
    /* several at once: each has its own result */
    facts_two_runs of[3] = {
        { .tensor = &j.tensor, .a = j.storage, .b = other, .expects = j.expects },
        { .tensor = &j.tensor, .a = j.storage, .b = j.storage, .expects = j.expects },
        { .tensor = &j.tensor, .a = j.storage, .b = other }
    };
    cr_expect_eq(facts_gpu_repeat(gpu, of, 3), FATTN_OK);
    cr_expect_eq(of[0].different,
                 facts_judge_repeat(&j.tensor, j.storage, other,
                                    (const facts_row_expects *)j.expects, first_c));
    cr_expect_arr_eq(of[0].first, first_c, sizeof first_c);
    cr_expect_eq(of[1].different, 0);
    cr_expect_eq(of[2].different, facts_judge_repeat(&j.tensor, j.storage, other, NULL, first_c));
    cr_expect_arr_eq(of[2].first, first_c, sizeof first_c);
    for (int64_t i = 40; i < 300; i += 39)
        other[2 * i + 1] ^= 4;
    of[0].slack = j.bound;
    of[0].share = 0.5;
    cr_expect_eq(facts_gpu_repeat(gpu, of, 1), FATTN_OK);
    cr_expect_eq(of[0].different,
                 facts_judge_repeat_close(&j.tensor, j.storage, other,
                                          (const facts_row_expects *)j.expects,
                                          &(facts_slack){ j.bound, 0.5, NULL }, first_c));
    cr_expect(of[0].different > 0 && memcmp(of[0].first, first_c, sizeof first_c) == 0);
    cr_expect_eq(facts_gpu_bits(gpu, &j.tensor, j.storage, &bits), FATTN_OK);
    cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
    cr_expect_neq(bits, facts_judge_bits(&j.tensor, other));
    cr_expect_eq(facts_gpu_survey(gpu, &j.tensor, j.storage, j.expects, FACTS_PATTERN_A, &found),
                 FATTN_OK);
    int64_t unwritten = 0, not_finite = 0;
    for (int64_t n = 0; n < (int64_t)j.elements; n++)
        if (j.expects[n / 168 * 7 + n / 8 % 7] == FACTS_EXPECTS_VALUE) {
            unwritten += n % 53 == 0;
            not_finite += n % 53 != 0 && n % 47 == 0;
        }
    cr_expect_eq(found.unwritten, unwritten);
    cr_expect_eq(found.not_finite, not_finite);
    cr_expect(found.first_unwritten[0] == 0 && found.first_unwritten[3] == 0);
    unsigned char *here = calloc(bytes, 1), *there = calloc(bytes, 1);
    facts_round_into(&j.tensor, j.want, 0.5, here);
    cr_expect_eq(facts_gpu_round(gpu, &j.tensor, j.want, 0.5, there), FATTN_OK);
    cr_expect(memcmp(here, there, bytes) == 0, "doubles are rounded alike");
    free(here);
    free(there);
    free(other);
    free_judged(&j);
}
