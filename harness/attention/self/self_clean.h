/* Counts false alarms: runs right kernels, with every allowed rounding, on problems of every kind
 * (docs/numerics.md, section 12). Evaluation n of a seed does not depend on the others. */
#ifndef FACTS_SELF_CLEAN_H
#define FACTS_SELF_CLEAN_H

#include "self_types.h"
#include "words/fail.h"

typedef struct facts_clean {
    size_t evaluations, answers; /* answers: tensors and scalars that were judged */
    size_t refused;              /* drawn problems that the cpu backend refuses */
    size_t false_alarms;
    char alarms[2048];              /* the first ones, a line each */
    double worst[FACTS_GATE_COUNT]; /* the largest ratio of each gate */
} facts_clean;

/* Evaluations first .. first+count-1. Returns 0, or EINVAL with one line in `error`. */
int facts_clean_run(facts_clean *out, uint64_t seed, uint64_t first, size_t count,
                    facts_error *error);

#endif
