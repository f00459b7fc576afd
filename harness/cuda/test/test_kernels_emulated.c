/* The harness's kernels, run without a GPU, against the C functions that they stand for: the same bits. */
#include "emulated.h"

#include <stdio.h>

#include "../../test/numbers/numbers.h"
#include "../calls.h"
#include "numbers/bits.h"

static facts_problem resolved(const char *text)
{
    facts_case c;
    facts_error error = { 0 };
    facts_problem p;
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s: %s", text, error.text);
    return p;
}

static bool is_input(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].present &&
           (id <= FACTS_TENSOR_V || id == FACTS_TENSOR_DO || id == FACTS_TENSOR_BIAS || id >= FACTS_TENSOR_MOD_A);
}

/* ---- fills --------------------------------------------------------------------------------------------------------------------
 */

static void same_fill(facts_gpu *gpu, const char *text)
{
    static facts_problem p;
    p = resolved(text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!is_input(&p, id))
            continue;
        size_t elements = (size_t)p.tensor[id].elements, bytes = elements * facts_dtype_bytes(p.tensor[id].dtype);
        unsigned char *here = malloc(bytes), *there = malloc(bytes);
        facts_fill_gaps(&p, p.tensor[id].dtype, here, (int64_t)elements);
        cr_assert(facts_fill_tensor(&p, id, here));
        cr_assert_eq(facts_gpu_gaps(gpu, &p, p.tensor[id].dtype, there, (int64_t)elements), FATTN_OK);
        cr_assert_eq(facts_gpu_fill(gpu, &p, id, there), FATTN_OK);
        cr_assert(memcmp(here, there, bytes) == 0, "%s: %s", text, facts_tensor_word(id));
        free(here);
        free(there);
    }
}

Test(emulated, a_float_as_bf16_is_what_encoding_says)
{
    for (uint32_t high = 0; high < 0x10000; high++)
        for (uint32_t n = 0; n < 6; n++) {
            static const uint32_t lows[6] = { 0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF };
            const uint32_t bits = high << 16 | lows[n];
            float x;
            memcpy(&x, &bits, sizeof x);
            if (x == x && facts_encode_bf16_of_float(x) != facts_encode(FATTN_BF16, (double)x))
                cr_assert_fail("%08x", bits);
        }
}

Test(emulated, every_fill_has_the_bits_of_the_C_one)
{
    static const char *const shapes[] = { "dtype=bf16 b=2 h=4/2 s=20/36 d=16",
                                          "dtype=f16 b=2 h=2 s=24 d=16 layout=sbhd stride=gap:q.s.8",
                                          "dtype=f32 b=1 h=2 s=20 d=32 mask=causal",
                                          "dtype=bf16 b=2 h=2 s=24 d=16 stride=broadcast:k.b",
                                          "dtype=f16 b=3 h=2 s=16 d=16 lens=7+16+1 poison=nan" };
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
#define AS_WORD(symbol, word) word,
    static const char *const fills[] = { FACTS_FILL_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            char text[300];
            facts_case c;
            facts_error error = { 0 };
            facts_problem p;
            snprintf(text, sizeof text, "pass=bwd %s fill=%s seed=%zu", shapes[s], fills[f], f + 1);
            if (facts_case_parse(&c, text, &error) && facts_problem_resolve(&p, &c, &error) == FACTS_RESOLVED)
                same_fill(gpu, text);
        }
    close_emulated(gpu, context);
}

Test(emulated, bias_tensors_of_modifications_and_fills_that_need_something_too)
{
    static const char *const texts[] = {
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss",
        "pass=fwd dtype=bf16 b=2 h=2 s=20/12 d=16 bias=11ss bias_fill=random",
        "pass=fwd dtype=bf16 b=2 h=2 s=20/12 d=16 mask=causal bias=1hss fill=bias_needle",
        "pass=bwd dtype=f16 b=1 h=4/2 s=20/140 d=16 fill=outlier:50",
        "pass=bwd dtype=bf16 b=3 h=2 s=20/12 d=16 lens=7+20+1/12+3+5 fill=pad_garbage",
        "pass=bwd dtype=f16 b=3 h=2 s=20/12 d=16 lens=7+20+1/12+3+5 fill=amax_plant seed=5",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=1hss bias_fill=rows_masked",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=window:3:2",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=finite_min",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=relpos",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=document:3",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=post_scale_bias",
    };
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_fill(gpu, texts[i]);
    close_emulated(gpu, context);
}

