/* Two runs of a case, compared. */
#ifndef FACTS_RERUN_H
#define FACTS_RERUN_H

#include <stdbool.h>
#include <stdint.h>

#include "case/problem/case_problem.h"

/* How two runs differ. */
typedef struct facts_rerun {
    bool asked[FACTS_TENSOR_COUNT];
    int64_t different[FACTS_TENSOR_COUNT]; /* elements; 0: not asked */
    int64_t at[FACTS_TENSOR_COUNT][4];     /* one of them */
} facts_rerun;

#endif
