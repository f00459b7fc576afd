/* A problem with everything in its memory, as the reference reads it: bias and masks, slopes,
 * sinks, kept scores of dropout, scales, ragged and paged tensors. Block-scaled tensors become
 * plain numbers, and Q and K are rotated where the case has rope. */
#ifndef FACTS_EXPECT_WHOLE_H
#define FACTS_EXPECT_WHOLE_H

#include <fref/fref.h>

#include "expectation.h"
#include "numbers/fill/rope.h"
#include "numbers/fill/score_inputs.h"
#include "problem/case_problem.h"

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
/* Sets the addresses to which the reference writes those of a backward. */
void facts_expect_arrays_backward(const facts_expectation *e, const facts_problem *problem,
                                  fref_backward_out *out);
void facts_expect_arrays_destroy(facts_expectation *e);

/* The tensor whose largest magnitude an amax array has; FACTS_TENSOR_COUNT if that tensor is not
 * stored (amax_s, amax_dp). */
facts_tensor_id facts_amax_of(facts_array_id id);

/* Problems too large for the C reference (problem/huge.h): it computes a sample of rows and
 * keys (docs/numerics.md, section 7). */
/* The rows (or keys) of a sample, ascending: the first ones, the last ones, the ends of lengths and
 * masks, edges of tiles near them, and 64 at random, one from each of 64 equal parts. The caller
 * frees it. NULL: no memory. */
int64_t *facts_big_sample(const facts_problem *problem, bool keys, int64_t *count);
/* The rows of this tensor that are not compared: FACTS_EXPECTS_NUMBER for a live row. `expects` is
 * [batch, rows]. False: no memory. */
bool facts_big_expects(const facts_problem *problem, facts_tensor_id id,
                       facts_row_expects *expects);

/* As fref_forward and fref_backward. For a huge problem they compute the sample, in rows of its
 * own, without amax, dsink and dbias. tensor[]: as the reference reads them. Returns 0, ENOMEM. */
int facts_big_forward(const facts_problem *problem, const fref_problem *asked,
                      const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                      const fref_forward_out *out);
int facts_big_backward(const facts_problem *problem, const fref_problem *asked,
                       const fref_tensor tensor[FACTS_TENSOR_COUNT], const fref_rounding *rounding,
                       const fref_backward_out *out);

/* Has a row few values of P? (fref_rounding.discrete) */
bool facts_expect_few_weights(const facts_problem *problem);
/* Finds tensors that are copies of themselves along an axis, so that rounding errors are not
 * independent (docs/numerics.md, section 3). */
/* Are the rounding errors of this problem independent, as T2, T3 and TG need? Not for a discrete
 * fill, and not for nearly equal scores, because equal scores share one error. Not if a stride of 0
 * makes rows, heads or batch entries equal. */
bool facts_expect_dense(const facts_problem *problem);

/* Can terms of this answer's sums be copies of each other? Their rounding errors then have one
 * sign, and T1 uses the bound alone. */
bool facts_expect_coherent(const facts_problem *problem, facts_tensor_id id);
/* The gradients whose sums may have such terms, for fref_rounding.coherent. */
unsigned facts_expect_coherent_gradients(const facts_problem *problem);

#endif
