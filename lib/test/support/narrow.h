/* Scenes of 8-bit types for surface.h: codes with scales, forward and backward, and the largest
 * magnitudes; block-scaled types. */
#ifndef FATTN_TEST_NARROW_H
#define FATTN_TEST_NARROW_H

#include "surface.h"

#include "problem/auxiliary.h"

static inline float *scalar(float x)
{
    float *out = aligned_alloc(16, 16);
    *out = x;
    return out;
}

static inline void expect_amax(const char *name, const float *got, const double due[3])
{
    cr_assert((double)*got >= due[1] * (1 - 1e-4) && (double)*got <= due[2] * (1 + 1e-4) &&
                  due[0] > 0,
              "%s: %g, not %g (%g to %g)", name, (double)*got, due[0], due[1], due[2]);
}

/* What a right kernel with fp32 sums may do; not what Hopper does. */
static inline void settle_rounding(world *x)
{
    x->rounding.ua = 0x1p-23, x->rounding.cw = x->rounding.cl = 1, x->rounding.acc_pv = 0,
    x->rounding.thr = 0, x->rounding.chunk = 16;
    x->rounding.partials_cast = false;
}

/* Scales that are not 1, no powers of two, and not each other's inverse. */
static inline world scaled(int32_t dtype)
{
    world x = make();
    fattn_tensors *t = &x.t;
    x.p.dtype = dtype;
    t->descale_q = scalar(0.7f), t->descale_k = scalar(1.3f), t->descale_v = scalar(0.45f),
    t->descale_s = scalar(0.0045f), t->scale_s = scalar(190.0f);
    t->scale_o = scalar(37.0f), t->descale_o = scalar(0.027f), t->descale_do = scalar(0.9f),
    t->descale_dp = scalar(0.011f), t->scale_dp = scalar(77.0f);
    t->scale_dq = scalar(21.0f), t->scale_dk = scalar(11.0f), t->scale_dv = scalar(13.0f);
    t->amax_s = scalar(NAN), t->amax_o = scalar(NAN), t->amax_dp = scalar(NAN),
    t->amax_dq = scalar(NAN), t->amax_dk = scalar(NAN), t->amax_dv = scalar(NAN);
    x.r.scales = (fref_scales){ .scale_s = 190,
                                .descale_s = (double)*t->descale_s,
                                .scale_dp = 77,
                                .descale_dp = (double)*t->descale_dp,
                                .scale_o = 37,
                                .scale_dq = 21,
                                .scale_dk = 11,
                                .scale_dv = 13 };
    x.scale_o = 37, x.scale_dq = 21, x.scale_dk = 11, x.scale_dv = 13;
    return x;
}

static inline void expect_scaled(world *x)
{
    settle(x);
    settle_rounding(x);
    x->in[FATTN__ROLE_Q].descale = (double)*x->t.descale_q,
    x->in[FATTN__ROLE_K].descale = (double)*x->t.descale_k;
    x->in[FATTN__ROLE_V].descale = (double)*x->t.descale_v,
    x->in[FATTN__ROLE_O].descale = x->p.o_dtype == FATTN_BF16 ? 1 : (double)*x->t.descale_o;
    x->in[FATTN__ROLE_DO].descale = (double)*x->t.descale_do;
    expect_forward(x);
    expect_amax("amax_s", x->t.amax_s, x->forward.amax_s);
    expect_amax("amax_o", x->t.amax_o, x->forward.o.amax);
    if (x->p.pass == FATTN_FORWARD)
        return;
    expect_backward(x);
    expect_amax("amax_dp", x->t.amax_dp, x->backward.amax_dp);
    expect_amax("amax_dq", x->t.amax_dq, x->backward.dq.amax);
    expect_amax("amax_dk", x->t.amax_dk, x->backward.dk.amax);
    expect_amax("amax_dv", x->t.amax_dv, x->backward.dv.amax);
}

/* ---- block-scaled
 * ----------------------------------------------------------------------------------------------------------------------
 */

/* Every line (row, or channel where blocks run along the rows) has factors of its own; otherwise
 * each tile of 32 x 32 has one, so that both quantisations are the same numbers. */
static bool each_line;

static inline int exponent_of(int64_t bh, int64_t line, int64_t block, bool along_rows)
{
    const int64_t row = along_rows ? block : line / 32, channel = along_rows ? line / 32 : block;
    return (int)(each_line ? (bh + line * 7 + line / 16 + block * 2) % 3
                           : (bh * 5 + row * 3 + channel) % 3) -
           1;
}

