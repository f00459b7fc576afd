/* Derived gradients against finite differences, and the normal form, over random recordings. */
#include "cpu/cpu_scores.h"
#include "fattn/score_mod.h"
#include "recipes.h"

/* ---- what must hold
 * -----------------------------------------------------------------------------------------------------------------
 */

Test(score_mod_gradient, derived_gradients_are_finite_differences)
{
    int settled = 0, used[FATTN_MOD_SELECT + 1] = { 0 };
    state = 1;
    for (int trial = 0; trial < 20000; trial++) {
        recipe r = random_recipe();
        fattn_score_mod *mod = recorded(&r);
        const fattn__mod_program *program = fattn__score_mod_program(mod),
                                 *gradient = fattn__score_mod_gradient(mod);
        for (int i = 0; i < 4; i++) {
            place p = random_place();
            double want;
            if (!slope_at(program, &p, &p.score, &want))
                continue;
            const double got = computed(gradient, gradient->result, &p);
            cr_assert(close_to(got, want * p.gradient, 1e-5),
                      "trial %d: %g, not %g, at score %.17g\n%s", trial, got, want * p.gradient,
                      p.score, text_of(mod));
            settled++;
            for (int k = 0; want != 0 && k < program->count; k++)
                if (program->at[k].op <= FATTN_MOD_SELECT)
                    used[program->at[k].op]++;
            for (int t = 0; t < TENSORS; t++) {
                if (!slope_at(program, &p, &p.tensors[t], &want))
                    continue;
                const int at = gradient->tensor_results[t];
                const double of_tensor = at < 0 ? 0 : computed(gradient, at, &p);
                cr_assert(close_to(of_tensor, want * p.gradient, 1e-5),
                          "trial %d: tensor %d: %g, not %g\n%s", trial, t, of_tensor,
                          want * p.gradient, text_of(mod));
            }
        }
        fattn_score_mod_destroy(mod);
    }
    cr_assert_gt(settled, 30000);
#define WAS_USED(symbol, value, word, inputs)                                                      \
    cr_expect_gt(used[value], 5, word " was hardly tried: %d", used[value]);
    FATTN_MOD_OP_LIST(WAS_USED)
#undef WAS_USED
}

Test(score_mod_gradient, the_normal_form_computes_the_number_that_was_said)
{
    state = 2;
    int compared = 0, rounded = 0;
    for (int trial = 0; trial < 4000; trial++) {
        recipe r = random_recipe();
        fattn_score_mod *mod = recorded(&r);
        const place p = random_place();
        bool odd;
        const double want = said(&r, &p, &odd),
                     got = computed(fattn__score_mod_program(mod),
                                    fattn__score_mod_program(mod)->result, &p);
        if (!odd) {
            const bool exact = got == want || (isnan(got) && isnan(want));
            cr_assert(exact || close_to(got, want, 1e-6), "trial %d: %.17g, not %.17g\n%s", trial,
                      got, want, text_of(mod));
            compared++, rounded += !exact; /* a condition that is a constant may leave constants
                                              alone: those are rounded too */
        }
        fattn_score_mod_destroy(mod);
    }
    cr_assert_gt(compared, 3000);
    cr_assert_lt(rounded, compared / 100);
}

/* Whatever lies in a branch that is not taken: overflow, 0/0, log of a negative number, an infinite
 * tensor. */
static void expect_zero(const fattn_score_mod *mod, const place *p, int trial)
{
    const fattn__mod_program *gradient = fattn__score_mod_gradient(mod);
    const double got = computed(gradient, gradient->result, p);
    cr_assert_eq(got, 0, "trial %d: %g\n%s", trial, got, text_of(mod));
    for (int t = 0; t < TENSORS; t++) {
        const int at = gradient->tensor_results[t];
        const double of_tensor = at < 0 ? 0 : computed(gradient, at, p);
        cr_assert_eq(of_tensor, 0, "trial %d: tensor %d: %g\n%s", trial, t, of_tensor,
                     text_of(mod));
    }
}

