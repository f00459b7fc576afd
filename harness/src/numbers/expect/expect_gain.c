/* Gate TG's allowance; docs/numerics.md section 3. */
#include <math.h>

#include "expectation.h"
#include "numbers/dtype.h"
#include "numbers/fill/scalars.h"
#include "numbers/judge/judge_sums.h"

double facts_truncated(int64_t terms)
{
    return 0x1p-29 * (double)terms;
}

static int64_t longest_sum(const fattn_problem *ask)
{
    if (ask->pass == FATTN_FORWARD)
        return ask->seq_kv;
    const int64_t heads = ask->heads_k < ask->heads_v ? ask->heads_k : ask->heads_v, rows = ask->heads_q / heads * ask->seq_q;
    return rows > ask->seq_kv ? rows : ask->seq_kv;
}

double facts_expect_keep_off(int32_t dtype, double keep_scale)
{
    return fabs(facts_decode(dtype, facts_encode(dtype, keep_scale)) - keep_scale) / keep_scale / sqrt(FACTS_GAIN_KEYS);
}

void facts_expect_gain(facts_expectation *e, const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    const bool forward = ask->pass == FATTN_FORWARD;
    e->gain = e->by_row = 0.0;
    if (ask->dtype != FATTN_BF16 && ask->dtype != FATTN_F16)
        return;
    e->by_row = facts_truncated(longest_sum(ask));
    if (forward && (ask->dropout > 0.0 || ask->dropout_mask))
        e->by_row += facts_expect_keep_off(ask->dtype, facts_keep_scale_of(p));
    e->gain = (forward ? 0x1p-13 : 0x1p-12) + e->by_row;
}
