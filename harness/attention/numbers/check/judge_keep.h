/* Checks the scores that dropout kept: their bits and their number (docs/numerics.md, probe P3). */
#ifndef FACTS_JUDGE_KEEP_H
#define FACTS_JUDGE_KEEP_H

#include "check.h"
#include "numbers/judge/judge.h"
#include "problem/case_problem.h"

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

/* P3 (docs/numerics.md, section 5): the bits of a dropout mask, read from an engine's answer
 * through windows of keys or rows. Pure. */
/* The first of the `channels` keys that run `number` of a probe reads, for head `head` (counted
 * over the batch). The runs read all keys in turn, if FACTS_CHECK_RUNS runs are enough. Otherwise
 * they read the last live keys and the edges of tiles, and other keys for other heads. */
int64_t facts_window_start(int64_t keys, int64_t live, int64_t channels, int64_t head, int number);

/* P3: the bits of a dropout mask, read from an engine's answer. Forward: Q = 0 and V is one-hot, so
 * O_ic > 0 means that key w+c was kept. Backward: dO is one-hot in one head of each group, so dV_jc
 * > 0 means that row w+c kept key j. */
typedef struct facts_keep {
    int64_t dim[4]; /* batch, query heads, rows, keys */
    uint8_t *bit;   /* the caller's memory; bits that no run shows are not changed */
    int64_t seen, kept;
} facts_keep;
void facts_keep_write(const facts_view *run, bool backward, int number);
/* Reads the bits, and checks that each kept number is 1/(n (1 - p)) and each other number exactly
 * 0. p: the chance to drop. */
void facts_keep_read(facts_keep *out, facts_held *held, const facts_view *run, bool backward,
                     int number, double p);
/* The largest difference of the number of kept scores from n (1 - p) that counts as chance: 5
 * standard deviations, if up to four scores share one decision. */
bool facts_keep_is_likely(const facts_keep *keep, double p);

/* Does dropout keep each score independently of the others? Compares the keep bits of pairs of
 * scores with chance. Pure. docs/numerics.md, probe P3, derives the limit. */
/* One comparison of pairs of scores. All zero: there were no pairs. */
typedef struct facts_repeat {
    char what[40]; /* "keys 64 apart", "batch entries 1, heads -3 apart" */
    int64_t pairs;
    double agree;  /* share of the pairs with the same bit */
    double chance; /* the share for independent bits with the observed rates */
    double ratio;  /* the difference of the two, divided by the largest that chance allows; above 1:
                      not independent */
} facts_repeat;

/* One mask: compares pairs of batch entries, heads, rows and keys, along each axis and along two at
 * once (docs/numerics.md lists the distances). Returns the comparison with the largest ratio. keep: [batch, heads_q, seq_q, seq_kv], 0 or 1; scores that no
 * row may see are not read. */
facts_repeat facts_repeat_within(const facts_problem *problem, const uint8_t *keep);
/* Two masks of one case, with different seeds or offsets: compares the same score in both. `what`
 * names them: "seeds 1 apart". */
facts_repeat facts_repeat_between(const facts_problem *problem, const uint8_t *a, const uint8_t *b,
                                  const char *what);

#endif
