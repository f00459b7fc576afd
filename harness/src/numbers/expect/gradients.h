/* Gradients of broadcast inputs that are sums (stride=sum:): the reference gives every element's, they are summed here. */
#ifndef FACTS_GRADIENTS_H
#define FACTS_GRADIENTS_H

#include <fref/fref.h>

#include "expectation.h"

typedef struct facts_gradient {
    facts_tensor_id id;
    int64_t dim[4];    /* before the sum */
    facts_answer each; /* owned; empty when nothing is summed */
    facts_answer to;
} facts_gradient;

typedef struct facts_gradients {
    fref_backward_out out; /* where the reference writes */
    facts_gradient at[4];
    int count;
} facts_gradients;

/* Says where the reference writes this gradient: into `to`, or aside when it is a sum, which has parts too. False without memory.
 * Destroy in any case.
 */
bool facts_gradients_take(facts_gradients *out, const facts_problem *problem, facts_tensor_id id, facts_answer *to);
/* Sums what was written aside. sigma: an element is rounded to the gradient's type before it is added (its own last cast), fp32
 * accumulation, one cast of the sum; bound: the sum of bounds, and the same. An engine that sums in fp32 at once stays below. */
void facts_gradients_sum(facts_gradients *gradients, const facts_problem *problem);
void facts_gradients_destroy(facts_gradients *gradients);

#endif