/* ---- images -------------------------------------------------------------------------------------------------------------------
 */

/* A tensor with gaps, an offset and a start that is not aligned. */
static facts_tensor gappy(int32_t dtype, int64_t skew)
{
    facts_tensor t;
    set_tensor(&t, dtype, BSHD, 2, 3, 7, 8, 5);
    t.first = 11;
    t.elements += 11;
    t.skew_bytes = skew;
    return t;
}

Test(emulated, poison_and_guards_are_the_same_bytes)
{
    static const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32, FATTN_E4M3, FATTN_E5M2 };
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B; pattern++)
            for (int64_t skew = 0; skew < 4; skew++) {
                facts_tensor t = gappy(dtypes[i], skew);
                const facts_tensor *list[] = { &t };
                facts_image image;
                cr_assert(facts_image_create(&image, list, 1));
                unsigned char *here = calloc(image.bytes, 1), *there = calloc(image.bytes, 1);
                facts_image_poison(&image, pattern, here);
                cr_expect_eq(facts_gpu_poison(gpu, &image, pattern, there), FATTN_OK);
                cr_expect(memcmp(here, there, image.bytes) == 0);
                memset(here, 1, image.bytes);
                memset(there, 1, image.bytes);
                facts_image_guard(&image, pattern, here);
                cr_expect_eq(facts_gpu_guard(gpu, &image, pattern, there), FATTN_OK);
                cr_expect(memcmp(here, there, image.bytes) == 0);
                facts_image_destroy(&image);
                free(here);
                free(there);
            }
    close_emulated(gpu, context);
}

Test(emulated, every_changed_byte_outside_the_tensors_is_found)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    facts_tensor t = gappy(FATTN_F16, 1);
    const facts_tensor *list[] = { &t };
    facts_image image;
    cr_assert(facts_image_create(&image, list, 1));
    unsigned char *bytes = malloc(image.bytes);
    int64_t changed;
    for (size_t at = 0; at < image.bytes; at += at < image.front || at + 1100 > image.bytes ? 97 : 1) {
        facts_image_poison(&image, FACTS_PATTERN_B, bytes);
        bytes[at] ^= 1;
        bytes[image.front + 2 * 12] = 77; /* of the tensor itself */
        cr_assert_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
        cr_assert_eq(facts_gpu_overrun(gpu, &image, list, 1, FACTS_PATTERN_B, bytes, &changed), FATTN_OK);
        cr_assert_eq(facts_gpu_watch_end(gpu), FATTN_OK);
        cr_assert_eq(changed, facts_image_overrun(&image, FACTS_PATTERN_B, bytes), "byte %zu: %ld", at, (long)changed);
    }
    facts_image_destroy(&image);
    free(bytes);
    close_emulated(gpu, context);
}

Test(emulated, copies_noise_and_differences)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    enum { BYTES = 1003 };
    _Alignas(16) unsigned char a[BYTES + 1], b[BYTES + 1] = { 0 };
    int64_t differ;
    a[BYTES] = b[BYTES] = 9;
    cr_expect_eq(facts_gpu_noise(gpu, a, 7, BYTES), FATTN_OK);
    cr_expect_eq(facts_gpu_copy(gpu, b, a, BYTES), FATTN_OK);
    cr_expect(memcmp(a, b, BYTES) == 0 && a[BYTES] == 9 && b[BYTES] == 9);
    b[0] ^= 1, b[500] ^= 1, b[501] ^= 1, b[1002] ^= 1;
    cr_expect_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
    cr_expect_eq(facts_gpu_differ(gpu, a, b, BYTES, &differ), FATTN_OK);
    cr_expect_eq(facts_gpu_watch_end(gpu), FATTN_OK);
    cr_expect_eq(differ, 4);
    cr_expect_eq(facts_gpu_set(gpu, a, 0x3C, BYTES), FATTN_OK);
    cr_expect(a[0] == 0x3C && a[1002] == 0x3C && a[BYTES] == 9);
    close_emulated(gpu, context);
}

