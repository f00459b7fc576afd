/* Gradients of broadcast inputs, which are sums (stride=sum:). The reference gives the gradient of
 * every element, and these functions sum them. */
#ifndef FACTS_GRADIENTS_H
#define FACTS_GRADIENTS_H

#include <fref/fref.h>

#include "expectation.h"

typedef struct facts_gradient {
    facts_tensor_id id;
    int64_t dim[4];    /* before the sum */
    facts_answer each; /* owned; empty if nothing is summed */
    facts_answer to;
} facts_gradient;

typedef struct facts_gradients {
    fref_backward_out out; /* the arrays that the reference writes */
    facts_gradient at[4];
    int count;
} facts_gradients;

/* Chooses the array to which the reference writes this gradient: `to`, or a temporary array if the
 * gradient is a sum. False: no memory. Destroy in any case. */
bool facts_gradients_take(facts_gradients *out, const facts_problem *problem, facts_tensor_id id,
                          facts_answer *to);
/* Sums the temporary arrays. sigma: each element is rounded to the gradient's type (its own last
 * cast), added in fp32, and the sum is cast once. bound: the sum of the bounds, and the same casts.
 * The error of an engine that sums in fp32 is smaller. */
void facts_gradients_sum(facts_gradients *gradients, const facts_problem *problem);
void facts_gradients_destroy(facts_gradients *gradients);

#endif
