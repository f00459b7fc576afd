/* Random numbers that depend on their place alone: Philox4x32-10 (Salmon et al., SC 2011). docs/numerics.md section 4.
 *
 * Only integer operations, one fp32 conversion and one fp32 multiplication: a CPU and a GPU give the same bits, in any order.
 */
#ifndef FACTS_PHILOX_H
#define FACTS_PHILOX_H

#include <stdint.h>

/* Which stream a number comes from. X(SYMBOL, number) */
#define FACTS_STREAM_LIST(X)                                                                                                     \
    X(Q, 0) X(K, 1) X(V, 2) X(DO, 3) X(BIAS, 4) X(SINK, 5) X(DIRECTION, 6) X(ROW, 7) X(KEEP, 8) X(LENGTHS, 9) X(PAGES, 10)        \
    X(BLOCK_SCALES, 11) X(CODES, 12) X(PAD, 13)
#define AS_ENUM(symbol, number) FACTS_STREAM_##symbol = (number),
typedef enum facts_stream { FACTS_STREAM_LIST(AS_ENUM) } facts_stream;
#undef AS_ENUM

typedef enum facts_lane { FACTS_LANE_VALUE = 0, FACTS_LANE_CHOICE = 1 } facts_lane;

typedef struct facts_draw {
    uint32_t r[4];
} facts_draw;

facts_draw facts_philox(const uint32_t counter[4], const uint32_t key[2]);
/* The four words of element e of a stream. */
facts_draw facts_draw_at(uint64_t seed, facts_stream stream, facts_lane lane, uint64_t e);

/* Mean 0, variance 1, |x| < 4.9; the sum of eight 16 bit halves. `sum` is that integer, before scaling. */
int32_t facts_normal_sum(facts_draw draw);
float facts_normal(facts_draw draw);
/* Uniform in (-1, 1), symmetric, exact. */
float facts_uniform(facts_draw draw);
/* One of 0..m-1. */
uint32_t facts_pick(uint32_t word, uint32_t m);

#endif
