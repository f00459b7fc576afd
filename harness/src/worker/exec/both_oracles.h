/* oracle=both: what a GPU computed of a case, and made of its answers, against the C reference. */
#ifndef FACTS_BOTH_ORACLES_H
#define FACTS_BOTH_ORACLES_H

#include "case/words/fail.h"
#include "trial.h"

/* The reference results are on a GPU. Computes them once more on the host, and judges the same answers with it. True: both agree,
 * 1e-12 of the largest number of each array (sigmas and bounds: 1e-6, or the GPU's at most 0.5 % above), and end in one verdict for
 * each tensor that was judged. Else `error` says where they do not, or why they could not be compared. */
bool facts_both_agree(const facts_trial *trial, facts_reference *reference, facts_error *error);

#endif
