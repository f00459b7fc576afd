/* bias, score_mod, broadcast inputs and summed gradients on the cpu, against loops in double that
 * know none of the library's code but a ready modification's meaning. Gradients also against finite
 * differences. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <fattn/fattn.h>
#include <fattn/score_mod.h>

#include "cpu/cpu_attention.h"
#include "night.h"

enum { B = 2, HQ = 4, HK = 2, SQ = 70, SK = 101, D = 20, DV = 36 };

typedef struct world {
    fattn_problem p;
    fattn_tensors t;
    int32_t len_q[B], len_kv[B];
    /* What the reference adds before and after the softmax. */
    double (*mod)(double score, int b, int h, int i, int j);
    double (*mod_slope)(double score, int b, int h, int i, int j);
    /* The reference's results. */
    double *o, *lse, *dq, *dk, *dv, *ds; /* ds: d(loss)/d(modified score), [b][h][i][j] */
} world;

static float *noise(size_t n, unsigned seed)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    return x;
}

static world make(void)
{
    world x = {
        .p = FATTN_PROBLEM_INIT, .t = FATTN_TENSORS_INIT, .len_q = { 70, 33 }, .len_kv = { 90, 101 }
    };
    fattn_problem *p = &x.p;
    p->pass = FATTN_BACKWARD, p->dtype = FATTN_F32, p->batch = B, p->heads_q = HQ, p->heads_k = HK,
    p->seq_q = SQ, p->seq_kv = SK;
    p->dim_qk = D, p->dim_v = DV, p->attn_scale = 0.3, p->has_attn_scale = 1;
    x.t.q = noise(B * SQ * HQ * D, 1), x.t.k = noise(B * SK * HK * D, 2),
    x.t.v = noise(B * SK * HK * DV, 3);
    x.t.d_o = noise(B * SQ * HQ * DV, 4), x.t.o = noise(B * SQ * HQ * DV, 5),
    x.t.stats = noise(B * HQ * SQ, 6);
    x.t.dq = noise(B * SQ * HQ * D, 7), x.t.dk = noise(B * SK * HK * D, 8),
    x.t.dv = noise(B * SK * HK * DV, 9);
    x.t.bias = noise(B * HQ * SQ * SK, 10), x.t.dbias = noise(B * HQ * SQ * SK, 11);
    return x;
}

static void settle(world *x)
{
    fattn_problem resolved;
    cr_assert_eq(fattn_problem_resolve(&x->p, &resolved), FATTN_OK, "%s", fattn_last_error());
    x->p = resolved;
    x->t.seq_len_q = x->len_q, x->t.seq_len_kv = x->len_kv;
}

static double at(const void *data, const int64_t stride[4], int b, int h, int s, int d)
{
    return (
        double)((const float *)data)[b * stride[0] + h * stride[1] + s * stride[2] + d * stride[3]];
}

static double bias_at(const world *x, int b, int h, int i, int j)
{
    const int64_t *n = x->p.bias_dim, *s = x->p.bias_strides;
    if (!x->p.has_bias)
        return 0;
    return at(x->t.bias, s, n[0] == 1 ? 0 : b, n[1] == 1 ? 0 : h, n[2] == 1 ? 0 : i,
              n[3] == 1 ? 0 : j);
}

static double raw_score(const world *x, int b, int h, int i, int j)
{
    double s = 0;
    for (int d = 0; d < D; d++)
        s += at(x->t.q, x->p.q_strides, b, h, i, d) *
             at(x->t.k, x->p.k_strides, b, h / (HQ / HK), j, d);
    return s * x->p.attn_scale;
}

/* -inf where the mask hides it. */
static double final_score(const world *x, int b, int h, int i, int j)
{
    const fattn_problem *p = &x->p;
    const int entry = p->len_broadcast ? 0 : b;
    const int lq = p->padding ? x->len_q[entry] : SQ, lk = p->padding ? x->len_kv[entry] : SK;
    const int shift = p->align == FATTN_BOTTOM_RIGHT ? lk - lq : 0;
    if (i >= lq || j >= lk || (p->has_right && j > i + shift + p->window_right) ||
        (p->has_left && j <= i + shift - p->window_left))
        return -INFINITY;
    const double s = raw_score(x, b, h, i, j);
    return (x->mod ? x->mod(s, b, h, i, j) : s) + bias_at(x, b, h, i, j);
}

