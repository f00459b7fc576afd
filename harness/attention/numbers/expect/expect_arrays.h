/* The expected values of the small arrays that a call writes: amax_ and dsink. */
#ifndef FACTS_EXPECT_ARRAYS_H
#define FACTS_EXPECT_ARRAYS_H

#include "expectation.h"

/* Allocates them (expectation->array), and sets the units of 8-bit tensors. False if memory is
 * short. */
bool facts_expect_arrays(facts_expectation *out, const facts_problem *problem);
/* Sets the addresses to which the reference writes them. */
void facts_expect_arrays_forward(const facts_expectation *e, const facts_problem *problem,
                                 fref_forward_out *out);
void facts_expect_arrays_backward(const facts_expectation *e, const facts_problem *problem,
                                  fref_backward_out *out);
void facts_expect_arrays_destroy(facts_expectation *e);

/* The tensor whose largest magnitude an amax array has; FACTS_TENSOR_COUNT if that tensor is not
 * stored (amax_s, amax_dp). */
facts_tensor_id facts_amax_of(facts_array_id id);

#endif
