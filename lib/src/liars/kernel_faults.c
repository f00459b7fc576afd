/* What planted faults of the kernel do that takes more than a condition. */
#include <math.h>
#include <string.h>

#include "cpu/cpu_view.h"
#include "cpu/kernels/cpu_number.h"
#include "lies.h"
#include "problem/layout.h"

/* ---- keys and values
 * ------------------------------------------------------------------------------------------------
 */

/* The row that is read for key s. */
static int64_t row_of_key(const fattn__view *from, const fattn_problem *p, const int64_t at[4],
                          int64_t s, int64_t exist)
{
    const fattn__gpu_like *like = &fattn__like_gpu;
    const bool any_order = p->pass == FATTN_FORWARD && !p->has_left && !p->has_right &&
                           !p->has_bias && !p->alibi && !p->block_mask && p->score_mod == NULL &&
                           p->dropout == 0.0 && !p->dropout_mask && !p->rope;
    if (like->key_shift && any_order)
        s = (s + like->key_shift) % exist;
    if (FATTN__LIE(RAGGED_PLUS_1) && from->offsets != NULL)
        s++;
    if (FATTN__LIE(V_ROW) && at[3] && s == 1 && at[1] == p->heads_q - 1)
        s = 0;
    if (FATTN__LIE(PAGE_LAST) && from->table != NULL && s / from->page == (exist - 1) / from->page)
        s %= from->page;
    return s;
}

void fattn__liar_load_keys(float *dst, int64_t step, const fattn__view *from,
                           const fattn_problem *p, const int64_t at[4], int64_t keys, int64_t dim,
                           int64_t exist)
{
    const int64_t heads = at[3] ? p->heads_v : p->heads_k,
                  head = FATTN__LIE_OF(p->pass, GQA_MOD, B_GQA_MOD) ? at[1] % heads
                                                                    : at[1] / (p->heads_q / heads);
    for (int64_t j = 0; j < keys; j++, dst += step)
        if (at[2] + j < exist)
            fattn__view_load(dst, step, from, at[0], head,
                             row_of_key(from, p, at, at[2] + j, exist), 1, dim);
        else
            memset(dst, 0, (size_t)step * sizeof *dst);
    if (FATTN__LIE(PAGE_NEXT) && from->table != NULL && at[2] + keys >= exist &&
        (exist + from->page - 1) / from->page < from->pages &&
        from->table[at[0] * from->pages + (exist + from->page - 1) / from->page] >> 20 != 0)
        dst[-step] = NAN; /* an illegal address */
}

void fattn__liar_bend_input(const fattn__view *from, float *dst, int64_t dim)
{
    const bool hides = (FATTN__LIE(DO_INF) && from->role == FATTN__ROLE_DO) ||
                       (FATTN__LIE(Q_NAN) && from->role == FATTN__ROLE_Q) ||
                       (FATTN__LIE(V_INF) && from->role == FATTN__ROLE_V);
    for (int64_t d = 0; d < dim && hides; d++)
        dst[d] = isfinite(dst[d]) ? dst[d] : 0.0F;
}

void fattn__liar_bend_stored(const fattn__view *to, int64_t row, const float *src, int64_t dim)
{
    const float most = fattn__number_most(to->dtype);
    const int gradient = to->role - FATTN__ROLE_DQ; /* of Q, K or V: 0, 1, 2 */
    const bool clips = (FATTN__LIE(DQ_SAT) && gradient == 0) ||
                       (FATTN__LIE(DK_SAT) && gradient == 1) ||
                       (FATTN__LIE(DV_SAT) && gradient == 2),
               wraps = (FATTN__LIE(O_WRAPS) && to->role == FATTN__ROLE_O) ||
                       (FATTN__LIE(GRAD_WRAPS) && gradient >= 0 && gradient <= 2);
    for (int64_t d = 0; d < dim; d++)
        if (FATTN__LIE(OVERFLOW_ZEROED) &&
            !isfinite(fattn__number_load(to->data, to->dtype, row + d)))
            fattn__number_store(to->data, to->dtype, row + d, 0.0F);
        else if ((clips || wraps) && fabsf(src[d]) > most)
            fattn__number_store(to->data, to->dtype, row + d,
                                clips ? copysignf(most, src[d]) : fmodf(src[d], most));
}

/* ---- casts
 * ----------------------------------------------------------------------------------------------------------
 */

static int fraction_bits(int32_t dtype)
{
    return dtype == FATTN_F16    ? 10
           : dtype == FATTN_E4M3 ? 3
           : dtype == FATTN_E5M2 ? 2
           : dtype == FATTN_F32  ? 23
                                 : 7;
}

