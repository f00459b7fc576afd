/* Lengths of batch entries, from `padding=` and `lens=`. */
#ifndef FACTS_CASE_LENGTHS_H
#define FACTS_CASE_LENGTHS_H

#include "case_problem.h"

/* Fills has_lengths, len_q and len_kv from the case; *problem already has sizes and seed. Returns
 * NULL or the mistake. Random lengths come from Philox (tensor 9, the seed), so they are the same
 * on every machine. */
const char *facts_lengths_resolve(facts_problem *problem, const facts_case *c);

#endif
