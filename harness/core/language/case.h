/* A case: one problem with everything that defines it. A case is a plain value. Its canonical name reproduces it. The case
 * language (docs/cases.md) is one grammar for the command line, suite files, records and reports; the keys are those of its
 * language. */
#ifndef FACTS_CASE_H
#define FACTS_CASE_H

#include "language.h"
#include "words/fail.h"

#define FACTS_CASE_TEXT 1024
#define FACTS_NAME_MAX 1400

/* The canonical text of each key that is not at its default. It may be copied, compared and stored. */
typedef struct facts_case {
    const facts_language *language;
    uint16_t at[FACTS_KEYS_MOST]; /* offset in `text`, 0: the default */
    uint16_t used;
    char text[FACTS_CASE_TEXT];
} facts_case;

/* Parses one case (no lists). Returns false and fills *error if the text is invalid. */
bool facts_case_read(const facts_language *language, facts_case *out, const char *text,
                     facts_error *error);
/* Writes the canonical name: the keys that are in every name, then every other key that is not at its default, in the order of
 * the table. Returns `out`. */
const char *facts_case_name(const facts_case *c, char out[FACTS_NAME_MAX]);
/* The canonical text of a key, its default included (never NULL). */
const char *facts_case_get(const facts_case *c, facts_key key);
/* What this case needs in the process_variable of its language; "": nothing. */
const char *facts_case_process(const facts_case *c);
/* Does it need its GPU alone? */
bool facts_case_is_alone(const facts_case *c);
/* Sets a key from text (as read does for one token). */
bool facts_case_set(facts_case *c, facts_key key, const char *value, facts_error *error);
/* Sets the tokens of --with: "engine=all repeat=2". */
bool facts_case_override(facts_case *c, const char *with, facts_error *error);

#endif
