/* bias, score_mod, broadcast inputs and summed gradients on the cpu. */
#define SURFACE_EXTENTS SQ = 70, SK = 101
#include "support/surface.h"

#include <fattn/score_mod.h>

#include "cpu/cpu_attention.h"
#include "night.h"

static const int64_t scores = (int64_t)B * HQ * SQ * SK;

/* Sums want[b][h][s][d] over what the gradient has one element for, and compares. */
static void expect_gradient(const char *name, const float *got, const int64_t stride[4],
                            const double *want, const int64_t extent[4], const bool summed[4],
                            double tolerance)
{
    const int64_t all = extent[0] * extent[1] * extent[2] * extent[3];
    double *sums = doubles(all);
    for (int compares = 0; compares < 2; compares++)
        for (int64_t n = 0; n < all; n++) {
            int64_t rest = n, from = 0, to = 0, first = 0;
            for (int a = 3, size = 1; a >= 0; rest /= extent[a], size *= (int)extent[a--]) {
                const int64_t at = rest % extent[a], kept = summed[a] ? 0 : at;
                first += at * size, to += kept * size, from += kept * stride[a];
            }
            if (!compares)
                sums[to] += want[n];
            else if (first == to)
                cr_assert_float_eq(got[from], sums[to], tolerance, "%s %lld: %g, not %g", name,
                                   (long long)n, (double)got[from], sums[to]);
        }
    free(sums);
}

/* d(loss)/d(modified score), [b][h][i][j]: dBias of a bias that has every score. */
static double *slopes_of(world *x)
{
    const fref_backward_out out = { .dbias.value = doubles(scores),
                                    .dbias_dim = { B, HQ, SQ, SK } };
    if (x->r.bias == NULL)
        reference_bias(x);
    cr_assert_eq(fref_backward(&x->r, &x->in[0], &x->in[1], &x->in[2], &x->in[3], &x->in[4],
                               &x->in[5], &x->rounding, &out),
                 0);
    return out.dbias.value;
}

static void expect_dbias(world *x, const bool summed[4])
{
    double *slopes = slopes_of(x);
    expect_gradient("dbias", x->t.dbias, x->p.dbias_strides, slopes, (int64_t[4]){ B, HQ, SQ, SK },
                    summed, 1e-4);
    free(slopes);
}

/* ---- bias */

/* Asks for a bias and its gradient. */
static world biased(void)
{
    world x = make();
    x.p.has_bias = x.p.dbias = 1;
    x.t.bias = floats(scores), x.t.dbias = floats(scores);
    return x;
}

static void settle_bias(world *x)
{
    settle(x);
    x->bias = (fref_tensor){ .data = x->t.bias, .type = fref_of(x->p.bias_dtype) };
    for (int a = 0; a < 4; a++)
        x->bias.stride[a] = x->p.bias_dim[a] == 1 ? 0 : x->p.bias_strides[a];
    x->r.bias = &x->bias;
}

static void expect_settled(world *x)
{
    expect_forward(x);
    expect_backward(x);
}

static bool all_shapes(void)
{
#ifdef __SANITIZE_ADDRESS__
    return night();
#else
    return true;
#endif
}

Test(cpu_features, a_bias_of_every_broadcast_and_its_gradient)
{
    for (int shape = 0; shape < 16; shape += all_shapes() ? 1 : 5) {
        world x = biased();
        x.p.padding = shape % 3 == 0, x.p.has_right = shape % 2, x.p.window_right = 5;
        x.p.bias_dim[0] = shape & 1 ? B : 1, x.p.bias_dim[1] = shape & 2 ? HQ : 1;
        x.p.bias_dim[2] = shape & 4 ? SQ : 1, x.p.bias_dim[3] = shape & 8 ? SK : 1;
        settle_bias(&x);
        expect_settled(&x);
        expect_dbias(&x, (bool[4]){ !(shape & 1), !(shape & 2), !(shape & 4), !(shape & 8) });
    }
}

Test(cpu_features, a_bias_with_stride_0_has_a_gradient_for_each_element_or_their_sum)
{
    for (int sum = 0; sum < 2; sum++) {
        world x = biased();
        memcpy(x.p.bias_dim, (int64_t[4]){ B, HQ, SQ, SK }, sizeof x.p.bias_dim);
        memcpy(x.p.bias_strides, (int64_t[4]){ SQ * SK, 0, SK, 1 }, sizeof x.p.bias_strides);
        memcpy(x.p.dbias_strides,
               (int64_t[4]){ (sum ? 1 : HQ) * SQ * SK, sum ? 0 : SQ * SK, SK, 1 },
               sizeof x.p.dbias_strides);
        settle_bias(&x);
        expect_settled(&x);
        expect_dbias(&x, (bool[4]){ false, sum, false, false });
    }
}

