/* What the survey of liars found, on stdout: for people, for programs, for the documentation. */
#ifndef FACTS_SELF_PRINT_H
#define FACTS_SELF_PRINT_H

#include <stdio.h>

#include "emulation/survey.h"

/* A line for each liar, and under it one for each type and size. */
void facts_self_print_table(const facts_survey *survey);
/* An object a line. */
void facts_self_print_json(const facts_survey *survey, FILE *out);
/* As Markdown, by the report package: a row for each liar, a column for each type. Returns the package's exit code. */
int facts_self_print_markdown(const facts_survey *survey);

#endif
