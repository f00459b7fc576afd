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

/* Shared by judging*.c. Answers are compared where they are: by C code on the host, or by kernels
 * on a GPU. One interface, two implementations. */
typedef struct facts_judging_side {
    /* The functions of judging.h; the caller has set *out to "no memory". */
    fattn_status (*one)(facts_judgement *out, facts_reference *reference, facts_tensor_id id,
                        facts_pattern pattern);
    fattn_status (*all)(facts_judgement out[FACTS_TENSOR_COUNT], uint64_t bits[FACTS_TENSOR_COUNT],
                        facts_reference *reference);
    /* Counts the elements that differ between the runs over poison A and B by more than `share` of the bound; share NULL: in any
     * bit. The caller has set *out to 0. */
    fattn_status (*differ)(int64_t *out, facts_reference *reference, facts_tensor_id id,
                           const double *share, int64_t at[4]);
    /* The same in any bit, for several tensors. */
    fattn_status (*repeat)(facts_rerun *out, facts_reference *reference);
} facts_judging_side;

/* The GPU's implementation calls the host's for tensors whose expected values are on the host. */
extern const facts_judging_side facts_judging_host, facts_judging_gpu;

/* The rule for the answer over `pattern`. If both Max and Sum_exp are asked for, their expected
 * values depend on the Max of that run. */
fattn_status facts_judging_rule(facts_rule *out, facts_reference *reference, facts_tensor_id id,
                                facts_pattern pattern);
/* Can wrong answers of this tensor be detected? Only if the data is dense, and not if every correct
 * answer is zero. */
bool facts_judging_can_detect(const facts_problem *problem, facts_tensor_id id);
/* Sets reference->untrusted[id] from expected values on the host. */
void facts_judging_weigh(facts_reference *reference, facts_tensor_id id);

#endif
