/* What `facts self` prints of a survey. */
#ifndef FACTS_SELF_PRINT_H
#define FACTS_SELF_PRINT_H

#include <stdio.h>

#include "self/self_survey.h"

/* A line for each fault, type and suite. */
void facts_self_print_table(const facts_survey *survey);
void facts_self_print_json(const facts_survey *survey, FILE *out);
/* Returns an exit code. */
int facts_self_print_markdown(const facts_survey *survey);
/* Does one of the suites show that fault in that type? */
bool facts_self_is_shown(const facts_survey *survey, const facts_shown *of);

#endif