Test(emulated, what_is_put_off_is_done_at_the_end_however_much_it_is)
{
    enum { MANY = 2 * FACTS_PLACES_TOGETHER + 3, BYTES = 64 };
    static _Alignas(16) unsigned char from[MANY][BYTES], to[MANY][BYTES];
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    int64_t differ[MANY], none = 0;
    memset(from, 5, sizeof from);
    facts_gpu_together_begin(gpu);
    cr_assert_eq(facts_gpu_copy(gpu, to[0], from[0], BYTES), FATTN_OK);
    cr_expect_eq(to[0][0], 0);
    for (int n = 1; n < MANY; n++)
        cr_assert_eq(facts_gpu_copy(gpu, to[n], from[n], BYTES), FATTN_OK);
    cr_assert_eq(facts_gpu_together_end(gpu), FATTN_OK);
    cr_expect(memcmp(to, from, sizeof to) == 0);
    to[MANY - 1][3] = 6;
    cr_assert_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
    for (int n = 0; n < MANY; n++)
        cr_assert_eq(facts_gpu_differ(gpu, to[n], from[n], BYTES, &differ[n]), FATTN_OK);
    cr_assert_eq(facts_gpu_watch_end(gpu), FATTN_OK);
    for (int n = 0; n < MANY - 1; n++)
        none += differ[n];
    cr_expect(none == 0 && differ[MANY - 1] == 1);
    close_emulated(gpu, context);
}

/* ---- answers ------------------------------------------------------------------------------------------------------------------
 */

typedef struct judged {
    facts_tensor tensor;
    size_t elements, rows;
    double *want, *sigma, *bound;
    unsigned char *storage;
    int32_t due[2 * 7];
} judged;

/* An answer within its bounds but for faults of every kind. */
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
        const int64_t d = n % 8, s = n / 8 % 7, h = n / 56 % 3, b = n / 168;
        j.want[n] = n % 8 == 7 && s == 2 ? 0.0 : sin((double)n);
        j.sigma[n] = j.want[n] == 0.0 ? 0.0 : 0.001;
        j.bound[n] = j.want[n] == 0.0 ? 0.0 : 0.01;
        double got = j.want[n] + (n % 31 == 0 ? 0.5 : 0.0005) * cos((double)n);
        if (n % 53 != 0)
            facts_store(FATTN_F16, j.storage,
                        j.tensor.first + b * j.tensor.stride[0] + h * j.tensor.stride[1] + s * j.tensor.stride[2] + d,
                        n % 47 == 0 ? 0x7C00 : facts_encode(FATTN_F16, got));
    }
    j.due[5] = FACTS_DUE_ANYTHING;
    j.due[13] = FACTS_DUE_ZERO_OR_POISON;
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
    cr_expect(x.rank == y.rank && x.gate == y.gate && x.checked == y.checked && x.not_finite == y.not_finite &&
              x.unwritten == y.unwritten);
    cr_expect(x.wrong == y.wrong && x.padded_poison == y.padded_poison && x.padded_zero == y.padded_zero &&
              x.padded_other == y.padded_other);
}

