/* What is due where a case is more than a mask and lengths. What a sink, slopes, packed and paged
 * sequences change is held to the cpu backend by harness/test/worker/test_worker_surface.c. */
#include "../case/resolved.h"

#include <math.h>

#include "numbers/fill/places.h"
#include "numbers/fill/rope.h"
#include "numbers/fill/scalars.h"
#include "numbers/fill/seen.h"

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

Test(surface, what_is_dropped_is_gone_and_the_rest_is_larger)
{
    uint8_t keep[2 * 5 * 7];
    for (int i = 0; i < 70; i++)
        keep[i] = i % 7 == 3; /* key 3 alone */
    expects d = expects_that_keep("b=1 h=2 s=5/7 d=16 dropout=0.25 dropout_mask=1 fill=unip", keep);
    for (int row = 0; row < 10; row++) {
        const double v = number_at(d.problem, FACTS_TENSOR_V, d.in.at[FACTS_TENSOR_V],
                                   (const int64_t[4]){ 0, row / 5, 3, 2 });
        cr_expect_float_eq(d.e.answer[FACTS_TENSOR_O].want[row * 16 + 2], v / 7 / 0.75, 1e-7);
    }
    done(&d);
}

Test(surface, scales_of_8_bit_types_cancel_but_for_gamma)
{
    expects odd = expects_of("b=1 h=2 s=9/50 d=16 dtype=e4m3 scales=odd want=stats");
    const facts_problem *p = odd.problem;
    const double gamma =
        facts_array_scalar(p, FACTS_ARRAY_SCALE_S) * facts_array_scalar(p, FACTS_ARRAY_DESCALE_S);
    expects exact = expects_of("b=1 h=2 s=9/50 d=16 dtype=f32 want=stats");
    double far = 0;
    for (int i = 0; i < 2 * 9 * 16; i++)
        far = fmax(far, fabs(odd.e.answer[FACTS_TENSOR_O].want[i] / gamma -
                             exact.e.answer[FACTS_TENSOR_O].want[i]));
    cr_expect(far < 0.1 && far > 1e-4 && fabs(gamma - 1) > 0.01, "%g, %g", far, gamma);
    cr_expect_gt(odd.e.array[FACTS_ARRAY_AMAX_S][0], 0.0);
    done(&odd), done(&exact);
}

Test(surface, a_rotation_keeps_lengths_and_sees_distances_alone)
{
    facts_problem *p = resolved("b=1 h=1 s=40 d=16 dtype=f32 rope=1 fill=unip");
    const facts_tensor *k = &p->tensor[FACTS_TENSOR_K];
    float *angles = made(p, FACTS_ARRAY_ROPE_K), *same = malloc(40 * 16 * sizeof *same),
          *out = malloc(40 * 16 * sizeof *out);
    for (int s = 0; s < 40; s++)
        for (int c = 0; c < 16; c++)
            same[k->first + s * k->stride[2] + c] =
                (float)(c % 5) - 1.5f; /* one vector in every row */
    facts_rope_rotate(p, FACTS_TENSOR_K, same, angles, out, NULL);
    double at[2] = { 0, 0 }, length = 0, before = 0;
    for (int c = 0; c < 16; c++) {
        at[0] += (double)out[3 * 16 + c] * (double)out[10 * 16 + c];
        at[1] += (double)out[20 * 16 + c] * (double)out[27 * 16 + c];
        length += (double)out[7 * 16 + c] * (double)out[7 * 16 + c];
        before += (double)same[c] * (double)same[c];
        cr_expect_eq(out[c], same[c], "row 0 stays");
    }
    cr_expect_float_eq(at[0], at[1], 1e-4);
    cr_expect_float_eq(length, before, 1e-4);
    double back[40 * 16];
    for (int i = 0; i < 40 * 16; i++)
        back[i] = (double)out[i];
    p->tensor[FACTS_TENSOR_DK] = *k;
    double parts[40 * 16];
    facts_rope_back(p, FACTS_TENSOR_DK, angles, back, NULL, NULL, parts);
    for (int i = 0; i < 40 * 16; i++) {
        cr_expect_float_eq(back[i], (double)same[i], 1e-4);
        cr_expect_geq(
            parts[i] * (1 + 0x1p-20),
            2 * 0x1p-24 *
                fabs(back[i])); /* a step of what was cast is no less than one of what came of it */
    }
    free(angles), free(same), free(out), free(p);
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

Test(surface, a_rotation_of_the_last_channels_leaves_the_others)
{
    facts_problem *p = resolved("b=1 h=1 s=40 d=16 dtype=f32 rope=6"),
                  *small = resolved("b=1 h=1 s=40 d=6 dtype=f32 rope=1");
    float *angles = made(p, FACTS_ARRAY_ROPE_Q), in[40 * 16], out[40 * 16], tail[40 * 6],
          turned[40 * 6];
    for (int i = 0; i < 40 * 16; i++)
        in[p->tensor[FACTS_TENSOR_Q].first + i] = (float)(i % 7) - 3;
    for (int i = 0; i < 40 * 6; i++)
        tail[small->tensor[FACTS_TENSOR_Q].first + i] = in[i / 6 * 16 + 10 + i % 6];
    facts_rope_rotate(p, FACTS_TENSOR_Q, in, angles, out, NULL);
    facts_rope_rotate(small, FACTS_TENSOR_Q, tail, angles, turned, NULL);
    for (int i = 0; i < 40 * 16; i++)
        cr_expect_eq(out[i], i % 16 < 10 ? in[i] : turned[i / 16 * 6 + i % 16 - 10],
                     "row %d, channel %d", i / 16, i % 16);
    free(angles), free(p), free(small);
}