Test(cpu_features, a_bias_in_bf16_is_read_and_its_gradient_rounded_once)
{
    world x = biased();
    x.p.bias_dtype = FATTN_BF16;
    random_elements((void *)(uintptr_t)x.t.bias, FATTN_BF16, HQ * SQ * SK);
    settle_bias(&x);
    expect_settled(&x);
    const double *slopes = slopes_of(&x);
    for (int64_t n = 0; n < HQ * SQ * SK; n++) {
        double want = 0.0, got = number(x.t.dbias, FATTN_BF16, n);
        for (int b = 0; b < B; b++)
            want += slopes[b * HQ * SQ * SK + n];
        cr_assert_float_eq(got, want, fabs(want) * 0x1.01p-8 + 1e-6, "%d: %g, not %g", (int)n, got,
                           want);
    }
}

/* Keys [first, last) of an entry hold NaN. */
static void spoil(world *x, fattn__role which, int64_t b, int64_t first, int64_t last)
{
    for (int64_t h = 0; h < HK; h++)
        for (int64_t j = first; j < last; j++)
            memset((float *)x->memory[which] + place_of(x, which, b, h, j), 0xff,
                   (which == FATTN__ROLE_K ? D : DV) * sizeof(float));
}

Test(cpu_features, a_key_that_the_bias_hides_cannot_matter)
{
    world x = biased();
    settle_bias(&x);
    for (int row = 0; row < HQ * SQ; row++)
        ((float *)(uintptr_t)x.t.bias)[row * SK + 17] = -INFINITY;
    spoil(&x, FATTN__ROLE_V, 0, 17, 18);
    expect_settled(&x);
}

Test(cpu_features, a_key_outside_of_the_band_is_not_read)
{
    world x = biased();
    x.p.padding = 1, x.p.has_right = 1;
    settle_bias(&x);
    for (int b = 0; b < B; b++) {
        spoil(&x, FATTN__ROLE_K, b, x.len_q[b], x.len_kv[b]);
        spoil(&x, FATTN__ROLE_V, b, x.len_q[b], x.len_kv[b]);
    }
    expect_settled(&x);
}

/* ---- lengths and layouts */

Test(cpu_features, one_length_for_every_batch_entry)
{
    world x = make();
    x.p.padding = x.p.len_broadcast = 1, x.len_q[0] = 41, x.len_kv[0] = 77, x.len_q[1] = -5,
    x.len_kv[1] = 1 << 30; /* not read */
    expect_all(&x);
}

Test(cpu_features, stats_of_every_order)
{
    const int64_t orders[3][4] = { { HQ * SQ, SQ, 1, 1 },
                                   { SQ * HQ, 1, HQ, 1 },
                                   { SQ, B * SQ, 1, 1 } };
    for (int i = 0; i < 3; i++) {
        world x = make();
        memcpy(x.p.stats_strides, orders[i], sizeof orders[i]);
        expect_all(&x);
    }
}

/* Q, K and V with stride 0 in the dimensions of `zero` (bits b, h, s); their gradients element by
 * element or summed. */
