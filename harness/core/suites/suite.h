/* The lines of a suite: groups, patterns with their filters, draws, named lists. Pure: the caller
 * reads the files. */
#ifndef FACTS_CASE_SUITE_H
#define FACTS_CASE_SUITE_H

#include "language/pattern.h"
#include "predicate.h"

typedef struct facts_group {
    char *name, *why, *expect;
    int line;
    facts_predicate *where; /* of the group: a line of its own; NULL: keeps all */
} facts_group;

/* A line below `draw`: keys whose values are drawn one after the other. */
typedef struct facts_drawn_keys {
    facts_pattern *pattern;
    facts_predicate *where; /* a value after which it does not hold is taken back */
} facts_drawn_keys;

typedef struct facts_suite_line {
    facts_pattern *pattern; /* NULL: the keys are on lines of their own */
    facts_place place;
    size_t group;
    facts_predicate *where; /* of the line */
    uint64_t draw, seed;    /* draw 0: all members */
    uint64_t work;          /* the most of a drawn case; 0: no limit */
    uint64_t calls;         /* that a model makes of each; 0: unknown */
    facts_drawn_keys *keys;
    size_t key_lines;
} facts_suite_line;

typedef struct facts_suite {
    const facts_language *language; /* the caller's; the rest starts as zero */
    facts_group *group;
    size_t groups;
    facts_suite_line *line;
    size_t lines;
    const facts_list *lists;
} facts_suite;

/* Appends the groups of `text`. `text` and `where` must live as long as the suite. */
bool facts_suite_read(facts_suite *suite, const char *text, const char *where, facts_error *error);
/* The number of cases before filters; UINT64_MAX if it does not fit. */
uint64_t facts_suite_count(const facts_suite *suite);
void facts_suite_clear(facts_suite *suite);

/* What is wanted beside the suite. Zero: nothing. */
typedef struct facts_draw_choice {
    const facts_predicate *where;
    const char *with; /* "engine=all repeat=2": every case gets these */
} facts_draw_choice;

/* Can `with` be set in a case? */
bool facts_draw_check(const facts_language *language, const facts_draw_choice *choice,
                      facts_error *error);
/* Draws case `index` of all lines with `draw`. It depends on the seed alone. Each round over these
 * lines has seeds of its own. False: the filters keep none of the cases that were tried. */
bool facts_suite_draw(const facts_suite *suite, uint64_t seed, uint64_t index,
                      const facts_draw_choice *choice, facts_case *out);
/* Draws case `index` of one line whose keys are on lines of their own. */
bool facts_line_draw(const facts_suite *suite, const facts_suite_line *line, uint64_t seed,
                     uint64_t index, const facts_draw_choice *choice, facts_case *out);

#endif
