/* What a predicate can ask about: a key of the case, a part of it (s.kv, window.left), the whole
 * name, or what is known of a result. */
#ifndef FACTS_CASE_FIELD_H
#define FACTS_CASE_FIELD_H

#include "predicate.h"
#include "words/case_text.h"

typedef enum facts_field_kind {
    FACTS_FIELD_KEY,     /* text of a key */
    FACTS_FIELD_NUMBER,  /* a key, or the sm, whose values are (also) numbers */
    FACTS_FIELD_PART,    /* a part of a key: a number or inf */
    FACTS_FIELD_VERSION, /* compared by its parts */
    FACTS_FIELD_WORD     /* text that is not of the case */
} facts_field_kind;

typedef struct facts_field {
    facts_field_kind kind;
    facts_key key;     /* of KEY, NUMBER and PART; FACTS_NO_KEY: not of the case */
    int part;          /* of PART */
    int result;        /* place in the list of what is known of a result, -1: of the case */
    const char *words; /* what it may be, separated by blanks; NULL: anything */
    const char *name;
} facts_field;

/* The field of a word; false when there is none, with the nearest in *hint. */
bool facts_field_find(const facts_language *language, facts_span word, facts_field *out,
                      char hint[FACTS_QUOTE_MAX]);
/* What the subject has there: text in `out` (FACTS_NAME_MAX), false when unknown. */
bool facts_field_text(const facts_field *field, const facts_subject *subject, char *out);
/* The same as a number, inf included; false when unknown or not a number. */
bool facts_field_number(const facts_field *field, const facts_subject *subject, double *out);
/* A number as predicates write it: decimal, or inf; for the sm also with its sm_ in front. */
bool facts_field_read_number(facts_span text, double *out);

/* "9.10.2" and the like; what follows a - is left out. False: not a version. */
#define FACTS_VERSION_PARTS 4
bool facts_version_read(facts_span text, uint32_t out[FACTS_VERSION_PARTS]);
/* As cudnnGetVersion() returns it: 9.28.1 is 92801. Parts that are not written are `missing` (0, or
 * 99: the last of a range). 0: not a version of two or three parts. */
int32_t facts_version_number(facts_span text, uint32_t missing);
int facts_version_compare(const uint32_t a[FACTS_VERSION_PARTS],
                          const uint32_t b[FACTS_VERSION_PARTS]);

/* * is any letters, ? one letter. */
bool facts_glob(facts_span pattern, const char *text);

#endif
