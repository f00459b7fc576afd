#include "expect_whole.h"

#include <fref/fref.h>
#include <math.h>

#include "expectation.h"
#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/fill/recipe.h"
#include "numbers/fill/score_inputs.h"
#include "numbers/judge/judge_sums.h"
#include "problem/huge.h"

/* Gate TG's allowance; docs/numerics.md section 3. */

double facts_truncated(int64_t terms)
{
    return 0x1p-29 * (double)terms;
}

/* The same for accumulators of few bits, which add at most rounding->acc_run terms before the sum
 * moves to fp32. */
static double facts_run_lost(const fref_rounding *rounding, int64_t terms)
{
    return rounding->acc_pv / 8.0 * fmin((double)terms, rounding->acc_run);
}

static int64_t longest_sum(const fattn_problem *ask)
{
    if (ask->pass == FATTN_FORWARD)
        return ask->seq_kv;
    const int64_t heads = ask->heads_k < ask->heads_v ? ask->heads_k : ask->heads_v,
                  rows = ask->heads_q / heads * ask->seq_q;
    return rows > ask->seq_kv ? rows : ask->seq_kv;
}

/* 3 h^2/12, h the widest step of P beside 1: P is not uniform within a step, and the slope of its
 * density's logarithm is 3 at most.
 */
static double rounding_allowance(int32_t dtype)
{
    const double u = facts_dtype_roundoff(dtype);
    return facts_dtype_is_8_bit(dtype) ? u * u : 0.0; /* h is 2 u */
}

/* How far the cast of `factor` is off, relative to it. */
static double facts_expect_cast_off(int32_t dtype, double factor)
{
    return fabs(facts_decode(dtype, facts_encode(dtype, factor)) - factor) / factor;
}

/* What P is multiplied with before its cast: 1/(1-p) of dropout times scale_s. */
static double facts_expect_p_factor(const facts_problem *p)
{
    const bool drops = p->ask.dropout > 0.0 || p->ask.dropout_mask;
    return (drops ? facts_keep_scale_of(p) : 1.0) * facts_array_scalar(p, FACTS_ARRAY_SCALE_S);
}

/* The largest effect on O of the rounding of P's largest number. Before its cast P is multiplied by
 * `factor`: 1/(1-p) of dropout times scale_s. The largest number of each row, 1 before, is then off
 * by one relative error. In a row that TG reads its share is at most 1/sqrt(FACTS_GAIN_KEYS). It is
 * twice that if 8-bit types process the keys in parts, each with a largest number. */
static double facts_expect_largest_off(int32_t dtype, double factor)
{
    const double off = facts_expect_cast_off(dtype, factor) / sqrt(FACTS_GAIN_KEYS);
    return rounding_allowance(dtype) > 0.0 ? 2.0 * off : off;
}

/* `drift`: a known relative error beside the rounding of the type. */
static facts_gain facts_gain_of(int32_t dtype, bool forward, double drift)
{
    const bool wide = dtype == FATTN_BF16 || dtype == FATTN_F16;
    const double rounding = rounding_allowance(dtype),
                 least = wide ? (forward ? 0x1p-13 : 0x1p-12) : rounding;
    return (facts_gain){ .all = least > 0.0 ? least + drift : 0.0,
                         .by_row = least > 0.0 ? rounding + drift : 0.0 };
}

/* `scale` over the keys that a row sees, in the smallest steps of an 8-bit type: an average P of a
 * backward with scale_s. */
static double average_steps(const facts_problem *p, facts_array_id scale)
{
    return facts_array_scalar(p, scale) / facts_keys_of_row(p) / facts_decode(p->ask.dtype, 1);
}

/* An average P of a backward in 8 bits is below the type's smallest step. Then many P become 0 and
 * some a whole step: the roundings lean to one side by far more than a rounding beside 1. If dO has
 * a mean, small P count as much as large ones, and lean up to 5/2 steps. A forward casts P beside
 * the largest number of its row, before it divides by the sum: only a sink is so much larger, in
 * every head but the first. In a backward the sink of every fourth head leaves its keys a share of
 * 1/(1 + e^n) of the sum, n normal: 1/32 at 3.4 deviations. */
static bool p_is_lost(const facts_problem *p)
{
    const bool sinks = p->ask.sink && !p->off_by_one && p->ask.heads_q > 1;
    if (p->array[FACTS_ARRAY_SCALE_S].count == 0)
        return false;
    if (p->ask.pass == FATTN_FORWARD)
        return sinks;
    const double steps = p->fill == FACTS_FILL_OFFSET_V ? 2.5 : 1.0, share = sinks ? 0x1p-5 : 1.0;
    return share * average_steps(p, FACTS_ARRAY_SCALE_S) < steps;
}