static void reference_row(world *x, int b, int h, int i)
{
    double s[SK], top = -INFINITY, sum = 0, dot = 0;
    double *o = x->o + ((b * HQ + h) * SQ + i) * DV;
    for (int j = 0; j < SK; j++)
        top = fmax(top, s[j] = final_score(x, b, h, i, j));
    for (int j = 0; j < SK && top > -INFINITY; j++)
        sum += exp(s[j] - top);
    x->lse[(b * HQ + h) * SQ + i] = sum > 0 ? top + log(sum) : -INFINITY;
    for (int j = 0; j < SK && sum > 0; j++)
        for (int d = 0; d < DV && s[j] > -INFINITY; d++)
            o[d] += exp(s[j] - top) / sum * at(x->t.v, x->p.v_strides, b, h / (HQ / HK), j, d);
    for (int d = 0; d < DV; d++)
        dot += o[d] * at(x->t.d_o, x->p.do_strides, b, h, i, d);
    for (int j = 0; j < SK && sum > 0; j++) {
        const double P = s[j] == -INFINITY ? 0 : exp(s[j] - top) / sum;
        double dp = 0;
        for (int d = 0; d < DV && P > 0; d++) {
            dp += at(x->t.d_o, x->p.do_strides, b, h, i, d) *
                  at(x->t.v, x->p.v_strides, b, h / (HQ / HK), j, d);
            x->dv[((b * HK + h / (HQ / HK)) * SK + j) * DV + d] +=
                P * at(x->t.d_o, x->p.do_strides, b, h, i, d);
        }
        const double ds = P > 0 ? P * (dp - dot) : 0;
        const double slope =
            P > 0 && x->mod ? ds * x->mod_slope(raw_score(x, b, h, i, j), b, h, i, j) : ds;
        x->ds[((b * HQ + h) * SQ + i) * SK + j] = ds;
        for (int d = 0; d < D && P > 0; d++) {
            x->dq[((b * HQ + h) * SQ + i) * D + d] +=
                slope * x->p.attn_scale * at(x->t.k, x->p.k_strides, b, h / (HQ / HK), j, d);
            x->dk[((b * HK + h / (HQ / HK)) * SK + j) * D + d] +=
                slope * x->p.attn_scale * at(x->t.q, x->p.q_strides, b, h, i, d);
        }
    }
}

static void reference(world *x)
{
    x->o = calloc(B * HQ * SQ * DV, 8), x->lse = calloc(B * HQ * SQ, 8),
    x->dq = calloc(B * HQ * SQ * D, 8);
    x->dk = calloc(B * HK * SK * D, 8), x->dv = calloc(B * HK * SK * DV, 8),
    x->ds = calloc(B * HQ * SQ * SK, 8);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < HQ; h++)
            for (int i = 0; i < SQ; i++)
                reference_row(x, b, h, i);
}

/* Forward, then backward, with three threads and a dirty workspace. */
static void run(world *x)
{
    fattn_problem forward = x->p;
    const size_t bytes = 3 * fattn__cpu_scratch_bytes(&x->p);
    char *scratch = aligned_alloc(64, bytes);
    memset(scratch, 0xff, bytes); /* NaN everywhere */
    forward.pass = FATTN_FORWARD, forward.outputs = FATTN_WANT_STATS;
    fattn__cpu_forward(&forward, &x->t, 3, scratch);
    memset(scratch, 0xff, bytes);
    fattn__cpu_backward(&x->p, &x->t, 3, scratch);
    free(scratch);
}

/* Sums want[b][h][s][d] over what the strides of the gradient say is one, and compares. */
static void expect_gradient(const char *name, const float *got, const int64_t stride[4],
                            const double *want, const int extent[4], const bool summed[4],
                            double tolerance)
{
    const int all = extent[0] * extent[1] * extent[2] * extent[3];
    double *sums = calloc((size_t)all, 8);
    for (int n = 0; n < all; n++) {
        int at4[4] = { n / extent[3] / extent[2] / extent[1], n / extent[3] / extent[2] % extent[1],
                       n / extent[3] % extent[2], n % extent[3] };
        for (int a = 0; a < 4; a++)
            at4[a] = summed[a] ? 0 : at4[a];
        sums[((at4[0] * extent[1] + at4[1]) * extent[2] + at4[2]) * extent[3] + at4[3]] += want[n];
    }
    for (int n = 0; n < all; n++) {
        const int at4[4] = { n / extent[3] / extent[2] / extent[1],
                             n / extent[3] / extent[2] % extent[1], n / extent[3] % extent[2],
                             n % extent[3] };
        if ((summed[0] && at4[0]) || (summed[1] && at4[1]) || (summed[2] && at4[2]) ||
            (summed[3] && at4[3]))
            continue;
        const float value =
            got[at4[0] * stride[0] + at4[1] * stride[1] + at4[2] * stride[2] + at4[3] * stride[3]];
        cr_assert_float_eq(value, sums[n], tolerance, "%s %d,%d,%d,%d: %g, not %g", name, at4[0],
                           at4[1], at4[2], at4[3], value, sums[n]);
    }
    free(sums);
}

