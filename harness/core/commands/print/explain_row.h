/* Prints every member of a row for people, in the words of docs/records.md. */
#ifndef FACTS_EXPLAIN_H
#define FACTS_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* `row` is the text of a row in a record. Members that only locate the row (case, build, run and so
 * on) are left out. */
void facts_explain_row(const char *row, size_t length, FILE *out);
/* For a row that was asked with --explain: prints the case, why it or its forward is refused on
 * that device, and accepted cases nearby. False, and nothing is printed: nothing was refused. */
bool facts_explain_nearest(const char *row, size_t length, const char *device, FILE *out);

#endif
