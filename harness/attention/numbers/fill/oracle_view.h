/* Converts a problem to the reference's types, and finds the rows with an expected value. */
#ifndef FACTS_ORACLE_H
#define FACTS_ORACLE_H

#include <fref/fref.h>

#include "problem/case_problem.h"

/* `out` points into `problem` (the lengths). The facts_expect_ functions add bias and modification,
 * because these need memory. */
void facts_oracle_problem(fref_problem *out, const facts_problem *problem);
/* The reference's element type; for a block-scaled type that of its codes. False: the reference has
 * none. */
bool facts_oracle_type(fref_type *out, int32_t dtype);

/* The keys [*first, *last) that row i of batch entry b may read: lengths, band, and a modification
 * that masks. */
void facts_oracle_keys_of_row(const facts_problem *problem, int64_t b, int64_t i, int64_t *first,
                              int64_t *last);

/* Can some row read two different keys? Otherwise dQ, dK and dBias are zero, whatever a kernel
 * computes. */
bool facts_oracle_two_keys(const facts_problem *problem);

#endif
