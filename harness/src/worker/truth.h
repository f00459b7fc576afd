/* One case with everything that its configurations share: memory, what is due, and whether the data can tell. */
#ifndef FACTS_TRUTH_H
#define FACTS_TRUTH_H

#include "memory.h"

typedef struct facts_truth {
    facts_memory memory;
    facts_expectation expectation;
    bool untrusted[FACTS_TENSOR_COUNT]; /* a wrong answer could pass here */
} facts_truth;

/* Fills the inputs and computes the reference (of a backward: O and Stats first, as inputs). Destroy in any case.
 * Returns FATTN_OK, or why not with the sentence in `error`. */
fattn_status facts_truth_create(facts_truth *out, facts_worker *worker, const facts_problem *problem, char error[256]);
/* Of a backward: once more, from the O and Stats that lie in memory now (pattern A). Returns 0, or an errno. */
int facts_truth_renew(facts_truth *truth);
void facts_truth_destroy(facts_truth *truth);

#endif