/* Row n of the tensor as C judges it. */
static facts_judged_row row_in_c(const judged *j, const facts_bar *bar, int64_t n, const void *storage, facts_lie lie)
{
    const facts_tensor *t = &j->tensor;
    const int64_t s = n % 7, h = n / 7 % 3, b = n / 21;
    facts_judged_row row;
    facts_judged_row_begin(&row);
    for (int64_t d = 0; d < 8; d++) {
        facts_judged_element at = { .want = j->want[8 * n + d],
                                    .sigma = j->sigma[8 * n + d],
                                    .bound = j->bound[8 * n + d],
                                    .channel = (int32_t)d,
                                    .due = j->due[b * 7 + s] };
        at.place = t->first + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d;
        if (storage) {
            at.code = facts_load(FATTN_F16, storage, at.place);
            facts_judged_row_add(&row, bar, &at);
        } else {
            facts_judged_row_add_lie(&row, bar, &at, (int32_t)lie, j->want[(n - s) * 8 + facts_lie_from((int32_t)lie, s, d, 7, 8)]);
        }
    }
    return row;
}

Test(emulated, rows_are_judged_alike)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    judged j = make_judged();
    facts_rule rule = { .expected = { j.want, j.sigma, j.bound, NULL, NULL }, .pattern = FACTS_PATTERN_A };
    facts_bar bar = facts_judge_bar(&j.tensor, &rule);
    facts_part all = { .batches = 2, .heads = 3, .want = j.want, .sigma = j.sigma, .bound = j.bound };
    facts_judged_row rows[2 * 3 * 7];
    facts_asked asked = { .tensor = &j.tensor, .storage = j.storage, .bar = bar, .due = j.due, .part = all };
    uint64_t bits = 0;
    cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
    for (int64_t n = 0; n < 42; n++) {
        facts_judged_row want = row_in_c(&j, &bar, n, j.storage, FACTS_LIE_COUNT);
        same_rows(&rows[n], &want);
        bits += rows[n].bits;
    }
    cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
    asked.storage = NULL;
    for (asked.lie = 0; asked.lie < FACTS_LIE_COUNT; asked.lie++) {
        cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
        for (int64_t n = 0; n < 42; n++) {
            facts_judged_row want = row_in_c(&j, &bar, n, NULL, asked.lie);
            same_rows(&rows[n], &want);
        }
    }
    free_judged(&j);
    close_emulated(gpu, context);
}

static void same_judgement(const facts_judgement *a, const facts_judgement *b)
{
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        if (a->gates[gate] != b->gates[gate])
            cr_expect_float_eq(a->gates[gate], b->gates[gate], 1e-12 * a->gates[gate], "%s: %g %g", facts_gate_words[gate],
                               a->gates[gate], b->gates[gate]);
    cr_expect(a->gate == b->gate && (a->ratio == b->ratio || fabs(a->ratio - b->ratio) < 1e-12 * a->ratio));
    cr_expect_float_eq(a->rms, b->rms, 1e-12 * a->rms);
    cr_expect_arr_eq(a->worst, b->worst, sizeof a->worst);
    cr_expect(memcmp(&a->got, &b->got, 3 * sizeof(double)) == 0, "%g %g", a->got, b->got);
    cr_expect(a->checked == b->checked && a->not_finite == b->not_finite && a->unwritten == b->unwritten && a->wrong == b->wrong);
    cr_expect(a->padded_poison == b->padded_poison && a->padded_zero == b->padded_zero && a->padded_other == b->padded_other);
}

/* An answer that no single element gives away: too large by a factor, or one row that scatters. */
static judged make_subtle(bool gain)
{
    judged j = make_judged();
    j.due[13] = FACTS_DUE_ANYTHING;
    for (int64_t n = 0; n < (int64_t)j.elements; n++) {
        const int64_t d = n % 8, s = n / 8 % 7, h = n / 56 % 3, b = n / 168;
        const double size = gain || n / 8 != 20 ? 1.0 : 3.0;
        j.want[n] = 2.0 * sin(1.0 + (double)n), j.sigma[n] = 0.01, j.bound[n] = 0.1;
        const double got = j.want[n] * (gain ? 1.01 : 1.0) + 0.01 * size * cos(7.0 * (double)n);
        facts_store(FATTN_F16, j.storage,
                    j.tensor.first + b * j.tensor.stride[0] + h * j.tensor.stride[1] + s * j.tensor.stride[2] + d,
                    facts_encode(FATTN_F16, got));
    }
    return j;
}

