/* Prints the results of `facts self`: for people, for programs, and for the documentation. */
#ifndef FACTS_SELF_PRINT_H
#define FACTS_SELF_PRINT_H

#include <stdio.h>

#include "emulation/survey.h"

/* One line for each liar, and below it one line for each type and size. */
void facts_self_print_table(const facts_survey *survey);
/* An object a line. */
void facts_self_print_json(const facts_survey *survey, FILE *out);
/* Prints Markdown with the report package: a row for each liar, a column for each type. Returns the
 * package's exit code. */
int facts_self_print_markdown(const facts_survey *survey);

#endif
