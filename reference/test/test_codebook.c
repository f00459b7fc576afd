/* A codebook problem against the same problem written out. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "spelled.h"

#define VALUE 1e-13 /* of the largest value of its tensor */

#ifdef __SANITIZE_ADDRESS__ /* the numbers are the same there, and take ten times as long: every path once */
enum { STEP = 4 };
#else
enum { STEP = 1 };
#endif

/* A problem whose Q and K come from codes. */
typedef struct booked {
    data d; /* q and k are written out */
    fref_tensor rho, kappa;
    uint8_t *a, *b;
    fref_codes codes;
    double *memory; /* of the codebook's answers */
    answers want, got;
} booked;

static void set_mask(fref_problem *p, int mask)
{
    p->has_right = mask != 0;
    p->bottom_right = mask == 2 || mask == 4;
    p->has_left = mask >= 3;
    p->left = mask == 4 ? 3 : 70;
    p->right = mask >= 3 ? 5 : 0;
}

/* The edge variant of docs/numerics.md section 7 has a rare code whose keys take most of some rows. */
static void draw_codes(booked *x, int64_t m, bool edge, uint64_t seed)
{
    const fref_problem *p = &x->d.problem;
    uint64_t state = seed;
    for (int64_t n = 0; n < p->batch * p->heads_q * p->rows; n++)
        x->a[n] = (uint8_t)(random_bits(&state) % (uint64_t)m);
    for (int64_t n = 0; n < p->batch * p->heads_k * p->keys; n++) {
        int64_t j = n % p->keys;
        x->b[n] = (uint8_t)(random_bits(&state) % (uint64_t)(edge ? m - 1 : m));
        if (edge && (j % 128 == 0 || j % 128 == 127))
            x->b[n] = (uint8_t)(m - 1);
    }
    for (int64_t c = 0; edge && c < p->dim_qk; c++)
        for (int64_t h = 0; h < p->heads_q * p->batch; h++)
            for (int64_t code = 0; code < 4; code++)
                set_element(&x->rho, h / p->heads_q, h % p->heads_q, code, c,
                            2.0 * element(&x->kappa, h / p->heads_q, h % p->heads_q / (p->heads_q / p->heads_k), m - 1, c) * 0.25);
}

static void start(booked *x, const fref_problem *problem, fref_type type, int64_t m, bool edge, uint64_t seed)
{
    *x = (booked){ 0 };
    data_create(&x->d, problem, type, FILL_GAUSS, seed);
    const fref_problem *p = &x->d.problem;
    x->rho = x->d.q;
    x->kappa = x->d.k;
    x->a = calloc((size_t)(p->batch * p->heads_q * p->rows + 1), 1);
    x->b = calloc((size_t)(p->batch * p->heads_k * p->keys + 1), 1);
    draw_codes(x, m, edge, seed);
    x->codes = (fref_codes){ .count = m,
                             .a = x->a,
                             .b = x->b,
                             .stride_a = { p->heads_q * p->rows, p->rows },
                             .stride_b = { p->heads_k * p->keys, p->keys },
                             .rho = &x->rho,
                             .kappa = &x->kappa };
    spell(&x->d.q, &x->rho, x->a, x->codes.stride_a, (int64_t[]){ p->batch, p->heads_q, p->rows, p->dim_qk });
    spell(&x->d.k, &x->kappa, x->b, x->codes.stride_b, (int64_t[]){ p->batch, p->heads_k, p->keys, p->dim_qk });
    data_answer(&x->d);
}

/* Both ways; the codebook's answers go to `got`. */
static void answer(booked *x, const fref_rounding *r)
{
    answers_create(&x->want, &x->d, r);
    answers_create(&x->got, &x->d, r);
    for (size_t n = 0; n < x->got.bytes / sizeof(double); n++)
        x->got.memory[n] = NAN;
    cr_assert_eq(fref_codebook(&x->d.problem, &x->codes, &x->d.v, &x->d.o, &x->d.stats, &x->d.d_o, r, &x->got.f, &x->got.g), 0);
}

static void end(booked *x)
{
    answers_destroy(&x->want);
    answers_destroy(&x->got);
    free((void *)(uintptr_t)x->rho.data);
    free((void *)(uintptr_t)x->kappa.data);
    free(x->a);
    free(x->b);
    data_destroy(&x->d);
}

