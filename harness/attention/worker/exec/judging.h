/* Compares answers with expected values, and answers of two runs: on the host, or with kernels if
 * the answers are on a GPU. */
#ifndef FACTS_JUDGING_H
#define FACTS_JUDGING_H

#include "worker/memory/case_reference.h"

/* Compares the answer of the run over `pattern` with its expected values. Returns FATTN_OK, or the
 * reason why it could not be compared. */
fattn_status facts_judging_of(facts_judgement *out, facts_reference *reference, facts_tensor_id id,
                              facts_pattern pattern);
/* Compares all answers of the run over poison A and computes their hashes (facts_judge_bits), on
 * the GPU with one wait. The first call also decides whether zeros or a neighbour's values would be
 * detected in this data, and sets reference->untrusted. */
fattn_status facts_judging_all(facts_judgement out[FACTS_TENSOR_COUNT],
                               uint64_t bits[FACTS_TENSOR_COUNT], facts_reference *reference);

/* Counts the elements with an expected value that differ between the two runs: in any bit, of all
 * tensors that out->asked names, on the GPU with one wait; or of one tensor by more than `share` of
 * the bound. `at`: one of them. */
fattn_status facts_judging_repeat(facts_rerun *out, facts_reference *reference);
fattn_status facts_judging_close(int64_t *out, facts_reference *reference, facts_tensor_id id,
                                 double share, int64_t at[4]);

/* Compares an array that the call writes (amax_, dsink) with its expected values. */
fattn_status facts_judging_array(facts_judgement *out, facts_reference *reference,
                                 facts_array_id id, facts_pattern pattern);

#endif
