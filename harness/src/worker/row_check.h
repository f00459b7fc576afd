/* What a check found, in a row: check{runs,compared,ratio,got,want,bound,law,tensor,bits,skipped}; got to bound at the worst
 * element, where there was one. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_CHECK_H
#define FACTS_ROW_CHECK_H

#include <jansson.h>

#include "trial.h"

/* Nothing, where no run of a check was made and none was left out. */
void facts_row_check(json_t *row, const facts_check_report *report);

#endif
