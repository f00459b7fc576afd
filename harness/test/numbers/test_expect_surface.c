/* What is due where a case is more than a mask and lengths. What a sink, slopes, packed and paged
 * sequences change is held to the cpu backend by harness/test/worker/test_worker_surface.c. */
#include "../case/resolved.h"

#include <math.h>

#include "numbers/fill/places.h"
#include "numbers/fill/rope.h"
#include "numbers/fill/score_inputs.h"

/* What is due of one tensor of a case. */
typedef struct expects {
    facts_problem *problem;
    facts_storages in;
    facts_expectation e;
} expects;

static expects expects_that_keep(const char *text, const uint8_t *keep)
{
    expects d = { .problem = resolved(text) };
    d.in = stored(d.problem);
    d.in.keep = keep;
    int status;
    if (d.problem->ask.pass == FATTN_BACKWARD) {
        status = facts_expect_inputs(d.problem, &d.in, (void *)(uintptr_t)d.in.at[FACTS_TENSOR_O],
                                     (void *)(uintptr_t)d.in.at[FACTS_TENSOR_STATS]);
        cr_assert_eq(status, 0, "%s: %d", text, status);
        status = facts_expect_backward(&d.e, d.problem, &d.in);
    } else {
        status = facts_expect_forward(&d.e, d.problem, &d.in, 92700);
    }
    cr_assert_eq(status, 0, "%s: %d", text, status);
    return d;
}

static expects expects_of(const char *text)
{
    return expects_that_keep(text, NULL);
}

static void done(expects *d)
{
    facts_expectation_destroy(&d->e);
    freed(d->problem, &d->in);
    free(d->problem);
}

/* Behind a length a packed K has no row, and what is not there has no gradient: a dense dK may stay
 * there as it was. Of a dense K it is 0. */
Test(surface, a_dense_gradient_of_packed_keys_owes_nothing_behind_a_length)
{
    expects packed = expects_of("pass=bwd b=2 h=2 s=20 d=16 lens=20+7 layout=thd dqkv=bshd"),
            dense = expects_of("pass=bwd b=2 h=2 s=20 d=16 lens=20+7");
    for (facts_tensor_id id = FACTS_TENSOR_DQ; id <= FACTS_TENSOR_DV; id++) {
        cr_expect_eq(packed.e.expects[id][20 + 6], FACTS_EXPECTS_VALUE);
        cr_expect_eq(packed.e.expects[id][20 + 7], FACTS_EXPECTS_ZERO_OR_POISON);
        cr_expect_eq(dense.e.expects[id][20 + 7], FACTS_EXPECTS_VALUE);
    }
    done(&packed), done(&dense);
}

/* What a backward is given is what its forward would have written: O times scale_o. */
Test(surface, a_backward_of_8_bits_is_given_o_in_its_scale)
{
    expects bwd = expects_of("pass=bwd dtype=e4m3 b=1 h=2 s=40/60 d=32 scales=odd");
    expects fwd = expects_of("pass=fwd dtype=e4m3 b=1 h=2 s=40/60 d=32 scales=odd");
    const facts_tensor *o = &bwd.problem->tensor[FACTS_TENSOR_O];
    const double unit = facts_array_scalar(bwd.problem, FACTS_ARRAY_DESCALE_O);
    for (int64_t row = 0; row < o->dim[1] * o->dim[2]; row++)
        for (int64_t d = 0; d < o->dim[3]; d++) {
            const int64_t at =
                facts_row_place(o, 0, row / o->dim[2], row % o->dim[2]) + d * o->stride[3];
            const double want = fwd.e.answer[FACTS_TENSOR_O].want[row * o->dim[3] + d],
                         given = unit *
                                 facts_decode(o->dtype,
                                              facts_load(o->dtype, bwd.in.at[FACTS_TENSOR_O], at));
            cr_assert_float_eq(given, want, 0x1p-4 * fabs(want) + 0x1p-10 * unit, "%g, not %g",
                               given, want);
        }
    done(&bwd);
    done(&fwd);
}

/* What fp32 makes of it is the reference's cast, or as many steps beside it as are told; and they
 * are told where a midpoint is near alone. */
Test(surface, a_rotated_cast_differs_by_the_step_that_is_told_or_not_at_all)
{
    facts_problem *p = resolved("b=1 h=2 s=300 d=64 dtype=bf16 rope=1");
    const facts_tensor *q = &p->tensor[FACTS_TENSOR_Q];
    const int64_t rows = 2 * 300;
    float *angles = made(p, FACTS_ARRAY_ROPE_Q), *out = malloc((size_t)rows * 64 * sizeof *out),
          *step = malloc((size_t)rows * 64 * sizeof *step);
    uint16_t *in = calloc((size_t)q->elements, sizeof *in);
    facts_fill_tensor(p, FACTS_TENSOR_Q, in);
    facts_rope_rotate(p, FACTS_TENSOR_Q, in, angles, out, step);
    int64_t reported = 0, differ = 0;
    for (int64_t n = 0; n < rows * 64; n++) {
        const int64_t h = n / 64 / 300, s = n / 64 % 300, c = n % 64,
                      other = c < 32 ? c + 32 : c - 32,
                      row = q->first + h * q->stride[1] + s * q->stride[2];
        const float x = (float)facts_decode(FATTN_BF16, in[row + c]),
                    y = (float)facts_decode(FATTN_BF16, in[row + other]),
                    angle = angles[s * 64 + c % 32];
        const float turned = x * cosf(angle) + (c < 32 ? -y : y) * sinf(angle);
        const double got = facts_decode(FATTN_BF16, facts_encode(FATTN_BF16, (double)turned)),
                     off = fabs(got - (double)out[n]);
        cr_assert_leq(off, (double)step[n], "row %ld, channel %ld", (long)(n / 64), (long)c);
        reported += step[n] != 0.0f, differ += off > 0.0;
    }
    cr_expect(reported > 0 && reported * 20 < rows * 64, "%ld of %ld are told, %ld differ",
              (long)reported, (long)rows * 64, (long)differ);
    free(angles), free(out), free(step), free(in), free(p);
}

Test(surface, a_step_of_a_rotated_cast_may_move_a_weight_by_its_exponential)
{
    facts_problem *p = resolved("b=1 h=1 s=1 d=8 dtype=bf16 rope=1 scale=0.25");
    float q[8] = { 0, 8 }, k[8] = { 0, 8 }, q_step[8] = { 0, 1 }, k_step[8] = { 0 };
    float *rotated[2] = { q, k }, *step[2] = { q_step, k_step };
    bool uncertain[2];
    facts_rope rope;
    facts_rope_weigh(&rope, p, rotated, step, uncertain, NULL, NULL);
    const fref_modified out = facts_rope_at(&rope, 16.0, (int64_t[4]){ 0 });
    cr_expect_geq(out.rounded * 0x1p-23, expm1(0.25 * 8), "the weight is exp(2) times as large: %g",
                  out.rounded * 0x1p-23);
    cr_expect_leq(out.rounded * 0x1p-23, 1.0001 * expm1(0.25 * 8));
    free(p);
}
