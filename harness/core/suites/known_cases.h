/* The cases of a known failure (cases/known/ID.known, docs/known.md), as text for the suite reader.
 * Pure. */
#ifndef FACTS_CASE_KNOWN_H
#define FACTS_CASE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>

struct facts_suite;

/* Is this the path of a known failure? */
bool facts_is_known(const char *path);
/* Makes a suite of the groups of a file. Each line keeps its number, so errors name the places in
 * the file. "cases: X" becomes "name: ID/X"; a line outside the groups becomes empty. The caller
 * frees it. */
char *facts_known_suite(const char *text, const char *path);
/* Sets the title and the links of the file as the reason of each group without `why`, from group
 * `first` on. */
void facts_known_titles(struct facts_suite *suite, size_t first, const char *text);
/* Does the file belong to the suite regress? Files with `size: big` and files without cases do not.
 */
bool facts_known_in_regress(const char *text);

#endif
