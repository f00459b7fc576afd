/* The cpu backend, as far as no case says it: harness/test/data/surface.cases has the features,
 * which the worker holds against the oracle. Threads, gradients of a recording's tensors, casts,
 * slopes, refusals. */
#define SURFACE_EXTENTS SQ = 70, SK = 101
#include "support/surface.h"

#include <fattn/score_mod.h>

#include "cpu/cpu_attention.h"
#include "cpu/cpu_view.h"
#include "cpu/kernels/cpu_number.h"

/* A bias of these extents and its gradient. */
static world biased(int64_t heads, int64_t rows)
{
    world x = make();
    x.p.has_bias = x.p.dbias = 1;
    memcpy(x.p.bias_dim, (int64_t[4]){ 1, heads, rows, SK }, sizeof x.p.bias_dim);
    x.t.bias = floats(heads * rows * SK), x.t.dbias = floats(heads * rows * SK);
    settle(&x);
    return x;
}

static void both_passes(world *x)
{
    call(x, FATTN_FORWARD);
    call(x, FATTN_BACKWARD);
}

/* A tensor that a recording adds is a bias, and has its gradient. */
Test(cpu, gradients_of_a_score_mods_tensors_are_those_of_a_bias)
{
    for (int form = 0; form < 4; form++) {
        const int64_t heads = form & 1 ? HQ : 1, rows = form & 2 ? SQ : 1, n = heads * rows * SK;
        world x = biased(heads, rows);
        float *got = floats(n);
        const float *want = x.t.dbias;
        fattn_score_mod *mod;
        both_passes(&x);
        cr_assert_eq(fattn_score_mod_post_scale_bias(&mod, FATTN_F32, x.p.bias_dim, NULL), FATTN_OK,
                     "%s", fattn_last_error());
        x.t.mod_tensors = (const void *const[]){ x.t.bias };
        x.t.mod_gradients = (void *const[]){ got };
        x.p.has_bias = x.p.dbias = x.p.bias_dtype = 0, x.p.score_mod = mod, x.p.mod_gradients = 1;
        memset(x.p.bias_dim, 0, sizeof x.p.bias_dim);
        both_passes(&x);
        for (int64_t i = 0; i < n; i++)
            cr_assert_float_eq(got[i], want[i], 1e-5, "form %d, %lld: %g, not %g", form,
                               (long long)i, (double)got[i], (double)want[i]);
        cr_assert(fabsf(want[n / 3]) > 1e-4f, "a gradient of 0 says nothing");
        fattn_score_mod_destroy(mod);
    }
}

Test(cpu, results_do_not_depend_on_the_number_of_threads)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 3), FATTN_OK);
    x.p.has_bias = x.p.dbias = 1, x.p.score_mod = mod;
    x.t.bias = floats(HQ * SQ * SK), x.t.dbias = floats(HQ * SQ * SK);
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

Test(cpu, slopes_of_four_and_of_six_heads)
{
    float out[6];
    fattn_alibi_slopes(4, out);
    const float four[4] = { 0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f },
                six[6] = { 0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f };
    cr_assert_arr_eq(out, four, sizeof four);
    fattn_alibi_slopes(6, out);
    cr_assert_arr_eq(out, six, sizeof six);
    fattn_alibi_slopes(1, out);
    cr_assert_float_eq(out[0], 0x1p-8, 0);
}

/* What a decision refuses no plan is made of. */
Test(cpu, what_it_does_not_have_is_refused_by_name)
{
    static const struct {
        const char *says;
        fattn_problem p;
    } rows[] = {
        { "spelling", { .spelling = FATTN_SPELLING_SINGLE } },
        { "the cpu backend has no cuDNN graph", { .impl = FATTN_IMPL_UNIFIED } },
        { "block-scaled", { .dtype = FATTN_MXE4M3, .padding = 1, .ragged_bits = 32 } },
    };
    fattn_context *context = cpu_context(1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fattn_problem p = rows[i].p;
        fattn_decision *decision;
        fattn_plan *plan = NULL;
        p.struct_size = sizeof p, p.batch = B, p.heads_q = HQ, p.seq_q = SQ, p.seq_kv = SK;
        p.dim_qk = D;
        cr_assert_eq(fattn_decide(&decision, context, &p, FATTN_ASK_A), FATTN_OK);
        cr_expect_not(fattn_decision_supported(decision));
        cr_expect_not_null(strstr(fattn_decision_text(decision), rows[i].says), "%s",
                           fattn_decision_text(decision));
        cr_expect_eq(fattn_plan_create(&plan, context, &p, NULL), FATTN_UNSUPPORTED);
        cr_expect_null(plan);
        fattn_decision_destroy(decision);
    }
    fattn_context_destroy(context);
}

/* ---- casts */

Test(cpu, casts_to_8_bits_are_to_nearest_even_and_saturate)
{
    for (int type = 0; type < 2; type++) {
        const int32_t dtype = type ? FATTN_E5M2 : FATTN_E4M3;
        const int last = type ? 0x7b : 0x7e;
        for (int code = 0; code < last; code++) {
            const uint8_t low[4] = { (uint8_t)code }, high[4] = { (uint8_t)(code + 1) };
            const double a = number(low, dtype, 0), b = number(high, dtype, 0);
            cr_assert_eq((double)fattn__number_load(low, dtype, 0), a);
            cr_assert_eq((double)fattn__number_round(dtype, (float)a), a);
            cr_assert_eq((double)fattn__number_round(dtype, (float)((a + b) / 2)), code & 1 ? b : a,
                         "the tie after %x", code);
            cr_assert_eq((double)fattn__number_round(dtype, (float)(a * 0.49 + b * 0.51)), b,
                         "above the tie after %x", code);
            cr_assert_eq((double)fattn__number_round(dtype, -(float)(a * 0.51 + b * 0.49)), -a,
                         "below the tie after %x", code);
        }
        const float most = fattn__number_most(dtype);
        cr_assert_eq(fattn__number_round(dtype, 1e30f), most);
        cr_assert_eq(fattn__number_round(dtype, -INFINITY), -most);
        cr_assert(isnan(fattn__number_round(dtype, NAN)));
    }
}

Test(cpu, sixteen_bit_types_round_to_nearest_even)
{
    int64_t stride[4] = { 1, 1, 1, 1 };
    for (uint32_t code = 0; code < 0x7c00u;
         code++) { /* between each f16 and the next: the tie goes to the even one */
        uint16_t out = 0, low = (uint16_t)code, high = (uint16_t)(code + 1);
        float a, b, middle;
        fattn__view view = { .data = (char *)&low, .dtype = FATTN_F16, .stride = stride };
        fattn__view_load(&a, 1, &view, 0, 0, 0, 1, 1);
        view.data = (char *)&high;
        fattn__view_load(&b, 1, &view, 0, 0, 0, 1, 1);
        middle = code == 0x7bffu ? 65520.0f : (a + b) / 2;
        view.data = (char *)&out;
        fattn__view_store(&view, 0, 0, 0, 1, 1, &middle, 1);
        cr_assert_eq(out, code & 1u ? high : low, "code %x", code);
        fattn__view_store(&view, 0, 0, 0, 1, 1, &a, 1);
        cr_assert_eq(out, low, "code %x stays itself", code);
    }
}
