#include "philox.h"

facts_draw facts_philox(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)a;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    return (facts_draw){ { c0, c1, c2, c3 } };
}

facts_draw facts_draw_at(uint64_t seed, facts_stream stream, facts_lane lane, uint64_t e)
{
    const uint32_t counter[4] = { (uint32_t)e, (uint32_t)(e >> 32), (uint32_t)stream, (uint32_t)lane };
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    return facts_philox(counter, key);
}

int32_t facts_normal_sum(facts_draw draw)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (draw.r[i] & 0xFFFF) + (draw.r[i] >> 16);
    return 2 * (int32_t)sum - 524280;
}

float facts_normal(facts_draw draw)
{
    return (float)facts_normal_sum(draw) * 0x1.3988e2p-17f;
}

float facts_uniform(facts_draw draw)
{
    return (float)(2 * (int32_t)(draw.r[0] >> 8) + 1 - (1 << 24)) * 0x1p-24f;
}

uint32_t facts_pick(uint32_t word, uint32_t m)
{
    return (uint32_t)((uint64_t)word * m >> 32);
}