static double worst_value;

static void expect_values(const char *what, const double *got, const double *want, int64_t n, double tolerance)
{
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, isinf(want[i]) ? 0.0 : fabs(want[i]));
    for (int64_t i = 0; i < n; i++) {
        double error = got[i] == want[i] ? 0.0 : fabs(got[i] - want[i]) / largest;
        cr_assert(error <= tolerance, "%s[%ld] is %.17g, should be %.17g", what, (long)i, got[i], want[i]);
        worst_value = fmax(worst_value, error);
    }
}

typedef struct ratios {
    double least, most;
} ratios;

/* How much of the exact error model the codebook's is. */
static void compare(ratios *to, const double *got, const double *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        cr_assert_eq(want[i] == 0.0, got[i] == 0.0);
        if (want[i] == 0.0)
            continue;
        to->least = to->most == 0.0 ? got[i] / want[i] : fmin(to->least, got[i] / want[i]);
        to->most = fmax(to->most, got[i] / want[i]);
    }
}

enum { O_SIGMA, O_BOUND, DQ_SIGMA, DQ_BOUND, DK_SIGMA, DK_BOUND, DV_SIGMA, DV_BOUND, ARRAYS };
static const char *const words[ARRAYS] = { "sigma O",  "bound O",  "sigma dQ", "bound dQ",
                                           "sigma dK", "bound dK", "sigma dV", "bound dV" };
static const ratios allowed[ARRAYS] = { { 1 - 1e-12, 4 }, { 1 - 1e-12, 1 + 1e-12 },
                                        { 0.7, 4 },       { 0.9, 1.8 },
                                        { 0.75, 4 },      { 0.95, 2 },
                                        { 0.99, 5 },      { 1 - 1e-9, 1 + 1e-6 } };

static void expect_agreement(const booked *x, ratios found[ARRAYS])
{
    const answers *g = &x->got, *w = &x->want;
    expect_values("O", g->f.o, w->f.o, w->count_o, VALUE);
    expect_values("LSE", g->f.lse, w->f.lse, w->rows, VALUE);
    expect_values("Max", g->f.max, w->f.max, w->rows, VALUE);
    expect_values("Sum_exp", g->f.sum_exp, w->f.sum_exp, w->rows, VALUE);
    expect_values("tau of LSE", g->f.lse_tau, w->f.lse_tau, w->rows, 1e-12);
    expect_values("tau of Max", g->f.max_tau, w->f.max_tau, w->rows, 1e-12);
    expect_values("dQ", g->g.dq, w->g.dq, w->count_dq, VALUE);
    expect_values("dK", g->g.dk, w->g.dk, w->count_dk, VALUE);
    expect_values("dV", g->g.dv, w->g.dv, w->count_dv, VALUE);
    compare(&found[O_SIGMA], g->f.o_sigma, w->f.o_sigma, w->count_o);
    compare(&found[O_BOUND], g->f.o_bound, w->f.o_bound, w->count_o);
    compare(&found[DQ_SIGMA], g->g.dq_sigma, w->g.dq_sigma, w->count_dq);
    compare(&found[DQ_BOUND], g->g.dq_bound, w->g.dq_bound, w->count_dq);
    compare(&found[DK_SIGMA], g->g.dk_sigma, w->g.dk_sigma, w->count_dk);
    compare(&found[DK_BOUND], g->g.dk_bound, w->g.dk_bound, w->count_dk);
    compare(&found[DV_SIGMA], g->g.dv_sigma, w->g.dv_sigma, w->count_dv);
    compare(&found[DV_BOUND], g->g.dv_bound, w->g.dv_bound, w->count_dv);
}

