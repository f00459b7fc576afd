/* Reads the text files of FACTS line by line, and reports the line and the letter of a mistake. */
#ifndef FACTS_CASE_LINES_H
#define FACTS_CASE_LINES_H

#include "predicate.h"
#include "words/case_text.h"

typedef struct facts_lines {
    const facts_language *language; /* of predicates */
    const char *where;              /* the file, for people */
    size_t most;                    /* letters of a line; 0: as many as there are */
    facts_error *error;             /* of what went wrong */
    int line;                       /* the one that is read now */
    const char *start;              /* its first letter */
} facts_lines;

/* Calls `read` for each line that is not empty, without its comment, until it returns false.
 * Returns whether all lines were read. */
bool facts_lines_each(facts_lines *in, const char *text,
                      bool (*read)(void *context, facts_span line), void *context);

/* Reports a mistake at a letter of the line (NULL: the whole line). Returns false. */
bool facts_lines_fail(const facts_lines *in, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Parses a predicate that is part of the line. Mistakes are reported at their place in the line,
 * which starts after `before`. */
bool facts_lines_predicate(const facts_lines *in, facts_span text, const char *before,
                           facts_predicate **out);

#endif
