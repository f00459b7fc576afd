/* The result of a check, in a row:
 * check{runs,compared,ratio,got,want,bound,law,tensor}; got to bound are those of the
 * worst element. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_CHECK_H
#define FACTS_ROW_CHECK_H

#include <jansson.h>

#include "worker/exec/trial.h"

/* Adds nothing if the check was not made. */
void facts_row_check(json_t *row, const facts_check_report *report);
/* Adds dropout{asked,kept,of,quantised,repeat{what,pairs,agree,chance,ratio}}: how many of the
 * scores that a row may see were kept, and the comparison of an engine's bits that is furthest from
 * chance. Adds nothing without dropout. */
void facts_row_dropout(json_t *row, const facts_problem *problem, const facts_kept *keep);

#endif