static void wilder(place *p)
{
    static const double wild[] = { 0, -0.0, INFINITY, -INFINITY, 1e38, -3 };
    if (pick(2))
        p->score = (double[]){ 0, 100, -100, 1e4 }[pick(4)];
    for (int t = 0; t < TENSORS; t++)
        if (pick(2))
            p->tensors[t] = wild[pick(6)];
}

Test(score_mod_gradient, a_masked_key_and_a_gradient_of_0_stay_0_and_never_a_nan)
{
    for (int trial = 0; trial < 6000; trial++) {
        state = 4 + (uint64_t)trial;
        recipe r = random_recipe();
        r.masked = trial % 2;
        fattn_score_mod *mod = recorded(&r);
        const fattn__mod_program *program = fattn__score_mod_program(mod);
        for (int i = 0; i < 3; i++) {
            place p = random_place();
            wilder(&p);
            if (r.masked)
                cr_assert_eq(computed(program, program->result, &p), -INFINITY);
            else
                p.gradient = 0; /* however steep the modification is */
            expect_zero(mod, &p, trial);
        }
        fattn_score_mod_destroy(mod);
    }
}

/* ---- rows
 * ---------------------------------------------------------------------------------------------------------------------------
 */

Test(score_mod_gradient, a_row_in_fp32_is_the_places_in_double)
{
    float x[8], y[4], z[16], scores[200], gradients[200], out[2 * 200];
    const void *tensors[TENSORS] = { x, y, z };
    int compared = 0, wrong = 0;
    state = 6;
    for (int trial = 0; trial < 1000; trial++) {
        recipe r = random_recipe();
        fattn_score_mod *mod = recorded(&r);
        const fattn__mod_program *program = fattn__score_mod_program(mod),
                                 *gradient = fattn__score_mod_gradient(mod);
        for (int i = 0; i < 8; i++)
            x[i] = (float)real(2), y[i % 4] = (float)real(2), z[i] = (float)real(2),
            z[8 + i] = (float)real(2);
        for (int i = 0; i < 200; i++)
            scores[i] = (float)real(2), gradients[i] = (float)real(2);
        const int64_t at[4] = { pick(2), pick(4), pick(8), pick(4) };
        const int count = (int)(1 + pick((unsigned)(8 - at[3])));
        const int32_t places[2] = { gradient->result, gradient->tensor_results[0] >= 0
                                                          ? gradient->tensor_results[0]
                                                          : gradient->result };
        fattn__score_mod_row(mod, gradient, at, count, scores, gradients, tensors, places, 2,
                             out + count);
        fattn__score_mod_row(mod, program, at, count, scores, NULL, tensors, &program->result, 1,
                             out);
        for (int i = 0; i < count; i++) {
            const place p = { .score = (double)scores[i],
                              .gradient = (double)gradients[i],
                              .tensors = { (double)x[at[3] + i], (double)y[at[1]],
                                           (double)z[at[0] * 8 + at[2]] },
                              .at = { at[0], at[1], at[2], at[3] + i } };
            const double want[3] = { computed(program, program->result, &p),
                                     computed(gradient, places[0], &p),
                                     computed(gradient, places[1], &p) };
            const float got[3] = { out[i], out[count + i], out[2 * count + i] };
            for (int k = 0; k < 3; k++) {
                if (!isfinite(want[k]) || fabs(want[k]) > 100)
                    continue;
                compared++;
                wrong +=
                    !close_to((double)got[k], want[k],
                              1e-4); /* a step at a kink may fall to the other side; see below */
            }
        }
        fattn_score_mod_destroy(mod);
    }
    cr_assert_gt(compared, 5000);
    cr_assert_lt(wrong * 100, compared, "%d of %d", wrong, compared);
}

static fattn_value gentle(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value key = fattn_record_index(r, FATTN_MOD_KEY),
                      row = fattn_record_index(r, FATTN_MOD_ROW);
    const fattn_value far =
        fattn_record(r, FATTN_MOD_MUL, fattn_record(r, FATTN_MOD_SUB, key, row, 0),
                     fattn_record_constant(r, 0.01), 0);
    return fattn_record(r, FATTN_MOD_ADD, fattn_record(r, FATTN_MOD_SIN, score, 0, 0), far, 0);
}

