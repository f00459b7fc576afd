/* A case: one attention problem with everything that defines it. A case is a plain value. Its
 * canonical name reproduces it. The case language (docs/cases.md) is one grammar for the command
 * line, suite files, records and reports. Every key is one row of FACTS_KEY_LIST in keys.h. Parser,
 * printer, --help and the suggestions for misspelled words follow from that list. */
#ifndef FACTS_CASE_H
#define FACTS_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"
#include "keys.h" /* facts_key: FACTS_KEY_PASS, FACTS_KEY_DTYPE, ... FACTS_KEY_COUNT */

#define FACTS_CASE_TEXT 1024
#define FACTS_NAME_MAX 1400

/* The canonical text of each key that is not at its default. No pointers: it may be copied,
 * compared and stored. */
typedef struct facts_case {
    uint16_t at[FACTS_KEY_COUNT]; /* offset in `text`, 0: the default */
    uint16_t used;
    char text[FACTS_CASE_TEXT];
} facts_case;

/* Parses one case (no lists). Returns false and fills *error if the text is invalid. */
bool facts_case_parse(facts_case *out, const char *text, facts_error *error);
/* Writes the canonical name: pass and dtype, then every other key that is not at its default, in
 * the fixed order. Returns `out`. */
const char *facts_case_name(const facts_case *c, char out[FACTS_NAME_MAX]);
/* The canonical text of a key, its default included (never NULL). */
const char *facts_case_get(const facts_case *c, facts_key key);
/* Sets a key from text (as parse does for one token). */
bool facts_case_set(facts_case *c, facts_key key, const char *value, facts_error *error);
/* Sets the tokens of --with: "engine=all repeat=2". */
bool facts_case_override(facts_case *c, const char *with, facts_error *error);

#endif
