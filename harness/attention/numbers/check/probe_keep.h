/* P3 (docs/numerics.md, section 5): the bits of a dropout mask, read from an engine's answer
 * through windows of keys or rows. Pure. */
#ifndef FACTS_PROBE_KEEP_H
#define FACTS_PROBE_KEEP_H

#include "check.h"

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

#endif
