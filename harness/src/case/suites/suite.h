/* The lines of a suite: groups, patterns with their filters, draws. Pure: the caller reads the
 * files. */
#ifndef FACTS_CASE_SUITE_H
#define FACTS_CASE_SUITE_H

#include "case/language/pattern.h"
#include "predicate.h"

typedef struct facts_group {
    char *name, *why, *expect;
    int line;
    facts_predicate *where; /* of the group: a line of its own; NULL: keeps all */
} facts_group;

typedef struct facts_suite_line {
    facts_pattern *pattern;
    facts_place place;
    size_t group;
    facts_predicate *where; /* of the line */
    uint64_t draw, seed;    /* draw 0: all members */
} facts_suite_line;

typedef struct facts_suite {
    facts_group *group;
    size_t groups;
    facts_suite_line *line;
    size_t lines;
} facts_suite;

/* Appends the groups of `text`. `text` and `where` must live as long as the suite. */
bool facts_suite_read(facts_suite *suite, const char *text, const char *where, facts_error *error);
/* The number of cases before filters; UINT64_MAX if it does not fit. */
uint64_t facts_suite_count(const facts_suite *suite);
void facts_suite_clear(facts_suite *suite);

#endif
