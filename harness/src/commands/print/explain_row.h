/* A row for a person: every member of it, in the words of docs/records.md. */
#ifndef FACTS_EXPLAIN_H
#define FACTS_EXPLAIN_H

#include <stddef.h>
#include <stdio.h>

/* `row` is a row's text as a record has it. The members that place the row (case, build, run and the like) are left out. */
void facts_explain_row(const char *row, size_t length, FILE *out);
/* Of a refused row that was asked with --explain: the case, why not, and what near it is accepted. Of others nothing. */
void facts_explain_nearest(const char *row, size_t length, FILE *out);

#endif