static const bool none[4];

static void expect_all(world *x)
{
    reference(x);
    run(x);
    expect_gradient("o", x->t.o, x->p.o_strides, x->o, (int[4]){ B, HQ, SQ, DV }, none, 1e-5);
    for (int n = 0; n < B * HQ * SQ; n++) {
        const float got =
            x->t.stats[n / HQ / SQ * x->p.stats_strides[0] + n / SQ % HQ * x->p.stats_strides[1] +
                       n % SQ * x->p.stats_strides[2]];
        cr_assert(got == (float)x->lse[n] || fabs((double)got - x->lse[n]) < 2e-5,
                  "stats %d: %g, not %g", n, got, x->lse[n]);
    }
    expect_gradient("dq", x->t.dq, x->p.dq_strides, x->dq, (int[4]){ B, HQ, SQ, D }, none, 3e-5);
    expect_gradient("dk", x->t.dk, x->p.dk_strides, x->dk, (int[4]){ B, HK, SK, D }, none, 1e-4);
    expect_gradient("dv", x->t.dv, x->p.dv_strides, x->dv, (int[4]){ B, HK, SK, DV }, none, 1e-4);
}

/* ---- bias
 * ----------------------------------------------------------------------------------------------------------------------------
 */

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
        world x = make();
        const bool summed[4] = { !(shape & 1), !(shape & 2), !(shape & 4), !(shape & 8) };
        x.p.has_bias = x.p.dbias = 1, x.p.padding = shape % 3 == 0, x.p.has_right = shape % 2,
        x.p.window_right = 5;
        x.p.bias_dim[0] = shape & 1 ? B : 1, x.p.bias_dim[1] = shape & 2 ? HQ : 1;
        x.p.bias_dim[2] = shape & 4 ? SQ : 1, x.p.bias_dim[3] = shape & 8 ? SK : 1;
        settle(&x);
        expect_all(&x);
        expect_gradient("dbias", x.t.dbias, x.p.dbias_strides, x.ds, (int[4]){ B, HQ, SQ, SK },
                        summed, 1e-4);
    }
}

Test(cpu_features, a_bias_with_stride_0_has_a_gradient_for_each_element_or_their_sum)
{
    for (int sum = 0; sum < 2; sum++) {
        world x = make();
        x.p.has_bias = x.p.dbias = 1;
        memcpy(x.p.bias_dim, (int64_t[4]){ B, HQ, SQ, SK }, sizeof x.p.bias_dim);
        memcpy(x.p.bias_strides, (int64_t[4]){ SQ * SK, 0, SK, 1 }, sizeof x.p.bias_strides);
        memcpy(x.p.dbias_strides,
               (int64_t[4]){ (sum ? 1 : HQ) * SQ * SK, sum ? 0 : SQ * SK, SK, 1 },
               sizeof x.p.dbias_strides);
        settle(&x);
        expect_all(&x);
        expect_gradient("dbias", x.t.dbias, x.p.dbias_strides, x.ds, (int[4]){ B, HQ, SQ, SK },
                        (bool[4]){ false, sum, false, false }, 1e-4);
    }
}

Test(cpu_features, a_bias_in_bf16_is_read_and_its_gradient_rounded_once)
{
    world x = make();
    uint16_t *bias = calloc(HQ * SQ * SK, 2), *dbias = calloc(HQ * SQ * SK, 2);
    float *same = malloc(HQ * SQ * SK * sizeof *same);
    for (int n = 0; n < HQ * SQ * SK; n++) {
        uint32_t bits;
        memcpy(&bits, (const float *)x.t.bias + n, 4);
        bias[n] = (uint16_t)(bits >> 16), bits &= 0xffff0000u;
        memcpy(&same[n], &bits, 4);
    }
    x.p.has_bias = x.p.dbias = 1;
    settle(&x);
    x.t.bias = same;
    reference(&x);
    x.p.bias_dtype = FATTN_BF16, x.t.bias = bias, x.t.dbias = dbias;
    run(&x);
    for (int n = 0; n < HQ * SQ * SK; n++) {
        const uint32_t bits = (uint32_t)dbias[n] << 16;
        float got;
        memcpy(&got, &bits, 4);
        const double want = x.ds[n] + x.ds[HQ * SQ * SK + n];
        cr_assert_float_eq(got, want, fabs(want) * 0x1.01p-8 + 1e-6, "%d: %g, not %g", n, got,
                           want);
    }
}

