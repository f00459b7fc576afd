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
                              &(fref_forward_out){ .o = o, .lse = lse }),
                 0);
}

static int64_t row_count(const data *d)
{
    return d->problem.batch * d->problem.heads_q * d->problem.rows;
}

static double *doubles(int64_t n)
{
    double *x = calloc((size_t)n + 1, sizeof *x);
    cr_assert_not_null(x);
    return x;
}

static void expect_close(const double *a, const double *b, int64_t n, double tolerance,
                         const char *what)
{
    for (int64_t i = 0; i < n; i++)
        cr_assert(fabs(a[i] - b[i]) <= tolerance * (1.0 + fabs(b[i])),
                  "%s: element %ld is %.17g and %.17g", what, (long)i, a[i], b[i]);
}

/* O is linear in V for fixed P. The sum is formed on a grid where it is exact. */
Test(laws, output_is_linear_in_values)
{
    data d;
    small(&d, 20, 30, 1);
    int64_t n = row_count(&d) * 8, values = 2 * 2 * 30 * 8;
    double *sum = doubles(n), *one = doubles(n), *other = doubles(n);
    float *v = (float *)(uintptr_t)d.v.data, *first = malloc((size_t)values * sizeof *first);
    for (int64_t i = 0; i < values; i++)
        first[i] = v[i] = rintf(v[i] * 64.0F) / 64.0F;
    forward(&d, one, NULL);
    for (int64_t i = 0; i < values; i++)
        v[i] = (float)(i % 7) / 8.0F;
    forward(&d, other, NULL);
    for (int64_t i = 0; i < values; i++)
        v[i] += first[i];
    forward(&d, sum, NULL);
    for (int64_t i = 0; i < n; i++)
        one[i] += other[i];
    expect_close(sum, one, n, 1e-13, "O(V1 + V2)");
    free(first);
    free(sum);
    free(one);
    free(other);
    data_destroy(&d);
}

/* Rows of P sum to one: a channel of ones stays one. */
Test(laws, rows_of_p_sum_to_one)
{
    data d;
    small(&d, 20, 30, 2);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 2; h++)
            for (int64_t j = 0; j < 30; j++)
                set_element(&d.v, b, h, j, 3, 1.0);
    double *o = doubles(row_count(&d) * 8);
    forward(&d, o, NULL);
    for (int64_t i = 0; i < row_count(&d); i++)
        cr_expect_float_eq(o[i * 8 + 3], 1.0, 1e-14);
    free(o);
    data_destroy(&d);
}

/* Softmax is shift invariant: K + w moves the LSE by scale q.w and O not at all. */
Test(laws, a_shift_of_all_keys_moves_only_the_lse)
{
    data d;
    small(&d, 20, 30, 3);
    int64_t rows = row_count(&d);
    double *o = doubles(rows * 8), *lse = doubles(rows), *o2 = doubles(rows * 8),
           *lse2 = doubles(rows);
    const double w[8] = { 1, -2, 3, 0.5, 0, -1, 2, 4 };
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t b = 0; b < 2; b++)
            for (int64_t h = 0; h < 2; h++)
                for (int64_t j = 0; j < 30; j++)
                    for (int64_t c = 0; c < 8; c++)
                        set_element(&d.k, b, h, j, c,
                                    pass ? element(&d.k, b, h, j, c) + w[c]
                                         : rint(256 * element(&d.k, b, h, j, c)) / 256);
        forward(&d, pass ? o2 : o, pass ? lse2 : lse);
    }
    for (int64_t row = 0; row < rows; row++) {
        double shift = 0.0;
        for (int64_t c = 0; c < 8; c++)
            shift += d.problem.scale * element(&d.q, row / 80, row / 20 % 4, row % 20, c) * w[c];
        lse[row] += shift;
    }
    expect_close(o2, o, rows * 8, 1e-13, "O");
    expect_close(lse2, lse, rows, 1e-13, "LSE");
    free(o);
    free(o2);
    free(lse);
    free(lse2);
    data_destroy(&d);
}

/* Head h reads key head h / group: repeating each key head gives the same O and dQ; dK and dV are
 * the sums over the copies. */