static void expect_broadcast(unsigned zero, bool sum)
{
    world x = make();
    const bool summed[4] = { sum && zero & 1, sum && zero & 2, sum && zero & 4, false };
    const int64_t q[4] = { SQ * HQ * D, D, HQ * D, 1 }, k[4] = { SK * HK * D, D, HK * D, 1 },
                  v[4] = { SK * HK * DV, DV, HK * DV, 1 };
    for (int a = 0; a < 4; a++) {
        const bool gone = a < 3 && zero >> a & 1;
        x.p.q_strides[a] = gone ? 0 : q[a], x.p.k_strides[a] = gone ? 0 : k[a],
        x.p.v_strides[a] = gone ? 0 : v[a];
        x.p.dq_strides[a] = gone && sum ? 0 : q[a], x.p.dk_strides[a] = gone && sum ? 0 : k[a],
        x.p.dv_strides[a] = gone && sum ? 0 : v[a];
        x.p.o_strides[a] = x.p.do_strides[a] = (int64_t[4]){ SQ * HQ * DV, DV, HQ * DV, 1 }[a];
    }
    x.p.has_right = 1, x.p.window_right = 20, x.p.padding = 1;
    settle(&x);
    expect_forward(&x);
    call(&x, FATTN_BACKWARD);
    const fref_backward_out g = { .dq.value = doubles((int64_t)B * HQ * SQ * D),
                                  .dk.value = doubles((int64_t)B * HK * SK * D),
                                  .dv.value = doubles((int64_t)B * HK * SK * DV) };
    cr_assert_eq(fref_backward(&x.r, &x.in[0], &x.in[1], &x.in[2], &x.in[3], &x.in[4], &x.in[5],
                               &x.rounding, &g),
                 0);
    expect_gradient("dq", x.t.dq, x.p.dq_strides, g.dq.value, (int64_t[4]){ B, HQ, SQ, D }, summed,
                    1e-4);
    expect_gradient("dk", x.t.dk, x.p.dk_strides, g.dk.value, (int64_t[4]){ B, HK, SK, D }, summed,
                    1e-3);
    expect_gradient("dv", x.t.dv, x.p.dv_strides, g.dv.value, (int64_t[4]){ B, HK, SK, DV }, summed,
                    1e-3);
}

Test(cpu_features, gradients_of_broadcast_inputs_are_sums_where_their_strides_say_so)
{
    for (unsigned zero = 0; zero < 8; zero++)
        for (int sum = 0; sum < 2; sum++)
            expect_broadcast(zero, sum);
}

/* ---- score_mod */

/* With the errors of a few operations in fp32. */
static fref_modified modified(double score, double value, double slope, double curvature)
{
    return (fref_modified){ .value = value,
                            .slope = slope,
                            .curvature = curvature,
                            .rounded = isinf(value) ? 0.0 : 4.0 * (fabs(score) + fabs(value)),
                            .slope_rounded = 8.0 };
}

static fref_modified cap(const void *owner, double s, const int64_t at[4])
{
    const double t = tanh(s / 2);
    (void)owner, (void)at;
    return modified(s, 2 * t, 1 - t * t, -t * (1 - t * t));
}

Test(cpu_features, softcap_with_a_bias_and_a_mask)
{
    world x = biased();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 2), FATTN_OK);
    x.r.modify = cap, x.p.score_mod = mod;
    x.p.has_right = 1, x.p.align = FATTN_BOTTOM_RIGHT, x.p.padding = 1;
    settle_bias(&x);
    expect_settled(&x);
    expect_dbias(&x, (bool[4]){ true, false, false, false });
    fattn_score_mod_destroy(mod);
}

static fref_modified below(const void *owner, double s, const int64_t at[4])
{
    (void)owner;
    return modified(s, at[3] <= at[2] ? s : -INFINITY, at[3] <= at[2], 0);
}

Test(cpu_features, causal_as_a_score_mod_is_causal)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    x.r.modify = below, x.p.score_mod = mod;
    settle(&x);
    spoil(&x, FATTN__ROLE_V, 0, SQ, SQ + 1); /* a key that no row sees */
    expect_settled(&x);
    fattn_score_mod_destroy(mod);
}

static const float *per_head, *per_row, *per_key;

static fref_modified bent(const void *owner, double s, const int64_t at[4])
{
    const double head = (double)per_head[at[1]], key = (double)per_key[at[3]],
                 angle = s + (double)per_row[at[0] * SQ + at[2]];
    (void)owner;
    return modified(s, s * head + sin(angle) + key * key, head + cos(angle), -sin(angle));
}

static fattn_value bend(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value head =
        fattn_record_tensor(r, "head", FATTN_F32, (int64_t[4]){ 1, HQ, 1, 1 }, NULL);
    const fattn_value row =
        fattn_record_tensor(r, "row", FATTN_F32, (int64_t[4]){ B, 1, SQ, 1 }, NULL);
    const fattn_value key =
        fattn_record_tensor(r, "key", FATTN_F32, (int64_t[4]){ 1, 1, 1, SK }, NULL);
    const fattn_value wave =
        fattn_record(r, FATTN_MOD_SIN, fattn_record(r, FATTN_MOD_ADD, score, row, 0), 0, 0);
    const fattn_value sum =
        fattn_record(r, FATTN_MOD_ADD, fattn_record(r, FATTN_MOD_MUL, score, head, 0), wave, 0);
    return fattn_record(r, FATTN_MOD_ADD, sum, fattn_record(r, FATTN_MOD_MUL, key, key, 0), 0);
}

