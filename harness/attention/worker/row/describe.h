/* The reply of attention about one configuration, and its row: the only place where the one becomes the other. */
#ifndef FACTS_DESCRIBE_H
#define FACTS_DESCRIBE_H

#include "row.h"
#include "worker/exec/trial.h"

typedef struct facts_content {
    const fattn_decision *decision; /* NULL: not asked, as the others */
    double decide_us;
    const facts_problem *asked; /* once a configuration was chosen */
    const fattn_engine *offer;  /* of the heuristics, for this configuration */
    const fattn_plan *plan;
    bool loaded; /* the plan comes from plan_dir */
    const facts_trial *trial;
    const facts_reference *reference; /* of the trial */
} facts_content;

void facts_row_describe(json_t *row, const facts_content *content);

#endif