Test(laws, grouped_heads_equal_repeated_heads)
{
    data d, r;
    small(&d, 12, 17, 4);
    fref_problem p = d.problem;
    p.heads_k = p.heads_v = 4;
    data_create(&r, &p, FREF_F32, FILL_GAUSS, 4);
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t j = 0; j < 17; j++)
                for (int64_t c = 0; c < 8; c++) {
                    set_element(&r.k, b, h, j, c, element(&d.k, b, h / 2, j, c));
                    set_element(&r.v, b, h, j, c, element(&d.v, b, h / 2, j, c));
                }
    size_t rows = (size_t)row_count(&d);
    memcpy((void *)(uintptr_t)r.q.data, d.q.data, rows * 8 * sizeof(float));
    memcpy((void *)(uintptr_t)r.o.data, d.o.data, rows * 8 * sizeof(float));
    memcpy((void *)(uintptr_t)r.d_o.data, d.d_o.data, rows * 8 * sizeof(float));
    memcpy((void *)(uintptr_t)r.stats.data, d.stats.data, rows * sizeof(float));
    answers grouped, repeated;
    answers_create(&grouped, &d, &f32_rounding);
    answers_create(&repeated, &r, &f32_rounding);
    cr_expect_arr_eq(grouped.f.o, repeated.f.o, rows * 8 * sizeof(double));
    cr_expect_arr_eq(grouped.g.dq, repeated.g.dq, rows * 8 * sizeof(double));
    int64_t per_head = 17 * 8;
    for (int64_t at = 0; at < grouped.count_dk; at++) {
        int64_t head = at / per_head, first = head * 2 * per_head + at % per_head;
        cr_expect_float_eq(grouped.g.dk[at], repeated.g.dk[first] + repeated.g.dk[first + per_head],
                           1e-13);
        cr_expect_float_eq(grouped.g.dv[at], repeated.g.dv[first] + repeated.g.dv[first + per_head],
                           1e-13);
    }
    answers_destroy(&grouped);
    answers_destroy(&repeated);
    data_destroy(&d);
    data_destroy(&r);
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
            cr_expect_eq(isnan(after.f.o[i * 8 + c]), attends, "O row %ld", (long)i);
            cr_expect_eq(isnan(after.g.dq[i * 8 + c]), attends, "dQ row %ld", (long)i);
            cr_expect(attends || after.f.o[i * 8 + c] == before.f.o[i * 8 + c]);
            cr_expect(attends || after.g.dq[i * 8 + c] == before.g.dq[i * 8 + c]);
        }
    }
    set_element(&d.k, 0, 0, 37, 2, 1.0);
    set_element(&d.v, 0, 0, 37, 2, 1.0);
    set_element(&d.d_o, 0, 0, 40, 1, NAN);
    answers_destroy(&after);
    answers_create(&after, &d, &r);
    for (int64_t j = 0; j < 80; j++)
        cr_expect_eq(isnan(after.g.dv[j * 8 + 1]), j > 10 && j <= 40, "dV row %ld", (long)j);
    answers_destroy(&before);
    answers_destroy(&after);
    data_destroy(&d);
}

/* The denominator is a sum: two halves of the keys combine by their LSE. */
Test(laws, keys_split_in_two_combine)
{
    data d;
    fref_problem p = dense_problem(1, 2, 2, 10, 40, 8, 8);
    data_create(&d, &p, FREF_F32, FILL_GAUSS, 7);
    double *o = doubles(160), *lse = doubles(20), *o1 = doubles(160), *lse1 = doubles(20),
           *o2 = doubles(160), *lse2 = doubles(20);
    forward(&d, o, lse);
    data half = d;
    half.problem.keys = 13;
    forward(&half, o1, lse1);
    half.problem.keys = 27;
    half.k.data = (const float *)d.k.data + 13 * 8;
    half.v.data = (const float *)d.v.data + 13 * 8;
    forward(&half, o2, lse2);
    for (int64_t row = 0; row < 20; row++) {
        double all = log(exp(lse1[row]) + exp(lse2[row]));
        cr_expect_float_eq(lse[row], all, 1e-13);
        for (int64_t c = 0; c < 8; c++)
            cr_expect_float_eq(o[row * 8 + c],
                               exp(lse1[row] - all) * o1[row * 8 + c] +
                                   exp(lse2[row] - all) * o2[row * 8 + c],
                               1e-13);
    }
    free(o);
    free(lse);
    free(o1);
    free(lse1);
    free(o2);
    free(lse2);
    data_destroy(&d);
}

/* Rows below n of a top-left causal problem read keys below n only; a length n is a problem with n
 * keys. Bit for bit. */
