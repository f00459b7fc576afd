/* Checks the scores that dropout kept: their bits and their number (docs/numerics.md, probe P3). */
#ifndef FACTS_JUDGE_KEEP_H
#define FACTS_JUDGE_KEEP_H

#include "numbers/judge/judge.h"

/* Checks an rng_dump: for every score that a row may see it must be 1 if `keep` is not 0 (or NULL:
 * nothing is dropped), else 0. Other elements may have any value. Gate t0. */
facts_judgement facts_judge_keep(const facts_problem *problem, const void *dump,
                                 const uint8_t *keep, facts_pattern pattern);

/* Is the number of kept scores likely (facts_keep_is_likely)? QUANTISED: it is likely for the
 * requested probability rounded to a sixteenth (reported for cuDNN), and not for that probability
 * itself. */
#define FACTS_RATE_LIST(X)                                                                         \
    X(AS_ASKED, "no") X(QUANTISED, "yes") X(EITHER, "either") X(NEITHER, "neither")
#define AS_ENUM(symbol, word) FACTS_RATE_##symbol,
typedef enum facts_rate { FACTS_RATE_LIST(AS_ENUM) FACTS_RATES } facts_rate;
#undef AS_ENUM
extern const char *const facts_rate_words[FACTS_RATES];
facts_rate facts_rate_of(double dropout, int64_t kept, int64_t of);

#endif
