/* Lengths per batch entry: what `padding=` makes and `lens=` gives. */
#ifndef FACTS_CASE_LENGTHS_H
#define FACTS_CASE_LENGTHS_H

#include "case_problem.h"

/* Fills has_lengths, len_q, len_kv from the case; sizes and seed are already in *problem. Returns NULL or what is wrong. Random
 * lengths are drawn from Philox (tensor 9, the seed), so they are the same everywhere. */
const char *facts_lengths_resolve(facts_problem *problem, const facts_case *c);

#endif
