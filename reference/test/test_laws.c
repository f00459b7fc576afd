/* What must hold of attention whatever the numbers: laws, dead rows and keys, gradients as
 * differences, bits that may not change.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"

static const fref_rounding f32_rounding = { .in = FREF_F32,
                                            .out = FREF_F32,
                                            .ua = 0x1p-23,
                                            .chunk = 16,
                                            .cw = 1,
                                            .cl = 1,
                                            .own_o = true,
                                            .partials_cast = true };

/* A problem with grouped heads, causal, in f32. */
static void small(data *d, int64_t rows, int64_t keys, uint64_t seed)
{
    fref_problem p = dense_problem(2, 4, 2, rows, keys, 8, 8);
    p.has_right = true;
    data_create(d, &p, FREF_F32, FILL_GAUSS, seed);
    data_answer(d);
}

static void forward(const data *d, double *o, double *lse)
{
    cr_assert_eq(fref_forward(&d->problem, &d->q, &d->k, &d->v, &f32_rounding,
                              &(fref_forward_out){ .o.value = o, .lse = lse }),
                 0);
}

static double *doubles(int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    cr_assert_not_null(x);
    return x;
}

/* exp(-inf) = 0: what no row reads may hold anything, also NaN, and not one bit changes. */
Test(laws, masked_keys_and_padded_rows_cannot_matter)
{
    const int32_t len_q[] = { 40, 23 }, len_kv[] = { 50, 31 };
    fref_problem p = dense_problem(2, 4, 2, 40, 70, 8, 8);
    p.has_right = p.has_left = true;
    p.left = 20;
    p.len_q = len_q;
    p.len_kv = len_kv;
    data d;
    data_create(&d, &p, FREF_BF16, FILL_GAUSS, 5);
    data_answer(&d);
    answers before, after;
    fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
    answers_create(&before, &d, &r);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 4; h++) {
            for (int64_t j = len_q[b] < len_kv[b] ? len_q[b] : len_kv[b]; j < 70; j++) {
                set_element(&d.k, b, h / 2, j, j % 8, NAN);
                set_element(&d.v, b, h / 2, j, 1, -INFINITY);
            }
            for (int64_t i = len_q[b]; i < 40; i++) {
                set_element(&d.q, b, h, i, 2, NAN);
                set_element(&d.d_o, b, h, i, 0, NAN);
                set_element(&d.o, b, h, i, 0, INFINITY);
                set_element(&d.stats, b, h, i, 0, NAN);
            }
        }
    answers_create(&after, &d, &r);
    cr_expect_eq(before.bytes, after.bytes);
    cr_expect(memcmp(before.memory, after.memory, before.bytes) == 0, "a bit changed");
    answers_destroy(&before);
    answers_destroy(&after);
    data_destroy(&d);
}

/* A NaN in key row j0 makes exactly the rows that attend j0 NaN; every other bit of O and dQ stays.
 */
Test(laws, a_nan_reaches_the_rows_that_attend_it_and_no_others)
{
    fref_problem p = dense_problem(1, 1, 1, 80, 80, 8, 8);
    p.has_right = p.has_left = true;
    p.left = 30;
    data d;
    data_create(&d, &p, FREF_BF16, FILL_GAUSS, 6);
    data_answer(&d);
    answers before, after;
    fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
    answers_create(&before, &d, &r);
    set_element(&d.k, 0, 0, 37, 2, NAN);
    set_element(&d.v, 0, 0, 37, 2, NAN);
    answers_create(&after, &d, &r);
    for (int64_t i = 0; i < 80; i++) {
        bool attends = i >= 37 && i < 67;
        for (int64_t c = 0; c < 8; c++) {
            cr_expect_eq(isnan(after.f.o.value[i * 8 + c]), attends, "O row %ld", (long)i);
            cr_expect_eq(isnan(after.g.dq.value[i * 8 + c]), attends, "dQ row %ld", (long)i);
            cr_expect(attends || after.f.o.value[i * 8 + c] == before.f.o.value[i * 8 + c]);
            cr_expect(attends || after.g.dq.value[i * 8 + c] == before.g.dq.value[i * 8 + c]);
        }
    }
    set_element(&d.k, 0, 0, 37, 2, 1.0);
    set_element(&d.v, 0, 0, 37, 2, 1.0);
    set_element(&d.d_o, 0, 0, 40, 1, NAN);
    answers_destroy(&after);
    answers_create(&after, &d, &r);
    for (int64_t j = 0; j < 80; j++)
        cr_expect_eq(isnan(after.g.dv.value[j * 8 + 1]), j > 10 && j <= 40, "dV row %ld", (long)j);
    answers_destroy(&before);
    answers_destroy(&after);
    data_destroy(&d);
}