Test(score_mod_gradient, a_long_row_is_evaluated_in_blocks_without_a_seam)
{
    float scores[777], out[777];
    fattn_score_mod *mod;
    const int64_t at[4] = { 0, 0, 100, 50 };
    cr_assert_eq(fattn_score_mod_create(&mod, gentle, NULL, NULL), FATTN_OK);
    for (int i = 0; i < 777; i++)
        scores[i] = (float)i * 0.1f;
    fattn__score_mod_row(mod, fattn__score_mod_program(mod), at, 777, scores, NULL, NULL,
                         &fattn__score_mod_program(mod)->result, 1, out);
    for (int i = 0; i < 777; i++)
        cr_assert_float_eq(out[i], sin((double)scores[i]) + 0.01 * (i - 50), 1e-5, "key %d", i);
    fattn_score_mod_destroy(mod);
}

/* ---- a user's own gradient
 * ----------------------------------------------------------------------------------------------------------
 */

static fattn_value cube(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    return fattn_record(r, FATTN_MOD_MUL, fattn_record(r, FATTN_MOD_MUL, score, score, 0), score,
                        0);
}

static fattn_value cube_gradient(fattn_recorder *r, fattn_value score, fattn_value gradient,
                                 void *user)
{
    const fattn_value factor = fattn_record_constant(r, *(double *)user);
    const fattn_value square = fattn_record(r, FATTN_MOD_MUL, score, score, 0);
    return fattn_record(r, FATTN_MOD_MUL, gradient,
                        fattn_record(r, FATTN_MOD_MUL, square, factor, 0), 0);
}

static fattn_value forgets(fattn_recorder *r, fattn_value score, fattn_value gradient, void *user)
{
    (void)r, (void)score, (void)gradient, (void)user;
    return 77;
}

Test(score_mod_gradient, a_users_gradient_is_taken)
{
    fattn_score_mod *right, *wrong, *derived, *none = NULL;
    double three = 3, two = 2, slope = 0;
    const int64_t at[4] = { 0 };
    cr_assert_eq(fattn_score_mod_create(&right, cube, cube_gradient, &three), FATTN_OK);
    cr_assert_eq(fattn_score_mod_create(&wrong, cube, cube_gradient, &two), FATTN_OK);
    cr_assert_eq(fattn_score_mod_create(&derived, cube, NULL, NULL), FATTN_OK);
    fattn_score_mod_evaluate(wrong, 5, at, NULL, NULL, &slope);
    cr_expect_eq(slope, 50, "the user's gradient is what runs");
    cr_expect_not(fattn_score_mod_same(right, wrong));
    cr_expect_not(fattn_score_mod_same(right, derived), "another program runs");
    cr_expect_eq(fattn_score_mod_create(&none, cube, forgets, NULL), FATTN_BAD_PROBLEM);
    cr_expect_not_null(strstr(fattn_last_error(), "gradient: 77"), "%s", fattn_last_error());
    fattn_score_mod_destroy(right), fattn_score_mod_destroy(wrong),
        fattn_score_mod_destroy(derived);
}

static fattn_value identity_gradient(fattn_recorder *r, fattn_value score, fattn_value gradient,
                                     void *user)
{
    (void)score, (void)user;
    return fattn_record(r, FATTN_MOD_MUL, gradient, fattn_record_constant(r, 1), 0);
}

static fattn_value shifted(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    return fattn_record(r, FATTN_MOD_ADD, score, fattn_record_constant(r, 5), 0);
}

Test(score_mod_gradient, a_users_gradient_that_is_the_derived_one_is_no_difference)
{
    fattn_score_mod *own, *derived;
    cr_assert_eq(fattn_score_mod_create(&own, shifted, identity_gradient, NULL), FATTN_OK);
    cr_assert_eq(fattn_score_mod_create(&derived, shifted, NULL, NULL), FATTN_OK);
    cr_expect(fattn_score_mod_same(own, derived));
    fattn_score_mod_destroy(own), fattn_score_mod_destroy(derived);
}
