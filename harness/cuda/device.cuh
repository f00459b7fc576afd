/* What every kernel uses. */
#ifndef FACTS_DEVICE_CUH
#define FACTS_DEVICE_CUH

#include "calls.h"

/* Element n of every so many, for this thread: blocks may be fewer than there is work. */
__device__ static inline int64_t first_of_thread()
{
    return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ static inline int64_t threads_of_grid()
{
    return (int64_t)gridDim.x * blockDim.x;
}

__device__ static inline int64_t places_of(const facts_strided *v)
{
    return v->dim[0] * v->dim[1] * v->dim[2] * v->dim[3];
}

/* Channel 0 of a row. */
__device__ static inline int64_t row_of(const facts_strided *v, int64_t b, int64_t h, int64_t s)
{
    const int64_t entry = v->start ? v->start[b] * v->stride[2] : b * v->stride[0];
    return v->first + entry + h * v->stride[1] + s * v->stride[2];
}

__device__ static inline bool exists(const facts_strided *v, int64_t b, int64_t s)
{
    return !v->live || s < v->live[b];
}

/* Where element n lies; its batch and row. */
__device__ static inline int64_t place_of(const facts_strided *v, int64_t n, int64_t *b, int64_t *s)
{
    const int64_t d = n % v->dim[3], row = n / v->dim[3], slice = row / v->dim[2], h = slice % v->dim[1];
    *s = row % v->dim[2];
    *b = slice / v->dim[1];
    return row_of(v, *b, h, *s) + d * v->stride[3];
}

/* The poison of a place; negative ones are in the guard. */
__device__ static inline uint32_t code_at(const uint32_t code[FACTS_PATTERN_PERIOD], int64_t place)
{
    return code[(place % FACTS_PATTERN_PERIOD + FACTS_PATTERN_PERIOD) % FACTS_PATTERN_PERIOD];
}

__device__ static inline void count(facts_counter *to, int64_t found)
{
    if (found)
        atomicAdd(to, (facts_counter)found);
}

/* The same, called by all threads of a warp together: additions to one place are made one by one. */
__device__ static inline void count_warp(facts_counter *to, int64_t found)
{
    for (int lanes = 16; lanes > 0; lanes /= 2)
        found += __shfl_xor_sync(0xffffffff, found, lanes);
    if (threadIdx.x % 32 == 0)
        count(to, found);
}

#endif
