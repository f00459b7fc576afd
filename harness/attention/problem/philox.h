/* Random numbers that depend on their place alone: Philox4x32-10 (Salmon et al., SC 2011).
 * docs/numerics.md section 4.
 *
 * Only integer operations, one fp32 conversion and one fp32 multiplication: a CPU and a GPU give
 * the same bits, in any order. Compiled by C and by CUDA C++.
 */
#ifndef FACTS_PHILOX_H
#define FACTS_PHILOX_H

#include <stdint.h>

#include "host_device.h"

/* Which stream a number comes from. X(SYMBOL, number) */
/* clang-format off */
#define FACTS_STREAM_LIST(X)                                                                    \
    X(Q, 0) X(K, 1) X(V, 2) X(DO, 3) X(BIAS, 4) X(SINK, 5) X(DIRECTION, 6) X(ROW, 7) X(KEEP, 8) \
    X(LENGTHS, 9) X(PAGES, 10) X(BLOCK_SCALES, 11) X(PAD, 13) X(TILES, 14)
/* clang-format on */
#define AS_ENUM(symbol, number) FACTS_STREAM_##symbol = (number),
typedef enum facts_stream { FACTS_STREAM_LIST(AS_ENUM) } facts_stream;
#undef AS_ENUM

typedef enum facts_lane { FACTS_LANE_VALUE = 0, FACTS_LANE_CHOICE = 1 } facts_lane;

typedef struct facts_draw {
    uint32_t r[4];
} facts_draw;

/* a * b: the high half; *low is the low one. */
FACTS_BOTH uint32_t facts_multiply(uint32_t a, uint32_t b, uint32_t *low)
{
#ifdef __CUDA_ARCH__
    *low = a * b;
    return __umulhi(a, b);
#else
    const uint64_t both = (uint64_t)a * b;
    *low = (uint32_t)both;
    return (uint32_t)(both >> 32);
#endif
}

FACTS_BOTH facts_draw facts_philox(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0],
             k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint32_t low_a, low_b, high_a = facts_multiply(c0, UINT32_C(0xD2511F53), &low_a),
                               high_b = facts_multiply(c2, UINT32_C(0xCD9E8D57), &low_b);
        c0 = high_b ^ c1 ^ k0;
        c1 = low_b;
        c2 = high_a ^ c3 ^ k1;
        c3 = low_a;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    facts_draw out = { { c0, c1, c2, c3 } };
    return out;
}

/* The four words of element e of a stream. */
FACTS_BOTH facts_draw facts_draw_at(uint64_t seed, facts_stream stream, facts_lane lane, uint64_t e)
{
    const uint32_t counter[4] = { (uint32_t)e, (uint32_t)(e >> 32), (uint32_t)stream,
                                  (uint32_t)lane };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    return facts_philox(counter, key);
}

/* Mean 0, variance 1, |x| < 4.9; the sum of eight 16 bit halves. This is that integer, before
 * scaling. */
FACTS_BOTH int32_t facts_normal_sum(facts_draw draw)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (draw.r[i] & 0xFFFF) + (draw.r[i] >> 16);
    return 2 * (int32_t)sum - 524280;
}

FACTS_BOTH float facts_normal(facts_draw draw)
{
    return (float)facts_normal_sum(draw) * 0x1.3988e2p-17f;
}

/* Uniform in (-1, 1), symmetric, exact. */
FACTS_BOTH float facts_uniform(facts_draw draw)
{
    return (float)(2 * (int32_t)(draw.r[0] >> 8) + 1 - (1 << 24)) * 0x1p-24f;
}

/* One of 0..m-1. */
FACTS_BOTH uint32_t facts_pick(uint32_t word, uint32_t m)
{
    return (uint32_t)((uint64_t)word * m >> 32);
}

#endif
