/* Does dropout keep each score independently of the others? Compares the keep bits of pairs of
 * scores with chance. Pure. docs/numerics.md, probe P3, derives the limit. */
#ifndef FACTS_KEEP_REPEATS_H
#define FACTS_KEEP_REPEATS_H

#include "problem/case_problem.h"

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