Test(cpu_features, a_key_that_the_bias_hides_cannot_matter)
{
    world x = make();
    x.p.has_bias = x.p.dbias = 1;
    settle(&x);
    for (int row = 0; row < HQ * SQ; row++)
        ((float *)(uintptr_t)x.t.bias)[row * SK + 17] = -INFINITY;
    for (int d = 0; d < DV; d++)
        ((float *)(uintptr_t)x.t.v)[(17 * HK) * DV + d] = NAN;
    expect_all(&x);
}

Test(cpu_features, a_key_past_the_length_or_the_band_is_not_read)
{
    world x = make();
    x.p.padding = 1, x.p.has_right = 1, x.p.has_bias = 1;
    settle(&x);
    for (int j = 0; j < SK; j++)
        for (int d = 0; d < DV * HK; d++)
            if (j >= 90 ||
                j >= SQ) /* entry 0: past the length; or of no row that is there, top-left causal */
                ((float *)(uintptr_t)x.t.v)[j * HK * DV + d] = NAN;
    for (int d = 0; d < D * HK; d++)
        ((float *)(uintptr_t)x.t.k)[(SK + 80) * HK * D + d] = NAN; /* entry 1 has 33 rows */
    expect_all(&x);
}

/* ---- lengths and layouts
 * ---------------------------------------------------------------------------------------------------------------
 */

Test(cpu_features, one_length_for_every_batch_entry)
{
    world x = make();
    x.p.padding = x.p.len_broadcast = 1, x.len_q[0] = 41, x.len_kv[0] = 77, x.len_q[1] = -5,
    x.len_kv[1] = 1 << 30; /* not read */
    settle(&x);
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
        settle(&x);
        expect_all(&x);
    }
}

/* ---- broadcast inputs
 * ------------------------------------------------------------------------------------------------------------------
 */

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
    reference(&x);
    run(&x);
    expect_gradient("dq", x.t.dq, x.p.dq_strides, x.dq, (int[4]){ B, HQ, SQ, D }, summed, 1e-4);
    expect_gradient("dk", x.t.dk, x.p.dk_strides, x.dk, (int[4]){ B, HK, SK, D }, summed, 1e-3);
    expect_gradient("dv", x.t.dv, x.p.dv_strides, x.dv, (int[4]){ B, HK, SK, DV }, summed, 1e-3);
}

Test(cpu_features, gradients_of_broadcast_inputs_are_sums_where_their_strides_say_so)
{
    for (unsigned zero = 0; zero < 8; zero++)
        for (int sum = 0; sum < 2; sum++)
            expect_broadcast(zero, sum);
}

/* ---- score_mod
 * --------------------------------------------------------------------------------------------------------------------------
 */

static double cap(double s, int b, int h, int i, int j)
{
    (void)b, (void)h, (void)i, (void)j;
    return 2 * tanh(s / 2);
}

static double cap_slope(double s, int b, int h, int i, int j)
{
    (void)b, (void)h, (void)i, (void)j;
    return 1 - tanh(s / 2) * tanh(s / 2);
}

Test(cpu_features, softcap_with_a_bias_and_a_mask)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 2), FATTN_OK);
    x.mod = cap, x.mod_slope = cap_slope, x.p.score_mod = mod;
    x.p.has_bias = x.p.dbias = 1, x.p.has_right = 1, x.p.align = FATTN_BOTTOM_RIGHT,
    x.p.padding = 1;
    settle(&x);
    expect_all(&x);
    expect_gradient("dbias", x.t.dbias, x.p.dbias_strides, x.ds, (int[4]){ B, HQ, SQ, SK },
                    (bool[4]){ true, false, false, false }, 1e-4);
    fattn_score_mod_destroy(mod);
}

static double below(double s, int b, int h, int i, int j)
{
    (void)b, (void)h;
    return j <= i ? s : -INFINITY;
}

static double below_slope(double s, int b, int h, int i, int j)
{
    (void)s, (void)b, (void)h;
    return j <= i;
}

