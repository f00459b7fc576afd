/* Gate TG's allowance; docs/numerics.md section 3. */
#include <math.h>

#include "expectation.h"
#include "numbers/dtype.h"
#include "numbers/fill/scalars.h"
#include "numbers/judge/judge_sums.h"
#include "problem/huge.h"

double facts_truncated(int64_t terms)
{
    return 0x1p-29 * (double)terms;
}

double facts_run_lost(const fref_rounding *rounding, int64_t terms)
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

double facts_expect_cast_off(int32_t dtype, double factor)
{
    return fabs(facts_decode(dtype, facts_encode(dtype, factor)) - factor) / factor;
}

double facts_expect_p_factor(const facts_problem *p)
{
    const bool drops = p->ask.dropout > 0.0 || p->ask.dropout_mask;
    return (drops ? facts_keep_scale_of(p) : 1.0) * facts_array_scalar(p, FACTS_ARRAY_SCALE_S);
}

double facts_expect_largest_off(int32_t dtype, double factor)
{
    const double off = facts_expect_cast_off(dtype, factor) / sqrt(FACTS_GAIN_KEYS);
    return rounding_allowance(dtype) > 0.0 ? 2.0 * off : off;
}

facts_gain facts_gain_of(int32_t dtype, bool forward, double drift)
{
    const bool wide = dtype == FATTN_BF16 || dtype == FATTN_F16;
    const double rounding = rounding_allowance(dtype),
                 least = wide ? (forward ? 0x1p-13 : 0x1p-12) : rounding;
    return (facts_gain){ .all = least > 0.0 ? least + drift : 0.0,
                         .by_row = least > 0.0 ? rounding + drift : 0.0 };
}

/* An average P of a backward in 8 bits is below the type's smallest step. Then many P become 0 and
 * some a whole step: the roundings lean to one side by far more than a rounding beside 1. If dO has
 * a mean, small P count as much as large ones, and lean up to 5/2 steps. (A forward casts P before
 * it divides by the sum.) */
static bool p_is_lost(const facts_problem *p)
{
    if (p->ask.pass == FATTN_FORWARD || p->array[FACTS_ARRAY_SCALE_S].count == 0)
        return false;
    const double steps = p->fill == FACTS_FILL_OFFSET_V ? 2.5 : 1.0;
    return facts_array_scalar(p, FACTS_ARRAY_SCALE_S) / facts_keys_of_row(p) <
           steps * facts_decode(p->ask.dtype, 1);
}

void facts_expect_gain(facts_expectation *e, const facts_problem *p, const fref_rounding *rounding)
{
    const fattn_problem *ask = &p->ask;
    const bool forward = ask->pass == FATTN_FORWARD;
    double drift = facts_truncated(longest_sum(ask)) + facts_run_lost(rounding, longest_sum(ask));
    if (forward)
        drift += facts_expect_largest_off(ask->dtype, facts_expect_p_factor(p));
    const facts_gain gain =
        p_is_lost(p) ? (facts_gain){ 0 } : facts_gain_of(ask->dtype, forward, drift);
    e->gain = gain.all;
    e->by_row = gain.by_row;
}