/* dS of a backward in 8 bits is a third of P times scale_dp: `t` of the type's smallest steps. It
 * has both signs, and its roundings, 1/12 of a step squared, balance each other. But a sum of few
 * large terms has a smaller weight than one of many small ones: by a seventh, so dQ and dK lean
 * (2.5 % at t = 0.7). */
static double coarse_ds(const facts_problem *p)
{
    if (p->ask.pass == FATTN_FORWARD || p->array[FACTS_ARRAY_SCALE_DP].count == 0)
        return 0.0;
    const double t = average_steps(p, FACTS_ARRAY_SCALE_DP) / 3.0;
    return 1.0 / (80.0 * t * t);
}

void facts_expect_gain(facts_expectation *e, const facts_problem *p, const fref_rounding *rounding)
{
    const fattn_problem *ask = &p->ask;
    const bool forward = ask->pass == FATTN_FORWARD;
    double drift = facts_truncated(longest_sum(ask)) + facts_run_lost(rounding, longest_sum(ask)) +
                   coarse_ds(p);
    if (forward)
        drift += facts_expect_largest_off(ask->dtype, facts_expect_p_factor(p));
    const facts_gain gain =
        p_is_lost(p) ? (facts_gain){ 0 } : facts_gain_of(ask->dtype, forward, drift);
    e->gain = gain.all;
    e->by_row = gain.by_row;
}

/* Scores that differ by many steps of P's type (2^-7 in bf16) share no roundings. */
#define SPREAD 0.125

enum { BATCH, HEADS, ROWS, CHANNELS };

static bool repeats(const facts_problem *p, facts_tensor_id id, int axis)
{
    return p->tensor[id].stride[axis] == 0 && p->tensor[id].dim[axis] > 1;
}

/* The standard deviation of the scores of one row: from the fill of Q and K, and of the bias where
 * it has ordinary values. */
static double spread_of_scores(const facts_problem *p)
{
    double spread = fabs(facts_oracle_scale(p)) * sqrt((double)p->ask.dim_qk) *
                    (p->fill == FACTS_FILL_UNIFORM ? 1.0 / 3.0 : 1.0);
    if (p->mod == FACTS_MOD_TEMPERATURE)
        spread /= fabs(p->mod_parameter[0]);
    if (p->mod == FACTS_MOD_SOFTCAP)
        spread = fmin(spread, fabs(p->mod_parameter[0]));
    return p->ask.has_bias && p->bias_fill == FACTS_BIAS_RANDN ? spread + 1.0 : spread;
}

/* The data alone may give rows or keys equal scores. */
static bool is_discrete(const facts_problem *p)
{
    return !(facts_fill_is_dense(p->fill) || p->fill == FACTS_FILL_OFFSET_V) ||
           spread_of_scores(p) < SPREAD;
}

/* exp(score - Max) has few values in a row, so a lane that adds it key by key rounds alike. Scores
 * of -300 are all equal after a softcap, and those of +-1000 have two values. Equal weights are 1,
 * and their sum is exact, if no sink is larger: n of them are then added to it and round alike. */
bool facts_expect_few_weights(const facts_problem *p)
{
    const bool far = p->fill == FACTS_FILL_NEGLSE || p->fill == FACTS_FILL_HUGELOGIT,
               equal = p->fill == FACTS_FILL_UNIP || repeats(p, FACTS_TENSOR_K, ROWS) ||
                       facts_oracle_scale(p) == 0.0;
    return p->fill == FACTS_FILL_SPARSE_INT || (far && p->mod == FACTS_MOD_SOFTCAP) ||
           (equal && p->ask.sink);
}

/* If answers have a mean, rows differ by less than a step of an 8-bit type, and are rounded alike.
 */
static double facts_shared_cast(int32_t dtype)
{
    return facts_dtype_is_8_bit(dtype) ? facts_dtype_roundoff(dtype) / sqrt(3.0) : 0.0;
}

/* In every row of an entry (with spiky data in most rows) one key has all of P, and each row rounds
 * the same number. A mean of the summed values shows that it is one rounding. Without a mean its size does, where it is more than
 * the rms of independent roundings, u/sqrt(3). With both, a forward shows the cast of the largest P, 1 in every row. */
static bool one_key_has_all(const facts_problem *p)
{
    const int32_t dtype = p->ask.dtype;
    const bool mean = p->fill == FACTS_FILL_OFFSET_V,
               large = facts_expect_cast_off(dtype, facts_expect_p_factor(p)) >
                       facts_dtype_roundoff(dtype) / sqrt(3.0);
    if (mean && large && p->ask.pass == FATTN_FORWARD)
        return true;
    for (int64_t b = 0; (mean || large) && b < p->ask.batch; b++)
        if (facts_live_kv(p, b) == 1 || p->fill == FACTS_FILL_SPIKY)
            return true;
    return false;
}

