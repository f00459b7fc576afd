/* Runs every liar with every type and size. Reports which fill and gate find it and how clearly,
 * and how often a correct kernel is called wrong. */
#ifndef FACTS_EMULATION_SURVEY_H
#define FACTS_EMULATION_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/words/fail.h"
#include "flash/flash_liars.h"
#include "numbers/judge/calibration.h"

/* X(SYMBOL, "word", forward rows, keys; backward rows, keys): backward 0: not asked */
/* clang-format off */
#define FACTS_SIZE_LIST(X)                                                  \
    X(S200, "200", 200, 200, 200, 200)                                      \
    X(S500, "500", 256, 500, 256, 500) X(LONG, "4000", 64, 4000, 256, 1000) \
    X(DECODE, "decode", 1, 2000, 0, 0)
/* clang-format on */
#define FACTS_AS_ENUM(symbol, word, rows, keys, backward_rows, backward_keys) FACTS_SIZE_##symbol,
typedef enum facts_size { FACTS_SIZE_LIST(FACTS_AS_ENUM) FACTS_SIZE_COUNT } facts_size;
#undef FACTS_AS_ENUM

/* X(SYMBOL, "word", type, as it adds) in the order of facts_survey's types. HOPPER: added as its
 * tensor cores do, and judged by the constants that 8 bit engines of a GPU start from
 * (docs/numerics.md section 2); FP32: e4m3 and e5m2 that are judged as they add, in fp32; TABLE:
 * judged by the table. */
/* clang-format off */
#define FACTS_SURVEY_TYPE_LIST(X)                                                           \
    X(BF16, "bf16", BF16, TABLE) X(F16, "f16", F16, TABLE) X(F32, "f32", F32, TABLE)        \
    X(E4M3, "e4m3", E4M3, FP32) X(E5M2, "e5m2", E5M2, FP32)                                 \
    X(E4M3_HOPPER, "e4m3-hopper", E4M3, HOPPER) X(E5M2_HOPPER, "e5m2-hopper", E5M2, HOPPER)
/* clang-format on */
#define FACTS_AS_ENUM(symbol, word, type, adds) FACTS_SURVEY_##symbol,
typedef enum facts_survey_type {
    FACTS_SURVEY_TYPE_LIST(FACTS_AS_ENUM) FACTS_SURVEY_TYPES
} facts_survey_type;
#undef FACTS_AS_ENUM

typedef enum facts_end {
    FACTS_END_NOT_APPLICABLE,
    FACTS_END_KILLED,
    FACTS_END_NEAR,
    FACTS_END_BLIND,
    FACTS_END_SURVIVED
} facts_end;

/* What became of one liar in one type and size. */
typedef struct facts_found {
    facts_liar liar;
    facts_survey_type type;
    facts_size size;
    facts_end end;
    double ratio;                     /* the largest over the fills; 1 is the threshold */
    const char *fill, *gate, *tensor; /* where that was; "" where nothing was off */
    const char *why;                  /* of blind and not applicable */
    bool sometimes;                   /* blind with some data alone */
    bool news;                        /* listed as blind with all data, and found */
} facts_found;

typedef struct facts_survey_choice {
    const char *liar; /* an id, or a part of it; NULL: all */
    const char *type; /* NULL: all */
    bool quick; /* only the smallest size, and a liar is not asked again after the first fill that
                   finds it */
    uint64_t seed;
    const facts_constants *constants; /* judged by these; NULL: the widest that the table has for
                                         the type. Not FP32, see above */
} facts_survey_choice;

typedef struct facts_survey {
    facts_found *found; /* in the order of the lists */
    size_t count;
    size_t honest;       /* trials of the honest kernel on the same scenes */
    size_t false_alarms; /* among them */
    char alarms[2048];   /* the first ones, a line each */
} facts_survey;

/* Threads: OpenMP over scenes. Returns 0; ENOMEM; EINVAL (no such liar or type) with one line in
 * `error`. */
int facts_survey_run(facts_survey *out, const facts_survey_choice *choice, facts_error *error);
void facts_survey_free(facts_survey *survey);

const char *facts_size_word(facts_size size, facts_liar liar);
const char *facts_survey_type_word(facts_survey_type type);
bool facts_survey_type_is_narrow(facts_survey_type type); /* 8 bits */
const char *facts_end_word(facts_end end);

#endif
