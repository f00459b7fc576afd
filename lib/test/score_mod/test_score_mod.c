#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fattn/fattn.h>
#include <fattn/score_mod.h>

#include "score_mod/mod_program.h"

static const int64_t origin[4] = { 0, 0, 0, 0 };

static char *text_of(const fattn_score_mod *mod)
{
    static char text[2][16384];
    static int turn;
    char *out = text[turn ^= 1];
    fattn_score_mod_text(mod, out, sizeof text[0]);
    return out;
}

static fattn_score_mod *made(fattn_score_mod_callback callback, void *user)
{
    fattn_score_mod *mod;
    const fattn_status st = fattn_score_mod_create(&mod, callback, NULL, user);
    cr_assert_eq(st, FATTN_OK, "%s", fattn_last_error());
    return mod;
}

/* Makes both, compares, and forgets them. */
static bool same(fattn_score_mod_callback x, void *user_x, fattn_score_mod_callback y, void *user_y)
{
    fattn_score_mod *a = made(x, user_x), *b = made(y, user_y);
    uint64_t ha[2], hb[2];
    fattn_score_mod_hash(a, ha), fattn_score_mod_hash(b, hb);
    const bool equal = fattn_score_mod_same(a, b);
    cr_assert_eq(equal, memcmp(ha, hb, sizeof ha) == 0, "hash and structure must say the same");
    fattn_score_mod_destroy(a), fattn_score_mod_destroy(b);
    return equal;
}

static fattn_value constant(fattn_recorder *r, double x)
{
    return fattn_record_constant(r, x);
}

static fattn_value op(fattn_recorder *r, fattn_mod_op which, fattn_value a, fattn_value b)
{
    return fattn_record(r, which, a, b, 0);
}

/* ---- identity
 * -------------------------------------------------------------------------------------------------------------------
 */

static fattn_value times(fattn_recorder *r, fattn_value score, void *user)
{
    return op(r, FATTN_MOD_MUL, score, constant(r, *(double *)user));
}

static fattn_value layers(fattn_recorder *r, fattn_value score, void *user)
{
    for (int i = 0; i < *(int *)user; i++)
        score = op(r, FATTN_MOD_TANH, score, 0);
    return score;
}

Test(score_mod, one_callback_with_other_data_is_another_modification)
{
    double two = 2, three = 3;
    int n = 2;
    cr_expect_not(same(times, &two, times, &three));
    fattn_score_mod *before = made(layers, &n); /* the same object at the same address, changed */
    n = 3;
    fattn_score_mod *after = made(layers, &n);
    cr_expect_not(fattn_score_mod_same(before, after));
    fattn_score_mod_destroy(before), fattn_score_mod_destroy(after);
}

static fattn_value times_again(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    fattn_record(r, FATTN_MOD_EXP, score, 0, 0); /* leads nowhere */
    const fattn_value two = constant(r, 2);
    return op(r, FATTN_MOD_MUL, two, score);
}

static fattn_value sum_forwards(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value a = op(r, FATTN_MOD_SIN, score, 0), b = op(r, FATTN_MOD_EXP, score, 0),
                      c = fattn_record_index(r, FATTN_MOD_ROW);
    return op(r, FATTN_MOD_MAX, op(r, FATTN_MOD_ADD, a, b), op(r, FATTN_MOD_MUL, c, a));
}

static fattn_value sum_backwards(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value c = fattn_record_index(r, FATTN_MOD_ROW), b = op(r, FATTN_MOD_EXP, score, 0);
    const fattn_value product = op(r, FATTN_MOD_MUL, op(r, FATTN_MOD_SIN, score, 0), c);
    return op(r, FATTN_MOD_MAX, product, op(r, FATTN_MOD_ADD, b, op(r, FATTN_MOD_SIN, score, 0)));
}

static fattn_value causal_turned_round(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    return fattn_record(r, FATTN_MOD_SELECT, op(r, FATTN_MOD_LT, row, key), constant(r, -INFINITY),
                        score);
}

