/* Huge problems on a GPU, whose expected values would not fit there or would take too long. The
 * expected values are then computed when an answer is compared, for some heads at a time. If that
 * is too much, they are computed for a sample of rows and keys (docs/numerics.md, section 7). The
 * other rows must be written and finite. */
#ifndef FACTS_SLABS_H
#define FACTS_SLABS_H

#include "case_reference.h"
#include "gpu_expectation.h"

struct facts_slabs {
    int64_t heads; /* query heads at a time */
    bool sampled;
    facts_sample sample;
    uint64_t judged[2]; /* for each pattern: 1 + the number of the fetch that the judgements belong
                           to; 0: none */
    facts_judgement judgement[2][FACTS_TENSOR_COUNT];
};

/* NULL with true: this problem needs no slabs. False if memory is short. */
bool facts_slabs_plan(facts_slabs **out, const facts_problem *problem,
                      const facts_slab_limits *limits);
void facts_slabs_destroy(facts_slabs *slabs);

/* An oracle that computes nothing: an expectation made with it only says which rows have an
 * expected value. */
const facts_oracle *facts_slabs_blank(void);
/* Computes O and Stats of a backward with the reference, and writes them to their storages. Returns
 * 0, or an errno. */
int facts_slabs_inputs(facts_reference *reference);
/* The first call for a pattern compares all answers. Over poison A it also decides whether the data
 * can detect an error (reference->untrusted). */
fattn_status facts_slabs_judge(facts_judgement *out, facts_reference *reference, facts_tensor_id id,
                               facts_pattern pattern);
/* Called when the expected values have changed. */
void facts_slabs_forget(facts_slabs *slabs);

#endif
