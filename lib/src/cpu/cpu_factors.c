#include "cpu_factors.h"

#include <math.h>

#include "cpu/kernels/cpu_number.h"
#include "liars/lies.h"
#include "problem/layout.h"

/* The power of two that makes `most` fit the type: 1 where it does. */
static float fitting(int32_t dtype, float most)
{
    float power = 1.0f;
    while (most * power > fattn__number_most(dtype))
        power *= 0.5f;
    return power;
}

/* What 8-bit P is multiplied with, so that exponentials above 1 fit. */
static float lag(void)
{
    return fattn__like_gpu.on && !FATTN__LIE(P_SATURATES) ? exp2f(-fattn__like_gpu.lazy) : 1.0f;
}

static void add_fp8(fattn__factors *f, const fattn_problem *p, const fattn_tensors *t,
                    const fattn__dropping *dropping)
{
    const float fits = fitting(p->dtype, *t->scale_s * fmaxf(1.0f, dropping->scale)),
                power = fits * (p->pass == FATTN_FORWARD ? lag() : 1.0f);
    f->narrow = p->dtype;
    f->narrow_ds = p->do_dtype;
    f->eight_bit = true;
    f->score *= *t->descale_q * *t->descale_k;
    f->p_scale = *t->scale_s * power;
    f->o = *t->descale_s * *t->descale_v / power;
    if (FATTN__LIE(SCALE_S_IGNORED)) {
        f->p_scale = power;
        f->o = *t->descale_v / power;
    }
    if (p->pass == FATTN_FORWARD) {
        f->scale_o = fattn__dtype_is_fp8(p->o_dtype) ? *t->scale_o : 1.0f;
        return;
    }
    f->dot *= (fattn__dtype_is_fp8(p->o_dtype) ? *t->descale_o : 1.0f) * *t->descale_do;
    f->dp = *t->descale_do * *t->descale_v;
    f->ds_scale = f->attn_scale * *t->scale_dp;
    f->dq = *t->descale_dp * *t->descale_k;
    f->dk = *t->descale_dp * *t->descale_q;
    f->dv = *t->descale_s * *t->descale_do / power;
    if (fattn__dtype_is_fp8(p->grad_dtype)) {
        f->scale_dq = *t->scale_dq;
        f->scale_dk = *t->scale_dk;
        f->scale_dv = *t->scale_dv;
    }
}

static void add_mx(fattn__factors *f, const fattn_problem *p, const fattn__dropping *dropping)
{
    const float scale = p->pass == FATTN_FORWARD ? 16.0f : 256.0f,
                power = fitting(p->dtype, scale * fmaxf(1.0f, dropping->scale));
    f->narrow = p->dtype;
    f->narrow_ds = p->do_dtype;
    f->eight_bit = true;
    f->block_scaled = true;
    f->p_scale = scale * power;
    f->o = f->dv = 1.0f / f->p_scale;
    f->ds_scale = f->attn_scale;
    f->dq = f->dk = 1.0f;
}

/* 1, or what a planted fault makes of it. */
static double bent_scale(const fattn_problem *p)
{
    const bool forward = p->pass == FATTN_FORWARD;
    return forward && FATTN__LIE(SCALE_1PCT)      ? 1.01
           : forward && FATTN__LIE(SCALE_1E3)     ? 1.001
           : forward && FATTN__LIE(SCALE_1E5)     ? 1.00001
           : !forward && FATTN__LIE(B_SCALE_1PCT) ? 1.01
           : fattn__like_gpu.scale_factor > 0.0   ? fattn__like_gpu.scale_factor
                                                  : 1.0;
}

fattn__factors fattn__factors_of(const fattn_problem *p, const fattn_tensors *t,
                                 const fattn__dropping *dropping)
{
    const double asked = p->scale_in_memory ? (double)*t->attn_scale : p->attn_scale;
    const float scale = (float)(asked * bent_scale(p));
    fattn__factors f = { .score = scale,
                         .o = 1,
                         .dot = dropping->of_slope,
                         .dp = 1,
                         .dq = scale,
                         .dk = scale,
                         .dv = 1,
                         .p_scale = 1,
                         .ds_scale = 1,
                         .scale_o = 1,
                         .scale_dq = 1,
                         .scale_dk = 1,
                         .scale_dv = 1,
                         .attn_scale = scale };
    if (fattn__like_gpu.on && p->dtype != FATTN_F32) {
        f.narrow = f.narrow_ds = p->dtype;
        f.ds_scale = fattn__like_gpu.scale_last ? 1.0f : scale;
        f.dq = f.dk = fattn__like_gpu.scale_last ? scale : 1.0f;
    }
    if (fattn__dtype_is_fp8(p->dtype))
        add_fp8(&f, p, t, dropping);
    else if (fattn__dtype_is_mx(p->dtype))
        add_mx(&f, p, dropping);
    if (FATTN__LIE(B_DQ_NOSCALE))
        f.dq /= scale;
    return f;
}

void fattn__narrow_p(const fattn__factors *f, const fattn__scores *at, float *p)
{
    for (int64_t i = 0; i < at->rows && f->narrow != 0; i++)
        for (int64_t j = 0; j < at->keys; j++) {
            float *x = p + i * at->row_step + j * at->key_step;
            *x = fattn__liar_cast(f->narrow, *x * f->p_scale, false);
        }
}

/* `count` numbers with one factor, a power of two. */
static void narrow_block(const fattn__factors *f, float *x, int64_t step, int64_t count)
{
    float most = 0, factor = 1;
    int exponent = 0;
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(x[i * step] * f->ds_scale));
    if (most > 0 && isfinite(most)) {
        exponent = ilogbf(most / fattn__number_most(f->narrow_ds));
        exponent += ldexpf(fattn__number_most(f->narrow_ds), exponent) < most;
        exponent = exponent < -127 ? -127 : exponent;
    }
    factor = ldexpf(1.0f, exponent);
    for (int64_t i = 0; i < count; i++)
        x[i * step] =
            fattn__number_round(f->narrow_ds, x[i * step] * f->ds_scale / factor) * factor;
}

static void narrow_blocks(const fattn__factors *f, const fattn__scores *at, float *ds,
                          bool over_rows)
{
    const int64_t lines = over_rows ? at->keys : at->rows,
                  line_step = over_rows ? at->key_step : at->row_step;
    const int64_t count = over_rows ? at->rows : at->keys,
                  step = over_rows ? at->row_step : at->key_step;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t first = 0; first < count; first += 32)
            narrow_block(f, ds + line * line_step + first * step, step,
                         count - first < 32 ? count - first : 32);
}

void fattn__narrow_ds(const fattn__factors *f, const fattn__scores *at, float *ds, bool over_rows,
                      float *amax)
{
    if (f->narrow_ds == 0)
        return;
    for (int64_t i = 0; i < at->rows; i++)
        for (int64_t j = 0; j < at->keys; j++) {
            float *x = ds + i * at->row_step + j * at->key_step;
            if (amax != NULL)
                *amax = fmaxf(*amax, fabsf(*x * f->attn_scale));
            if (!f->block_scaled)
                *x = fattn__liar_cast(f->narrow_ds, *x * f->ds_scale, true);
        }
    if (f->block_scaled)
        narrow_blocks(f, at, ds, over_rows);
}

void fattn__scale_output(float *x, int64_t rows, int64_t step, int64_t dim, float scale,
                         float *amax)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < dim; d++) {
            *amax = fmaxf(*amax, fabsf(x[i * step + d]));
            x[i * step + d] *= scale;
        }
}
