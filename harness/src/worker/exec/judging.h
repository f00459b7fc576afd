/* Answers against what is due, and against each other: here, or by kernels where the answers are. */
#ifndef FACTS_JUDGING_H
#define FACTS_JUDGING_H

#include "worker/memory/case_reference.h"

/* The answer of the run over `pattern` against what is due. Returns FATTN_OK, or why it could not be judged. */
fattn_status facts_judging_of(facts_judgement *out, facts_reference *reference, facts_tensor_id id, facts_pattern pattern);
/* All answers of the run over poison A, with their hashes (facts_judge_bits): where they are on the GPU with one wait. The first
 * time it is weighed too whether the data can tell zeros, or a neighbour's values, from the right answer: truth->untrusted. */
fattn_status facts_judging_all(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT],
                               facts_reference *reference);

/* The two runs: elements that owe a value and have other bits, or are farther apart than `share` of the bound. `at`: one of them.
 */
fattn_status facts_judging_repeat(int64_t *out, facts_reference *reference, facts_tensor_id id, int64_t at[4]);
fattn_status facts_judging_close(int64_t *out, facts_reference *reference, facts_tensor_id id, double share, int64_t at[4]);

/* An array that the call writes (amax_, dsink), against what is due of it. */
fattn_status facts_judging_array(facts_judgement *out, facts_reference *reference, facts_array_id id, facts_pattern pattern);

#endif