Test(score_mod, equal_recordings_of_different_callbacks_are_one_modification)
{
    double two = 2;
    fattn_score_mod *ready, *own = made(causal_turned_round, NULL);
    cr_expect(same(times, &two, times_again, NULL));
    cr_expect(same(sum_forwards, NULL, sum_backwards, NULL));
    cr_assert_eq(fattn_score_mod_causal(&ready), FATTN_OK);
    cr_expect(fattn_score_mod_same(ready, own), "%s\n%s", text_of(ready), text_of(own));
    fattn_score_mod_destroy(ready), fattn_score_mod_destroy(own);
}

typedef struct signature {
    const char *name;
    fattn_dtype dtype;
    int64_t dim[4], strides[4];
} signature;

static fattn_value biased(fattn_recorder *r, fattn_value score, void *user)
{
    const signature *s = user;
    return op(r, FATTN_MOD_ADD, score,
              fattn_record_tensor(r, s->name, s->dtype, s->dim, s->strides[3] ? s->strides : NULL));
}

Test(score_mod, a_tensors_name_does_not_matter_and_its_signature_does)
{
    signature base = { "a", FATTN_F32, { 1, 4, 8, 8 }, { 0 } }, other = base;
    other.name = "b";
    cr_expect(same(biased, &base, biased, &other), "names differ only");
    other.dtype = FATTN_BF16;
    cr_expect_not(same(biased, &base, biased, &other), "dtype");
    other = base, other.dim[0] = 2;
    cr_expect_not(same(biased, &base, biased, &other), "extent");
    other = (signature){ "a", FATTN_F32, { 1, 4, 8, 8 }, { 256, 64, 8, 1 } };
    cr_expect(same(biased, &base, biased, &other), "the packed strides, said");
    other.strides[1] = 0;
    cr_expect_not(same(biased, &base, biased, &other), "stride");
}

static fattn_value zero_of(fattn_recorder *r, fattn_value score, void *user)
{
    return op(r, FATTN_MOD_DIV, score, constant(r, *(double *)user));
}

Test(score_mod, constants_differ_by_their_bits)
{
    double plus = 0.0, minus = -0.0, near = 1.5, next = (double)nextafterf(1.5f, 2);
    cr_expect_not(same(zero_of, &plus, zero_of, &minus));
    cr_expect_not(same(zero_of, &near, zero_of, &next));
}

Test(score_mod, the_text_says_the_operations)
{
    fattn_score_mod *mod;
    char small[8];
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    cr_expect_str_eq(text_of(mod), "modified score\n0 index key\n1 index row\n2 le 0 1\n3 score\n4 "
                                   "constant -inf\n5 select 2 3 4\nresult 5\n");
    cr_expect_eq(fattn_score_mod_text(mod, small, sizeof small), strlen(text_of(mod)));
    cr_expect_str_eq(small, "modifie");
    cr_expect_eq(fattn_score_mod_text(mod, NULL, 0), strlen(text_of(mod)));
    fattn_score_mod_destroy(mod);
}

/* ---- ready modifications
 * ----------------------------------------------------------------------------------------------------------
 */

