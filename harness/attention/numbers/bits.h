/* A hash of an answer's elements. It depends on the place of each element, but not on the order in
 * which elements are added. Compiled by C and by CUDA C++. */
#ifndef FACTS_BITS_H
#define FACTS_BITS_H

#include <stdint.h>

#include "problem/host_device.h"

/* splitmix64's step: every bit of x moves every bit of the result. */
FACTS_BOTH uint64_t facts_mix(uint64_t x)
{
    uint64_t z = (x + 1) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The contribution of element n (logical index) to the hash of its tensor. The hash is the sum of
 * all, modulo 2^64. */
FACTS_BOTH uint64_t facts_bits_of(int64_t n, uint32_t code)
{
    return facts_mix(facts_mix((uint64_t)n) ^ code);
}

#endif
