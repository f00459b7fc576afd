/* The cases of the softmax: its keys, and what they say. */
#ifndef SOFTMAX_H
#define SOFTMAX_H

#include "language/case.h"

/* X(SYMBOL, "word", allowed, "default", "help"), as in attention/keys/keys.h */
/* clang-format off */
#define SOFTMAX_KEY_LIST(X)                                                            \
    X(TYPE, "type", "f32 bf16", "f32", "type of the numbers")                          \
    X(ROWS, "rows", "M", "4", "rows")                                                  \
    X(COLUMNS, "columns", "M", "64", "numbers in a row")                               \
    X(LOG, "log", "0 1", "0", "the logarithm of the softmax")                          \
    X(SCALE, "scale", "X", "1", "factor of the numbers")                               \
    X(ENGINE, "engine", "auto all N", "auto", "the first choice, a number, or each") \
    X(DATA, "data", "gauss large equal masked", "gauss", "what the rows hold")         \
    X(SEED, "seed", "N", "1", "seed of the data")
/* clang-format on */

#define AS_ENUM(symbol, word, allowed, otherwise, help) SOFTMAX_##symbol,
enum { SOFTMAX_KEY_LIST(AS_ENUM) SOFTMAX_KEYS };
#undef AS_ENUM

enum { SOFTMAX_GAUSS, SOFTMAX_LARGE, SOFTMAX_EQUAL, SOFTMAX_MASKED };
enum { SOFTMAX_AUTO = -1, SOFTMAX_ALL = -2 };

typedef struct softmax_problem {
    bool bf16, log;
    int64_t rows, columns, engine;
    double scale;
    int data;
    uint64_t seed;
} softmax_problem;

extern const facts_language softmax_language;
/* NULL, or why nobody could compute it: the word of a key comes first. */
const char *softmax_resolve(softmax_problem *out, const facts_case *c);

#endif
