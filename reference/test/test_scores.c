/* Gradients through modification and bias against finite differences of the reference's own
 * forward; rows without a key. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answers.h"
#include "modifications.h"

#define STEP 0x1p-11

/* sum of dO O. */
static double loss_of(const data *d)
{
    const fref_problem *p = &d->problem;
    const fref_rounding r = fref_rounding_of(FREF_F32, FREF_F32);
    double *o = malloc((size_t)(p->batch * p->heads_q * p->rows * p->dim_v) * sizeof *o),
           loss = 0.0;
    cr_assert_eq(fref_forward(p, &d->q, &d->k, &d->v, &r, &(fref_forward_out){ .o.value = o }), 0);
    for (int64_t n = 0; n < p->batch * p->heads_q * p->rows * p->dim_v; n++) {
        int64_t c = n % p->dim_v, i = n / p->dim_v % p->rows,
                h = n / p->dim_v / p->rows % p->heads_q;
        loss += o[n] * element(&d->d_o, n / p->dim_v / p->rows / p->heads_q, h, i, c);
    }
    free(o);
    return loss;
}

/* d loss / d (one element), by a step that the element's type holds exactly. */
static double difference(const data *d, fref_tensor *t, int64_t b, int64_t h, int64_t s, int64_t c)
{
    const double at = element(t, b, h, s, c);
    set_element(t, b, h, s, c, at + STEP);
    const double above = loss_of(d), used_above = element(t, b, h, s, c);
    set_element(t, b, h, s, c, at - STEP);
    const double below = loss_of(d), used_below = element(t, b, h, s, c);
    set_element(t, b, h, s, c, at);
    return (above - below) / (used_above - used_below);
}

static void expect_gradient(const data *d, fref_tensor *t, const double *got, const int64_t dim[4],
                            const char *what, mod_kind mod)
{
    for (int64_t n = 0; n < dim[0] * dim[1] * dim[2] * dim[3]; n++) {
        int64_t c = n % dim[3], s = n / dim[3] % dim[2], h = n / dim[3] / dim[2] % dim[1],
                b = n / dim[3] / dim[2] / dim[1];
        if (isinf(element(t, b, h, s, c)))
            continue;
        double want = difference(d, t, b, h, s, c);
        cr_assert(fabs(got[n] - want) < 2e-5 * (1.0 + fabs(want)),
                  "%s, d%s[%ld,%ld,%ld,%ld]: %.9g, by differences %.9g", mod_words[mod], what,
                  (long)b, (long)h, (long)s, (long)c, got[n], want);
    }
}

Test(scores, gradients_are_those_of_finite_differences)
{
    const int64_t dims[4][4] = { { 1, 2, 5, 6 }, { 2, 2, 5, 6 }, { 2, 1, 1, 6 }, { 1, 1, 5, 6 } };
    for (mod_kind mod = MOD_NONE; mod < MOD_COUNT; mod++)
        for (int bias = 0; bias < 4; bias++) {
            fref_problem p = dense_problem(2, 2, 1, 5, 6, 4, 3);
            p.has_right = bias == 1;
            p.bottom_right = true;
            p.scale = 1.25;
            p.modify = modify_exactly;
            p.modify_owner = &mod;
            data d;
            data_create(&d, &p, FREF_F32, FILL_GAUSS, (uint64_t)(40 + bias));
            data_bias(&d, dims[bias], FREF_F32, 1.0);
            if (bias == 3)
                set_element(&d.bias, 0, 0, 1, 4, -INFINITY);
            data_answer(&d);
            fref_rounding r = fref_rounding_of(FREF_F32, FREF_F32);
            answers a;
            answers_create(&a, &d, &r);
            expect_gradient(&d, &d.q, a.g.dq.value, (int64_t[]){ 2, 2, 5, 4 }, "Q", mod);
            expect_gradient(&d, &d.k, a.g.dk.value, (int64_t[]){ 2, 1, 6, 4 }, "K", mod);
            expect_gradient(&d, &d.v, a.g.dv.value, (int64_t[]){ 2, 1, 6, 3 }, "V", mod);
            expect_gradient(&d, &d.bias, a.g.dbias.value, dims[bias], "bias", mod);
            answers_destroy(&a);
            data_destroy(&d);
        }
}

/* d loss / d sink of head h. */
static double sink_difference(const data *d, float *sink, int64_t h)
{
    const float at = sink[h];
    sink[h] = at + (float)STEP;
    const double above = loss_of(d);
    sink[h] = at - (float)STEP;
    const double below = loss_of(d);
    sink[h] = at;
    return (above - below) / (2.0 * STEP);
}

Test(scores, gradients_with_dropout_sink_and_alibi_are_those_of_finite_differences)
{
    float sink[] = { 0.5F, -1.0F };
    const double alibi[] = { 0.25, -0.125 };
    uint8_t keep[2 * 2 * 5 * 6];
    for (int n = 0; n < 120; n++)
        keep[n] = n % 3 != 1;
    for (int what = 1; what < 8; what++) {
        fref_problem p = dense_problem(2, 2, 1, 5, 6, 4, 3);
        p.sink = what & 1 ? sink : NULL;
        p.keep = what & 2 ? keep : NULL;
        p.keep_scale = 1.5;
        p.alibi = what & 4 ? alibi : NULL;
        p.has_right = what == 7;
        data d;
        data_create(&d, &p, FREF_F32, FILL_GAUSS, (uint64_t)(90 + what));
        data_answer(&d);
        fref_rounding r = fref_rounding_of(FREF_F32, FREF_F32);
        answers a;
        answers_create(&a, &d, &r);
        expect_gradient(&d, &d.q, a.g.dq.value, (int64_t[]){ 2, 2, 5, 4 }, "Q", MOD_NONE);
        expect_gradient(&d, &d.k, a.g.dk.value, (int64_t[]){ 2, 1, 6, 4 }, "K", MOD_NONE);
        expect_gradient(&d, &d.v, a.g.dv.value, (int64_t[]){ 2, 1, 6, 3 }, "V", MOD_NONE);
        double alone[2 * 2 * 5 * 4]; /* who wants no sigma gets the same */
        const fref_backward_out values = { .dq.value = alone };
        cr_assert_eq(
            fref_backward(&d.problem, &d.q, &d.k, &d.v, &d.o, &d.stats, &d.d_o, &r, &values), 0);
        for (int n = 0; n < 80; n++)
            cr_expect_float_eq(alone[n], a.g.dq.value[n], 1e-12, "dQ alone");
        for (int64_t h = 0; p.sink && h < 2; h++)
            cr_expect_float_eq(a.g.dsink[h], sink_difference(&d, sink, h), 2e-5,
                               "dSink of head %ld", (long)h);
        answers_destroy(&a);
        data_destroy(&d);
    }
}
