/* What is due of a tensor, for somebody here who looks at single elements: facts repro's pictures and dumps. */
#ifndef FACTS_WORKER_DUE_H
#define FACTS_WORKER_DUE_H

#include "truth.h"

/* The expectation's arrays where they are here; else copies of what lies on the GPU, which facts_due_leave frees. False: it cannot
 * be had, and *out is empty. */
bool facts_due_here(facts_answer *out, const facts_truth *truth, facts_tensor_id id);
void facts_due_leave(facts_answer *answer, const facts_truth *truth, facts_tensor_id id);

#endif
