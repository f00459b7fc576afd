#include "cpu_call.h"

#include <math.h>

#include "cpu/kernels/cpu_number.h"
#include "cpu_tile.h"
#include "liars/lies.h"
#include "problem/auxiliary.h"
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

static void add_mx_factors(fattn__factors *f, const fattn_problem *p,
                           const fattn__dropping *dropping)
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
        add_mx_factors(&f, p, dropping);
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

static int64_t blocks(int64_t extent)
{
    return (extent + 31) / 32;
}

/* Gives a block-scaled tensor its factors; rows are its rows or keys, channels its last dimension.
 */
static void add_blocks(fattn__view *v, const uint8_t *factors, int64_t heads, int64_t rows,
                       int64_t channels, bool along_rows)
{
    const int64_t lines = along_rows ? channels : rows,
                  columns = blocks(along_rows ? rows : channels);
    v->blocks = (fattn__blocks){ .factors = factors,
                                 .heads = heads,
                                 .matrix = fattn__scale_factors(lines, columns),
                                 .column_tiles = (columns + 3) / 4,
                                 .along_rows = along_rows };
}

/* Another copy of a tensor, in a type of its own. */
static fattn__view second(const fattn_problem *p, const fattn_tensors *t, fattn__role which,
                          const void *data, int32_t dtype)
{
    fattn__view v = fattn__view_of(p, t, which, data);
    v.dtype = dtype;
    return v;
}

static void add_mx(fattn__call *c)
{
    const fattn_problem *p = c->p;
    const fattn_tensors *t = c->t;
    const bool backward = p->pass == FATTN_BACKWARD;
    add_blocks(&c->q, t->sf_q, p->heads_q, p->seq_q, p->dim_qk, false);
    add_blocks(&c->k, t->sf_k, p->heads_k, p->seq_kv, p->dim_qk, false);
    add_blocks(&c->v, t->sf_v, p->heads_v, p->seq_kv, p->dim_v, !backward);
    if (!backward)
        return;
    add_blocks(&c->d_o, t->sf_do, p->heads_q, p->seq_q, p->dim_v, false);
    c->do_16 = second(p, t, FATTN__ROLE_DO, t->do_16, p->o_dtype);
    c->q_t = second(p, t, FATTN__ROLE_Q, t->q_t, p->dtype);
    add_blocks(&c->q_t, t->sf_q_t, p->heads_q, p->seq_q, p->dim_qk, true);
    c->k_t = second(p, t, FATTN__ROLE_K, t->k_t, p->dtype);
    add_blocks(&c->k_t, t->sf_k_t, p->heads_k, p->seq_kv, p->dim_qk, true);
    c->do_t = second(p, t, FATTN__ROLE_DO, t->do_t, p->do_dtype);
    add_blocks(&c->do_t, t->sf_do_t, p->heads_q, p->seq_q, p->dim_v, true);
}

static void add_angles(const fattn_problem *p, fattn__view *v, const float *angles)
{
    v->angles = angles;
    v->lanes = p->rope_dim;
}

/* A planted fault: O is written as if it were dense. */
static void ignore_gaps(fattn__call *c)
{
    const int64_t dim[4] = { c->p->batch, c->p->heads_q, c->p->seq_q, c->p->dim_v };
    fattn__dense_strides(dim, "bshd", c->dense_o);
    c->o.stride = c->dense_o;
}

void fattn__call_load_keys(const fattn__call *c, bool of_v, float *dst, const fattn__scores *at)
{
    const fattn_problem *p = c->p;
    const int64_t dim = of_v ? p->dim_v : p->dim_qk, step = fattn__padded(dim);
    const fattn__view *from = of_v ? &c->v : &c->k;
    if (FATTN__TESTING)
        fattn__liar_load_keys(dst, step, from, p,
                              (const int64_t[4]){ at->b, at->h, at->key0, of_v }, at->keys, dim,
                              at->band->exist);
    else
        fattn__view_load(dst, step, from, at->b,
                         at->h / (p->heads_q / (of_v ? p->heads_v : p->heads_k)), at->key0,
                         at->keys, dim);
}

void fattn__call_of(fattn__call *c, const fattn_problem *p, const fattn_tensors *t)
{
    *c = (fattn__call){ .p = p,
                        .t = t,
                        .kernels = fattn__like_gpu.on ? fattn__gpu_kernels(p->dtype)
                                                      : fattn__cpu_kernels() };
#define VIEW(field, role) c->field = fattn__view_of(p, t, FATTN__ROLE_##role, NULL);
    VIEW(q, Q)
    VIEW(k, K)
    VIEW(v, V)
    VIEW(o, O)
    VIEW(stats, STATS)
    VIEW(d_o, DO)
    VIEW(dq, DQ)
    VIEW(dk, DK)
    VIEW(dv, DV)
#undef VIEW
    if (FATTN__LIE(GAP_IGNORED))
        ignore_gaps(c);
    if (fattn__dtype_is_mx(p->dtype))
        add_mx(c);
    if (p->rope) {
        add_angles(p, &c->q, t->rope_q), add_angles(p, &c->q_t, t->rope_q);
        add_angles(p, &c->k, t->rope_k), add_angles(p, &c->k_t, t->rope_k);
    }
    c->dropping = fattn__dropping_of(p, t);
    c->factors = fattn__factors_of(p, t, &c->dropping);
}
