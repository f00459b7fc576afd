/* A problem with everything in its memory, as the reference reads it: bias and masks, slopes,
 * sinks, kept scores of dropout, scales, ragged and paged tensors. Block-scaled tensors become
 * plain numbers, and Q and K are rotated where the case has rope. */
#ifndef FACTS_EXPECT_WHOLE_H
#define FACTS_EXPECT_WHOLE_H

#include "expectation.h"
#include "numbers/fill/rope.h"
#include "numbers/fill/scores.h"

#define FACTS_WHOLE_MEMORY 32

typedef struct facts_whole {
    fref_problem problem;
    fref_tensor tensor[FACTS_TENSOR_COUNT]; /* data NULL: absent */
    fref_tensor bias;
    facts_mod_owner mod;
    facts_rope rope;
    void *memory[FACTS_WHOLE_MEMORY];
    size_t count;
} facts_whole;

/* Returns 0; ENOMEM; ENOTSUP: the reference lacks a type, or an oracle in other memory (in->oracle)
 * lacks a feature that the C reference has. Destroy *out in any case. Its pointers are valid as
 * long as *out, the problem and the storages. */
int facts_whole_make(facts_whole *out, const facts_problem *problem, const facts_storages *in);
void facts_whole_destroy(facts_whole *whole);

/* The expected values of the small arrays that a call writes: amax_ and dsink. */
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