static double raw_score(const world *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const float *q = (const float *)x->dense[FATTN__ROLE_Q] + ((b * HQ + h) * SQ + i) * D,
                *k = (const float *)x->dense[FATTN__ROLE_K] +
                     ((b * HK + h / (HQ / HK)) * SK + j) * D;
    double s = 0;
    for (int d = 0; d < D; d++)
        s += (double)q[d] * (double)k[d];
    return s * x->p.attn_scale;
}

Test(cpu_features, gradients_of_a_score_mods_tensors_are_sums_over_what_they_broadcast)
{
    static const int64_t dims[3][4] = { { 1, HQ, 1, 1 }, { B, 1, SQ, 1 }, { 1, 1, 1, SK } };
    world x = make();
    fattn_score_mod *mod;
    float *got[3] = { floats(HQ), floats(B * SQ), floats(SK) };
    per_head = floats(HQ), per_row = floats(B * SQ), per_key = floats(SK);
    cr_assert_eq(fattn_score_mod_create(&mod, bend, NULL, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    x.r.modify = bent, x.p.score_mod = mod, x.p.mod_gradients = 7, x.p.padding = 1,
    x.p.has_right = 1;
    x.t.mod_tensors = (const void *const[]){ per_head, per_row, per_key };
    x.t.mod_gradients = (void *const[]){ got[0], got[1], got[2] };
    expect_all(&x);
    const double *slopes = slopes_of(&x);
    for (int k = 0; k < 3; k++) {
        double *want = doubles(scores);
        for (int64_t n = 0; n < scores; n++) {
            const int64_t b = n / SK / SQ / HQ, h = n / SK / SQ % HQ, i = n / SK % SQ, j = n % SK;
            const double s = raw_score(&x, b, h, i, j);
            want[n] = slopes[n] * (k == 0   ? s
                                   : k == 1 ? cos(s + (double)per_row[b * SQ + i])
                                            : 2 * (double)per_key[j]);
        }
        const int64_t *dim = dims[k];
        expect_gradient("a tensor", got[k],
                        (int64_t[4]){ dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 }, want,
                        (int64_t[4]){ B, HQ, SQ, SK },
                        (bool[4]){ dim[0] == 1, dim[1] == 1, dim[2] == 1, dim[3] == 1 }, 2e-4);
        free(want);
    }
    fattn_score_mod_destroy(mod);
}

/* ---- order */

Test(cpu_features, results_do_not_depend_on_the_number_of_threads)
{
    world x = biased();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 3), FATTN_OK);
    x.p.score_mod = mod;
    settle(&x);
    char *scratch = aligned_alloc(64, 5 * fattn__cpu_scratch_bytes(&x.p));
    float *kept[4] = { NULL };
    void *const results[4] = { x.t.dq, x.t.dk, x.t.dv, x.t.dbias };
    const size_t bytes[4] = { B * HQ * SQ * D * 4, B * HK * SK * D * 4, B * HK * SK * DV * 4,
                              HQ * SQ * SK * 4 };
    for (int threads = 1; threads <= 5; threads++) {
        fattn_problem forward = x.p;
        forward.pass = FATTN_FORWARD, forward.outputs = FATTN_WANT_STATS;
        fattn__cpu_forward(&forward, &x.t, threads, scratch);
        fattn__cpu_backward(&x.p, &x.t, threads, scratch);
        for (int i = 0; i < 4; i++) {
            if (threads == 1)
                memcpy(kept[i] = malloc(bytes[i]), results[i], bytes[i]);
            cr_assert_eq(memcmp(kept[i], results[i], bytes[i]), 0, "result %d with %d threads", i,
                         threads);
        }
    }
    free(scratch);
    fattn_score_mod_destroy(mod);
}

Test(cpu_features, what_a_decision_refuses_no_plan_is_made_of)
{
    fattn_context *context = cpu_context(1);
    fattn_decision *decision;
    fattn_plan *plan = NULL;
    world x = make();
    x.p.spelling = FATTN_SPELLING_SINGLE;
    cr_assert_eq(fattn_decide(&decision, context, &x.p, FATTN_ASK_A), FATTN_OK);
    cr_expect_not(fattn_decision_supported(decision));
    cr_expect_eq(fattn_plan_create(&plan, context, &x.p, NULL), FATTN_UNSUPPORTED);
    cr_expect_null(plan);
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}
