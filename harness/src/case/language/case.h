/* A case: one attention problem with everything that defines it. A plain value; its canonical name is its repro string.
 *
 * The case language (docs/cases.md) is one grammar for the command line, suite files, records and reports. Every key is one row of
 * FACTS_KEY_LIST in keys.h; parser, printer, --help and the nearest-word hint follow from it.
 */
#ifndef FACTS_CASE_H
#define FACTS_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"
#include "keys.h" /* facts_key: FACTS_KEY_PASS, FACTS_KEY_DTYPE, ... FACTS_KEY_COUNT */

#define FACTS_CASE_TEXT 1024
#define FACTS_NAME_MAX 1400

/* Canonical text of each key that was set to something else than its default. No pointers: may be copied, compared, stored. */
typedef struct facts_case {
    uint16_t at[FACTS_KEY_COUNT]; /* offset in `text`, 0: the default */
    uint16_t used;
    char text[FACTS_CASE_TEXT];
} facts_case;

/* Parses one case (no lists). Returns false and fills *error when something is wrong. */
bool facts_case_parse(facts_case *out, const char *text, facts_error *error);
/* The canonical name: pass and dtype always, of the rest what is not default, in the fixed order. Returns `out`. */
const char *facts_case_name(const facts_case *c, char out[FACTS_NAME_MAX]);
/* The canonical text of a key, its default included (never NULL). */
const char *facts_case_get(const facts_case *c, facts_key key);
/* Sets a key from text (as parse does for one token). */
bool facts_case_set(facts_case *c, facts_key key, const char *value, facts_error *error);
/* Sets the tokens of --with: "engine=all repeat=2". */
bool facts_case_override(facts_case *c, const char *with, facts_error *error);

/* One case of a list, and the group that it came from. The texts live as long as the list; they are "" without a suite. */
typedef struct facts_planned {
    const char *name; /* canonical; facts_case_parse makes it a case again */
    const char *group, *why;
    const char *expect; /* what a group of refusals says it must be refused with: "CLASS words of the reason"; "" otherwise */
} facts_planned;

typedef struct facts_cases facts_cases; /* owner; opaque */

/* What of the expanded cases is wanted, and how. Zero: all of them, as they are. */
typedef struct facts_choice {
    const char *where; /* a predicate: keep what satisfies it */
    const char *with;  /* "engine=all repeat=2": every case gets these, instead of what it says itself; after `where` */
    size_t limit;      /* more is an error, found before anything is expanded; 0: 1000000 */
} facts_choice;

/* Expands what CASES means on the command line: a case or pattern, a suite's name (searched in `suite_dir`), or a file. `choice`
 * may be NULL. Duplicates (same canonical name) are kept once, in first place. Returns  0; 2 bad input (*error says where). */
int facts_cases_expand(facts_cases **out, const char *const *texts, size_t count, const char *suite_dir, const facts_choice *choice,
                       facts_error *error);
size_t facts_cases_count(const facts_cases *cases);
facts_planned facts_cases_at(const facts_cases *cases, size_t i);
/* xxHash64 of all names, as 16 hex digits: the identity of what was planned. */
void facts_cases_hash(const facts_cases *cases, char out[17]);
void facts_cases_destroy(facts_cases *cases);

#endif
