/* What a check found, in a row: check{runs,compared,ratio,got,want,bound,law,tensor,bits,skipped}; got to bound at the worst
 * element, where there was one. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_CHECK_H
#define FACTS_ROW_CHECK_H

#include <jansson.h>

#include "worker/exec/trial.h"

/* Nothing, where no run of a check was made and none was left out. */
void facts_row_check(json_t *row, const facts_check_report *report);
/* dropout{asked,kept,of,quantised,repeat{what,pairs,agree,chance,ratio}}: how many of the scores that a row may see were kept, and
 * the comparison of an engine's bits that is furthest from chance. Nothing where nothing is dropped. */
void facts_row_dropout(json_t *row, const facts_problem *problem, const facts_kept *keep);

#endif