Test(codebook, agrees_with_the_problem_written_out, .timeout = 280)
{
    static const int32_t len_q[] = { 1500, 77 }, len_kv[] = { 1321, 2100 };
    static const int64_t sizes[][4] = { { 1700, 2100, 2, 1 }, { 130, 700, 4, 4 }, { 2100, 1800, 1, 1 } };
    ratios found[ARRAYS] = { { 0 } };
    for (int n = 0; n < 10; n += STEP) {
        const int64_t *s = sizes[n % 3];
        bool lengths = n % 3 == 0 && n > 3;
        fref_problem p = dense_problem(lengths ? 2 : 1, s[2], s[3], s[0], s[1], 24, 32);
        set_mask(&p, n % 5);
        p.len_q = lengths ? len_q : NULL;
        p.len_kv = lengths ? len_kv : NULL;
        booked x;
        start(&x, &p, (fref_type)(n % 3), n % 4 == 3 ? 5 : 16, n % 4 == 2, (uint64_t)(50 + n));
        fref_rounding r = fref_rounding_of((fref_type)(n % 3), (fref_type)(n % 3));
        r.own_o = n != 7;
        answer(&x, &r);
        expect_agreement(&x, found);
        end(&x);
    }
    printf("worst value %.3g of the largest;", worst_value);
    for (int k = 0; k < ARRAYS; k++) {
        printf(" %s %.3f..%.3f", words[k], found[k].least, found[k].most);
        cr_expect(found[k].least >= allowed[k].least && found[k].most <= allowed[k].most, "%s: %.17g to %.17g of the exact one",
                  words[k], found[k].least, found[k].most);
    }
    printf("\n");
}

Test(codebook, a_sample_and_the_number_of_threads_change_no_value)
{
    const int64_t rows[] = { 0, 1, 63, 64, 640, 1299 }, keys[] = { 0, 2, 127, 128, 900, 1499 };
    enum { COUNT = 6, DIM = 16 };
    fref_problem p = dense_problem(1, 2, 1, 1300, 1500, DIM, DIM);
    set_mask(&p, 2);
    booked x;
    start(&x, &p, FREF_BF16, 16, true, 9);
    const fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
    answer(&x, &r);
    double *all = malloc(x.got.bytes);
    memcpy(all, x.got.memory, x.got.bytes);
    omp_set_num_threads(5);
    cr_assert_eq(fref_codebook(&x.d.problem, &x.codes, &x.d.v, &x.d.o, &x.d.stats, &x.d.d_o, &r, &x.got.f, &x.got.g), 0);
    for (size_t n = 0; n < x.got.bytes / sizeof(double); n++)
        cr_assert(isnan(all[n]) ? isnan(x.got.memory[n]) : all[n] == x.got.memory[n]);
    x.d.problem.row_sample = rows;
    x.d.problem.key_sample = keys;
    x.d.problem.row_count = x.d.problem.key_count = COUNT;
    double o[2 * COUNT * DIM], dq[2 * COUNT * DIM], dk[COUNT * DIM], dv[COUNT * DIM];
    const fref_forward_out forward = { .o = o };
    const fref_backward_out backward = { .dq = dq, .dk = dk, .dv = dv };
    cr_assert_eq(fref_codebook(&x.d.problem, &x.codes, &x.d.v, &x.d.o, &x.d.stats, &x.d.d_o, &r, &forward, &backward), 0);
    for (int64_t n = 0; n < 2 * COUNT * DIM; n++) {
        int64_t from = (n / DIM / COUNT * 1300 + rows[n / DIM % COUNT]) * DIM + n % DIM;
        cr_expect_float_eq(o[n], x.got.f.o[from], 1e-13);
        cr_expect_float_eq(dq[n], x.got.g.dq[from], 1e-13);
    }
    for (int64_t n = 0; n < COUNT * DIM; n++) {
        int64_t from = keys[n / DIM] * DIM + n % DIM;
        cr_expect_float_eq(dk[n], x.got.g.dk[from], 1e-12);
        cr_expect_float_eq(dv[n], x.got.g.dv[from], 1e-12);
    }
    free(all);
    x.d.problem.row_sample = x.d.problem.key_sample = NULL;
    end(&x);
}

Test(codebook, says_no_to_what_it_does_not_cover)
{
    const float sink = 0.0F;
    fref_problem p = dense_problem(1, 1, 1, 4, 4, 8, 8);
    p.sink = &sink;
    const fref_rounding r = fref_rounding_of(FREF_F16, FREF_F16);
    cr_expect_neq(fref_codebook(&p, &(fref_codes){ .count = 1 }, NULL, NULL, NULL, NULL, &r, NULL, NULL), 0);
}
