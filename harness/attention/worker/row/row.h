/* Parts of a row as JSON: decisions and judgements. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_H
#define FACTS_ROW_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "numbers/judge/judge.h"
#include "problem/case_problem.h"
#include "worker/exec/trial.h"
#include "worker/memory/case_reference.h"

/* docs/dump.md lists the members. `text`: the case's name. */
json_t *facts_problem_json(const facts_problem *problem, const char *text);

/* The reply of attention about one configuration, and its row: the only place where the one becomes the other. */
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

/* The result of a trial, in a row. If the trial was prepared, adds the judgement of each answer, the times, and the source of the
 * inputs. */
void facts_row_trial(json_t *row, const facts_trial *trial, const facts_reference *reference);

/* The result of a check, in a row:
 * check{runs,compared,ratio,got,want,bound,law,tensor}; got to bound are those of the
 * worst element. Adds nothing if the check was not made. */
void facts_row_check(json_t *row, const facts_check_report *report);

/* backend, supported, engines, and reason with its chain. reason.rule is the first rule that
 * refused or removed an engine. answers[] if several backends were asked. */
void facts_row_decision(json_t *row, const fattn_decision *decision);

#endif
