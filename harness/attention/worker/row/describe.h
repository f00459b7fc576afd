/* The reply of attention about one configuration, and its row: the only place where the one becomes the other. */
#ifndef FACTS_DESCRIBE_H
#define FACTS_DESCRIBE_H

#include "row.h"
#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"
#include <jansson.h>

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

/* The result of a trial, in a row. Fields as in harness/PROTOCOL.md. */
/* If the trial was prepared, adds the judgement of each answer, the times, and the source of the
 * inputs. */
void facts_row_trial(json_t *row, const facts_trial *trial, const facts_reference *reference);

/* The result of a check, in a row:
 * check{runs,compared,ratio,got,want,bound,law,tensor}; got to bound are those of the
 * worst element. Fields as in harness/PROTOCOL.md. */
/* Adds nothing if the check was not made. */
void facts_row_check(json_t *row, const facts_check_report *report);
/* Adds dropout{asked,kept,of,quantised,repeat{what,pairs,agree,chance,ratio}}: how many of the
 * scores that a row may see were kept, and the comparison of an engine's bits that is furthest from
 * chance. Adds nothing without dropout. */
void facts_row_dropout(json_t *row, const facts_problem *problem, const facts_kept *keep);

#endif