#define MANY_QUESTIONS 15 /* more than one launch answers */

Test(emulated, slices_say_what_their_rows_say)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    for (int kind = 0; kind < 3; kind++) {
        judged j = kind == 0 ? make_judged() : make_subtle(kind == 1);
        double nu[42], neff[42];
        facts_judged_slice slices[6];
        facts_judged_row rows[42];
        for (int n = 0; n < 42; n++)
            nu[n] = n == 9 ? 0.0 : 200.0 + n % 5, neff[n] = n % 17 == 3 ? 2.0 : 20.0 + n;
        facts_rule rule = {
            .expected = { j.want, j.sigma, j.bound, nu, neff }, .pattern = FACTS_PATTERN_A, .dense = true, .gain = 0x1p-13
        };
        const facts_bar bar = facts_judge_bar(&j.tensor, &rule);
        const facts_judged_rows weights = facts_judge_weights(&j.tensor, &rule);
        const facts_part all = { .batches = 2, .heads = 3, .want = j.want, .sigma = j.sigma, .bound = j.bound };
        facts_judged_slice told[1];
        facts_asked asked[MANY_QUESTIONS];
        for (int n = 0; n < MANY_QUESTIONS; n++) { /* the last is about the answer, the others about a lie in the first head */
            asked[n] =
                (facts_asked){ .tensor = &j.tensor, .lie = FACTS_LIE_ROW, .bar = bar, .due = j.due, .part = all, .out = told };
            asked[n].part.batches = asked[n].part.heads = 1;
        }
        asked[MANY_QUESTIONS - 1] = (facts_asked){ .tensor = &j.tensor,
                                                   .storage = j.storage,
                                                   .lie = FACTS_LIE_COUNT,
                                                   .bar = bar,
                                                   .due = j.due,
                                                   .part = all,
                                                   .weights = weights,
                                                   .out = slices };
        cr_assert_eq(facts_gpu_judge(gpu, &asked[0], rows), FATTN_OK);
        int64_t moved = 0, refused = 0;
        for (int n = 0; n < 7; n++)
            moved += rows[n].checked, refused += rows[n].wrong;
        cr_assert_eq(facts_gpu_judge(gpu, &asked[MANY_QUESTIONS - 1], rows), FATTN_OK);
        cr_assert_eq(facts_gpu_slices(gpu, asked, MANY_QUESTIONS), FATTN_OK);
        cr_expect(told[0].sums.checked == moved && told[0].sums.wrong == refused && moved > 0 && refused > 0);
        const facts_judgement here = facts_judge_rows(&j.tensor, &rule, rows), there = facts_judge_slices(&j.tensor, &rule, slices);
        same_judgement(&here, &there);
        uint64_t bits = 0;
        for (int n = 0; n < 6; n++)
            bits += slices[n].sums.bits;
        cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
        cr_expect(here.gates[FACTS_GATE_T2] > 0 && here.gates[FACTS_GATE_T3] > 0 && here.gates[FACTS_GATE_TG] > 0);
        cr_expect(kind == 0 || (here.ratio > 1 && here.wrong == 0));
        free_judged(&j);
    }
    close_emulated(gpu, context);
}

