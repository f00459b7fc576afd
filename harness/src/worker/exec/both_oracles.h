/* oracle=both: compares the reference results of a GPU, and the comparison on the GPU, with those
 * of the C reference. */
#ifndef FACTS_BOTH_ORACLES_H
#define FACTS_BOTH_ORACLES_H

#include "case/words/fail.h"
#include "trial.h"

/* The reference results are on a GPU. Computes them again on the host, and compares the same
 * answers with them. True: both references agree within 1e-12 of the largest number of each array
 * (sigmas and bounds: 1e-6), and both give the same verdict for each tensor. False: `error` says where they differ, or why they could not be compared. */
bool facts_both_agree(const facts_trial *trial, facts_reference *reference, facts_error *error);

#endif
