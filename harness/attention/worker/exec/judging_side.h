/* Shared by judging*.c. Answers are compared where they are: by C code on the host, or by kernels
 * on a GPU. One interface, two implementations. */
#ifndef FACTS_JUDGING_SIDE_H
#define FACTS_JUDGING_SIDE_H

#include "worker/memory/case_reference.h"

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
