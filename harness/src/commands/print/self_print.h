/* What the survey of liars found, on stdout: for people, for programs, for the documentation. */
#ifndef FACTS_SELF_PRINT_H
#define FACTS_SELF_PRINT_H

#include "emulation/survey.h"

/* A line for each liar, and under it one for each type and size. */
void facts_self_print_table(const facts_survey *survey);
/* An object a line. */
void facts_self_print_json(const facts_survey *survey);
/* A row for each liar and type: for each type: the weakest ratio over the sizes and what found it; where it cannot be found. */
void facts_self_print_markdown(const facts_survey *survey);

#endif
