/* A problem in the reference's own words, and which rows owe an answer. */
#ifndef FACTS_ORACLE_H
#define FACTS_ORACLE_H

#include <fref/fref.h>

#include "case/problem/case_problem.h"

/* `out` points into `problem` (the lengths); without bias and modification, which need memory: facts_expect_ adds them. */
void facts_oracle_problem(fref_problem *out, const facts_problem *problem);
/* The reference's name of an element type, of a block-scaled one that of its codes; false when it has none. */
bool facts_oracle_type(fref_type *out, int32_t dtype);

/* The keys [*first, *last) that row i of batch entry b may read: lengths, band, and a modification that masks. */
void facts_oracle_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first, int64_t *last);

/* Some row may read two keys that differ: below that dQ, dK and dBias are zero whatever was computed. */
bool facts_oracle_two_keys(const facts_problem *problem);

#endif
