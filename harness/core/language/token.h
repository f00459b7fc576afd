/* `key=value` tokens of one line. */
#ifndef FACTS_CASE_TOKEN_H
#define FACTS_CASE_TOKEN_H

#include "language.h"

/* Where a text lies, for errors: file (or "case"), line, and the column of its first letter. */
typedef struct facts_place {
    const char *where;
    int line, column;
} facts_place;

typedef struct facts_token {
    facts_key key;
    facts_span value;
    int column, value_column;
} facts_token;

/* Splits on blanks and finds the keys; each key at most once. `out` has room for FACTS_KEYS_MOST.
 */
bool facts_tokens_read(const facts_language *language, facts_span text, facts_place place,
                       facts_token *out, size_t *count, facts_error *error);

#endif
