#include "huge.h"

#define EXPONENTIAL 16 /* what one costs, in products */

double facts_keys_of_row(const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    double keys = (double)ask->seq_kv, wide = keys;
    if (ask->has_left && ask->has_right)
        wide = (double)ask->window_left + (double)ask->window_right;
    else if (ask->has_right && ask->window_right == 0)
        wide = keys / 2.0;
    return wide < keys ? wide : keys;
}

double facts_pairs(const facts_problem *p)
{
    return (double)p->ask.batch * (double)p->ask.heads_q * (double)p->ask.seq_q *
           facts_keys_of_row(p);
}

bool facts_is_huge(const facts_problem *p)
{
    double products = p->ask.pass == FATTN_BACKWARD ? 5.0 : 2.0;
    for (int d = 0; d < 4; d++) /* sums over what is broadcast need every term */
        for (facts_tensor_id id = FACTS_TENSOR_DQ; id <= FACTS_TENSOR_DV; id++)
            if (p->tensor[id].present &&
                p->tensor[id].dim[d] != p->tensor[id - FACTS_TENSOR_DQ + FACTS_TENSOR_Q].dim[d])
                return false;
    return !p->ask.dbias &&
           products * facts_pairs(p) * (double)(p->ask.dim_qk + p->ask.dim_v + EXPONENTIAL) >
               FACTS_HUGE;
}