static inline uint8_t *factors_of(int64_t heads, int64_t rows, int64_t channels, bool along_rows)
{
    const int64_t lines = along_rows ? channels : rows,
                  blocks = ((along_rows ? rows : channels) + 31) / 32,
                  matrix = fattn__scale_factors(lines, blocks);
    uint8_t *out = aligned_alloc(64, (size_t)(B * heads * matrix + 63) / 64 * 64);
    memset(out, 0xff, (size_t)(B * heads * matrix));
    for (int64_t bh = 0; bh < B * heads; bh++)
        for (int64_t line = 0; line < lines; line++)
            for (int64_t block = 0; block < blocks; block++) {
                const int64_t tiles = (blocks + 3) / 4;
                const int64_t at = bh * matrix + (line / 128 * tiles + block / 4) * 512 +
                                   line % 32 * 16 + line / 32 % 4 * 4 + block % 4;
                out[at] = (uint8_t)(127 + exponent_of(bh, line, block, along_rows));
            }
    return out;
}

static inline double factor_of(int64_t bh, int64_t row, int64_t channel, bool along_rows)
{
    return ldexp(1, along_rows ? exponent_of(bh, channel, row / 32, true)
                               : exponent_of(bh, row, channel / 32, false));
}

/* The reference reads the numbers; `copy` gets another copy of the codes, dense in memory order
 * b,s,h,d, and `wide` the numbers in bf16. */
static inline void dequantise(world *x, fattn__role which, int64_t heads, int64_t seq, int64_t dim,
                              bool along_rows, void **copy, void **wide)
{
    const int64_t n = B * heads * seq * dim;
    float *out = calloc((size_t)n, 4);
    uint8_t *codes = aligned_alloc(64, (size_t)(n + 63) / 64 * 64);
    uint16_t *halves = aligned_alloc(64, (size_t)(2 * n + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++) {
        const int64_t d = i % dim, s = i / dim % seq, h = i / dim / seq % heads,
                      b = i / dim / seq / heads, to = ((b * seq + s) * heads + h) * dim + d;
        uint32_t bits;
        out[i] = (float)(number(x->dense[which], x->p.dtype, i) *
                         factor_of(b * heads + h, s, d, along_rows));
        codes[to] = ((uint8_t *)x->dense[which])[i];
        memcpy(&bits, &out[i], 4);
        halves[to] = (uint16_t)(bits >> 16);
    }
    x->in[which] = (fref_tensor){ .data = out,
                                  .type = FREF_F32,
                                  .stride = { heads * seq * dim, seq * dim, dim, 1 } };
    if (copy != NULL)
        *copy = codes;
    if (wide != NULL)
        *wide = halves;
}

static inline void expect_block_scaled(int32_t dtype, bool causal)
{
    world x = make();
    fattn_tensors *t = &x.t;
    void *q_t, *k_t, *do_t, *do_16;
    x.p.dtype = dtype, x.p.has_right = causal, x.p.padding = causal;
    settle(&x);
    /* dO is of o_dtype in the problem, its codes of dtype. */
    random_elements(x.dense[FATTN__ROLE_DO], dtype, (int64_t)B * HQ * SQ * DV);
    for (int64_t i = 0; i < (int64_t)B * HQ * SQ * DV; i++)
        ((uint8_t *)x.memory[FATTN__ROLE_DO])
            [((i / DV / SQ / HQ * SQ + i / DV % SQ) * HQ + i / DV / SQ % HQ) * DV + i % DV] =
                ((uint8_t *)x.dense[FATTN__ROLE_DO])[i];
    x.rounding = fref_rounding_of(fref_of(dtype), FREF_BF16);
    settle_rounding(&x);
    dequantise(&x, FATTN__ROLE_Q, HQ, SQ, D, false, &q_t, NULL),
        dequantise(&x, FATTN__ROLE_K, HK, SK, D, false, &k_t, NULL);
    dequantise(&x, FATTN__ROLE_V, HK, SK, DV, true, NULL, NULL),
        dequantise(&x, FATTN__ROLE_DO, HQ, SQ, DV, false, &do_t, &do_16);
    t->q_t = q_t, t->k_t = k_t, t->do_t = do_t, t->do_16 = do_16;
    t->sf_q = factors_of(HQ, SQ, D, false), t->sf_k = factors_of(HK, SK, D, false),
    t->sf_v = factors_of(HK, SK, DV, true);
    t->sf_do = factors_of(HQ, SQ, DV, false), t->sf_q_t = factors_of(HQ, SQ, D, true),
    t->sf_k_t = factors_of(HK, SK, D, true);
    t->sf_do_t = factors_of(HQ, SQ, DV, true);
    t->amax_o = scalar(NAN), t->amax_dq = scalar(NAN), t->amax_dk = scalar(NAN),
    t->amax_dv = scalar(NAN);
    expect_forward(&x);
    expect_amax("amax_o", t->amax_o, x.forward.o.amax);
    if (each_line)
        return;
    t->sf_v = factors_of(HK, SK, DV, false);
    expect_backward(&x);
    expect_amax("amax_dq", t->amax_dq, x.backward.dq.amax);
    expect_amax("amax_dk", t->amax_dk, x.backward.dk.amax);
    expect_amax("amax_dv", t->amax_dv, x.backward.dv.amax);
}

#endif