Test(cpu_features, causal_as_a_score_mod_is_causal)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_causal(&mod), FATTN_OK);
    x.mod = below, x.mod_slope = below_slope, x.p.score_mod = mod;
    settle(&x);
    for (int d = 0; d < DV * HK; d++)
        ((float *)(uintptr_t)x.t.v)[SQ * HK * DV + d] = NAN; /* a key that no row sees */
    expect_all(&x);
    fattn_score_mod_destroy(mod);
}

static float per_head[HQ], per_row[B * SQ], per_key[SK];

static double bent(double s, int b, int h, int i, int j)
{
    return s * (double)per_head[h] + sin(s + (double)per_row[b * SQ + i]) +
           (double)(per_key[j] * per_key[j]);
}

static double bent_slope(double s, int b, int h, int i, int j)
{
    (void)j;
    return (double)per_head[h] + cos(s + (double)per_row[b * SQ + i]);
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

static void expect_tensor(const char *name, const float *got, const double *want,
                          const int64_t dim[4])
{
    const int extent[4] = { B, HQ, SQ, SK };
    const bool summed[4] = { dim[0] == 1, dim[1] == 1, dim[2] == 1, dim[3] == 1 };
    const int64_t stride[4] = { dim[1] * dim[2] * dim[3], dim[2] * dim[3], dim[3], 1 };
    expect_gradient(name, got, stride, want, extent, summed, 2e-4);
}

Test(cpu_features, gradients_of_a_score_mods_tensors_are_sums_over_what_they_broadcast)
{
    world x = make();
    fattn_score_mod *mod;
    float *three[3] = { per_head, per_row, per_key }, dhead[HQ], drow[B * SQ], dkey[SK];
    const int counts[3] = { HQ, B * SQ, SK };
    for (unsigned i = 0; i < 3; i++) {
        float *values = noise((size_t)counts[i], 20 + i);
        memcpy(three[i], values, (size_t)counts[i] * sizeof *values);
        free(values);
    }
    cr_assert_eq(fattn_score_mod_create(&mod, bend, NULL, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    x.mod = bent, x.mod_slope = bent_slope, x.p.score_mod = mod, x.p.mod_gradients = 7,
    x.p.padding = 1, x.p.has_right = 1;
    settle(&x);
    x.t.mod_tensors = (const void *const[]){ per_head, per_row, per_key };
    x.t.mod_gradients = (void *const[]){ dhead, drow, dkey };
    expect_all(&x);
    double *want[3];
    for (int i = 0; i < 3; i++)
        want[i] = calloc(B * HQ * SQ * SK, 8);
    for (int n = 0; n < B * HQ * SQ * SK; n++) {
        const int b = n / SK / SQ / HQ, h = n / SK / SQ % HQ, i = n / SK % SQ, j = n % SK;
        const double s = raw_score(&x, b, h, i, j);
        want[0][n] = x.ds[n] * s, want[1][n] = x.ds[n] * cos(s + (double)per_row[b * SQ + i]),
        want[2][n] = x.ds[n] * 2 * (double)per_key[j];
    }
    expect_tensor("head", dhead, want[0], (int64_t[4]){ 1, HQ, 1, 1 });
    expect_tensor("row", drow, want[1], (int64_t[4]){ B, 1, SQ, 1 });
    expect_tensor("key", dkey, want[2], (int64_t[4]){ 1, 1, 1, SK });
    fattn_score_mod_destroy(mod);
}

/* ---- order
 * ------------------------------------------------------------------------------------------------------------------------------
 */

Test(cpu_features, results_do_not_depend_on_the_number_of_threads)
{
    world x = make();
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_softcap(&mod, 3), FATTN_OK);
    x.p.score_mod = mod, x.p.has_bias = x.p.dbias = 1;
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
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    fattn_decision *decision;
    fattn_plan *plan = NULL;
    world x = make();
    options.device_kind = FATTN_DEVICE_CPU;
    cr_assert_eq(fattn_context_create(&context, &options), FATTN_OK);
    x.p.spelling = FATTN_SPELLING_SINGLE;
    cr_assert_eq(fattn_decide(&decision, context, &x.p, FATTN_ASK_A), FATTN_OK);
    cr_expect_not(fattn_decision_supported(decision));
    cr_expect_eq(fattn_plan_create(&plan, context, &x.p, NULL), FATTN_UNSUPPORTED);
    cr_expect_null(plan);
    fattn_decision_destroy(decision);
    fattn_context_destroy(context);
}
