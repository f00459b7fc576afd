/* The planned cases: the list that CASES on a command line expands to. Each name occurs once. */
#ifndef FACTS_PLANNED_CASES_H
#define FACTS_PLANNED_CASES_H

#include "language/case.h"
#include <stdbool.h>
#include <stddef.h>

/* One case of a list, and the group that it came from. The texts live as long as the list; they are
 * "" without a suite. */
typedef struct facts_planned {
    const char *name; /* canonical; facts_case_read makes it a case again */
    const char *group, *why;
    const char *expect; /* of a group of refusals: the refusal that is expected, "CLASS words of the
                           reason"; "" otherwise */
    uint64_t calls;     /* that models make of it, in all lines; 0: unknown */
} facts_planned;

typedef struct facts_cases facts_cases; /* owner; opaque */

/* Selects from the expanded cases and changes them. Zero: all of them, unchanged. */
typedef struct facts_choice {
    const char *where; /* a predicate: keep what satisfies it */
    const char *with;  /* "engine=all repeat=2": every case gets these values instead of its own;
                          applied after `where` */
    size_t limit;      /* more cases are an error, found before the expansion; 0: 1000000 */
} facts_choice;

/* Expands what CASES means on the command line: a case or pattern, a suite's name (searched in `suite_dir`), or a file. `choice`
 * may be NULL. Duplicates (same canonical name) are kept once, in first place. Returns  0; 2 bad input (*error says where). */
int facts_cases_expand(const facts_language *language, facts_cases **out, const char *const *texts,
                       size_t count, const char *suite_dir, const facts_choice *choice,
                       facts_error *error);
size_t facts_cases_count(const facts_cases *cases);
facts_planned facts_cases_at(const facts_cases *cases, size_t i);
/* xxHash64 of all names as 16 hex digits. It identifies the plan. */
void facts_cases_hash(const facts_cases *cases, char out[17]);
void facts_cases_destroy(facts_cases *cases);

/* The cases of a known failure (cases/known/ID.known, docs/known.md), as text for the suite reader.
 * Pure. */
struct facts_suite;

/* Is this the path of a known failure? */
bool facts_is_known(const char *path);
/* Makes a suite of the groups of a file. Each line keeps its number, so errors name the places in
 * the file. "cases: X" becomes "name: ID/X"; a line outside the groups becomes empty. The caller
 * frees it. */
char *facts_known_suite(const char *text, const char *path);
/* Does the file belong to the suite regress? Files with `size: big` and files without cases do not.
 */
bool facts_known_in_regress(const char *text);

#endif