Test(emulated, a_slice_of_heads_and_a_sample_of_rows_are_judged_as_in_the_whole)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    judged j = make_judged();
    facts_rule rule = { .expected = { j.want, j.sigma, j.bound, NULL, NULL }, .pattern = FACTS_PATTERN_A };
    facts_bar bar = facts_judge_bar(&j.tensor, &rule);
    const int64_t sample[] = { 0, 2, 5, 6 }, first = (1 * 3 + 1) * 7; /* batch 1, heads 1 and 2 */
    double want[2 * 4 * 8], sigma[2 * 4 * 8], bound[2 * 4 * 8];
    for (int64_t n = 0; n < 8; n++)
        for (int64_t d = 0; d < 8; d++) {
            const int64_t from = (first + n / 4 * 7 + sample[n % 4]) * 8 + d;
            want[8 * n + d] = j.want[from], sigma[8 * n + d] = j.sigma[from], bound[8 * n + d] = j.bound[from];
        }
    facts_part part = {
        .b = 1, .batches = 1, .h = 1, .heads = 2, .rows = sample, .row_count = 4, .want = want, .sigma = sigma, .bound = bound
    };
    facts_judged_row rows[8];
    facts_asked asked = { .tensor = &j.tensor, .storage = j.storage, .bar = bar, .due = j.due, .part = part };
    cr_assert_eq(facts_gpu_judge(gpu, &asked, rows), FATTN_OK);
    for (int64_t n = 0; n < 8; n++) {
        facts_judged_row right = row_in_c(&j, &bar, first + n / 4 * 7 + sample[n % 4], j.storage, FACTS_LIE_COUNT);
        same_rows(&rows[n], &right);
    }
    free_judged(&j);
    close_emulated(gpu, context);
}

Test(emulated, other_bits_hashes_and_what_was_never_written)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    judged j = make_judged();
    size_t bytes = (size_t)j.tensor.elements * 2;
    unsigned char *other = malloc(bytes);
    int64_t different, first[4], first_c[4];
    uint64_t bits;
    facts_found found;
    memcpy(other, j.storage, bytes);
    for (int64_t i = 40; i < 300; i += 13)
        other[2 * i] ^= 1;
    cr_expect_eq(facts_gpu_repeat(gpu, &j.tensor, j.storage, other, j.due, NULL, 0, &different, first), FATTN_OK);
    cr_expect_eq(different, facts_judge_repeat(&j.tensor, j.storage, other, (const facts_due *)j.due, first_c));
    cr_expect_arr_eq(first, first_c, sizeof first);
    for (int64_t i = 40; i < 300; i += 39)
        other[2 * i + 1] ^= 4;
    cr_expect_eq(facts_gpu_repeat(gpu, &j.tensor, j.storage, other, j.due, j.bound, 0.5, &different, first), FATTN_OK);
    cr_expect_eq(different, facts_judge_repeat_close(&j.tensor, j.storage, other, (const facts_due *)j.due,
                                                     &(facts_slack){ j.bound, 0.5, NULL }, first_c));
    cr_expect(different > 0 && memcmp(first, first_c, sizeof first) == 0);
    cr_expect_eq(facts_gpu_bits(gpu, &j.tensor, j.storage, &bits), FATTN_OK);
    cr_expect_eq(bits, facts_judge_bits(&j.tensor, j.storage));
    cr_expect_neq(bits, facts_judge_bits(&j.tensor, other));
    cr_expect_eq(facts_gpu_survey(gpu, &j.tensor, j.storage, j.due, FACTS_PATTERN_A, &found), FATTN_OK);
    int64_t unwritten = 0, not_finite = 0;
    for (int64_t n = 0; n < (int64_t)j.elements; n++)
        if (j.due[n / 168 * 7 + n / 8 % 7] == FACTS_DUE_VALUE) {
            unwritten += n % 53 == 0;
            not_finite += n % 53 != 0 && n % 47 == 0;
        }
    cr_expect_eq(found.unwritten, unwritten);
    cr_expect_eq(found.not_finite, not_finite);
    cr_expect(found.first_unwritten[0] == 0 && found.first_unwritten[3] == 0);
    free(other);
    free_judged(&j);
    close_emulated(gpu, context);
}

Test(emulated, doubles_are_rounded_alike)
{
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    judged j = make_judged();
    size_t bytes = (size_t)j.tensor.elements * 2;
    unsigned char *here = calloc(bytes, 1), *there = calloc(bytes, 1);
    facts_round_into(&j.tensor, j.want, here);
    cr_expect_eq(facts_gpu_round(gpu, &j.tensor, j.want, there), FATTN_OK);
    cr_expect(memcmp(here, there, bytes) == 0);
    free(here);
    free(there);
    free_judged(&j);
    close_emulated(gpu, context);
}