Test(laws, a_length_or_the_causal_corner_is_a_shorter_problem)
{
    for (int causal = 0; causal < 2; causal++) {
        data d;
        const int32_t len_q[] = { 60, 60 }, len_kv[] = { 45, 45 };
        fref_problem p = dense_problem(2, 2, 1, 60, 80, 8, 8);
        p.has_right = causal;
        p.len_q = causal ? NULL : len_q;
        p.len_kv = causal ? NULL : len_kv;
        data_create(&d, &p, FREF_F32, FILL_GAUSS, 8);
        double *o = doubles(2 * 2 * 60 * 8), *short_o = doubles(2 * 2 * 60 * 8);
        forward(&d, o, NULL);
        d.problem.keys = 45;
        d.problem.len_q = d.problem.len_kv = NULL;
        forward(&d, short_o, NULL);
        for (int64_t row = 0; row < 2 * 2 * 60; row++)
            if (!causal || row % 60 < 45)
                cr_expect_arr_eq(o + row * 8, short_o + row * 8, 8 * sizeof *o, "row %ld",
                                 (long)row);
        free(o);
        free(short_o);
        data_destroy(&d);
    }
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
            cr_expect(a.f.o[c] == 0.0 && a.f.o_sigma[c] == 0.0 && a.f.o_bound[c] == 0.0 &&
                      a.g.dq[c] == 0.0 && a.g.dq_sigma[c] == 0.0 && a.g.dq_bound[c] == 0.0);
    }
    for (int64_t key = 0; key < 60; key++) {
        if (key / 20 == 2 && key % 20 < 10) /* the last row of batch entry 2 reads 12 - 2 keys */
            continue;
        dead_keys++;
        for (int64_t c = key * 8; c < key * 8 + 8; c++)
            cr_expect(a.g.dk[c] == 0.0 && a.g.dk_sigma[c] == 0.0 && a.g.dk_bound[c] == 0.0 &&
                      a.g.dv[c] == 0.0 && a.g.dv_sigma[c] == 0.0 && a.g.dv_bound[c] == 0.0);
    }
    cr_expect_eq(dead_rows, 2 * (30 + 30 + 21));
    cr_expect_eq(dead_keys, 50);
    answers_destroy(&a);
    data_destroy(&d);
}

/* The loss whose gradients are judged: sum dO O. */
static double loss(const data *d, double *o)
{
    forward(d, o, NULL);
    double sum = 0.0;
    int64_t at = 0;
    for (int64_t b = 0; b < 2; b++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t i = 0; i < d->problem.rows; i++)
                for (int64_t c = 0; c < 8; c++)
                    sum += o[at++] * element(&d->d_o, b, h, i, c);
    return sum;
}

/* O and Stats are rounded to fp32, so the gradients agree with differences of the loss to about
 * 1e-6. */
static void expect_differences(const data *d, fref_tensor *x, int64_t heads, int64_t s,
                               const double *gradient, const char *what)
{
    double *o = doubles(row_count(d) * 8);
    const double step = 0x1p-7;
    for (int64_t n = 0; n < 2 * heads * s * 8; n += 5) {
        int64_t c = n % 8, i = n / 8 % s, h = n / 8 / s % heads, b = n / 8 / s / heads;
        double old = element(x, b, h, i, c), at[4];
        for (int k = 0; k < 4; k++) {
            set_element(x, b, h, i, c, old + (k - 2 + (k > 1)) * step);
            at[k] = element(x, b, h, i, c);
            at[k] = loss(d, o);
        }
        set_element(x, b, h, i, c, old);
        double difference = (8.0 * (at[2] - at[1]) - (at[3] - at[0])) / (12.0 * step);
        cr_assert_float_eq(difference, gradient[n], 2e-5, "%s[%ld]: %.9g, by differences %.9g",
                           what, (long)n, gradient[n], difference);
    }
    free(o);
}

Test(gradients, are_the_differences_of_the_loss)
{
    data d;
    small(&d, 6, 7, 10);
    answers a;
    answers_create(&a, &d, &f32_rounding);
    expect_differences(&d, &d.q, 4, 6, a.g.dq, "dQ");
    expect_differences(&d, &d.k, 2, 7, a.g.dk, "dK");
    expect_differences(&d, &d.v, 2, 7, a.g.dv, "dV");
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
                  &(fref_backward_out){ .dk = dk });
    cr_expect_arr_eq(dk, all.g.dk, (size_t)all.count_dk * sizeof *dk);
    cr_expect_arr_eq(o, all.f.o, (size_t)all.count_o * sizeof *o);
    free(dk);
    free(o);
    answers_destroy(&all);
    data_destroy(&d);
}

Test(decoding, of_all_16_bit_patterns_is_exact)
{
    for (int type = FREF_F16; type <= FREF_BF16; type++) {
        uint16_t one = type == FREF_F16 ? 0x3c00 : 0x3f80, zero = 0;
        fref_problem p = dense_problem(1, 1, 1, 1, 1, 1, 65536);
        uint16_t *bits = malloc(65536 * sizeof *bits);
        double *o = doubles(65536);
        for (int n = 0; n < 65536; n++)
            bits[n] = (uint16_t)n;
        fref_tensor v = { bits, (fref_type)type, { 0, 0, 0, 1 } },
                    q = { &one, (fref_type)type, { 0 } }, k = { &zero, (fref_type)type, { 0 } };
        cr_assert_eq(fref_forward(&p, &q, &k, &v, &f32_rounding, &(fref_forward_out){ .o = o }), 0);
        for (int64_t n = 0; n < 65536; n++) {
            double want = element(&v, 0, 0, 0, n);
            cr_assert(isnan(want) ? isnan(o[n]) : o[n] == want, "%04lx is %g, not %g",
                      (unsigned long)n, want, o[n]);
        }
        free(bits);
        free(o);
    }
}