bool facts_expect_dense(const facts_problem *p)
{
    for (int axis = 0; axis < CHANNELS; axis++)
        if (repeats(p, FACTS_TENSOR_Q, axis) ||
            (p->ask.pass == FATTN_BACKWARD && repeats(p, FACTS_TENSOR_DO, axis)))
            return false;
    return !is_discrete(p) && !repeats(p, FACTS_TENSOR_K, ROWS) &&
           !repeats(p, FACTS_TENSOR_V, ROWS) && !one_key_has_all(p);
}

/* ---- sums of copies
 * ---------------------------------------------------------------------------------------------------------------
 */

/* Rows i with the same q_i and dO_i have the same P_i and dS_i, and round them alike. A discrete
 * fill makes q_i alike, or P_i. */
static bool rows_agree(const facts_problem *p)
{
    return repeats(p, FACTS_TENSOR_Q, ROWS) + repeats(p, FACTS_TENSOR_DO, ROWS) + is_discrete(p) >=
           2;
}

static bool keys_agree(const facts_problem *p)
{
    return repeats(p, FACTS_TENSOR_K, ROWS) + repeats(p, FACTS_TENSOR_V, ROWS) + is_discrete(p) >=
           2;
}

/* Are all batch entries, or all heads, equal? With GQA, heads share keys and values. */
static bool heads_agree(const facts_problem *p, int axis)
{
    bool k = repeats(p, FACTS_TENSOR_K, axis) || (axis == HEADS && p->ask.heads_k < p->ask.heads_q);
    bool v = repeats(p, FACTS_TENSOR_V, axis) || (axis == HEADS && p->ask.heads_v < p->ask.heads_q);
    return v && repeats(p, FACTS_TENSOR_DO, axis) &&
           (is_discrete(p) || (k && repeats(p, FACTS_TENSOR_Q, axis)));
}

/* The sums over the dimensions that extents `full` reduce to those of the gradient. `keys`: its
 * rows are keys. */
static bool summed_agree(const facts_problem *p, const facts_tensor *gradient,
                         const int64_t full[4], bool keys)
{
    for (int axis = BATCH; axis < ROWS; axis++)
        if (gradient->dim[axis] < full[axis] && heads_agree(p, axis))
            return true;
    if (gradient->dim[ROWS] < full[ROWS] && (keys ? keys_agree(p) : rows_agree(p)))
        return true;
    return gradient->dim[CHANNELS] < full[CHANNELS] && keys_agree(p); /* of dBias: keys */
}

static bool key_gradient_agrees(const facts_problem *p, facts_tensor_id id, facts_tensor_id input)
{
    bool grouped = p->tensor[input].dim[HEADS] < p->ask.heads_q;
    return rows_agree(p) || (grouped && heads_agree(p, HEADS)) ||
           summed_agree(p, &p->tensor[id], p->tensor[input].dim, true);
}

bool facts_expect_coherent(const facts_problem *p, facts_tensor_id id)
{
    const int64_t scores[4] = { p->ask.batch, p->ask.heads_q, p->ask.seq_q, p->ask.seq_kv };
    const facts_tensor *t = &p->tensor[id];
    switch (id) {
    case FACTS_TENSOR_O:
        return keys_agree(p);
    case FACTS_TENSOR_DQ:
        return keys_agree(p) || summed_agree(p, t, p->tensor[FACTS_TENSOR_Q].dim, false);
    case FACTS_TENSOR_DK:
        return key_gradient_agrees(p, id, FACTS_TENSOR_K);
    case FACTS_TENSOR_DV:
        return one_key_has_all(p) || key_gradient_agrees(p, id, FACTS_TENSOR_V);
    case FACTS_TENSOR_DBIAS:
        return summed_agree(p, t, scores, false);
    default:
        return false;
    }
}

unsigned facts_expect_coherent_gradients(const facts_problem *p)
{
    return (facts_expect_coherent(p, FACTS_TENSOR_DQ) ? FREF_GRADIENT_Q : 0U) |
           (facts_expect_coherent(p, FACTS_TENSOR_DK) ? FREF_GRADIENT_K : 0U) |
           (facts_expect_coherent(p, FACTS_TENSOR_DV) ? FREF_GRADIENT_V : 0U);
}

void facts_expect_means(facts_expectation *e, const facts_problem *p)
{
    const facts_tensor *t =
        &p->tensor[p->ask.pass == FATTN_FORWARD ? FACTS_TENSOR_V : FACTS_TENSOR_DO];
    e->means = 0;
    if (p->fill != FACTS_FILL_OFFSET_V)
        return;
    e->means =
        (t->stride[BATCH] == 0 ? 1 : t->dim[BATCH]) * (t->stride[HEADS] == 0 ? 1 : t->dim[HEADS]);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        e->shared[id] = facts_shared_cast(p->tensor[id].dtype);
}