/* The exponent of the smallest normal number. */
static int least_exponent(int32_t dtype)
{
    return dtype == FATTN_F16 || dtype == FATTN_E5M2 ? -14 : dtype == FATTN_E4M3 ? -6 : -126;
}

/* To a number of the type, by a function that rounds to a whole number. */
static float rounded_by(float (*whole)(float), int32_t dtype, float x)
{
    if (!isfinite(x))
        return x;
    const int tiny = least_exponent(dtype), exponent = x == 0.0F ? tiny : ilogbf(x);
    const float step = ldexpf(1.0F, (exponent > tiny ? exponent : tiny) - fraction_bits(dtype));
    return fattn__number_round(dtype, whole(x / step) * step);
}

/* The type of the same size with fewer bits. */
static int32_t coarser(int32_t dtype)
{
    return dtype == FATTN_F16 ? FATTN_BF16 : dtype == FATTN_E4M3 ? FATTN_E5M2 : dtype;
}

float fattn__liar_cast(int32_t dtype, float x, bool of_ds)
{
    if (of_ds)
        return FATTN__LIE(B_DS_FLOOR)
                   ? rounded_by(floorf, dtype, x)
                   : fattn__number_round(FATTN__LIE(B_DS_OTHER_TYPE) ? coarser(dtype) : dtype, x);
    if (FATTN__LIE(P_TRUNC) || FATTN__LIE(B_P_TRUNC))
        return rounded_by(truncf, dtype, x);
    return fattn__number_round(FATTN__LIE(P_OTHER_TYPE) ? coarser(dtype) : dtype, x);
}

/* ---- stores
 * ---------------------------------------------------------------------------------------------------------
 */

static float gain_of(const int64_t at[3], bool last)
{
    return FATTN__LIE(O_GAIN_5E4)                                  ? 1.0005F
           : FATTN__LIE(O_GAIN_1E3)                                ? 1.001F
           : FATTN__LIE(O_GAIN_1PCT)                               ? 1.01F
           : FATTN__LIE(O_GAIN_3PCT)                               ? 1.03F
           : FATTN__LIE(O_GAIN_6PCT)                               ? 1.0625F
           : FATTN__LIE(O_GAIN_ROWS) && at[0] + at[1] == 0 && last ? 1.002F
           : FATTN__LIE(FAR) && last                               ? 2.0F
                                                                   : 1.0F;
}

void fattn__liar_bend_o(const fattn_problem *p, const int64_t at[3], int64_t rows, float *o,
                        int64_t step)
{
    const bool last = at[2] + rows == p->seq_q;
    const float gain = gain_of(at, last);
    const int64_t one = p->seq_q / 2 - at[2];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < p->dim_v; d++) {
            float *x = &o[i * step + d];
            *x *= FATTN__LIE(O_GAIN_FIRST) && at[2] + i < 16 ? 1.004F : gain;
            if (FATTN__LIE(O_TRUNC) || (FATTN__LIE(O_TRUNC_TILE) && last))
                *x = rounded_by(truncf, p->o_dtype, *x);
            if (FATTN__LIE(O_FLOOR))
                *x = rounded_by(floorf, p->o_dtype, *x);
            if (FATTN__LIE(O_FLUSHED) && fabsf(*x) < ldexpf(1.0F, least_exponent(p->o_dtype)))
                *x = 0.0F;
        }
    if (FATTN__LIE(ONE_ELEMENT) && at[0] + at[1] == 0 && one >= 0 && one < rows) {
        float *row = o + one * step, *most = row;
        for (int64_t d = 1; d < p->dim_v; d++)
            most = fabsf(row[d]) > fabsf(*most) ? row + d : most;
        *most *= 1.25F;
    }
}

void fattn__liar_bend_keys(const fattn_problem *p, bool of_k, int64_t rows, float *to, int64_t step)
{
    const float gain = !of_k                        ? 1.0F
                       : FATTN__LIE(B_DK_GAIN_5E4)  ? 1.0005F
                       : FATTN__LIE(B_DK_GAIN_3PCT) ? 1.03F
                       : FATTN__LIE(FAR)            ? 2.0F
                                                    : 1.0F;
    for (int64_t n = 0; n < rows * step; n++)
        to[n] = !of_k && FATTN__LIE(B_DV_FLOOR) ? rounded_by(floorf, p->grad_dtype, to[n])
                                                : to[n] * gain;
}
