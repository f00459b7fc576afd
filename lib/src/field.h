/* The fields of a resolved problem as predicates name them. */
#ifndef FATTN_FIELD_H
#define FATTN_FIELD_H

#include "fattn/fattn.h"

typedef struct fattn__word {
    int64_t value;
    const char *word;
} fattn__word;

typedef enum fattn__field_kind {
    FATTN__FIELD_NUMBER, /* a whole number */
    FATTN__FIELD_REAL,
    FATTN__FIELD_WORD,  /* one of `words` */
    FATTN__FIELD_FORMAT /* several of `words` may hold: bit `value` of the answer */
} fattn__field_kind;

typedef struct fattn__field {
    const char *name;
    fattn__field_kind kind;
    const fattn__word *words; /* ends with a NULL word */
    int64_t (*number)(const fattn_problem *resolved);
    double (*real)(const fattn_problem *resolved); /* REAL only */
} fattn__field;

/* By its name of `length` letters; NULL. */
const fattn__field *fattn__field_find(const char *name, size_t length);

#endif
