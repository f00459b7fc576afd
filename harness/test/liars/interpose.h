/* A wrong answer between the engine and the judge, on any device: the whole way from an answer in
 * memory to a verdict is tested with engines that are right. The linker puts it around the
 * functions of worker/exec/seams.h in facts-worker-liars (--wrap); no shipped program has any of
 * it. One lie at a time, at every fetch. */
#ifndef FACTS_INTERPOSE_H
#define FACTS_INTERPOSE_H

/* X(SYMBOL, "word", "what is put in its place", the verdict that has to follow) */
#define FACTS_INTERPOSED_LIST(X)                                                                   \
    X(STATS_HEAD, "answer-stats-head", "Stats of one head are 0.001 too large", WRONG)             \
    X(ELEMENT, "answer-element", "one element of O (of dQ) times 1.25", WRONG)                     \
    X(NAN, "answer-nan", "one element of O (of dQ) is NaN", NAN)                                   \
    X(ROW_UNWRITTEN, "answer-row-unwritten", "one row of O (of dQ) is what lay there before",      \
      UNWRITTEN)                                                                                   \
    X(GUARD, "answer-guard-byte", "one byte before O (before dQ) has changed", OVERRUN)            \
    X(GAP, "answer-gap-byte", "one byte between rows of O (of dQ) has changed", OVERRUN)           \
    X(INPUT, "answer-input-byte", "one byte of K has changed", OVERRUN)                            \
    X(WORKSPACE, "answer-workspace-byte", "one byte after the workspace has changed", OVERRUN)     \
    X(AMAX_LATE, "answer-amax-late", "amax_o is taken after the scale, not before", WRONG)         \
    X(SINK_DROPPED, "input-sink-dropped", "the engine sees sinks of -inf", WRONG)                  \
    X(PAGE_NEXT, "input-page-next", "the engine reads each page table one entry late", WRONG)      \
    X(OFFSETS_LATE, "input-offsets-late",                                                          \
      "the engine finds every query sequence but the first one token late", WRONG)                 \
    X(FACTOR_NEXT, "input-factor-next",                                                            \
      "the engine reads each factor of Q's blocks one place late", WRONG)                          \
    X(SEED_OTHER, "input-seed-other", "the engine drops by another seed than it reported", WRONG)  \
    X(SEED_CAPTURED, "replay-seed-captured", "a replay reads the seed of its capture",             \
      GRAPH_MISMATCH)                                                                              \
    X(LENGTHS_CAPTURED, "replay-lengths-captured",                                                 \
      "a replay reads the lengths and ragged offsets of its capture", GRAPH_MISMATCH)              \
    X(TABLE_CAPTURED, "replay-table-captured", "a replay reads the page tables of its capture",    \
      GRAPH_MISMATCH)                                                                              \
    X(SCALES_CAPTURED, "replay-scales-captured", "a replay reads the scales of its capture",       \
      GRAPH_MISMATCH)                                                                              \
    X(MASK_FAULT, "launch-mask-faults",                                                            \
      "the launch that dumps what dropout keeps is a fault of the device", EXEC_FAIL)              \
    X(ADDRESS_KEPT, "launch-address-kept", "every call reads K where the first call had it", NAN)  \
    X(SECOND_BIT, "answer-second-bit", "every run but the first has one bit of O (of dV) turned",  \
      NONDETERMINISTIC)

#include <stdbool.h>
#include <stdio.h>

/* Lies from now on. False: no such word. */
bool facts_interpose_take(const char *word);
/* word, the verdict that has to follow, and what: a tab between, one a line. */
void facts_interpose_print(FILE *out);

#endif