Test(score_mod, a_ready_modification_refuses_numbers_that_mean_nothing)
{
    fattn_score_mod *mod = (fattn_score_mod *)(uintptr_t)8;
    const double bad[] = { 0, -1, INFINITY, NAN };
    for (size_t i = 0; i < 4; i++) {
        cr_expect_eq(fattn_score_mod_softcap(&mod, bad[i]), FATTN_BAD_PROBLEM);
        cr_expect_eq(fattn_score_mod_temperature(&mod, bad[i]), FATTN_BAD_PROBLEM);
    }
    cr_expect_eq(fattn_score_mod_window(&mod, (int64_t)1 << 40, 0), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_prefix_lm(&mod, -1), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_relative_position(&mod, 0), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_document(&mod, 1, -4, 4), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_post_scale_bias(&mod, FATTN_BF16, NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_null(mod, "an owner is NULL after a failure");
}

/* ---- bad callbacks
 * ----------------------------------------------------------------------------------------------------------------
 */

static void expect_refusal(fattn_score_mod_callback callback, void *user, const char *words)
{
    fattn_score_mod *mod = (fattn_score_mod *)(uintptr_t)8;
    cr_expect_eq(fattn_score_mod_create(&mod, callback, NULL, user), FATTN_BAD_PROBLEM, "%s",
                 words);
    cr_expect_null(mod);
    cr_expect_not_null(strstr(fattn_last_error(), words), "\"%s\" does not say \"%s\"",
                       fattn_last_error(), words);
}

static fattn_value garbage(fattn_recorder *r, fattn_value score, void *user)
{
    (void)r, (void)score;
    return *(int32_t *)user;
}

static fattn_value uses_garbage(fattn_recorder *r, fattn_value score, void *user)
{
    fattn_record(r, FATTN_MOD_ADD, score, *(int32_t *)user, 0);
    return score; /* the failure sticks */
}

Test(score_mod, a_value_that_is_none_is_refused)
{
    int32_t values[] = { -1, 0, 1, 4095, 1 << 30, INT32_MIN, INT32_MAX };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        expect_refusal(garbage, &values[i],
                       "which the callback returned, is not a value of this recording");
        expect_refusal(uses_garbage, &values[i], "operation 1 (add): input b");
    }
}

static fattn_value kept;
static fattn_value keeps(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    kept = op(r, FATTN_MOD_EXP, score, 0);
    return kept;
}

static fattn_value uses_kept(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    op(r, FATTN_MOD_SIN, score, 0);
    return kept;
}

Test(score_mod, a_value_of_another_recording_is_refused)
{
    fattn_score_mod *mod = made(keeps, NULL);
    expect_refusal(uses_kept, NULL, "is not a value of this recording");
    fattn_score_mod_destroy(mod);
}

static fattn_value long_one(fattn_recorder *r, fattn_value score, void *user)
{
    for (int i = 0; i < *(int *)user; i++)
        score = op(r, FATTN_MOD_SIN, score, 0);
    return score;
}

static fattn_value bad_op(fattn_recorder *r, fattn_value score, void *user)
{
    return fattn_record(r, *(fattn_mod_op *)user, score, score, score);
}

static fattn_value bad_constant(fattn_recorder *r, fattn_value score, void *user)
{
    return op(r, FATTN_MOD_ADD, score, constant(r, *(double *)user));
}

static fattn_value bad_axis(fattn_recorder *r, fattn_value score, void *user)
{
    return op(r, FATTN_MOD_ADD, score, fattn_record_index(r, (fattn_mod_axis) * (int *)user));
}

Test(score_mod, operations_that_are_none_and_numbers_that_do_not_fit_are_refused)
{
    int lengths[] = { 65, 100000 }, axes[] = { -1, 4, 1000 },
        ops[] = { 0, -7, 36, 64, 66, 68, 1 << 20 };
    double numbers[] = { NAN, 1e39, -1e39, 1e-60 };
    for (size_t i = 0; i < 2; i++)
        expect_refusal(long_one, &lengths[i], "more than 64 operations");
    for (size_t i = 0; i < 7; i++)
        expect_refusal(bad_op, &ops[i], "is no operation");
    for (size_t i = 0; i < 4; i++)
        expect_refusal(bad_constant, &numbers[i], "operation 1 (constant)");
    for (size_t i = 0; i < 3; i++)
        expect_refusal(bad_axis, &axes[i], "axis");
    int most = 64;
    fattn_score_mod_destroy(made(long_one, &most));
}

static fattn_value many_tensors(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t dim[4] = { 1, 1, 1, 1 };
    for (int i = 0; i < *(int *)user; i++)
        score = op(r, FATTN_MOD_ADD, score,
                   fattn_record_tensor(r, (char[]){ (char)('a' + i), 0 }, FATTN_F32, dim, NULL));
    return score;
}

static fattn_value twice(fattn_recorder *r, fattn_value score, void *user)
{
    const int64_t dim[4] = { 1, 1, 1, *(int *)user }, first[4] = { 1, 1, 1, 8 };
    score = op(r, FATTN_MOD_ADD, score, fattn_record_tensor(r, "t", FATTN_F32, first, NULL));
    return op(r, FATTN_MOD_MUL, score, fattn_record_tensor(r, "t", FATTN_F32, dim, NULL));
}

Test(score_mod, tensors_that_cannot_be_are_refused)
{
    signature bad[] = {
        { NULL, FATTN_F32, { 1, 1, 1, 1 }, { 0 } },
        { "", FATTN_F32, { 1, 1, 1, 1 }, { 0 } },
        { "t", FATTN_E4M3, { 1, 1, 1, 1 }, { 0 } },
        { "t", (fattn_dtype)99, { 1, 1, 1, 1 }, { 0 } },
        { "t", FATTN_F32, { 1, 0, 1, 1 }, { 0 } },
        { "t", FATTN_F32, { 1, 1, INT64_MIN, 1 }, { 0 } },
        { "t", FATTN_F32, { INT64_MAX, 2, 1, 1 }, { 0 } },
        { "t", FATTN_F32, { 1, 1, 1, 4 }, { 1, 1, 1, -1 } },
        { "t", FATTN_F32, { 1, 1, 8, 4 }, { 1, 1, INT64_MAX, 1 } },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refusal(biased, &bad[i],
                       bad[i].name == NULL || *bad[i].name == 0 ? "a tensor has no name"
                                                                : "tensor \"t\": ");
    int count = 9, eight = 8, other = 9;
    expect_refusal(many_tensors, &count, "more than 8 tensors");
    fattn_score_mod_destroy(made(many_tensors, &eight));
    expect_refusal(twice, &other, "recorded before with another");
    fattn_score_mod *mod = made(twice, &eight);
    cr_expect_eq(fattn_score_mod_tensor_count(mod), 1);
    cr_expect_str_eq(fattn_score_mod_tensor(mod, 0)->name, "t");
    cr_expect_null(fattn_score_mod_tensor(mod, 1));
    fattn_score_mod_destroy(mod);
}

Test(score_mod, null_is_answered_with_a_sentence)
{
    fattn_score_mod *mod = made(keeps, NULL);
    double x;
    cr_expect_eq(fattn_score_mod_create(NULL, keeps, NULL, NULL), FATTN_BAD_PROBLEM);
    fattn_score_mod_destroy(mod);
    cr_expect_eq(fattn_score_mod_create(&mod, NULL, NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_null(mod, "an owner is NULL after a failure");
    mod = made(twice, &(int){ 8 });
    cr_expect_eq(fattn_score_mod_evaluate(NULL, 0, origin, NULL, &x, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_evaluate(mod, 0, NULL, NULL, &x, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_score_mod_evaluate(mod, 0, origin, NULL, &x, NULL), FATTN_BAD_PROBLEM,
                 "a tensor has no address");
    const int64_t outside[4] = { 0, 0, 0, 8 };
    const float data[8] = { 0 };
    cr_expect_eq(fattn_score_mod_evaluate(mod, 0, outside, (const void *[]){ data }, &x, NULL),
                 FATTN_BAD_PROBLEM, "outside the tensor");
    cr_expect_eq(fattn_score_mod_evaluate(mod, 0, origin, (const void *[]){ data }, NULL, NULL),
                 FATTN_OK);
    cr_expect_eq(fattn_record(NULL, FATTN_MOD_ADD, 0, 0, 0), -1);
    fattn_score_mod_destroy(mod), fattn_score_mod_destroy(NULL);
    cr_expect_eq(fattn_score_mod_tensor_count(NULL), 0);
}
