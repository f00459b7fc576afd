/* Score modifications for the tests, in closed form. */
#ifndef FREF_TESTING_MODIFICATIONS_H
#define FREF_TESTING_MODIFICATIONS_H

#include <fref/fref.h>

typedef enum mod_kind {
    MOD_NONE,
    MOD_SOFTCAP,
    MOD_TEMPERATURE,
    MOD_RELPOS,
    MOD_CAUSAL,
    MOD_STRIPES,
    MOD_COUNT
} mod_kind;
extern const char *const mod_words[MOD_COUNT];

/* A fref_modification; `owner` points to a mod_kind. */
fref_modified modify_exactly(const void *owner, double score, const int64_t at[4]);

#endif