Test(laws, dead_rows_and_keys_are_exactly_zero_and_their_lse_minus_infinity)
{
    const int32_t len_q[] = { 30, 0, 9 }, len_kv[] = { 0, 20, 12 };
    fref_problem p = dense_problem(3, 2, 1, 30, 20, 8, 8);
    p.has_right = p.bottom_right = true;
    p.right = -2;
    p.len_q = len_q;
    p.len_kv = len_kv;
    data d;
    data_create(&d, &p, FREF_BF16, FILL_GAUSS, 9);
    data_answer(&d);
    answers a;
    fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
    answers_create(&a, &d, &r);
    int dead_rows = 0, dead_keys = 0;
    for (int64_t row = 0; row < a.rows; row++) {
        int64_t first, last;
        fref_keys_of_row(&p, row / 60, row % 30, &first, &last);
        if (first != last)
            continue;
        dead_rows++;
        cr_expect(a.f.lse[row] == -INFINITY && a.f.max[row] == -INFINITY &&
                  a.f.sum_exp[row] == 0.0);
        cr_expect(a.f.lse_tau[row] == 0.0 && a.f.max_tau[row] == 0.0);
        for (int64_t c = row * 8; c < row * 8 + 8; c++)
            cr_expect(a.f.o.value[c] == 0.0 && a.f.o.sigma[c] == 0.0 && a.f.o.bound[c] == 0.0 &&
                      a.g.dq.value[c] == 0.0 && a.g.dq.sigma[c] == 0.0 && a.g.dq.bound[c] == 0.0);
    }
    for (int64_t key = 0; key < 60; key++) {
        if (key / 20 == 2 && key % 20 < 10) /* the last row of batch entry 2 reads 12 - 2 keys */
            continue;
        dead_keys++;
        for (int64_t c = key * 8; c < key * 8 + 8; c++)
            cr_expect(a.g.dk.value[c] == 0.0 && a.g.dk.sigma[c] == 0.0 && a.g.dk.bound[c] == 0.0 &&
                      a.g.dv.value[c] == 0.0 && a.g.dv.sigma[c] == 0.0 && a.g.dv.bound[c] == 0.0);
    }
    cr_expect_eq(dead_rows, 2 * (30 + 30 + 21));
    cr_expect_eq(dead_keys, 50);
    answers_destroy(&a);
    data_destroy(&d);
}

Test(bits, do_not_depend_on_the_number_of_threads)
{
    fref_problem p = dense_problem(2, 6, 2, 100, 150, 24, 40);
    p.heads_v = 3;
    p.has_right = p.bottom_right = true;
    data d;
    data_create(&d, &p, FREF_F16, FILL_STAIR, 11);
    data_answer(&d);
    fref_rounding r = fref_rounding_of(FREF_F16, FREF_F16);
    answers one, four;
    omp_set_num_threads(1);
    answers_create(&one, &d, &r);
    omp_set_num_threads(4);
    answers_create(&four, &d, &r);
    cr_expect(memcmp(one.memory, four.memory, one.bytes) == 0);
    answers_destroy(&one);
    answers_destroy(&four);
    data_destroy(&d);
}

Test(bits, do_not_depend_on_what_else_is_asked)
{
    data d;
    small(&d, 20, 30, 12);
    answers all;
    answers_create(&all, &d, &f32_rounding);
    double *dk = doubles(all.count_dk), *o = doubles(all.count_o);
    forward(&d, o, NULL);
    fref_backward(&d.problem, &d.q, &d.k, &d.v, &d.o, &d.stats, &d.d_o, &f32_rounding,
                  &(fref_backward_out){ .dk.value = dk });
    cr_expect_arr_eq(dk, all.g.dk.value, (size_t)all.count_dk * sizeof *dk);
    cr_expect_arr_eq(o, all.f.o.value, (size_t)all.count_o * sizeof *o);
    free(dk);
    free(o);
    answers_destroy(&all);
    data_destroy(&d);
}
