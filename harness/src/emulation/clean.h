/* Counts false alarms: runs a correct kernel, with every allowed rounding, on problems of every
 * kind (docs/numerics.md, section 12). Evaluation n of a seed does not depend on the number of
 * threads or evaluations. */
#ifndef FACTS_EMULATION_CLEAN_H
#define FACTS_EMULATION_CLEAN_H

#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"
#include "numbers/judge/judge.h"

typedef struct facts_clean {
    size_t evaluations, answers; /* answers: tensors that were judged */
    size_t false_alarms;
    char alarms[2048];              /* the first ones, a line each */
    double worst[FACTS_GATE_COUNT]; /* the largest ratio of each gate */
} facts_clean;

/* Evaluations first .. first+count-1. Returns 0, ENOMEM, or EINVAL with one line in `error`. */
int facts_clean_run(facts_clean *out, uint64_t seed, uint64_t first, size_t count,
                    facts_error *error);

#endif
