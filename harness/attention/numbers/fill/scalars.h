/* The scalar inputs of a call, as the fp32 numbers that the engine gets. docs/numerics.md,
 * section 4. Pure. */
#ifndef FACTS_SCALARS_H
#define FACTS_SCALARS_H

#include "problem/case_problem.h"

/* Scales, descales and the attention scale in memory. */
double facts_array_scalar(const facts_problem *problem, facts_array_id id);
/* The factor of Q K^T. */
double facts_oracle_scale(const facts_problem *problem);
/* With dropout: the factor of a kept P: 1/(1-p) in fp32, or the given factor. */
double facts_keep_scale_of(const facts_problem *problem);
/* ALiBi's slope of a head. */
double facts_mod_slope(int64_t heads, int64_t h);

#endif
